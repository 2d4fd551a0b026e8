"""The shape of a query: its plan with the constants of comparisons taken out, so that one program serves all their values.

People send one query with other constants each time. Texts whose plans are equal but for constants that columns are compared
with have one shape: the constants become parameters of the program, and no part of the planner or of the program sees their
values. Only estimates do, by an example; a plan whose constants keep another share of the rows is another `Variant`.

Constants elsewhere, in lists and patterns too, are part of the shape, and so is which constants are equal.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from tqp.core.datatypes import BIGINT, DataType
from tqp.planner.algebra.expressions import (
    Call,
    Expression,
    Literal,
    Parameter,
    Value,
    transform,
)
from tqp.planner.algebra.known_fields import KnownFields
from tqp.planner.algebra.logical_plan import Filter, Join, LogicalPlan, Scan
from tqp.planner.algebra.node import transform_plan, walk_plan
from tqp.planner.functions.conditions import COMPARISONS, MIRRORED
from tqp.planner.functions.ranges import within
from tqp.planner.optimizer import without_subqueries
from tqp.planner.physical.cardinality import KeptShare
from tqp.planner.rules.cast_comparisons import without_cast
from tqp.planner.rules.context import OptimizerContext

#: Plans for shares of a column's range that differ by this factor, and by this share, may differ.
_SHARE_FACTOR, _SHARE_SLACK = 4.0, 0.02


@dataclass(frozen=True, slots=True)
class Shape:
    """`key`: equal where the plans are, but for the values of the parameters. `plan` reads `values` as parameters.

    `shares`: of each column that is compared with parameters, the share of its range that they keep.
    """

    key: Hashable
    plan: LogicalPlan
    values: tuple[Value, ...]
    shares: tuple[float, ...]

    def keeps_alike(self, shares: Sequence[float]) -> bool:
        """Would a plan made for these shares be made for this one's too, as far as estimates go?"""
        return all(
            max(a, b) <= _SHARE_FACTOR * min(a, b) + _SHARE_SLACK
            for a, b in zip(self.shares, shares, strict=True)
        )


def shape_of(plan: LogicalPlan, context: OptimizerContext) -> Shape:
    """The shape of a bound plan whose columns are encoded. Raises what unnesting its subqueries raises."""
    plan = without_subqueries(plan, context)
    fields = KnownFields()
    for node in walk_plan(plan):
        if isinstance(node, Scan):
            fields.put(node.field_facts.values())
        if node.scorings:  # constants prune models
            return Shape((), plan, (), ())
    indexes: dict[tuple[str, DataType], int] = {}
    values: list[Value] = []
    kept = KeptShare(fields)

    def lifted(expression: Expression) -> Expression:
        comparison = _with_constant(expression)
        if comparison is None:
            return expression
        side, literal = comparison.arguments
        assert isinstance(literal, Literal)
        index = indexes.setdefault((repr(literal.value), literal.data_type), len(values))
        if index == len(values):
            values.append(literal.value)
        kept.add(comparison)
        return replace(comparison, arguments=(side, Parameter(index, literal.data_type, literal.value)))

    def with_parameters(node: LogicalPlan) -> LogicalPlan:
        if not isinstance(node, Filter | Join):
            return node
        return node.map_expressions(lambda expression: transform(expression, lifted))

    plan = transform_plan(plan, with_parameters)
    return Shape(_key(plan), plan, tuple(values), kept.shares)


def _with_constant(expression: Expression) -> Call | None:
    """A comparison with a constant that a program can take as a parameter, that on the right; None of all else."""
    if not isinstance(expression, Call) or expression.function not in COMPARISONS:
        return None
    left, right = expression.arguments
    if isinstance(left, Literal):
        expression = replace(expression, function=MIRRORED[expression.function], arguments=(right, left))
    expression = without_cast(expression)
    side, literal = expression.arguments
    if isinstance(side, Literal) or not isinstance(literal, Literal) or not _can_vary(literal):
        return None
    return expression


def _can_vary(literal: Literal) -> bool:
    """Not NULL, nor NaN; text, a float, or an integer of up to 64 bits that is no BOOLEAN."""
    value, data_type = literal.value, literal.data_type
    match value:
        case bool() | None:
            return False
        case int():
            return data_type.is_integer_like and within((value, value), BIGINT)
        case float():
            return data_type.is_float and not math.isnan(value)
        case str():
            return data_type.is_string
    return False


def _key(plan: LogicalPlan) -> Hashable:
    """Each node once, after its inputs, which it knows by their places."""
    places: dict[int, int] = {}
    parts: list[Hashable] = []

    def place(node: LogicalPlan) -> int:
        known = places.get(id(node))
        if known is None:
            inputs = tuple(map(place, node.inputs))
            parts.append((node.shape(lambda expression: expression), inputs, node.created_fields))
            known = places[id(node)] = len(parts)
        return known

    place(plan)
    return tuple(parts)
