"""Which expressions may raise an error for some row: the one definition that every rewrite and the runtime ask.

SQL promises that a row raises nothing where an earlier condition has dropped it. So what may raise stays behind what
shields it, and what raises is never dropped because nobody needs its value.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tqp.core.datatypes import VARCHAR, DataType, TypeKind
from tqp.core.models import ModelInput, ModelSignature
from tqp.planner.algebra.derived import derived_once
from tqp.planner.algebra.element_expressions import ElementRef, OverElements, ReduceElements
from tqp.planner.algebra.expressions import (
    AggregateCall,
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Parameter,
    Predict,
    Try,
    Varying,
    column_ids,
    conjunction,
    is_null_literal,
    walk,
)
from tqp.planner.algebra.known_fields import FieldsById, KnownFields
from tqp.planner.algebra.logical_node import LogicalPlan
from tqp.planner.algebra.outcomes import nullable
from tqp.planner.algebra.value_ranges import is_finite, operand_range, value_range
from tqp.planner.functions.conditions import COMPARISONS
from tqp.planner.functions.declaration import NullRule
from tqp.planner.functions.members import member_places
from tqp.planner.functions.ranges import within
from tqp.planner.functions.registry import AGGREGATES, SCALARS
from tqp.planner.functions.type_rules import can_cast


def may_raise(expression: Expression, fields: FieldsById) -> bool:
    """False promises that the expression raises for no row whose columns are as `fields` say.

    With no fields: for no row at all, whatever its columns hold.
    """
    if never_raises(expression):
        return False
    if isinstance(fields, KnownFields):
        return fields.derived(_part_may_raise, expression)
    suspects = _suspects(expression)
    known = fields if len(suspects) < 2 else KnownFields(fields)
    return any(_node_may_raise(node, known) for node in suspects)


@derived_once
def never_raises(expression: Expression) -> bool:
    """Whether each part raises for no values of its inputs, as is so of most expressions."""
    if isinstance(expression, Try):
        return True
    return _is_harmless(expression) and all(map(never_raises, expression.inputs))


def _suspects(expression: Expression) -> list[Expression]:
    """The parts that raise for some values of their inputs, but for those inside of TRY()."""
    found, left = [], [expression]
    while left:
        node = left.pop()
        if not isinstance(node, Try):
            if not _is_harmless(node):
                found.append(node)
            left += node.inputs
    return found


def raising_in(expressions: Iterable[Expression], *plans: LogicalPlan) -> list[Expression]:
    """Those of the expressions that may raise for some row of the plans' columns; most never do, whatever these hold."""
    suspects = [expression for expression in expressions if may_raise(expression, {})]
    if not suspects:
        return []
    fields = KnownFields({id: field for plan in plans for id, field in plan.field_facts.items()})
    return [expression for expression in suspects if may_raise(expression, fields)]


def shielded(key: Expression, before: Iterable[Expression], fields: FieldsById) -> Expression:
    """What a join computes for each row of one side, NULL where a part before it that reads this side alone is not true.

    Unless it never raises.
    """
    if not may_raise(key, {}) or not may_raise(key, fields):
        return key
    shields = tuple(part for part in before if column_ids(part) <= fields.keys())
    if not shields:
        return key
    return Case(((conjunction(shields), key),), Literal(None, key.data_type), key.data_type)


def is_failing_constant(expression: Expression) -> bool:
    """It has not been folded, so that it fails for each row or is one of the few that are computed."""
    if not isinstance(expression, (Call, Cast)) or column_ids(expression) or not may_raise(expression, {}):
        return False
    return not any(isinstance(part, ElementRef) for part in walk(expression))


def decided_by_null(call: Call) -> Expression | None:
    """NULL if an argument is the literal NULL and that decides; else None.

    The other arguments are mostly not asked for, as in DuckDB; but a comparison computes a constant on its left, and so
    raises if that fails, and some functions compute all.
    """
    if not any(map(is_null_literal, call.arguments)) or not SCALARS[call.function].is_null_for_null:
        return None
    if call.function in COMPARISONS and is_failing_constant(call.arguments[0]):
        return None
    return null_beside(call.function, call.arguments, call.data_type)


def null_beside(function: str, arguments: Sequence[Expression], data_type: DataType) -> Expression:
    """What a call gives that a literal NULL among its arguments decides: NULL, once what it computes anyway is computed.

    Then it is no constant, either, which would decide a call around it.
    """
    computed = tuple(each for each in arguments if not isinstance(each, Literal))
    if not computed or not SCALARS[function].computes_all:
        return Literal(None, data_type)
    return Call("null_after", computed, data_type)


def _part_may_raise(expression: Expression, fields: FieldsById) -> bool:
    if isinstance(expression, Try):
        return False
    if not _is_harmless(expression) and _node_may_raise(expression, fields):
        return True
    return any(may_raise(part, fields) for part in expression.inputs)


