"""The function table: overloads against DuckDB's choice, and each canonical function against the kernels."""

from __future__ import annotations

import duckdb
import pytest

from tqp.core.datatypes import (
    BIGINT,
    DATE,
    DOUBLE,
    INTEGER,
    NULL,
    TINYINT,
    VARCHAR,
    DataType,
    TypeKind,
    decimal,
    list_of,
)
from tqp.planner.algebra.expressions import ColumnRef, Expression, Literal
from tqp.planner.binder.expressions.calls import function_names
from tqp.planner.binder.expressions.forms.special_forms import SPECIAL_FORMS
from tqp.planner.functions import registry as functions
from tqp.planner.functions.decimal_types import product_of_decimals, sum_of_decimals
from tqp.planner.functions.overloads import (
    _RESULT_RULES,
    ANY,
    NoOverloadError,
    Overload,
    describe,
    resolve,
)
from tqp.planner.functions.type_rules import SourceLiteral, can_cast, common_type
from tqp.planner.functions.unsupported import _NAMES, missing_feature


def column(data_type: DataType) -> Expression:
    return ColumnRef(1, data_type)


@pytest.mark.parametrize("name", [*functions.scalar_names(), *functions.aggregate_names()])
def test_every_signature_parses(name: str) -> None:
    overloads = functions.scalar_overloads(name) or functions.aggregate_overloads(name) or ()
    assert overloads or functions.main_spelling(name) in SPECIAL_FORMS
    for overload in overloads:
        for parameter in overload.parameters:
            assert isinstance(parameter, DataType) or parameter == ANY, (name, parameter)
        assert isinstance(overload.result, DataType) or overload.result in _RESULT_RULES, overload.result
        assert describe(overload)


def test_names_are_not_taken_twice() -> None:
    names = [*functions.scalar_names(), *functions.aggregate_names()]
    assert len(names) == len(set(names))
    canonical = [function.name for function in functions.SCALARS.values()]
    assert list(functions.SCALARS) == canonical


@pytest.mark.parametrize(
    ("name", "arguments", "canonical", "types", "result"),
    [
        ("add", [column(INTEGER), SourceLiteral(1, INTEGER)], "add", [INTEGER, INTEGER], INTEGER),
        ("add", [column(TINYINT), SourceLiteral(1, INTEGER)], "add", [TINYINT, TINYINT], TINYINT),
        ("add", [column(TINYINT), SourceLiteral(1000, INTEGER)], "add", [INTEGER, INTEGER], INTEGER),
        ("add", [SourceLiteral(1, INTEGER), SourceLiteral(2, INTEGER)], "add", [INTEGER, INTEGER], INTEGER),
        ("add", [column(DATE), SourceLiteral(1, INTEGER)], "add_days", [DATE, INTEGER], DATE),
        ("add", [SourceLiteral(1, INTEGER), column(DATE)], "add_days", [INTEGER, DATE], DATE),
        ("add", [Literal(None, NULL), Literal(None, NULL)], "add", [BIGINT, BIGINT], BIGINT),
        ("/", [column(INTEGER), column(decimal(5, 2))], "divide", [DOUBLE, DOUBLE], DOUBLE),
        ("substr", [column(VARCHAR), SourceLiteral(1, INTEGER)], "substring", [VARCHAR, BIGINT], VARCHAR),
        ("sqrt", [column(decimal(5, 2))], "sqrt", [DOUBLE], DOUBLE),
        ("year", [column(DATE)], "date_part", [DATE], BIGINT),
    ],
)
def test_resolution(
    name: str, arguments: list[Expression], canonical: str, types: list[DataType], result: DataType
) -> None:
    overloads = functions.scalar_overloads(name)
    assert overloads is not None
    resolution = resolve(overloads, arguments)
    assert resolution.overload.canonical == canonical
    assert list(resolution.argument_types) == types
    assert resolution.result == result


