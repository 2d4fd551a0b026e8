"""What the planner says may raise, against the kernels."""

import pytest

from tqp.core.datatypes import (
    BIGINT,
    COMPOSED,
    DATE,
    DOUBLE,
    INTEGER,
    TINYINT,
    VARCHAR,
    DataType,
    TypeKind,
    decimal,
    list_of,
    map_of,
    struct,
)
from tqp.core.errors import UnsupportedError
from tqp.core.schema import ColumnFacts, Field
from tqp.operators.numbers.casts import resolve_cast
from tqp.operators.scalar_kernels import SCALAR_FUNCTIONS
from tqp.operators.scalar_kernels import resolve as resolve_kernel
from tqp.planner.algebra.expressions import AggregateCall, Call, Cast, ColumnRef, Expression, Literal
from tqp.planner.algebra.may_raise import aggregate_may_raise, may_raise
from tqp.planner.functions.overloads import Overload, resolve
from tqp.planner.functions.registry import aggregate_overloads, scalar_names, scalar_overloads
from tqp.planner.functions.type_rules import ANY_ARRAY, ANY_DECIMAL, ANY_LIST

_DECIMAL = decimal(38, 3)
_OTHERS = (TypeKind.NULL, TypeKind.DECIMAL, *COMPOSED)
_SIMPLE = [kind for kind in TypeKind if kind not in _OTHERS]
_TYPES = [*map(DataType, _SIMPLE), decimal(4, 2), _DECIMAL]


def _argument(parameter: DataType | str, id: int) -> ColumnRef | None:
    if parameter == ANY_ARRAY:
        return ColumnRef(id, DataType(TypeKind.ARRAY, size=3))
    if parameter == ANY_LIST:
        return ColumnRef(id, list_of(list_of(INTEGER)))
    if parameter == ANY_DECIMAL:
        return ColumnRef(id, _DECIMAL)
    return ColumnRef(id, parameter) if isinstance(parameter, DataType) else None


def _call(overload: Overload) -> Call | None:
    """The overload of columns that may hold anything, with a constant where it has one of its own."""
    arguments = [_argument(parameter, id) for id, parameter in enumerate(overload.parameters)]
    if None in arguments:
        return None
    given: list[Expression] = [argument for argument in arguments if argument is not None]
    result = resolve([overload], given).result
    if overload.swapped:
        given.reverse()
    if overload.constant is not None:
        given.insert(0, Literal(overload.constant, VARCHAR))
    return Call(overload.canonical, tuple(given), result)


@pytest.mark.parametrize("name", scalar_names())
def test_kernels_that_check_are_said_to_raise(name: str) -> None:
    for overload in scalar_overloads(name) or ():
        call = _call(overload)
        if call is None or call.function not in SCALAR_FUNCTIONS:  # the runtime has some of them itself
            continue
        types = tuple(argument.data_type for argument in call.arguments)
        try:
            kernel = resolve_kernel(call.function, types, call.data_type)
        except UnsupportedError:
            continue
        raises = may_raise(call, {})
        if raises and kernel.varying_arguments:  # what is no constant may be no pattern
            continue
        assert raises == kernel.checks or _never_leaves_its_type(call), call


def _never_leaves_its_type(call: Call) -> bool:
    """Checked by a kernel for all types, though some have no value that could fail."""
    return call.function in ("abs", "round", "trunc", "date_diff", "date_sub")


@pytest.mark.parametrize("source", _TYPES, ids=str)
def test_casts_that_check_are_said_to_raise(source: DataType) -> None:
    for target in _TYPES:
        cast = Cast(ColumnRef(0, source), target)
        assert not may_raise(Cast(cast.input, target, is_try=True), {})
        try:
            kernel = resolve_cast(source, target, False)
        except UnsupportedError:
            continue
        if kernel.checks and not may_raise(cast, {}):
            # the kernel is made for any two of these types; ranges say that none of the source's values fails
            assert (
                source.is_numeric
                or source.is_time_of_day
                or source.kind is TypeKind.BOOLEAN
                or target.kind is TypeKind.DATE
            ), target


def _field(id: int, data_type: DataType, low: int, high: int, nullable: bool = False) -> Field:
    return Field(id, f"c{id}", data_type, nullable, ColumnFacts(low, high))


