"""IN, = ANY and <> ALL of lists: those that are given for a parameter, and those that a query computes.

IN asks whether the list contains the value, as DuckDB's `contains` does: its NULLs are as if they were not there. ANY and
ALL compare the value with each element, NULLs included, as they do with the rows of a subquery.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tqp.core.arguments import check_text, list_elements
from tqp.core.datatypes import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    HUGEINT,
    INTEGER,
    NULL,
    UBIGINT,
    UHUGEINT,
    VARCHAR,
    DataType,
    TypeKind,
)
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.frozen import dataclass
from tqp.core.unsigned_128 import LAST_UNSIGNED, stored_unsigned
from tqp.planner.algebra.expressions import FALSE, Call, Expression, InList, Literal, Varying
from tqp.planner.algebra.logical_plan import Values
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions import subqueries
from tqp.planner.binder.expressions.coercion import cast_to, comparison, folded, of_type
from tqp.planner.binder.expressions.forms.cases import null_with
from tqp.planner.binder.expressions.forms.forms import call_of
from tqp.planner.binder.expressions.literals import given_value, literal_of, variable_for
from tqp.planner.binder.expressions.nested.given import common_type_given
from tqp.planner.binder.expressions.nested.lambdas import search
from tqp.planner.functions.type_rules import ordering_type, settle
from tqp.planner.parse import Span, head_span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder

_UNKNOWN = Literal(None, BOOLEAN)


@dataclass(frozen=True, slots=True)
class ListValue:
    """What a list holds: constants, each once, all of `data_type`, which is NULL where there is none; and whether a NULL."""

    values: tuple[Expression, ...]
    data_type: DataType
    has_null: bool


def bind_in(binder: ExpressionBinder, operand: exp.Expr, node: exp.Expr, span: Span | None) -> Expression:
    """operand IN $list: NULL where the operand or the list is, else whether one of its values is equal."""
    if not isinstance(node, exp.Placeholder) or variable_for(binder.context, node) is not None:
        value = binder.bind_flexible(node)
        if value.data_type.kind not in (TypeKind.LIST, TypeKind.ARRAY):
            return binder.bind_flexible(call_of("contains", node, operand))
        return search("list_any", binder, value, binder.bind_flexible(operand), span)
    _check_no_row(operand, span)
    given = _given_list(binder.context, node)
    value = binder.bind_flexible(operand)
    if given is None:
        return _UNKNOWN
    if given.values:
        return _equals_one_of(value, given, span)
    return is_among_none(value, span)


def is_among_none(value: Expression, span: Span | None) -> Expression:
    """Whether an empty list holds the value: NULL where that is NULL, as in DuckDB."""
    return null_with(settle(value), FALSE, span)


def bind_quantified(binder: ExpressionBinder, node: exp.Binary, function: str) -> Expression:
    """operand <comparison> ANY|ALL ($list). A list that is NULL is an empty one."""
    span, is_all = span_of(node), isinstance(node.expression, exp.All)
    _check_no_row(node.this, span)
    given = _given_list(binder.context, node.expression.this.unnest()) or ListValue((), NULL, False)
    value = binder.bind_flexible(node.this)
    if (function, is_all) not in (("equal", False), ("not_equal", True)):
        return _compared_with_each(binder.context, value, function, is_all, given, span)
    found = _equals_one_of(value, given, span) if given.values else FALSE
    if given.has_null:
        found = folded(Call("or", (found, _UNKNOWN), BOOLEAN, span))
    return folded(Call("not", (found,), BOOLEAN, span)) if is_all else found


def is_one_of(operand: Expression, values: Sequence[Expression], span: Span | None) -> Expression:
    """Whether the operand equals one of the values, which are constants of its type and not NULL."""
    distinct = list(dict.fromkeys(values))
    constants = tuple([each for each in distinct if isinstance(each, Literal | Varying)])
    if (
        len(constants) > 1
        and len(constants) == len(distinct)
        and not isinstance(operand, Literal | Varying)
        and not operand.data_type.is_nested
    ):
        return InList(operand, constants)
    return any_of([comparison("equal", operand, each, span) for each in distinct], span)


def any_of(conditions: Sequence[Expression], span: Span | None) -> Expression:
    """Whether one of the conditions is true."""
    if len(conditions) == 1:
        return conditions[0]
    return folded(Call("or", tuple(conditions), BOOLEAN, span))


def check_no_list_among(context: BindContext, operand: Expression, choices: Iterable[exp.Expr]) -> None:
    """IN ($list) compares with the list itself, as IN (a, b) does with a and b. Raises UnsupportedError."""
    for choice in choices:
        if not isinstance(choice, exp.Placeholder) or variable_for(context, choice) is not None:
            continue
        if operand.data_type.kind is not TypeKind.ARRAY:
            value, label = given_value(context, choice)
            if list_elements(value) is not None:
                raise UnsupportedError(
                    f"a list as one of the values of IN (...) is not supported; write IN {label}, without parentheses,"
                    f" or = ANY({label})",
                    head_span(choice),
                )


def _equals_one_of(value: Expression, given: ListValue, span: Span | None) -> Expression:
    """Of a list that holds a value."""
    common = ordering_type(value, of_type(given.data_type))
    if common is None:
        raise BindError(
            f"cannot compare {value.data_type} with the values of a list, {given.data_type}; cast it, or give a list of"
            " its type",
            span,
        )
    return is_one_of(cast_to(value, common, span), _cast(given.values, common, span), span)


def _cast(values: Sequence[Expression], target: DataType, span: Span | None) -> list[Expression]:
    """Constants of one type as a type that it becomes unasked."""
    source = values[0].data_type
    if source.is_integer and target.is_integer:
        return [Literal(each.value, target) for each in values if isinstance(each, Literal)]
    return [cast_to(each, target, span) for each in values]


def _compared_with_each(
    context: BindContext, value: Expression, function: str, is_all: bool, given: ListValue, span: Span | None
) -> Expression:
    """The list as the rows of a subquery."""
    values = [*given.values, *[Literal(None, given.data_type)] * given.has_null]
    rows = tuple([(each,) for each in values])
    field = context.new_field("element", given.data_type, given.has_null)
    return subqueries.quantified_over(context, function, is_all, [value], Values(rows, (field,)), span)


def _check_no_row(operand: exp.Expr, span: Span | None) -> None:
    if isinstance(operand, exp.Tuple):
        raise UnsupportedError("comparing a row with the values of a list is not supported", span)


def _given_list(context: BindContext, node: exp.Placeholder) -> ListValue | None:
    """The list given for a parameter; None where NULL is."""
    value, label = given_value(context, node)
    span = head_span(node)
    elements = list_elements(value)
    if elements is not None:
        return _list_value(elements, label, span)
    if literal_of(value, label, span).data_type == NULL:
        return None
    raise BindError(
        f"the value of {label} is a {type(value).__name__}; give a list, a tuple or an array of one dimension",
        span,
    )


def _list_value(elements: Sequence[Any], label: str, span: Span | None) -> ListValue:
    """Its time is linear in the number of elements; lists of one Python type, int, float or str, are quicker than others."""
    kinds = set(map(type, elements))
    has_null = type(None) in kinds
    kinds.discard(type(None))
    values = [each for each in elements if each is not None] if has_null else elements
    if not values:
        return ListValue((), NULL, has_null)
    if kinds == {int}:
        low, high = min(values), max(values)
        for data_type in (INTEGER, BIGINT, UBIGINT, HUGEINT):
            if data_type.bounds[0] <= low and high <= data_type.bounds[1]:
                return _of_one_type(values, data_type, has_null)
        if low >= 0 and high <= LAST_UNSIGNED:
            return _of_one_type(map(stored_unsigned, values), UHUGEINT, has_null)
    elif kinds == {float}:
        return _of_one_type(values, DOUBLE, has_null)
    elif kinds == {str}:
        for text in values:
            check_text(f"a value of {label}", text)
        return _of_one_type(values, VARCHAR, has_null)
    return _of_any_types(values, label, span, has_null)


def _of_one_type(values: Iterable[Any], data_type: DataType, has_null: bool) -> ListValue:
    return ListValue(
        tuple([Literal(value, data_type) for value in dict.fromkeys(values)]), data_type, has_null
    )


def _of_any_types(values: Sequence[Any], label: str, span: Span | None, has_null: bool) -> ListValue:
    literals: dict[Expression, None] = {}
    for position, value in enumerate(values, 1):
        if list_elements(value) is not None:
            raise UnsupportedError(f"a list of lists, as given for {label}, is not supported", span)
        if isinstance(value, str):
            check_text(f"a value of {label}", value)
        literals[settle(literal_of(value, f"value {position} of {label}", span))] = None
    common = common_type_given((each.data_type for each in literals), label, span)
    cast = tuple([cast_to(each, common, span) for each in literals if each.data_type != NULL])
    return ListValue(cast, common, has_null or len(cast) < len(literals))
