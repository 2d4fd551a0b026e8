"""Signatures: how a declaration's lines are read, which overload a call means, and the types that follow.

A line is `PARAMETERS -> RESULT`. `~` before it swaps the two arguments, `[x]` puts the constant 'x' before them; INTEGERS
is each integer type in turn; a RESULT in lower case is a rule of `_RESULT_RULES`, which sees the actual types. Which
overload a call means is decided by the cost of the casts it needs, as in DuckDB (`tqp.planner.functions.type_rules`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from tqp.core.datatypes import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    FLOAT,
    HUGEINT,
    JSON,
    MAX_DECIMAL_PRECISION,
    NULL,
    UBIGINT,
    VARCHAR,
    DataType,
    TypeKind,
    decimal,
    list_of,
    map_of,
)
from tqp.core.errors import UnsupportedError
from tqp.core.frozen import dataclass
from tqp.core.json.paths import parse_path
from tqp.planner.algebra.expressions import Expression, Literal, is_null_literal
from tqp.planner.functions.decimal_types import (
    common_decimal,
    exact_decimal,
    product_of_decimals,
    sum_of_decimals,
)
from tqp.planner.functions.type_rules import (
    ANY_ARRAY,
    ANY_DECIMAL,
    ANY_LIST,
    SourceLiteral,
    implicit_cast_cost,
)

ANY = "ANY"  # a parameter that takes every type as it is


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature. `parameters` may hold ANY; `result` is a type or the name of a result rule."""

    canonical: str
    parameters: tuple[DataType | str, ...]
    result: DataType | str
    swapped: bool = False
    constant: str | None = None


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a call means: the overload, the type each argument is to be cast to, and the type of the result."""

    overload: Overload
    argument_types: tuple[DataType, ...]
    result: DataType


class NoOverloadError(Exception):
    """No signature takes these arguments (`candidates` as text), or several do equally well (`ambiguous`)."""

    def __init__(self, candidates: Sequence[str], ambiguous: bool = False) -> None:
        super().__init__()
        self.candidates = candidates
        self.ambiguous = ambiguous


def resolve(overloads: Sequence[Overload], arguments: Sequence[Expression]) -> Resolution:
    """What a call means: `choose`, with the types that follow. Raises NoOverloadError."""
    return finish(choose(overloads, arguments), arguments)


def choose(overloads: Sequence[Overload], arguments: Sequence[Expression]) -> Overload:
    """The overload whose casts cost least. Raises NoOverloadError."""
    best: list[Overload] = []
    best_cost: int | None = None
    count = len(arguments)
    for overload in overloads:
        if len(overload.parameters) != count:
            continue
        cost = 0
        for argument, parameter in zip(arguments, overload.parameters):
            if isinstance(parameter, str):
                continue
            step = implicit_cast_cost(argument, parameter)
            if step is None:
                break
            cost += step
        else:
            if best_cost is None or cost < best_cost:
                best, best_cost = [overload], cost
            elif cost == best_cost:
                best.append(overload)
    if not best:
        raise NoOverloadError([describe(each) for each in _closest(overloads, arguments)])
    of_lists = _of_lists(best[0], arguments)
    if len(best) > 1 or of_lists is not None:
        raise NoOverloadError([*map(describe, best), *([of_lists] if of_lists else [])], ambiguous=True)
    return best[0]


def _of_lists(overload: Overload, arguments: Sequence[Expression]) -> str | None:
    """The signature for lists, where it fits the call just as well: text and NULL may mean one, and what is no text may be the element that it contains."""
    if overload.canonical in ("regexp_extract", "regexp_extract_all"):
        group = arguments[2] if len(arguments) > 2 else None
        is_text = isinstance(group, SourceLiteral) and group.data_type.is_string
        return "(VARCHAR, VARCHAR, VARCHAR[])" if is_text else None
    if overload.canonical != "contains":
        return None
    is_text = isinstance(arguments[0], SourceLiteral) and arguments[0].data_type.is_string
    is_null = arguments[0].data_type == NULL
    has_two_meanings = (
        is_text or is_null if arguments[1].data_type == NULL else is_text and overload.parameters[0] == NULL
    )
    return "(ANY[], ANY) -> BOOLEAN" if has_two_meanings else None


def null_type(
    overload: Overload, arguments: Sequence[Expression], *, computes_all: bool = False
) -> DataType | None:
    """The type of a call that is NULL because an argument is the constant NULL; None where that is not so.

    No rule sees the actual types then, as in DuckDB: `NULL + 1.5` is a DECIMAL of no known size, hence of type NULL.
    But it does where the function is computed nevertheless, and where the NULL is a list.
    """
    nulls = [
        argument.data_type
        for argument in arguments
        if argument.data_type.kind is TypeKind.NULL or is_null_literal(argument)
    ]
    if not nulls or ANY_ARRAY in overload.parameters:  # of two NULLs nothing says how long the arrays are
        return None
    if overload.result == "element" and any(each.kind is TypeKind.NULL for each in nulls):
        return VARCHAR if arguments[0].data_type.kind is TypeKind.NULL else NULL  # a NULL may be a text
    if arguments[0].data_type.kind is TypeKind.LIST and not isinstance(overload.result, DataType):
        is_list = is_null_literal(arguments[0])
        is_known = computes_all or is_list or overload.result != "same"
        return finish(overload, arguments).result if is_known else NULL
    result = (
        overload.result
        if isinstance(overload.result, DataType)
        else _RESULTS_WITHOUT_TYPES.get(overload.result)
    )
    if overload.result == "same" and isinstance(overload.parameters[0], DataType):
        result = overload.parameters[0]
    if result is not None and result not in (ANY_DECIMAL, ANY_ARRAY, ANY_LIST):
        return result
    return NULL if any(each.kind is TypeKind.NULL for each in nulls) else None


def _closest(overloads: Sequence[Overload], arguments: Sequence[Expression]) -> Sequence[Overload]:
    """The overloads that have one of the argument types in its place, or all if none has."""
    overloads = [overload for overload in overloads if overload.parameters] or overloads
    close = [
        overload
        for overload in overloads
        if len(overload.parameters) == len(arguments)
        and any(
            argument.data_type == parameter for argument, parameter in zip(arguments, overload.parameters)
        )
    ]
    return close or overloads


_ANY_OF_A_KIND: dict[DataType | str, str] = {ANY_DECIMAL: "DECIMAL", ANY_ARRAY: "FLOAT[n]", ANY_LIST: "ANY[]"}


def shown_types(overload: Overload) -> tuple[list[str], str]:
    """The types of the parameters and of the result, as people read them."""
    result = overload.result if isinstance(overload.result, DataType) else overload.parameters[0]
    if overload.result == "element":
        result = "ANY"
    names = [_ANY_OF_A_KIND.get(each) or str(each) for each in overload.parameters]
    return names, "DECIMAL" if result == ANY_DECIMAL else str(result)


def describe(overload: Overload) -> str:
    """The signature as a message shows it."""
    names, result = shown_types(overload)
    return f"({', '.join(names)}) -> {result}"


def finish(overload: Overload, arguments: Sequence[Expression]) -> Resolution:
    """The types of the chosen overload's arguments and result. Raises NoOverloadError where no type can hold the result."""
    types: list[DataType] = []
    for argument, parameter in zip(arguments, overload.parameters):
        if isinstance(parameter, str) or parameter in (ANY_DECIMAL, ANY_ARRAY, ANY_LIST):
            source = argument.data_type
            if parameter == ANY_DECIMAL and not source.is_decimal:
                source = decimal(18, 3) if source.kind in _NOT_A_NUMBER else common_decimal((source,))
            if parameter == ANY_LIST and source.kind is TypeKind.ARRAY:
                source = list_of(source.element)
            if parameter == ANY_LIST and source.kind is not TypeKind.LIST:
                raise UnsupportedError(f"{source} as a list is not supported; cast it first")
            types.append(source)
        else:
            types.append(parameter)
    if isinstance(overload.result, DataType):
        return Resolution(overload, tuple(types), overload.result)
    argument_types, result = _RESULT_RULES[overload.result](tuple(types), arguments)
    if overload.result == "remainder" and result == DOUBLE:  # and a zero divisor an error, as of DECIMALs
        overload = replace(overload, canonical="modulo_of_decimals")
    return Resolution(overload, argument_types, result)


