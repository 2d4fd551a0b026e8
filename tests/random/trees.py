"""Trees of random queries, and the SQL that is written of them."""

from __future__ import annotations

from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB

from tqp import Error
from tqp.planner.parse import parse
from tqp.planner.syntax.parser import is_unpacked


def parsed(sql: str) -> exp.Expr | None:
    """The tree of a query, in which calls stay as they were written; None if it cannot be parsed."""
    try:
        return parse(sql).tree
    except Error:
        return None


class _Generator(DuckDB.Generator):
    """As sqlglot's, which leaves out what it does not know functions to take, and writes a CASE for what is DISTINCT in two."""

    MULTI_ARG_DISTINCT = True

    def ignorenulls_sql(self, node: exp.IgnoreNulls) -> str:
        """Text before the bracket that closes a call."""
        return f"{self.sql(node, 'this')} IGNORE NULLS"

    def respectnulls_sql(self, node: exp.RespectNulls) -> str:
        """Text before the bracket that closes a call."""
        return f"{self.sql(node, 'this')} RESPECT NULLS"

    def bracket_sql(self, node: exp.Bracket) -> str:
        """Subscripts as they are written, counted from 1."""
        return f"{self.sql(node, 'this')}[{self.expressions(node, flat=True)}]"

    def anonymous_sql(self, node: exp.Anonymous) -> str:
        """`*COLUMNS(...)` keeps its star."""
        return f"{'*' * is_unpacked(node)}{super().anonymous_sql(node)}"

    def describe_sql(self, node: exp.Describe) -> str:
        """A description in the place of a table."""
        asked = f" {self.sql(node, 'this')}" if node.this else ""
        return f"({node.args['kind'].value}{asked})"

    def select_sql(self, node: exp.Select) -> str:
        """A PIVOT whose values are not written is a statement."""
        *joins, last = node.args.get("joins") or [exp.Join()]
        pivot = last.this
        if not isinstance(pivot, exp.Pivot) or pivot.args.get("unpivot") or not _has_no_values(pivot):
            return super().select_sql(node)
        if joins or len(node.args["expressions"]) > 1 or node.args.get("where") is not None:
            raise UnwritableError
        on = ", ".join(
            self.sql(header) + (f" IN {self.sql(values[0])}" if values else "")
            for header, *values in (each.expressions for each in pivot.args["fields"])
        )
        group = self.sql(pivot, "group")
        return f"PIVOT {self.sql(node.args['from_'].this)} ON {on} USING {self.expressions(pivot, flat=True)}{group}"

    def join_sql(self, node: exp.Join) -> str:
        """PIVOT and UNPIVOT behind a table."""
        pivot = node.this
        if not isinstance(pivot, exp.Pivot):
            return super().join_sql(node)
        if pivot.args.get("unpivot"):
            nulls = "INCLUDE NULLS " if pivot.args.get("include_nulls") else ""
            name, *columns = (self.sql(each) for each in pivot.args["fields"])
            values = self.expressions(pivot, flat=True)
            inside = f"{nulls}(({values}) FOR {name} IN ({', '.join(columns)}))"
        else:
            if _has_no_values(pivot):
                raise UnwritableError
            fields = [each.expressions for each in pivot.args["fields"]]
            lists = " ".join(f"{self.sql(header)} IN {self.sql(values)}" for header, values in fields)
            group = self.sql(pivot, "group")
            inside = f"({self.expressions(pivot, flat=True)} FOR {lists}{group})"
        alias = self.sql(pivot, "alias")
        return f" {node.args['method']} {inside}{f' AS {alias}' if alias else ''}"


def _has_no_values(pivot: exp.Pivot) -> bool:
    return any(len(each.expressions) < 2 for each in pivot.args["fields"])


class UnwritableError(Exception):
    """A query that has no text as a variant."""


def text_of_tree(tree: exp.Expr) -> str:
    """SQL of a tree."""
    return str(_Generator(dialect=DuckDB()).generate(tree))


def expression_of(text: str) -> exp.Expr:
    """The tree of an expression."""
    (item,) = parse(f"SELECT {text}").tree.expressions
    return item


def is_call(node: exp.Expr, *names: str) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in names and bool(node.expressions)
