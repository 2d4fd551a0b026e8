"""Variants of a query that say the same, and to which DuckDB gives another answer: they tell why the engines differ."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from tqp import Error
from tqp.planner.parse import parse


def parsed(sql: str) -> exp.Expr | None:
    """The tree of a query, in which calls stay as they were written; None if it cannot be parsed."""
    try:
        return parse(sql).tree
    except Error:
        return None


def text_of_tree(tree: exp.Expr) -> str:
    """SQL of a tree."""
    return str(tree.sql(dialect="duckdb"))


def _is_call(node: exp.Expr, *names: str) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in names and bool(node.expressions)


def with_all_rows(sql: str) -> str:
    """The query without its LIMIT and OFFSET; itself if it has none."""
    tree = parsed(sql)
    if tree is None or not any(tree.args.get(key) for key in ("limit", "offset")):
        return sql
    tree.set("limit", None)
    tree.set("offset", None)
    return text_of_tree(tree)


def with_guarded_rounding(sql: str) -> str:
    """The query with NULL as what round() and trunc() make of NULL: DuckDB has 0 if no digit of a DECIMAL is left."""
    return _transformed(sql, lambda node: _guarded(node) if _is_call(node, "round", "trunc") else node)


def with_null_constants(sql: str, type_of_null: Callable[[str], str | None]) -> str:
    """The query with NULL as each call and cast of constants that is the first to be NULL: DuckDB knows it before there are types.

    `type_of_null` gives the type of an expression that is NULL, None of others.
    """

    def change(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Func) or node.find(exp.Column, exp.Query, exp.Star, exp.Case, exp.Null):
            return node
        null_type = type_of_null(text_of_tree(node))
        return node if null_type is None else exp.cast(exp.Null(), exp.DataType.build(null_type, udt=True))

    return _transformed(sql, change)


def with_text_compared(sql: str, *, of_subqueries: bool) -> str:
    """The query with the left side of each ANY and ALL as VARCHAR, or what their subqueries give; itself if unparsed.

    DuckDB refuses it unless that is text or an ENUM.
    """

    def change(node: exp.Expr) -> exp.Expr:
        if not isinstance(node.args.get("expression"), exp.Any | exp.All):
            return node
        new = node.copy()
        select = new.expression.find(exp.Select)
        if select is None:
            return node
        old = select.expressions[0].unalias() if of_subqueries else new.this
        null = exp.If(this=exp.Boolean(this=False), true=exp.cast(exp.Null(), "VARCHAR"))
        old.replace(exp.Paren(this=exp.Case(ifs=[null], default=old.copy())))
        return new

    return _transformed(sql, change)


def _guarded(node: exp.Expr) -> exp.Expr:
    first = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
    if isinstance(first, exp.Literal):
        return node
    is_null = exp.Is(this=exp.Paren(this=first.copy()), expression=exp.Null())
    case = exp.Case(ifs=[exp.If(this=is_null, true=exp.Null())], default=node.copy())
    return exp.Paren(this=case)


def _transformed(sql: str, change: Callable[[exp.Expr], exp.Expr]) -> str:
    tree = parsed(sql)
    if tree is None:
        return sql
    # from below: what is put in is not changed again
    for node in reversed(list(tree.walk())):
        new = change(node)
        if new is not node:
            node.replace(new)
    return text_of_tree(tree)