_NOT_A_NUMBER = (TypeKind.VARCHAR, TypeKind.NULL)
_Types = tuple[DataType, ...]
_Rule = Callable[[_Types, Sequence[Expression]], tuple[_Types, DataType]]


def _as_given(types: _Types, arguments: Sequence[Expression]) -> _Types:
    """A HUGEINT stays one beside a DECIMAL in the same units: not every value is a DECIMAL, and it is the result that must fit."""
    given = (argument.data_type for argument in arguments)
    return tuple(
        own if own == HUGEINT and wanted.is_decimal and wanted.scale == 0 else wanted
        for own, wanted in zip(given, types, strict=True)
    )


def _sum(types: _Types, arguments: Sequence[Expression]) -> tuple[_Types, DataType]:
    operand, result = sum_of_decimals(types)
    return _as_given((operand, operand), arguments), result


def _product(types: _Types, arguments: Sequence[Expression]) -> tuple[_Types, DataType]:
    result = product_of_decimals(types[0], types[1])
    if result is None:
        scale = types[0].scale + types[1].scale
        raise NoOverloadError([f"a product of scale {scale}: cast to a smaller scale, at most 38 in all"])
    return _as_given(types, arguments), result


def _remainder(types: _Types, arguments: Sequence[Expression]) -> tuple[_Types, DataType]:
    """%: decimals that do not fit one decimal without rounding become DOUBLE."""
    operand = common_decimal(types)
    if operand != exact_decimal(types):
        operand = DataType(TypeKind.DOUBLE)
    return _as_given((operand, operand), arguments), operand


