"""Variants of a query that say the same, and for which DuckDB raises an error or not: they tell why the engines differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import sqlglot
from sqlglot import exp

_MIRRORED: dict[type[exp.Expr], type[exp.Binary]] = {
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
    count = sum(map(_has_operands, _nodes(sql)))
    for position in range(count):
        tree = sqlglot.parse_one(sql, read="duckdb")
        yield _replaced(tree, [node for node in tree.walk() if _has_operands(node)][position], _swapped)


def _nodes(sql: str) -> list[exp.Expr]:
    try:
        return list(sqlglot.parse_one(sql, read="duckdb").walk())
    except sqlglot.ParseError:
        return []


def _replaced(tree: exp.Expr, node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> str:
    new = change(node)
    if node is tree:
        tree = new
    elif new is not node:
        node.replace(new)
    return tree.sql(dialect="duckdb")


def _has_operands(node: exp.Expr) -> bool:
    is_call = isinstance(node, exp.Anonymous) and node.name.lower() in _FUNCTIONS
    return (
        type(node) in _MIRRORED or isinstance(node, exp.Between) or (is_call and len(node.expressions) == 2)
    )


def _swapped(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Anonymous):
        return exp.Anonymous(this=node.this, expressions=[each.copy() for each in node.expressions[::-1]])
    if isinstance(node, exp.Between):
        low = exp.LTE(this=node.args["low"].copy(), expression=node.this.copy())
        high = exp.GTE(this=node.args["high"].copy(), expression=node.this.copy())
        return exp.Paren(this=exp.And(this=low, expression=high))
    return _MIRRORED[type(node)](this=node.expression.copy(), expression=node.this.copy())


_OPERATORS = (
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.Mod,
    exp.Between,
)


def with_null_cases(sql: str) -> str:
    """The query with each left operand x as CASE WHEN x IS NULL THEN NULL ELSE x END; it itself if it cannot be parsed.

    Where x is NULL for all rows, that is one NULL for DuckDB, which then computes no right operand.
    """

    def change(node: exp.Expr) -> exp.Expr:
        first = node.parent is not None and (
            node.arg_key == "this"
            and isinstance(node.parent, _OPERATORS)
            or isinstance(node.parent, exp.Anonymous)
            and node is node.parent.expressions[0]
            and len(node.parent.expressions) > 1
        )
        if not first or isinstance(node, exp.Literal):
            return node
        is_null = exp.Is(this=exp.Paren(this=node.copy()), expression=exp.Null())
        case = exp.Case(ifs=[exp.If(this=is_null, true=exp.Null())], default=node.copy())
        return exp.Paren(this=case)

    return _transformed(sql, change)


def with_inlined_ctes(sql: str) -> str:
    """The query with NOT MATERIALIZED in each CTE; it itself if it cannot be parsed.

    Of one that it materialises DuckDB computes columns that nobody reads.
    """
    try:
        tree = sqlglot.parse_one(sql, read="duckdb")
    except sqlglot.ParseError:
        return sql
    for definition in tree.find_all(exp.CTE):
        definition.set("materialized", False)
    return str(tree.sql(dialect="duckdb"))


def with_shields(sql: str) -> str:
    """The query with each AND and OR as a CASE whose first condition may decide; it itself if it cannot be parsed.

    DuckDB computes all conditions of those that do not stand in WHERE or ON themselves.
    """
    return _transformed(sql, _shielded)


def _shielded(node: exp.Expr) -> exp.Expr:
    if not isinstance(node, exp.And | exp.Or):
        return node
    first, decided = exp.Paren(this=node.this.copy()), isinstance(node, exp.Or)
    case = exp.Case(
        ifs=[
            exp.If(
                this=exp.Is(this=first, expression=exp.Boolean(this=decided)), true=exp.Boolean(this=decided)
            )
        ]
    )
    case.set("default", node.copy())
    return exp.Paren(this=case)


def with_late_conditions(sql: str) -> str:
    """The query with what stands in ON of inner joins as conditions of WHERE; it itself if it cannot be parsed.

    A condition on one side then sees only the rows that have found a partner, if nothing is optimized.
    """

    def late(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Select):
            return node
        joins = [*(node.args.get("joins") or ()), *_joins_of_first(node)]
        conditions = []
        for join in joins:
            if join.args.get("on") is not None and not join.args.get("side") and join.kind in ("", "INNER"):
                conditions.append(join.args["on"])
                join.set("on", exp.Boolean(this=True))
        for condition in conditions:
            node = node.where(condition, copy=False)
        return node

    return _transformed(sql, late)


def _joins_of_first(select: exp.Select) -> list[exp.Join]:
    clause = select.args.get("from_")
    return [] if clause is None else list(clause.this.args.get("joins") or ())


def _transformed(sql: str, change: Callable[[exp.Expr], exp.Expr]) -> str:
    try:
        tree = sqlglot.parse_one(sql, read="duckdb")
    except sqlglot.ParseError:
        return sql
    # from below: what is put in is not changed again
    for node in reversed(list(tree.walk())):
        new = change(node)
        if new is not node:
            if node is tree:
                tree = new
            else:
                node.replace(new)
    return str(tree.sql(dialect="duckdb"))
