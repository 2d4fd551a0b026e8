"""The text of subqueries in the names of output columns."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Any

from sqlglot import exp

from tqp.core.keywords import quoted
from tqp.planner.parse import span_of, without_parentheses

_SET_OPERATIONS: dict[type, str] = {exp.Union: "UNION", exp.Except: "EXCEPT", exp.Intersect: "INTERSECT"}
_MODIFIERS = frozenset(("with_", "order", "limit", "offset"))
_SELECT = _MODIFIERS | {
    "expressions",
    "distinct",
    "from_",
    "joins",
    "where",
    "group",
    "having",
    "qualify",
    "windows",
}
_SET_OPERATION = _MODIFIERS | {"this", "expression", "distinct", "by_name"}


class _UnwrittenError(Exception):
    """A clause whose spelling is not known here."""


class QueryNames:
    """What writes queries; their expressions are written by `Names`."""

    query: str

    @abstractmethod
    def text(self, node: Any) -> str:
        """The text of any expression."""

    @abstractmethod
    def _call(self, name: str, arguments: Iterable[Any]) -> str:
        """The text of a call."""

    @abstractmethod
    def _order(self, node: exp.Order) -> str:
        """The text of ORDER BY."""

    def subquery(self, node: exp.Expr) -> str:
        """A subquery's text in DuckDB's spelling; one with clauses that are rare as the user wrote it."""
        node = without_parentheses(node)
        try:
            return self._query(node)
        except _UnwrittenError:
            span = span_of(node)
            start = self.query.upper().rfind("SELECT", 0, span[0] + 6) if span else -1
            return self.query[start : span[1]] if span and start >= 0 else "SELECT"

    def _query(self, node: exp.Expr) -> str:
        node = without_parentheses(node)
        if isinstance(node, exp.Values) and not node.args.get("alias"):
            return f"SELECT * FROM ({self._values(node)}) AS valueslist"
        if isinstance(node, exp.Table):  # TABLE t
            return f"SELECT * FROM {self._source(node)}"
        is_select = isinstance(node, exp.Select)
        if {name for name, value in node.args.items() if value} - (_SELECT if is_select else _SET_OPERATION):
            raise _UnwrittenError
        if is_select:
            text = self._select(node)
        elif type(node) in _SET_OPERATIONS:
            word = _set_operator(node)
            text = f"{self._left_side(node)}{word} ({self._query(node.expression)})"
        else:
            raise _UnwrittenError
        return self._with(node.args.get("with_")) + text + self._modifiers(node)

    def _left_side(self, node: exp.Expr) -> str:
        """The queries before the last operator; DuckDB sees several UNIONs as one, and puts no blank before the second."""
        left = without_parentheses(node.this)
        is_same = isinstance(left, exp.Union) and _set_operator(left) == _set_operator(node)
        if is_same and not any(left.args.get(clause) for clause in _MODIFIERS):
            return self._query(left)
        return f"({self._query(left)}) "

    def _select(self, node: exp.Expr) -> str:
        text = "SELECT "
        distinct, group = node.args.get("distinct"), node.args.get("group")
        if distinct is not None:
            on = distinct.args.get("on")
            keys = [] if on is None else on.expressions if isinstance(on, exp.Tuple) else [on.unnest()]
            text += f"DISTINCT {f'ON ({self._listed(keys)}) ' if keys else ''}"
        text += ", ".join(self._selected(item) for item in node.expressions)
        if node.args.get("from_") is not None:
            text += (
                f" FROM {self._joined(self._source(node.args['from_'].this), node.args.get('joins') or ())}"
            )
        if node.args.get("where") is not None:
            text += f" WHERE {self.text(node.args['where'].this)}"
        if group is not None:
            text += f" GROUP BY {self._grouping(group)}"
        for clause in ("having", "qualify"):
            if node.args.get(clause) is not None:
                text += f" {clause.upper()} {self.text(node.args[clause].this)}"
        return text

    def _listed(self, nodes: Iterable[exp.Expr]) -> str:
        return ", ".join(map(self.text, nodes))

    def _grouping(self, node: exp.Group) -> str:
        if any(isinstance(key, exp.Rollup | exp.Cube | exp.GroupingSets) for key in node.expressions):
            raise _UnwrittenError
        if node.args.get("all"):
            return "ALL"
        return ", ".join("()" if key == exp.Tuple() else self.text(key) for key in node.expressions)

    def _selected(self, node: exp.Expr) -> str:
        if isinstance(node, exp.Alias):
            return f"{self.text(node.this)} AS {quoted(node.alias)}"
        if isinstance(node, exp.Star):
            if any(node.args.values()):
                raise _UnwrittenError
            return "*"
        return self.text(node)

    def _modifiers(self, node: exp.Expr) -> str:
        text = ""
        order, limit, offset = (node.args.get(clause) for clause in ("order", "limit", "offset"))
        if order is not None:
            text += self._order(order)
        if limit is not None:
            options = limit.args.get("limit_options")
            count = limit.args.get("count") if isinstance(limit, exp.Fetch) else limit.expression
            amount = "1" if count is None else self.text(count)
            is_share = options is not None and options.args.get("percent")
            text += f" LIMIT ({amount}) %" if is_share else f" LIMIT {amount}"
        if offset is not None:
            text += f" OFFSET {self.text(offset.expression)}"
        return text

    def _with(self, node: exp.With | None) -> str:
        if node is None:
            return ""
        tables = []
        for table in node.expressions:
            alias, keys = table.args["alias"], table.args.get("key_expressions")
            is_kept = table.args.get("materialized")
            columns = f" ({', '.join(quoted(each.name) for each in alias.columns)})" if alias.columns else ""
            if keys:
                columns += f" USING KEY ({', '.join(map(self.text, keys))}) "
            word = "" if is_kept is None else "MATERIALIZED " if is_kept else "NOT MATERIALIZED "
            tables.append(f"{quoted(alias.name)}{columns} AS {word}({self._query(table.this)})")
        return f"WITH {'RECURSIVE ' * bool(node.args.get('recursive'))}{', '.join(tables)} "

    def _values(self, node: exp.Values) -> str:
        rows = (each.expressions if isinstance(each, exp.Tuple) else [each] for each in node.expressions)
        return f"VALUES {', '.join(f'({self._listed(row)})' for row in rows)}"

    def _joined(self, first: str, joins: Iterable[exp.Join]) -> str:
        """The tables of FROM: a join is of all that stands before it, up to a comma."""
        listed = [first]
        for join in joins:
            right = self._source(join.this)
            kinds = [str(join.args.get(part) or "").upper() for part in ("method", "side", "kind")]
            condition, using = join.args.get("on"), join.args.get("using")
            if not any(kinds) and condition is None and not using:
                listed.append(right)
                continue
            method, side, kind = kinds
            words = [method] if method else []
            if method != "POSITIONAL":
                words.append(side or (kind if kind in ("CROSS", "SEMI", "ANTI") else "INNER"))
            text = f"{listed[-1]} {' '.join(words)} JOIN {right}"
            if using:
                text += f" USING ({', '.join(quoted(each.name) for each in using)})"
            elif condition is not None:
                text += f" ON ({self.text(condition)})"
            listed[-1] = f"({text})"
        return " , ".join(listed)

    def _source(self, node: exp.Expr) -> str:
        """A table, a subquery or a call; with joins where parentheses stand around these."""
        joins = node.args.get("joins")
        return self._joined(self._table(node), joins) if joins else self._table(node)

    def _table(self, node: exp.Expr) -> str:
        if node.args.get("sample") or node.args.get("pivots") or node.args.get("ordinality"):
            raise _UnwrittenError
        alias = node.args.get("alias")
        named = ""
        if alias is not None and alias.name:
            columns = ", ".join(quoted(each.name) for each in alias.columns)
            named = f" AS {quoted(alias.name)}" + (f"({columns})" if columns else "")
        if isinstance(node, exp.Unnest):
            text = self._call("unnest", node.expressions)
        elif isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            text = ".".join(quoted(part.name) for part in node.parts)
        elif isinstance(node, exp.Table):
            text = self.text(node.this)
        elif isinstance(node, exp.Values):
            if named == " AS _values":  # behind UNION, where sqlglot gives it a name
                return f"({self._values(node)}) AS valueslist"
            text = f"(SELECT * FROM ({self._values(node)}) AS valueslist)"
        elif isinstance(node, exp.Lateral) and isinstance(node.this, exp.Anonymous):
            text = self.text(node.this)
        elif isinstance(node, exp.Lateral):
            return self._source(node.this) + named
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table | exp.Subquery) and not named:
            text = self._source(node.this)  # parentheses around joins
        elif isinstance(node, exp.Subquery):
            text = f"({self._query(node.this)})"
        else:
            raise _UnwrittenError
        return text + named


def _set_operator(node: exp.Expr) -> str:
    """`UNION ALL BY NAME`"""
    is_all, by_name = not node.args.get("distinct"), bool(node.args.get("by_name"))
    return _SET_OPERATIONS[type(node)] + " ALL" * is_all + " BY NAME" * by_name
