"""Prune models by what is known of their inputs: branches of trees that no row takes, constants as part of the bias."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from math import inf, isfinite

from tqp.core.models import InputRange, ModelSignature
from tqp.planner.algebra.expressions import (
    Call,
    Cast,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Predict,
    Scoring,
    are_literals,
    conjuncts,
)
from tqp.planner.algebra.known_fields import Fields
from tqp.planner.algebra.logical_plan import Filter, Join, JoinType, Limit, LogicalPlan, Project, Sort
from tqp.planner.algebra.node import walk_plan
from tqp.planner.algebra.outcomes import nullable
from tqp.planner.algebra.value_ranges import value_range
from tqp.planner.functions.conditions import LOWER, UPPER
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.models.ignore_unread_inputs import without_unread

#: A model is pruned where scoring all rows takes longer than this, in nanoseconds: building the smaller one takes time.
_WORTH_PRUNING = 2e7

#: What filters say of columns of floats and strings: a closed range, or the words that may stand there.
Bounds = dict[int, InputRange]
Words = dict[int, frozenset[str]]


def restrict_models(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """Trees lose the branches that conditions like `age < 30`, constant inputs or the values of a column rule out.

    In linear models constants, and categories that a condition fixes, become part of the bias, and are not read.
    """
    restriction = _Restriction(context)
    for node in walk_plan(plan):
        restriction.collect(node)
    if not restriction.ranges:
        return plan
    return context.rewrite(
        plan, lambda node: node.map_expressions(restriction.restricted) if node.scorings else node
    )


class _Restriction:
    """Ranges by scoring, over all places where it stands: calls that were equal stay so."""

    def __init__(self, context: OptimizerContext) -> None:
        self.context = context
        self.ranges: dict[Scoring, tuple[InputRange | None, ...]] = {}
        self.rows: dict[Scoring, float] = {}

    def collect(self, plan: LogicalPlan) -> None:
        """Note the ranges of the calls in one node."""
        if not plan.scorings:
            return
        # A filter's other conjuncts hold in every row whose prediction counts.
        sources = (plan,) if isinstance(plan, Filter) else plan.inputs
        bounds, words = _known(sources)
        fields: Fields = {}
        for source in sources:
            fields.update(source.field_facts)
        rows = max((self.context.estimator.rows(below) for below in plan.inputs), default=1.0)
        for made in plan.scorings:
            here = tuple(_range_of(argument, fields, bounds, words) for argument in made[1])
            before = self.ranges.get(made, here)
            self.ranges[made] = tuple(_hull(a, b) for a, b in zip(before, here, strict=True))
            self.rows[made] = max(rows, self.rows.get(made, 0.0))

    def restricted(self, expression: Expression) -> Expression:
        if isinstance(expression, Predict):
            model = self.model(expression.scoring)
            return expression if model is None else without_unread(replace(expression, model=model))
        return expression.map_inputs(self.restricted)

    def model(self, made: Scoring) -> ModelSignature | None:
        """The smaller model, or None where there is none or it is not worth it."""
        model = made[0]
        found = self.ranges.get(made)
        if found is None or self.rows[made] * model.cost < _WORTH_PRUNING:
            return None
        smaller = model.restricted({i: each for i, each in enumerate(found) if each is not None})
        return None if smaller is model else smaller


def _range_of(argument: Expression, fields: Fields, bounds: Bounds, words: Words) -> InputRange | None:
    """(least, greatest, may be missing) of an argument; None where nothing is known."""
    while isinstance(argument, Cast) and argument.data_type.is_float and argument.input.data_type.is_integer:
        argument = argument.input
    if isinstance(argument, Literal):
        value = argument.value
        is_number = isinstance(value, bool | int | float) and isfinite(value)
        return InputRange(float(value), float(value), False) if is_number else None  # type: ignore[arg-type]
    missing = nullable(argument, fields)
    if isinstance(argument, Call) and argument.function == "category_code":
        column, *categories = argument.arguments
        allowed = words.get(column.id) if isinstance(column, ColumnRef) else None
        if isinstance(column, Cast) and column.input.data_type.is_enum:
            positions = value_range(column.input, fields)
            if positions is not None:
                allowed = frozenset(column.input.data_type.categories[positions[0] : positions[1] + 1])
        if isinstance(column, Literal) and isinstance(column.value, str):
            allowed = frozenset((column.value,))
        known = [each.value for each in categories if isinstance(each, Literal)]
        if allowed is None or not allowed <= set(known):
            return None
        codes = [float(known.index(word)) for word in allowed]
        return InputRange(min(codes), max(codes), missing)
    if argument.data_type.is_integer:
        integers = value_range(argument, fields)
        return None if integers is None else InputRange(float(integers[0]), float(integers[1]), missing)
    if isinstance(argument, ColumnRef) and argument.data_type.is_float:
        return bounds.get(argument.id)
    return None


def _known(plans: Iterable[LogicalPlan]) -> tuple[Bounds, Words]:
    """What the filters of plans say of the floats and strings that they put out."""
    bounds: Bounds = {}
    words: Words = {}
    for plan in plans:
        match plan:
            case Filter():
                below = _known((plan.input,))
                for part in conjuncts(plan.condition):
                    _note(part, *below)
            case Sort() | Limit() | Project():
                below = _known((plan.input,))
            case Join():
                sides = plan.inputs if plan.join_type is JoinType.INNER else (plan.left,)
                below = ({}, {}) if plan.join_type is JoinType.FULL else _known(sides)
            case _:
                continue
        ids = plan.output_ids
        bounds |= {id: each for id, each in below[0].items() if id in ids}
        words |= {id: each for id, each in below[1].items() if id in ids}
    return bounds, words


def _note(part: Expression, bounds: Bounds, words: Words) -> None:
    """What is known of a column where the conjunct is true; simplified comparisons have constants on the right."""
    match part:
        case InList(ColumnRef(id, data_type), values) if data_type.is_string and are_literals(values):
            _keep_words(words, id, [each.value for each in values])
    if not isinstance(part, Call) or len(part.arguments) != 2:
        return
    (column, constant), function = part.arguments, part.function
    if not isinstance(column, ColumnRef) or not isinstance(constant, Literal):
        return
    if column.data_type.is_string and function == "equal":
        _keep_words(words, column.id, [constant.value])
    value = constant.value
    if not column.data_type.is_float or not isinstance(value, float) or not isfinite(value):
        return
    old = bounds.get(column.id, InputRange(-inf, inf, True))
    if function in (*UPPER, "equal"):  # NaN is above all numbers
        old = InputRange(old.low, min(old.high, value), False)
    if function in (*LOWER, "equal"):
        old = replace(old, low=max(old.low, value))
    if old.low <= old.high:
        bounds[column.id] = old


def _keep_words(words: Words, column: int, values: Iterable[object]) -> None:
    strings = frozenset(value for value in values if isinstance(value, str))
    words[column] = words.get(column, strings) & strings
    if not words[column]:
        del words[column]


def _hull(first: InputRange | None, second: InputRange | None) -> InputRange | None:
    if first is None or second is None:
        return None
    return InputRange(
        min(first.low, second.low),
        max(first.high, second.high),
        first.may_be_missing or second.may_be_missing,
    )