def test_no_overload_and_ambiguity_are_told_apart() -> None:
    upper, add = functions.scalar_overloads("upper"), functions.scalar_overloads("add")
    assert upper is not None and add is not None
    with pytest.raises(NoOverloadError) as caught:
        resolve(upper, [column(INTEGER)])
    assert not caught.value.ambiguous and caught.value.candidates == ["(VARCHAR) -> VARCHAR"]
    with pytest.raises(NoOverloadError) as caught:
        resolve(add, [column(DATE), SourceLiteral("1", VARCHAR)])
    assert caught.value.ambiguous


def test_decimal_arithmetic() -> None:
    assert sum_of_decimals([decimal(15, 2), INTEGER]) == (decimal(15, 2), decimal(16, 2))
    assert sum_of_decimals([decimal(38, 0), decimal(15, 2)]) == (decimal(38, 2), decimal(38, 2))
    assert product_of_decimals(decimal(15, 2), decimal(15, 2)) == decimal(18, 4)
    assert product_of_decimals(decimal(20, 2), decimal(15, 2)) == decimal(35, 4)
    assert product_of_decimals(decimal(38, 20), decimal(38, 20)) is None


def test_common_types() -> None:
    assert common_type(column(TINYINT), SourceLiteral(1, INTEGER)) == TINYINT
    assert common_type(column(DATE), SourceLiteral("2020-01-01", VARCHAR)) == DATE
    assert common_type(column(INTEGER), column(VARCHAR)) is None
    assert common_type(column(INTEGER), column(decimal(15, 2))) == decimal(15, 2)
    assert not can_cast(INTEGER, DATE)


def test_every_canonical_function_is_known_to_the_kernels_or_the_runtime() -> None:
    """A function that binds and then has no kernel for any of its overloads would be a false promise."""
    kernels = pytest.importorskip("tqp.operators.scalar_kernels")
    lowered = {"add", "subtract", "multiply", "negate", "coalesce"}
    overloads = [
        overload for name in functions.scalar_names() for overload in functions.scalar_overloads(name) or ()
    ]
    missing = {
        f"{overload.canonical}{describe(overload)}"
        for overload in overloads
        if overload.canonical not in lowered
        and NULL not in overload.parameters  # the call is NULL
        and not _has_kernel(kernels, overload)
    }
    refused = {  # such shifts raise UnsupportedError
        f"{function}({wide}, {wide}) -> {wide}"
        for function in ("shift_left", "shift_right")
        for wide in ("HUGEINT", "UBIGINT")
    }
    refused |= {  # by the binder
        "age(TIMESTAMP WITH TIME ZONE, TIMESTAMP WITH TIME ZONE) -> INTERVAL",
        "time_bucket(INTERVAL, TIMESTAMP WITH TIME ZONE) -> TIMESTAMP WITH TIME ZONE",
    }
    assert missing <= refused, missing - refused


def _has_kernel(kernels: object, overload: Overload) -> bool:
    from tqp.core.errors import UnsupportedError

    def concrete(data_type: DataType | str) -> DataType:
        assert isinstance(data_type, DataType)
        if data_type.kind is TypeKind.LIST and not data_type.children:
            return list_of(list_of(INTEGER))
        return decimal(9, 2) if data_type.is_decimal else data_type

    types = tuple(concrete(each) for each in overload.parameters)
    types = types[::-1] if overload.swapped else types
    types = (VARCHAR, *types) if overload.constant else types
    result = concrete(overload.result) if isinstance(overload.result, DataType) else types[0]
    try:
        kernels.resolve(overload.canonical, types, result)  # type: ignore[attr-defined]
    except UnsupportedError:
        return False
    return True


def test_every_function_of_duckdb_that_is_missing_is_known_to_be() -> None:
    """So that a call of it says that it is not supported, and not that there is no such function."""
    rows = duckdb.sql(
        "SELECT DISTINCT lower(function_name) FROM duckdb_functions() "
        "WHERE function_type IN ('scalar', 'aggregate', 'macro') AND function_name SIMILAR TO '[A-Za-z]\\w*'"
    ).fetchall()
    operators = {"position", "like", "ilike"}  # written position(a IN b), a LIKE b
    ours = {*function_names(), *operators}
    unknown = sorted(name for (name,) in rows if name not in ours and missing_feature(name) is None)
    assert unknown == []
    assert missing_feature("lenght") is None
    assert not _NAMES & set(function_names())
