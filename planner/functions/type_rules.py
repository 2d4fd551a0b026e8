"""Which types go together, as DuckDB has it: implicit casts and their cost, common types.

A number or string written in the SQL has no fixed type yet (`1` next to a TINYINT is a TINYINT, `'1994-01-01'` next to
a DATE is a DATE); it is a `SourceLiteral` until something decides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeGuard

from tqp.core.datatypes import (
    BIGINT,
    DOUBLE,
    HUGEINT,
    INTEGER,
    JSON,
    MAX_DECIMAL_PRECISION,
    SMALLINT,
    UHUGEINT,
    VARCHAR,
    DataType,
    TypeKind,
    array,
    decimal,
    struct,
)
from tqp.core.frozen import dataclass
from tqp.core.keywords import lower_ascii
from tqp.core.unsigned_128 import unsigned_of_stored
from tqp.planner.algebra.expressions import Expression, Literal, Varying
from tqp.planner.functions.decimal_types import common_decimal, exact_decimal


@dataclass(frozen=True, slots=True)
class SourceLiteral(Literal):
    """An integer or string as written in the SQL: its type bends to its surroundings. Never left in a plan."""


def settle(expression: Expression) -> Expression:
    """The expression with the type it has when nothing around it says otherwise."""
    if isinstance(expression, SourceLiteral):
        return Literal(expression.value, expression.data_type)
    if isinstance(expression, Varying) and expression.bends:
        return replace(expression, bends=False)
    return expression


def bends(expression: Expression) -> TypeGuard[SourceLiteral | Varying]:
    """Is its type not settled yet?"""
    kind = type(expression)
    return kind is SourceLiteral or (kind is Varying and expression.bends)  # type: ignore[attr-defined]


#: Parameter type "any DECIMAL": the argument keeps its own precision and scale.
ANY_DECIMAL = DataType(TypeKind.DECIMAL)
#: Parameter type "any list": the argument keeps the type of its elements.
ANY_LIST = DataType(TypeKind.LIST)
#: Parameter type "any array": the argument keeps its own size.
ANY_ARRAY = DataType(TypeKind.ARRAY)

_SIGNED = (TypeKind.TINYINT, TypeKind.SMALLINT, TypeKind.INTEGER, TypeKind.BIGINT, TypeKind.HUGEINT)
_UNSIGNED = (TypeKind.UTINYINT, TypeKind.USMALLINT, TypeKind.UINTEGER, TypeKind.UBIGINT, TypeKind.UHUGEINT)
_FRACTIONAL = (TypeKind.FLOAT, TypeKind.DOUBLE, TypeKind.DECIMAL)

#: What each type may become without being asked.
_IMPLICIT: dict[TypeKind, tuple[TypeKind, ...]] = {
    **{kind: (*_SIGNED[wider:], *_FRACTIONAL) for wider, kind in enumerate(_SIGNED, 1)},
    **{kind: (*_UNSIGNED[wider:], *_SIGNED[wider:], *_FRACTIONAL) for wider, kind in enumerate(_UNSIGNED, 1)},
    TypeKind.DECIMAL: (TypeKind.FLOAT, TypeKind.DOUBLE),
    TypeKind.FLOAT: (TypeKind.DOUBLE,),
    TypeKind.DATE: (
        TypeKind.TIMESTAMP,
        TypeKind.TIMESTAMP_TZ,
        TypeKind.TIMESTAMP_NS,
        TypeKind.TIMESTAMP_MS,
        TypeKind.TIMESTAMP_S,
    ),
    TypeKind.TIMESTAMP: (TypeKind.TIMESTAMP_TZ, TypeKind.TIMESTAMP_NS),
    TypeKind.TIMESTAMP_S: (
        TypeKind.TIMESTAMP,
        TypeKind.TIMESTAMP_MS,
        TypeKind.TIMESTAMP_NS,
        TypeKind.TIMESTAMP_TZ,
    ),
    TypeKind.TIMESTAMP_MS: (TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_NS, TypeKind.TIMESTAMP_TZ),
    TypeKind.TIMESTAMP_NS: (TypeKind.TIMESTAMP,),
    TypeKind.ENUM: (TypeKind.VARCHAR,),
}

_TARGET_COST: dict[TypeKind, int] = {
    TypeKind.BIGINT: 101,
    TypeKind.INTEGER: 102,
    TypeKind.HUGEINT: 103,
    TypeKind.DOUBLE: 104,
    TypeKind.DECIMAL: 105,
    TypeKind.TIMESTAMP_NS: 119,
    TypeKind.TIMESTAMP: 120,
    TypeKind.TIMESTAMP_TZ: 121,
    TypeKind.TIMESTAMP_MS: 122,
    TypeKind.TIMESTAMP_S: 123,
    TypeKind.VARCHAR: 149,
    TypeKind.LIST: 160,
}
#: Types of which nothing but their kind decides what they may become.
_PLAIN = frozenset(
    {TypeKind.BOOLEAN, TypeKind.DECIMAL, TypeKind.FLOAT, TypeKind.DOUBLE, TypeKind.DATE, TypeKind.TIME}
    | {TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_S, TypeKind.TIMESTAMP_MS, TypeKind.TIMESTAMP_NS}
    | {TypeKind.TIMESTAMP_TZ, TypeKind.INTERVAL, *_SIGNED, *_UNSIGNED}
)
#: Anything but text may become JSON, where nothing else will do.
TARGET_COST_OF_JSON = 200
_DEFAULT_TARGET_COST = 110


def implicit_cast_cost(argument: Expression, target: DataType) -> int | None:
    """What it costs to pass `argument` where `target` is wanted; 0 if it has that type, None if it may not be."""
    source = argument.data_type
    if bends(argument):
        if source.kind is TypeKind.VARCHAR:
            if target == ANY_DECIMAL:
                return None  # text says nothing of precision and scale
            return 1 if target == VARCHAR else 20
        if source == target:
            return 1
        if target.is_numeric and _fits(argument, target):
            return _TARGET_COST.get(target.kind, _DEFAULT_TARGET_COST) - 90
    if source.kind in _PLAIN and target.kind in _PLAIN:  # as most are
        if source.kind is target.kind:
            return 0
        if target.kind in _IMPLICIT.get(source.kind, ()):
            return _TARGET_COST.get(target.kind, _DEFAULT_TARGET_COST)
        return None
    if source.kind is target.kind and (source == target or target in (ANY_DECIMAL, ANY_ARRAY, ANY_LIST)):
        return 0
    if target.is_json and not bends(argument) and source != VARCHAR:
        return 0 if source.is_enum else TARGET_COST_OF_JSON  # nearer than VARCHAR, which is no document
    if source.is_decimal and target.is_decimal:  # of other sizes; a value that does not fit raises
        return 0
    if source.kind is TypeKind.ARRAY and target.kind is TypeKind.LIST:
        if target == ANY_LIST:
            return 1
        cost = implicit_cast_cost(Literal(None, source.element), target.element)
        return None if cost is None else cost + 1
    if source.kind is target.kind is TypeKind.LIST:
        cost = implicit_cast_cost(Literal(None, source.element), target.element)
        return None if cost is None else max(0, cost - 1)
    if target.is_union and (source in target.children[1:] or target.has_members_of(source)):
        return 0
    if source.kind is target.kind and source.is_nested:
        return _cost_of_fields(source, target)
    if (source.is_enum or source.is_json) and target == VARCHAR:
        return 1  # nearer than any element of a list
    if source.kind is TypeKind.NULL:
        is_any_list = target == ANY_LIST  # further than a type that is known
        return _TARGET_COST.get(target.kind, _DEFAULT_TARGET_COST) + is_any_list
    if target.kind in _IMPLICIT.get(source.kind, ()):
        return _TARGET_COST.get(target.kind, _DEFAULT_TARGET_COST)
    return None


def becomes_unasked(value: Expression, target: DataType) -> bool:
    """Whether the value, whose type is settled, becomes one of the type without a cast being written."""
    source = value.data_type
    if target.is_json and source == VARCHAR:
        return True
    if source == target or (target.is_decimal and source.is_integer):
        return True
    return implicit_cast_cost(value, target) is not None


def _cost_of_fields(source: DataType, target: DataType) -> int | None:
    """What it costs to pass one nested value for another: the most that it costs for what they hold, by name or by place."""
    if source.is_union or source.size != target.size or len(source.children) != len(target.children):
        return None
    names = [lower_ascii(name) for name in source.names]
    places: Sequence[int] = range(len(source.children))
    if source.kind is TypeKind.STRUCT and not (source.is_tuple or target.is_tuple):
        if set(names) != set(map(lower_ascii, target.names)):
            return None
        places = [names.index(lower_ascii(name)) for name in target.names]
    costs = [0]
    for place, child in zip(places, target.children, strict=True):
        cost = implicit_cast_cost(Literal(None, source.children[place]), child)
        if cost is None:
            return None
        costs.append(cost)
    return max(costs)


def _fits(constant: SourceLiteral | Varying, target: DataType) -> bool:
    """Whether it is an integer that the type has. Of a `Varying`, the cast that follows asks again for other texts."""
    value = constant.example if isinstance(constant, Varying) else constant.value
    if not isinstance(value, int):
        return False
    if constant.data_type.kind is TypeKind.UHUGEINT:
        value = unsigned_of_stored(value)
    if target.is_whole:
        low, high = target.value_bounds
        return low <= value <= high
    return True


def common_type(left: Expression, right: Expression) -> DataType | None:
    """The type that CASE, COALESCE, VALUES and the like give two values; None if there is none."""
    left_type, right_type = left.data_type, right.data_type
    left_bends, right_bends = bends(left), bends(right)
    if left_bends != right_bends:
        literal, other = (left, right_type) if left_bends else (right, left_type)
        bent = _bend(literal, other)
        if bent is not None:
            return bent
    elif left_bends and left_type != right_type:
        if left_type.kind is TypeKind.VARCHAR:
            return right_type
        if right_type.kind is TypeKind.VARCHAR:
            return left_type
    return common_settled_type(left_type, right_type)


def _bend(literal: Expression, other: DataType) -> DataType | None:
    if other.kind is TypeKind.NULL:
        return literal.data_type
    if literal.data_type.kind is TypeKind.VARCHAR:
        return _as_text(other)
    if other.is_whole and bends(literal) and _fits(literal, other):
        return other
    return None


def common_settled_type(left: DataType, right: DataType) -> DataType | None:
    """`common_type` of two types that are what they are."""
    if left == right or right.kind is TypeKind.NULL:
        return left
    if left.kind is TypeKind.NULL:
        return right
    if left.is_json or right.is_json:
        return JSON
    if left.is_union or right.is_union:
        return _common_union(left, right)
    if left.is_enum or right.is_enum:
        return common_settled_type(_as_text(left), _as_text(right))
    if left.kind is TypeKind.BOOLEAN and right.is_whole:
        return right
    if right.kind is TypeKind.BOOLEAN and left.is_whole:
        return left
    if left.is_numeric and right.is_numeric:
        return _common_number(left, right)
    if left.is_temporal and right.is_temporal:
        return _common_temporal(left, right)
    if {left.kind, right.kind} == {TypeKind.ARRAY, TypeKind.LIST}:
        element = common_settled_type(left.element, right.element)
        return None if element is None else array(max(left.size, right.size), element)
    return _common_nested(left, right, common_settled_type) if left.kind is right.kind else None


def _common_union(left: DataType, right: DataType) -> DataType | None:
    """Of two UNIONs the one of more members, of a UNION and a type that may become a member of it the UNION."""
    if left.is_union and right.is_union:
        return left if len(left.children) >= len(right.children) else right
    union, other = (left, right) if left.is_union else (right, left)
    costs = (implicit_cast_cost(Literal(None, other), member) for member in union.members.values())
    return union if any(cost is not None for cost in costs) else None


def _common_nested(
    left: DataType, right: DataType, common: Callable[[DataType, DataType], DataType | None]
) -> DataType | None:
    """Of two lists, and of two structs: all fields of both, by name, or by place if no field has one.

    `common` is the type of two elements or fields.
    """
    if left.kind is TypeKind.ARRAY:
        element = common(left.element, right.element)
        return None if element is None else array(max(left.size, right.size), element)
    if left.has_elements:
        element = common(left.element, right.element)
        return None if element is None else replace(left, children=(element,))
    if left.kind is not TypeKind.STRUCT:
        return None
    if left.is_tuple or right.is_tuple:
        if len(left.children) != len(right.children):
            return None
        types = list(map(common, left.children, right.children))
        names = right.names if left.is_tuple else left.names
        known = [each for each in types if each is not None]
        return replace(left, children=tuple(known), names=names) if len(known) == len(types) else None
    fields = dict(zip(left.names, left.children, strict=True))
    spelled = {lower_ascii(name): name for name in fields}
    for name, data_type in zip(right.names, right.children, strict=True):
        name = spelled.get(lower_ascii(name), name)
        found = common(fields[name], data_type) if name in fields else data_type
        if found is None:
            return None
        fields[name] = found
    return struct(fields)


def _as_text(data_type: DataType) -> DataType:
    """VARCHAR for an ENUM, which is text wherever it meets another type than its own."""
    return VARCHAR if data_type.is_enum else data_type


def _common_number(left: DataType, right: DataType) -> DataType:
    for kind in (TypeKind.DOUBLE, TypeKind.FLOAT):
        if kind in (left.kind, right.kind):
            return left if left.kind is kind else right
    if left.is_decimal and right.is_decimal:
        return common_decimal((left, right))
    if left.is_decimal or right.is_decimal:
        return exact_decimal((left, right))  # a HUGEINT never costs the decimal its scale
    if left.kind in _UNSIGNED and right.kind in _UNSIGNED:
        return max(left, right, key=lambda each: _UNSIGNED.index(each.kind))
    if left.kind in _SIGNED and right.kind in _SIGNED:
        return max(left, right, key=lambda each: _SIGNED.index(each.kind))
    unsigned, signed = (left, right) if left.kind in _UNSIGNED else (right, left)
    if unsigned.kind is TypeKind.UHUGEINT:
        return _BESIDE_UHUGEINT[_SIGNED.index(signed.kind)]
    holds_unsigned = (SMALLINT, INTEGER, BIGINT, HUGEINT)[_UNSIGNED.index(unsigned.kind)]
    return max(signed, holds_unsigned, key=lambda each: _SIGNED.index(each.kind))


#: What each signed integer makes of a UHUGEINT, as in DuckDB: the next wider type, whether or not that holds it.
_BESIDE_UHUGEINT = (SMALLINT, INTEGER, BIGINT, HUGEINT, DOUBLE)

_TEMPORAL_ORDER = (
    TypeKind.DATE,
    TypeKind.TIMESTAMP_S,
    TypeKind.TIMESTAMP_MS,
    TypeKind.TIMESTAMP,
    TypeKind.TIMESTAMP_TZ,
)


def _common_temporal(left: DataType, right: DataType) -> DataType | None:
    kinds = {left.kind, right.kind}
    if left.is_time_of_day or right.is_time_of_day:
        return None
    if TypeKind.TIMESTAMP_NS in kinds:
        if TypeKind.TIMESTAMP_TZ in kinds:
            return None
        return left if left.kind is TypeKind.TIMESTAMP_NS else right
    return max(left, right, key=lambda each: _TEMPORAL_ORDER.index(each.kind))


def ordering_type(left: Expression, right: Expression) -> DataType | None:
    """The type both sides of <, <=, >, >= and BETWEEN are cast to: decimals lose no digit after the point.

    JSON takes the type of what it is compared with, unless that is text, an ENUM or nested.
    """
    left_type, right_type = left.data_type, right.data_type
    if left_type.is_json != right_type.is_json:
        other = right_type if left_type.is_json else left_type
        is_text = other.is_string or other.is_enum or other.is_nested or other.kind is TypeKind.NULL
        return JSON if is_text else other
    found = common_type(left, right)
    if found is not None and found.is_decimal and left_type.is_numeric and right_type.is_numeric:
        return exact_decimal((left_type, right_type))
    return found


def equality_type(left: Expression, right: Expression) -> DataType | None:
    """The type both sides of =, <> and IN are cast to: a string column takes the type it is compared with, too."""
    found = ordering_type(left, right)
    if found is not None:
        return found
    left_type, right_type = _as_text(left.data_type), _as_text(right.data_type)
    if left_type.kind is TypeKind.VARCHAR:
        return right_type
    if right_type.kind is TypeKind.VARCHAR:
        return left_type
    if left_type.is_numeric and right_type.kind is TypeKind.BOOLEAN:
        return _with_units(left_type)
    if right_type.is_numeric and left_type.kind is TypeKind.BOOLEAN:
        return _with_units(right_type)
    return forced_type(left_type, right_type)


def _with_units(numeric: DataType) -> DataType:
    """The type with a digit before the point, if there is room for one: a truth value beside it is 0 or 1."""
    if not numeric.is_decimal or numeric.precision > numeric.scale:
        return numeric
    return decimal(min(numeric.scale + 1, MAX_DECIMAL_PRECISION), numeric.scale)


#: Of two types that have nothing in common, the later wins; of two times of day the first.
_FORCED_ORDER = (
    TypeKind.BOOLEAN,
    *_UNSIGNED,
    *_SIGNED,
    *_FRACTIONAL,
    TypeKind.TIME,
    *_TEMPORAL_ORDER,
    TypeKind.TIMESTAMP_NS,
    TypeKind.INTERVAL,
    TypeKind.VARCHAR,
    TypeKind.BIT,
    TypeKind.BLOB,
    TypeKind.UUID,
    TypeKind.ARRAY,
    TypeKind.STRUCT,
    TypeKind.LIST,
    TypeKind.MAP,
    TypeKind.UNION,
)


def forced_type(left: DataType, right: DataType) -> DataType | None:
    """The type that the set operations give any two types, rows and nested values that are compared their fields, and = what has no VARCHAR.

    Of types that have no common one, it is one of the two; no value but NULL can then be cast from the other, unless
    this is text. Two lists have one of elements of such a type. None for arrays of different sizes.
    """
    common = common_settled_type(left, right)
    if common is not None:
        return common
    left, right = _as_text(left), _as_text(right)
    if left.kind is right.kind:
        return _common_nested(left, right, forced_type)
    return max(left, right, key=_forced_place)


def _forced_place(data_type: DataType) -> int:
    return _FORCED_ORDER.index(TypeKind.TIME if data_type.is_time_of_day else data_type.kind)


def integer_literal_type(value: int) -> DataType:
    """The type of a whole number written in SQL: the smallest of INTEGER, BIGINT, HUGEINT, UHUGEINT that holds it, else DOUBLE."""
    for candidate in (INTEGER, BIGINT, HUGEINT, UHUGEINT):
        low, high = candidate.value_bounds
        if low <= value <= high:
            return candidate
    return DOUBLE


def can_cast(source: DataType, target: DataType) -> bool:
    """Whether any value of `source` but NULL can be one of `target`: where none can, CAST raises for the first."""
    if source == target or source.kind is TypeKind.NULL or VARCHAR in (_as_text(source), target):
        return True
    if source.is_json or target.is_json:
        return True
    if target.is_union:  # which member it becomes was asked before
        return True
    if TypeKind.BIT in (source.kind, target.kind):
        other = target if source.kind is TypeKind.BIT else source
        return other.is_whole or other.is_float or other.kind in (TypeKind.BOOLEAN, TypeKind.BLOB)
    if source.kind is TypeKind.BOOLEAN or target.kind is TypeKind.BOOLEAN:
        other = target if source.kind is TypeKind.BOOLEAN else source
        return other.is_numeric
    if {source.kind, target.kind} == {TypeKind.UHUGEINT, TypeKind.UUID}:
        return True
    if source.is_numeric or target.is_numeric:
        return source.is_numeric and target.is_numeric
    if TypeKind.UUID in (source.kind, target.kind):
        return TypeKind.BLOB in (source.kind, target.kind)
    if source.is_temporal and target.is_temporal:
        if target.kind is TypeKind.TIME_TZ:
            return source.kind in (TypeKind.TIME, TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_TZ)
        if target.kind is TypeKind.TIME:
            is_instant = source.is_timestamp and source.kind is not TypeKind.TIMESTAMP_TZ
            return is_instant or source.kind is TypeKind.TIME_TZ
        if target.kind is TypeKind.TIMESTAMP_S and source.kind is TypeKind.TIMESTAMP_NS:
            return False
        return not source.is_time_of_day
    if {source.kind, target.kind} == {TypeKind.ARRAY, TypeKind.LIST}:
        return True
    if source.kind is TypeKind.STRUCT and target.kind is TypeKind.MAP:
        return not source.is_tuple
    return source.is_nested and source.kind is target.kind  # element by element, field by field