def _cut(types: _Types, arguments: Sequence[Expression]) -> tuple[_Types, DataType]:
    """trunc to a number of digits."""
    digits = arguments[1].value if isinstance(arguments[1], Literal) else 0
    scale = min(max(digits, 0), types[0].scale) if isinstance(digits, int) else 0
    return types, decimal(types[0].precision, scale)


def _rounded(types: _Types, arguments: Sequence[Expression]) -> tuple[_Types, DataType]:
    """round to a number of digits; a whole number may gain a digit where it is rounded to tens, hundreds, ..."""
    _, result = _cut(types, arguments)
    digits = arguments[1].value if isinstance(arguments[1], Literal) else 0
    precision = types[0].precision
    if types[0].scale == 0 and isinstance(digits, int) and -precision <= digits < 0:
        result = decimal(min(precision + 1, MAX_DECIMAL_PRECISION), 0)
    return types, result


def _similarity(types: _Types, _: Sequence[Expression]) -> tuple[_Types, DataType]:
    """Two arrays of one size; NULL stands for any."""
    arrays = {each for each in types if each.kind is not TypeKind.NULL}
    if len(arrays) != 1 or not all(each.is_vector for each in arrays):  # text bends to any type
        raise NoOverloadError(["(FLOAT[n], FLOAT[n]) -> FLOAT, both of the same size"])
    (data_type,) = arrays
    return (data_type, data_type), DataType(TypeKind.FLOAT)


def _part(types: _Types, arguments: Sequence[Expression]) -> tuple[_Types, DataType]:
    """date_part: the epoch and the Julian day have fractions, and a part that differs from row to row may be one of these."""
    part = arguments[0].value if isinstance(arguments[0], Literal) else "epoch"
    return types, DOUBLE if part in ("epoch", "julian") else BIGINT


def _middle(types: _Types, _: Sequence[Expression]) -> tuple[_Types, DataType]:
    """median: integers average to DOUBLE, dates to TIMESTAMP; what cannot be averaged stays."""
    kind = types[0].kind
    if kind is TypeKind.NULL:
        return (DOUBLE, *types[1:]), DOUBLE
    if types[0].is_whole:
        return types, DOUBLE
    return types, DataType(TypeKind.TIMESTAMP) if kind is TypeKind.DATE else types[0]


def _flat(types: _Types, _: Sequence[Expression]) -> tuple[_Types, DataType]:
    """flatten: a list of lists or arrays, or an empty list of which nothing is known."""
    element = types[0].element
    if element.kind is TypeKind.ARRAY:
        element = list_of(element.element)
    if element.kind is not TypeKind.LIST and element.kind is not TypeKind.NULL:
        raise NoOverloadError(["(ANY[][]) -> ANY[]"])
    flat = element if element.kind is TypeKind.LIST else list_of(element)
    return (list_of(flat),), flat


