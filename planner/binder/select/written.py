"""Expressions known by how they are written: group keys, and what ORDER BY repeats of SELECT."""

from __future__ import annotations

from collections.abc import Collection
from typing import Generic, TypeVar

from sqlglot import exp

from tqp.core.keywords import lower_ascii, quoted
from tqp.planner.algebra.expressions import ColumnRef, walk
from tqp.planner.binder.scope import MergedColumn, Relation, Scope, ScopeColumn
from tqp.planner.binder.select.names import Names

Meaning = TypeVar("Meaning")


class Written(Names, Generic[Meaning]):
    """What expressions mean by their text as DuckDB writes it: `LOWER(s)` is `lower(t.s)`, but `lcase(s)` is not.

    `hidden` are names, in lower case, that stand for something else than the columns of FROM.
    """

    def __init__(self, query: str, scope: Scope, hidden: Collection[str] = ()) -> None:
        super().__init__(query)
        self._scope = scope
        self._hidden = hidden
        self._meanings: dict[str, Meaning] = {}
        self._texts: dict[int, tuple[exp.Expr, str]] = {}  # by id of the node, which has to live on

    def add(self, node: exp.Expr, meaning: Meaning, again: bool = False) -> None:
        """Make the node's text mean this, unless it means something and is not to do so `again`."""
        if again:
            self._meanings[self.text(node)] = meaning
        self._meanings.setdefault(self.text(node), meaning)

    def find(self, node: exp.Expr) -> Meaning | None:
        """What is written like the node."""
        return self._meanings.get(self.text(node)) if self._meanings else None

    def where_hidden(self, names: Collection[str]) -> Written[Meaning]:
        """The same where the names stand for something else."""
        written: Written[Meaning] = Written(self.query, self._scope, names)
        written._meanings = self._meanings
        return written

    def text(self, node: exp.Expr) -> str:
        if id(node) not in self._texts:
            self._texts[id(node)] = node, super().text(node)
        return self._texts[id(node)][1]

    def column(self, node: exp.Column) -> str:
        is_hidden = not node.table and lower_ascii(node.name) in self._hidden
        found = None if is_hidden else self._scope.resolve_here(node.name, node.table or None, None)
        if found is None:
            return lower_ascii(super().column(node))
        columns = [_text_of(part) for part in walk(found) if isinstance(part, ColumnRef)]
        return columns[0] if isinstance(found, ColumnRef) else f"COALESCE({', '.join(columns)})"

    def target(self, node: exp.Cast) -> str:
        return lower_ascii(super().target(node))

    def subquery(self, node: exp.Expr) -> str:
        while isinstance(node, exp.Subquery) and {name for name, value in node.args.items() if value} == {
            "this"
        }:
            node = node.this  # parentheses
        if any(isinstance(item, exp.Alias) for item in node.expressions):  # its columns have no names outside
            node = node.copy()
            node.set("expressions", [item.unalias() for item in node.expressions])
        if node.find(exp.IgnoreNulls):  # which sqlglot does not write
            node = node.transform(_as_call_of_its_own)
        return str(node.sql("duckdb", comments=False))


def _as_call_of_its_own(node: exp.Expr) -> exp.Expr:
    if not isinstance(node, exp.IgnoreNulls):
        return node
    return exp.Anonymous(this="ignore_nulls", expressions=[node.this])


class Qualified(Written[None]):
    """Expressions by a text in which the name of its table stands before each column."""

    def column(self, node: exp.Column) -> str:
        name = lower_ascii(node.name)
        owner = next((each for each in self._scope.relations if name in each.by_name), None)
        if node.table or owner is None:
            return lower_ascii(Names.column(self, node))
        return _name_in(owner, name)

    def name_of(self, column: ScopeColumn | MergedColumn) -> str:
        """The text of what a star stands for."""
        name = lower_ascii(column.name)
        owners = (each for each in self._scope.relations if each.by_name.get(name) is column)
        return _name_in(next(owners, self._scope.relations[0]), name)


def _name_in(relation: Relation, name: str) -> str:
    return lower_ascii(f"{quoted(relation.alias)}.{quoted(name)}")


def _text_of(column: ColumnRef) -> str:
    return f"#{column.id}"
