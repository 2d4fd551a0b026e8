"""Explicit casts where SQL converts without being asked, folded where the operand is a literal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tqp.core.datatypes import (
    BIGINT,
    BOOLEAN,
    JSON,
    NULL,
    VARCHAR,
    DataType,
    TypeKind,
    holds_json,
    holds_kind,
    list_of,
    map_of,
    row_of,
    struct,
)
from tqp.core.errors import BindError, ExecutionError, UnsupportedError
from tqp.planner.algebra.expressions import (
    FALSE,
    TRUE,
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    Literal,
    column_ids,
)
from tqp.planner.algebra.may_raise import may_raise
from tqp.planner.binder.expressions.collations import collated, with_collation
from tqp.planner.functions.conditions import COMPARISONS, MIRRORED, ORDERINGS
from tqp.planner.functions.constant_folding import fold
from tqp.planner.functions.constants import is_constant
from tqp.planner.functions.members import check_fields, has_fields_of, member_for
from tqp.planner.functions.registry import SCALARS
from tqp.planner.functions.type_rules import can_cast, common_type, equality_type, ordering_type, settle
from tqp.planner.parse import Span

#: Of a column, these are left to the optimizer.
_CONDITIONS = frozenset((*MIRRORED, "is_distinct_from", "is_not_distinct_from", "and", "or"))


def folded(expression: Expression) -> Expression:
    """`fold`, except that a constant that fails is left for the rows that reach it, if any do.

    A condition of a column is no constant, though it is NULL or false for all rows: DuckDB folds it later.
    """
    try:
        result = fold(expression)
    except ExecutionError:
        return expression
    if isinstance(expression, Call) and result is not expression and _is_folded_later(expression.function):
        return expression if column_ids(expression) else result
    return result


def _is_folded_later(function: str) -> bool:
    return function in _CONDITIONS or not SCALARS[function].knows_null


def cast_to(expression: Expression, target: DataType, span: Span | None, is_try: bool = False) -> Expression:
    """The expression as `target`: itself if it has the type, a literal if it is one, else a Cast."""
    expression = settle(expression)
    if expression.data_type == target:
        return expression
    if expression.data_type.is_json or target.is_json:
        return _cast_json(expression, target, span, is_try)
    if target.is_union and expression.data_type != NULL:
        return _cast_to_union(expression, target, span, is_try)
    if expression.data_type == VARCHAR and (target.is_nested or target.is_vector):
        return _cast_text(expression, target, span, is_try)
    if expression.data_type.is_enum and target != VARCHAR:
        return cast_to(cast_to(expression, VARCHAR, span), target, span, is_try)
    if {expression.data_type.kind, target.kind} in _OF_ARRAYS:
        return _cast_array(expression, target, span, is_try)
    if expression.data_type.kind is TypeKind.STRUCT and target.kind is TypeKind.MAP:
        return _map_of_fields(expression, target, span, is_try)
    if is_try and not can_cast(expression.data_type, target):
        return null_after(expression, target)
    _check_fields(expression.data_type, target, span)
    if expression.data_type.kind is TypeKind.TIMESTAMP_TZ and target.kind is TypeKind.TIME_TZ:
        is_try = True  # an infinite instant has none, and raises nothing
    return folded(Cast(expression, target, is_try, span))


def _check_fields(source: DataType, target: DataType, span: Span | None) -> None:
    try:
        check_fields(source, target)
    except BindError as error:
        raise BindError(error.message, span) from None


def _cast_to_union(expression: Expression, target: DataType, span: Span | None, is_try: bool) -> Expression:
    """A UNION with more members, or the member that its type makes of a value. A value that is NULL is a member that is NULL."""
    _check_fields(expression.data_type, target, span)
    if has_fields_of(expression.data_type, target):
        types = (expression.data_type.children[0], *target.children[1:])
        fields = struct(dict(zip(expression.data_type.names, types, strict=True)))
        arguments = (cast_to(expression, fields, span, is_try), TRUE if is_try else FALSE)
        return folded(Call("union_of_fields", arguments, target, span))
    place = member_for(expression.data_type, target)
    if place is None:
        return folded(Cast(expression, target, is_try, span))
    value = cast_to(expression, target.children[place], span, is_try)
    made = union_of_member(target, place, value, span)
    if not is_try or value is expression:
        return made
    had, has = (folded(Call("is_null", (each,), BOOLEAN, span)) for each in (expression, value))
    failed = folded(Call("less", (had, has), BOOLEAN, span))
    return Case(((failed, Literal(None, target)),), made, target)


def union_of_member(target: DataType, place: int, value: Expression, span: Span | None) -> Expression:
    """A value of a UNION: of the member at a place among its children."""
    fields: list[Expression] = [Literal(None, each) for each in target.children]
    fields[0], fields[place] = Literal(place - 1, target.tag_type), value
    return folded(Call("struct_pack", tuple(fields), target, span))


def _cast_json(expression: Expression, target: DataType, span: Span | None, is_try: bool) -> Expression:
    """JSON to values of other types, and anything to JSON: text is parsed, other values are written as it."""
    source = expression.data_type
    if source.is_json and target not in (JSON, VARCHAR):
        return json_as(expression, target, "try_cast" if is_try else "cast", span)
    made = folded(Cast(expression, target, is_try, span))
    if source.is_json or not holds_json(source):
        return made
    if source.kind is TypeKind.LIST and source.element.is_json:
        raise UnsupportedError(f"a cast from {source} to {target} is not supported; see to_json()", span)
    return folded(Call("json", (made,), JSON, span))  # what is inside is written without white space


def json_as(document: Expression, target: DataType, manner: str, span: Span | None) -> Expression:
    """JSON as a value of another type: "cast", "try_cast", "json_transform" or "json_transform_strict" say in which manner."""
    if not _is_read_of_json(target):
        raise UnsupportedError(
            f"a cast from {document.data_type} to {target} is not supported; cast by way of VARCHAR", span
        )
    made_type = _with_lists(target)
    nested = made_type if made_type.is_nested else row_of((made_type,))
    made = folded(Call("json_as", (document, Literal(manner, VARCHAR)), nested, span))
    if nested is not made_type:
        made = folded(Call("struct_extract", (made, Literal(1, BIGINT)), made_type, span))
    return cast_to(made, target, span, is_try=manner in ("try_cast", "json_transform"))


def _is_read_of_json(target: DataType) -> bool:
    """Whether JSON is read for a type, and for what is inside of its values."""
    return (
        not target.is_tuple
        and not holds_kind(target, TypeKind.BIT)
        and all(map(_is_read_of_json, target.children))
    )


def _with_lists(target: DataType) -> DataType:
    """The type with lists for arrays, as both are arrays of JSON."""
    if target.kind is TypeKind.ARRAY:
        return list_of(_with_lists(target.element))
    return replace(target, children=tuple(map(_with_lists, target.children)))


def _cast_text(expression: Expression, target: DataType, span: Span | None, is_try: bool) -> Expression:
    """Text to lists, structs and maps: it is taken apart into text, which is cast."""
    if target.kind is TypeKind.STRUCT:
        texts = (VARCHAR for _ in target.children)
        parts = row_of(texts) if target.is_tuple else struct(dict(zip(target.names, texts, strict=True)))
    else:
        parts = map_of(VARCHAR, VARCHAR) if target.kind is TypeKind.MAP else list_of(VARCHAR)
    arguments = (expression, TRUE if is_try else FALSE, Literal(str(target), VARCHAR))
    return cast_to(folded(Call("parts_of_text", arguments, parts, span)), target, span, is_try)


#: Kinds of which one is cast to the other by way of a list.
_OF_ARRAYS = ({TypeKind.ARRAY}, {TypeKind.ARRAY, TypeKind.LIST})


def _cast_array(expression: Expression, target: DataType, span: Span | None, is_try: bool) -> Expression:
    """Arrays to lists, lists to arrays, and arrays to others: elements are cast while they are in lists.

    Values of another size than the target's raise when they are cast, as lists do.
    """
    lists = as_list(expression, span)
    if target.kind is TypeKind.LIST:
        return cast_to(lists, target, span, is_try)
    return folded(Cast(cast_to(lists, list_of(target.element), span, is_try), target, is_try, span))


def as_list(expression: Expression, span: Span | None) -> Expression:
    """An array as a list, which functions of lists take; anything else as it is."""
    if expression.data_type.kind is not TypeKind.ARRAY:
        return expression
    written = _listed_elements(expression)
    if written is not None:
        return written
    return folded(Cast(expression, list_of(expression.data_type.element), False, span))


def _listed_elements(array: Expression) -> Expression | None:
    """The list of an array whose elements are written out, as by array_value()."""
    if not isinstance(array, Cast) or array.input.data_type != list_of(array.data_type.element):
        return None
    match array.input:
        case Call(function="list_value", arguments=elements) | Literal(value=tuple(elements)):
            return array.input if len(elements) == array.data_type.size else None
        case _:
            return None


def _map_of_fields(expression: Expression, target: DataType, span: Span | None, is_try: bool) -> Expression:
    """A struct as a map: the names of its fields are the keys."""
    source = expression.data_type
    if source.is_tuple:
        raise BindError(f"cannot cast {source} to {target}: its fields have no names", span)
    key, value = target.element.children
    names = tuple(Literal(name, VARCHAR) for name in source.names)
    fields = tuple(
        cast_to(
            folded(Call("struct_extract", (expression, Literal(place, BIGINT)), each, span)),
            value,
            span,
            is_try,
        )
        for place, each in enumerate(source.children, 1)
    )
    lists = (
        folded(
            Call("list_value", tuple(cast_to(name, key, span, is_try) for name in names), list_of(key), span)
        ),
        folded(Call("list_value", fields, list_of(value), span)),
    )
    made = folded(Call("map", lists, target, span))
    is_null = folded(Call("is_null", (expression,), BOOLEAN, span))
    return Case(((is_null, Literal(None, target)),), made, target)


def null_after(expression: Expression, target: DataType) -> Expression:
    """NULL, but for the errors that computing `expression` raises."""
    null = Literal(None, target)
    if is_constant(expression) and not may_raise(expression, {}):
        return null
    return Call("null_after", (expression,), target)


def condition_of(expression: Expression, span: Span | None) -> Expression:
    """The expression as a BOOLEAN, for WHERE, HAVING, ON, AND, CASE WHEN, ..."""
    return expression if expression.data_type == BOOLEAN else cast_to(expression, BOOLEAN, span)


def compare(function: str, left: Expression, right: Expression, span: Span | None) -> Expression:
    """`left <function> right` with both sides cast to one type."""
    common = (ordering_type if function in ORDERINGS else equality_type)(left, right)
    if common is None:
        raise BindError(
            f"cannot compare {left.data_type} with {right.data_type}; cast one of them explicitly", span
        )
    return comparison(function, cast_to(left, common, span), cast_to(right, common, span), span)


def comparison(function: str, left: Expression, right: Expression, span: Span | None) -> Expression:
    """`left <function> right` of two values of one type.

    UNIONs are ordered by their tags, then as their members are, of which NULL is the greatest; but that is asked by ORDER BY and
    by lists. A comparison is NULL where tags are equal and a member is NULL.
    """
    left, right = collated((left, right), span)
    made = folded(Call(function, (left, right), BOOLEAN, span))
    if not left.data_type.is_union or function not in COMPARISONS:
        return made
    comparable = folded(Call("are_comparable", (left, right), BOOLEAN, span))
    if isinstance(comparable, Literal):
        return made if comparable.value else Literal(None, BOOLEAN)
    return Case(((comparable, made),), Literal(None, BOOLEAN), BOOLEAN)


#: The type that two values are cast to, or None.
Pairing = Callable[[Expression, Expression], DataType | None]


def common_type_of(
    values: Sequence[Expression], what: str, span: Span | None, pairing: Pairing = common_type
) -> DataType:
    """The type all `values` are to be cast to, paired from the first on; raises BindError where they have none."""
    result = values[0]
    for value in values[1:]:
        found = pairing(result, value)
        if found is None:
            raise BindError(
                f"cannot mix {result.data_type} and {value.data_type} in {what}; cast one of them explicitly",
                span,
            )
        found = with_collation(found, result.data_type, value.data_type)
        result = of_type(found)  # two literals, too, have settled once they are paired
    return result.data_type


def unify(
    values: Sequence[Expression],
    what: str,
    span: Span | None,
    pairing: Pairing = common_type,
) -> tuple[tuple[Expression, ...], DataType]:
    """All values cast to their common type, and that type."""
    common = common_type_of(values, what, span, pairing)
    return tuple(cast_to(value, common, span) for value in values), common


def as_text(expression: Expression, span: Span | None) -> Expression:
    """The expression as VARCHAR."""
    return cast_to(expression, VARCHAR, span)


def of_type(data_type: DataType) -> Expression:
    """A stand-in with a settled type: the literal that it stands for does not bend to its surroundings."""
    return ColumnRef(-1, data_type)