def _element(types: _Types, _: Sequence[Expression]) -> tuple[_Types, DataType]:
    return types, types[0].element


def _binned(types: _Types, _: Sequence[Expression]) -> tuple[_Types, DataType]:
    """A histogram over bins, which are values of the same type; of DECIMALs it is one of DOUBLEs, of other bins than an ENUM's of text."""
    key, bins = types
    if key.kind is TypeKind.NULL:
        raise NoOverloadError(["(ANY, ANY[]) -> MAP, of values of a known type"])
    # DuckDB's bins are in another order than the values of the first three
    if key.kind in (TypeKind.INTERVAL, TypeKind.TIME_TZ, TypeKind.BIT) or key.is_composed:
        raise UnsupportedError(f"a histogram over bins of {key} is not supported")
    if key.is_decimal:
        key = DOUBLE
    elif key.is_enum and bins.element != key:
        key = VARCHAR
    return (key, list_of(key)), map_of(key, UBIGINT)


def _by_path(result: DataType, types: _Types, arguments: Sequence[Expression]) -> tuple[_Types, DataType]:
    """What a JSON path leads to: a list where the path has wildcards."""
    path = arguments[1].value if isinstance(arguments[1], Literal) else None
    has_many = isinstance(path, str) and parse_path(path).has_wildcards
    return types, list_of(result) if has_many else result


_RESULT_RULES: dict[str, _Rule] = {
    "element": _element,
    "flat": _flat,
    "list": lambda types, _: (types, list_of(types[0])),
    "histogram": lambda types, _: (types, map_of(types[0], UBIGINT)),
    "binned": _binned,
    "sum": _sum,
    "product": _product,
    "remainder": _remainder,
    "same": lambda types, _: (types, types[0]),
    "whole": lambda types, _: (types, decimal(types[0].precision, 0)),
    "cut": _cut,
    "rounded": _rounded,
    "widened": lambda types, _: (types, decimal(MAX_DECIMAL_PRECISION, types[0].scale)),
    "middle": _middle,
    "text": lambda types, _: ((VARCHAR, *types[1:]), VARCHAR),
    "similarity": _similarity,
    "part": _part,
}
#: The type of the result where no rule has seen the actual types.
_RESULTS_WITHOUT_TYPES: dict[str, DataType] = {"similarity": FLOAT, "part": DOUBLE}
#: What functions of JSON read at a path.
_READ_BY_PATH = (BOOLEAN, UBIGINT, VARCHAR, JSON, list_of(VARCHAR))
for _data_type in _READ_BY_PATH:
    _RESULT_RULES[f"{_data_type} by path"] = partial(_by_path, _data_type)
    _RESULTS_WITHOUT_TYPES[f"{_data_type} by path"] = _data_type

_TYPES: dict[str, DataType] = {kind.value: DataType(kind) for kind in TypeKind}
for _kind in (TypeKind.TIMESTAMP_TZ, TypeKind.TIME_TZ):
    _TYPES[_kind.name] = DataType(_kind)
_TYPES["JSON"] = JSON
for _name in "BIGINT VARCHAR BOOLEAN FLOAT DOUBLE UBIGINT JSON VARCHAR[]".split():
    _TYPES[f"{_name}[]"] = list_of(_TYPES[_name])
_INTEGERS = [name for name, data_type in _TYPES.items() if data_type.is_integer]


def overloads_of(canonical: str, lines: Iterable[str]) -> Iterator[Overload]:
    """The overloads that the lines of a declaration say."""
    for line in lines:
        if "INTEGERS" in line:
            yield from overloads_of(canonical, (line.replace("INTEGERS", each) for each in _INTEGERS))
            continue
        written, _, result = line.partition("-> ")
        first, *rest = written.split() or ("",)
        swapped = first == "~"
        constant = first[1:-1] if first.startswith("[") else None
        parameters = rest if swapped or constant or not first else (first, *rest)
        yield Overload(
            canonical,
            tuple([_TYPES.get(each, each) for each in parameters]),
            _TYPES.get(result, result),
            swapped,
            constant,
        )
