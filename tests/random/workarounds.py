"""Variants of a query around what DuckDB refuses or answers in a way that docs/semantics.md lists, one rule each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from sqlglot import exp

from tests.random.variants import expression_of, is_call, text_of_tree, transformed

_PARTS = frozenset("year isoyear yearweek decade century millennium".split())
_PARTS_BY_NAME = frozenset("date_part datepart extract".split())
_TRUNCATIONS = frozenset("date_trunc datetrunc".split())


def around_errors(sql: str) -> Iterator[str]:
    """Variants that say the same of what DuckDB refuses."""
    return _changed(sql, (_mode_by_two_keys, _like, _extract_of_null))


def around_answers(sql: str) -> Iterator[str]:
    """Variants that say what tqp answers."""
    at_utc = (partial(_part_at_utc, truncates=each) for each in (False, True))
    return _changed(sql, (_extract_of_null, *at_utc))


def _changed(sql: str, changes: Iterable[Callable[[exp.Expr], exp.Expr]]) -> Iterator[str]:
    as_it_is = transformed(sql, lambda node: node)
    variants = (transformed(sql, change) for change in changes)
    return (each for each in variants if each != as_it_is)


def _mode_by_two_keys(node: exp.Expr) -> exp.Expr:
    """By one key, DuckDB takes a constant that mode() is of for the fraction of a percentile."""
    if not is_call(node, "mode") or not isinstance(node.expressions[-1], exp.Order):
        return node
    new = node.copy()
    order = new.expressions[-1]
    order.set("expressions", [*order.expressions, *(each.copy() for each in order.expressions)])
    return new


def _like(node: exp.Expr) -> exp.Expr:
    """ILIKE by constants computes its ESCAPE for a row that is NULL, LIKE does not."""
    if isinstance(node, exp.ILike):
        return exp.Like(this=node.this.copy(), expression=node.expression.copy())
    if is_call(node, "ilike_escape", "not_ilike_escape"):
        return exp.Anonymous(this=node.name.replace("ilike", "like"), expressions=node.expressions)
    return node


def _extract_of_null(node: exp.Expr) -> exp.Expr:
    """DuckDB has '' where the number of the group is NULL."""
    if not is_call(node, "regexp_extract") or len(node.expressions) < 3:
        return node
    group = text_of_tree(node.expressions[2])
    return expression_of(f"CASE WHEN ({group}) IS NOT NULL THEN {text_of_tree(node)} END")


def _part_at_utc(node: exp.Expr, *, truncates: bool) -> exp.Expr:
    """DuckDB numbers the years before Christ of an instant with a time zone in another way."""
    is_part = is_call(node, *_PARTS, *_PARTS_BY_NAME) or isinstance(node, exp.Extract)
    is_truncation = truncates and is_call(node, *_TRUNCATIONS)
    if not is_part and not is_truncation:
        return node
    new = node.copy()
    of = new.expression if isinstance(new, exp.Extract) else new.expressions[-1]
    of.replace(exp.cast(of.copy(), "TIMESTAMP"))
    return exp.cast(new, "TIMESTAMPTZ") if is_truncation else new
