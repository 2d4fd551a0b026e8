"""Variants of a query around what DuckDB refuses or answers in a way that docs/semantics.md lists, one rule each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial

from sqlglot import exp

from tests.random.trees import expression_of, is_call, text_of_tree
from tests.random.variants import transformed
from tqp.planner.binder.expressions.nested.list_calls import SET_OPERATORS

_PARTS = frozenset("year isoyear yearweek decade century millennium".split())
_PARTS_BY_NAME = frozenset("date_part datepart extract".split())
_DIFFERENCES = frozenset("age date_diff datediff date_sub datesub".split())
_TRUNCATIONS = frozenset("date_trunc datetrunc".split())
_SETS = tuple(f"{kind}_{name}" for kind in ("list", "array") for name in ("has_all", "has_any", "intersect"))


def around_errors(sql: str) -> Iterator[str]:
    """Variants that say the same of what DuckDB refuses."""
    changes = (_mode_by_two_keys, _like, _extract_of_null, _difference_at_utc, _array_of_derived_table)
    return _changed(sql, changes)


def around_answers(sql: str) -> Iterator[str]:
    """Variants that say what tqp answers."""
    at_utc = (partial(_part_at_utc, truncates=each) for each in (False, True))
    changes = (_extract_of_null, _sets_by_places, _distinct_in_order, _difference_at_utc, _try_cast_of_text)
    return _changed(sql, (*changes, _array_of_derived_table, *at_utc))


def around_hidden_columns(sql: str) -> Iterator[str]:
    """Variants that DuckDB refuses, too: a subquery in LIMIT or OFFSET is a column that ORDER BY may count there."""
    return _changed(sql, (_limit_by_number,))


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


def _limit_by_number(node: exp.Expr) -> exp.Expr:
    is_count = isinstance(node.parent, exp.Limit | exp.Offset) and node.parent.expression is node
    return exp.Literal.number(1) if is_count and node.find(exp.Query) else node


def _extract_of_null(node: exp.Expr) -> exp.Expr:
    """DuckDB has '' where the number of the group is NULL."""
    if not is_call(node, "regexp_extract") or len(node.expressions) < 3:
        return node
    group = text_of_tree(node.expressions[2])
    return expression_of(f"CASE WHEN ({group}) IS NOT NULL THEN {text_of_tree(node)} END")


def _sets_by_places(node: exp.Expr) -> exp.Expr:
    """Lists as sets find what is written alike; list_position() finds what is equal, such as a month and 30 days."""
    is_operator = isinstance(node, tuple(SET_OPERATORS))
    if not is_operator and not (is_call(node, *_SETS) and len(node.expressions) == 2):
        return node
    new = node.copy()
    sides = [new.this, new.expression] if is_operator else new.expressions
    both = f"list_concat({', '.join(map(text_of_tree, sides))})"
    place = f"lambda e: CASE WHEN e IS NOT NULL THEN list_position({both}, e) END"
    for side in [*sides]:
        side.replace(expression_of(f"list_transform({text_of_tree(side)}, {place})"))
    if not is_operator and node.name.lower().endswith("_intersect"):
        return expression_of(f"list_transform({text_of_tree(new)}, lambda p: {both}[p])")
    return new


def _distinct_in_order(node: exp.Expr) -> exp.Expr:
    """In no order that anything says; here as they come."""
    if not is_call(node, "list_distinct", "array_distinct") or len(node.expressions) != 1:
        return node
    elements = text_of_tree(node.expressions[0])
    return expression_of(
        f"list_filter({elements}, lambda e, i: e IS NOT NULL AND list_position({elements}, e) = i)"
    )


def _array_of_derived_table(node: exp.Expr) -> exp.Expr:
    """ORDER BY within ARRAY means a column in FROM before what SELECT gives that name, elsewhere the other way round."""
    if not is_call(node, "array") or not isinstance(node.expressions[0], exp.Select):
        return node
    return expression_of(f"ARRAY(SELECT * FROM ({text_of_tree(node.expressions[0])}))")


def _try_cast_of_text(node: exp.Expr) -> exp.Expr:
    """Where an ENUM is no TIME, DuckDB has a NULL that IS DISTINCT FROM NULL."""
    if not isinstance(node, exp.TryCast) or node.to.this in exp.DataType.NUMERIC_TYPES:
        return node
    return exp.TryCast(this=exp.cast(node.this.copy(), "VARCHAR"), to=node.to.copy())


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


def _difference_at_utc(node: exp.Expr) -> exp.Expr:
    """DuckDB numbers years before Christ in another way, and has an age of infinity, where an instant has a time zone."""
    if not is_call(node, *_DIFFERENCES):
        return node
    new = node.copy()
    for of in new.expressions[0 if node.name.lower() == "age" else 1 :]:
        of.replace(exp.cast(of.copy(), "TIMESTAMP"))
    return new