def test_ranges_prove_that_nothing_raises() -> None:
    a, b = ColumnRef(0, TINYINT), ColumnRef(1, TINYINT)
    fields = {0: _field(0, TINYINT, -3, 10), 1: _field(1, TINYINT, 1, 12)}
    for function, proven in (("multiply", True), ("add", True), ("integer_divide", True), ("modulo", True)):
        call = Call(function, (a, b), TINYINT)
        assert may_raise(call, fields) is not proven
        assert may_raise(call, {})
    assert may_raise(Call("integer_divide", (b, a), TINYINT), fields)
    assert may_raise(Call("multiply", (Call("multiply", (b, b), TINYINT), b), TINYINT), fields)
    unsigned = DataType(TypeKind.UTINYINT)
    assert may_raise(Cast(a, unsigned), fields) and not may_raise(Cast(b, unsigned), fields)
    assert not may_raise(Cast(a, INTEGER), {})
    assert not may_raise(Cast(a, DOUBLE), {}) and may_raise(Cast(ColumnRef(2, DOUBLE), INTEGER), {})
    day = ColumnRef(3, DATE)
    later = Call("add_days", (day, a), DATE)
    assert may_raise(later, fields) and not may_raise(later, {**fields, 3: _field(3, DATE, 0, 20_000)})


@pytest.mark.parametrize("function", ["sum", "avg"])
def test_sums_that_overflow(function: str) -> None:
    for data_type, raises in ((BIGINT, False), (DataType(TypeKind.HUGEINT), True), (decimal(15, 2), False)):
        result = (
            DOUBLE
            if function == "avg"
            else resolve(aggregate_overloads("sum") or (), [ColumnRef(0, data_type)]).result
        )
        call = AggregateCall(function, (ColumnRef(0, data_type),), result)
        assert aggregate_may_raise(call, {}, 10**9) is raises
        assert not aggregate_may_raise(call, {0: _field(0, data_type, -5, 10**6)}, 10**9)
    product_of = Call("multiply", (ColumnRef(0, BIGINT),) * 2, BIGINT)
    assert aggregate_may_raise(AggregateCall("min", (product_of,), BIGINT), {}, 1)


def test_a_column_of_nothing_but_null_raises_nothing() -> None:
    day, count = (
        Field(id, "x", kind, facts=ColumnFacts(is_null=True)) for id, kind in enumerate((DATE, BIGINT))
    )
    known, fields = ColumnRef(2, BIGINT), {0: day, 1: count}
    assert not may_raise(Cast(ColumnRef(1, BIGINT), TINYINT), fields)
    for first, second in ((ColumnRef(1, BIGINT), known), (known, ColumnRef(1, BIGINT))):
        product = Call("multiply", (first, second), BIGINT)
        assert may_raise(product, {})
        assert not may_raise(product, fields)
        assert may_raise(Call("multiply", (first, Cast(ColumnRef(3, VARCHAR), BIGINT)), BIGINT), fields)


def test_lists_are_cast_element_by_element() -> None:
    for source, target, raises in (
        (INTEGER, BIGINT, False),
        (BIGINT, INTEGER, True),
        (INTEGER, VARCHAR, False),
        (VARCHAR, INTEGER, True),
        (list_of(TINYINT), list_of(DOUBLE), False),
        (list_of(DOUBLE), list_of(TINYINT), True),
    ):
        cast = Cast(ColumnRef(0, list_of(source)), list_of(target))
        assert may_raise(cast, {}) is raises, (source, target)


def test_structs_are_cast_field_by_field() -> None:
    for source, target, raises in (
        ({"a": INTEGER, "b": decimal(19, 0)}, {"a": BIGINT, "b": decimal(28, 2)}, False),
        ({"a": INTEGER, "b": decimal(19, 0)}, {"a": TINYINT, "b": decimal(28, 2)}, True),
        ({"a": list_of(VARCHAR)}, {"a": list_of(INTEGER)}, True),
        ({"a": INTEGER}, {"b": INTEGER}, True),
    ):
        cast = Cast(ColumnRef(0, struct(source)), struct(target))
        assert may_raise(cast, {}) is raises, (source, target)


def test_a_map_of_different_constants_raises_nothing() -> None:
    values = Call("list_value", (ColumnRef(1, INTEGER), ColumnRef(2, INTEGER)), list_of(INTEGER))
    result = map_of(VARCHAR, INTEGER)
    for keys, is_map in ((("a", "b"), True), (("a", "a"), False), (("a", None), False), (("a",), False)):
        call = Call("map", (Literal(keys, list_of(VARCHAR)), values), result)
        assert may_raise(call, {}) is not is_map, keys
    assert may_raise(Call("map", (ColumnRef(3, list_of(VARCHAR)), values), result), {})