def _is_harmless(node: Expression) -> bool:
    """Does the node itself raise for no values of its inputs?"""
    if isinstance(node, Call):
        function = SCALARS[node.function]
        return function.raises is False and function.null is not NullRule.REFUSES
    return isinstance(node, _HARMLESS)


_HARMLESS = (ColumnRef, ElementRef, Literal, Parameter, Varying, Case, InList)


def aggregate_may_raise(call: AggregateCall, fields: FieldsById, max_rows: int) -> bool:
    """Can the aggregate of some of at most `max_rows` rows fail, in its arguments or by the overflow of a sum?"""
    if any(may_raise(part, fields) for part in call.inputs):
        return True
    raises = AGGREGATES[call.function].raises
    return raises is not None and raises(call, operand_range(call.arguments[0], fields), max(1, max_rows))


def scoring_may_raise(model: ModelSignature, arguments: Sequence[Expression], fields: FieldsById) -> bool:
    """Can a row make the scoring of a model fail, in an argument that the model reads, or by what it refuses?"""
    return any(
        _input_may_raise(item, argument, fields) or (_is_read(item) and may_raise(argument, fields))
        for item, argument in zip(model.inputs, arguments, strict=True)
    )


def _is_read(item: ModelInput) -> bool:
    return item.is_read or item.size > 0


def _input_may_raise(item: ModelInput, argument: Expression, fields: FieldsById) -> bool:
    """By a category or a NULL that the model refuses."""
    return _is_read(item) and (item.refuses_unseen or (not item.takes_null and nullable(argument, fields)))


def _node_may_raise(node: Expression, fields: FieldsById) -> bool:
    """Can a node that is not harmless fail, its inputs given?"""
    match node:
        case Call():
            return _call_may_raise(node, fields)
        case Cast():
            return not node.is_try and _cast_may_raise(node, fields)
        case OverElements():
            aggregate = AGGREGATES.get(node.function)
            return aggregate is not None and aggregate.raises is not None
        case ReduceElements():
            return node.from_first
        case Predict():
            return any(
                _input_may_raise(item, argument, fields)
                for item, argument in zip(node.model.inputs, node.arguments, strict=True)
            )
    return True


def _call_may_raise(call: Call, fields: FieldsById) -> bool:
    function = SCALARS[call.function]
    if function.null is NullRule.REFUSES and any(nullable(argument, fields) for argument in call.arguments):
        return True
    if function.is_null_for_null and any(_is_null(argument, fields) for argument in call.arguments):
        return False
    if isinstance(function.raises, bool):
        return function.raises
    ranges = [value_range(argument, fields) for argument in call.arguments]
    return function.raises(call, ranges, None if function.range is None else function.range(call, ranges))


def _cast_may_raise(cast: Cast, fields: FieldsById) -> bool:
    source, target = cast.input.data_type, cast.data_type
    if source == target or source.kind is TypeKind.NULL or target == VARCHAR:
        return False
    if target.is_json and source != VARCHAR:
        return False
    if _is_null(cast.input, fields):  # NULL is NULL in every type
        return False
    if source.is_string or source.is_enum or not can_cast(source, target):
        return True
    if target.kind is TypeKind.STRUCT and source.kind is TypeKind.STRUCT and source.names == target.names:
        pairs = zip(source.children, target.children, strict=True)
        return any(_cast_may_raise(Cast(ElementRef(0, one), other), fields) for one, other in pairs)
    if target.is_union and source.is_union:
        types = [target.children[place] for place in member_places(source, target)]
        pairs = zip(source.children[1:], types, strict=True)
        return any(_cast_may_raise(Cast(ElementRef(0, one), other), fields) for one, other in pairs)
    if target.kind is TypeKind.LIST:  # each element is cast, whatever it is
        return _cast_may_raise(Cast(ElementRef(0, source.element), target.element), fields)
    if source.kind is TypeKind.BOOLEAN or target.kind is TypeKind.BOOLEAN:
        return False
    if source.is_numeric and target.is_numeric:
        if source.is_float:
            return target.kind is not TypeKind.DOUBLE
        return not target.is_float and not within(value_range(cast, fields), target)
    if source.is_temporal and target.is_temporal:
        return not (target.kind is TypeKind.DATE or _fits_in_time(cast, fields))
    return True


def _is_null(expression: Expression, fields: FieldsById) -> bool:
    """Is it a column that is NULL in every row?"""
    field = fields.get(expression.id) if isinstance(expression, ColumnRef) else None
    return field is not None and field.facts.is_null


def _fits_in_time(cast: Cast, fields: FieldsById) -> bool:
    if not is_finite(cast.input, fields):
        return False
    return cast.data_type.kind is not TypeKind.TIMESTAMP_NS or within(
        value_range(cast, fields), cast.data_type
    )
