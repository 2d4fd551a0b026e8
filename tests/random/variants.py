"""Variants of a query that say the same, and on which DuckDB raises an error or not: they tell what makes the engines differ."""

from __future__ import annotations

import re
from collections.abc import Iterator

import sqlglot
from sqlglot import exp

_MIRRORED: dict[type[exp.Binary], type[exp.Binary]] = {
    exp.Add: exp.Add,
    exp.Mul: exp.Mul,
    exp.Sub: exp.Sub,
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}
_FUNCTIONS = ("add", "subtract", "multiply")


def with_swapped_operands(sql: str) -> Iterator[str]:
    """The query with the operands of one operator exchanged; none if it cannot be parsed.

    DuckDB computes them from left to right, and no right one where the left is NULL for all rows at once.
    """
    try:
        count = len(_operators(sqlglot.parse_one(sql, read="duckdb")))
    except sqlglot.ParseError:
        return
    for position in range(count):
        tree = sqlglot.parse_one(sql, read="duckdb")
        node = _operators(tree)[position]
        if isinstance(node, exp.Anonymous):
            node.set("expressions", node.expressions[::-1])
        else:
            swapped = _MIRRORED[type(node)](this=node.expression, expression=node.this)  # type: ignore[index]
            if node is tree:
                tree = swapped
            else:
                node.replace(swapped)
        yield tree.sql(dialect="duckdb")


def _operators(tree: exp.Expr) -> list[exp.Expr]:
    return [
        node
        for node in tree.walk()
        if type(node) in _MIRRORED
        or (
            isinstance(node, exp.Anonymous) and node.name.lower() in _FUNCTIONS and len(node.expressions) == 2
        )
    ]


def without_materialized(sql: str) -> str:
    """The query without the word MATERIALIZED, at which DuckDB computes what nobody reads."""
    return re.sub(r"\bAS\s+(NOT\s+)?MATERIALIZED\b", "AS ", sql, flags=re.IGNORECASE)
