"""What functions and aggregates declare of NULL, against the kernels: every one is called, on both backends."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

import tqp
from tests.aggregate_calls import aggregate_arguments
from tqp.core.datatypes import DataType, TypeKind, list_of
from tqp.operators.scalar_kernels import SCALAR_FUNCTIONS, resolve
from tqp.planner.algebra.expressions import ColumnRef
from tqp.planner.functions.declaration import NullRule
from tqp.planner.functions.overloads import Overload
from tqp.planner.functions.overloads import resolve as resolve_call
from tqp.planner.functions.registry import (
    AGGREGATES,
    SCALARS,
    WINDOWS,
    aggregate_overloads,
    scalar_names,
    scalar_overloads,
    window_overloads,
)
from tqp.planner.functions.type_rules import ANY_ARRAY, ANY_DECIMAL, ANY_LIST

_SAMPLES = {
    TypeKind.VARCHAR: "'day'",
    TypeKind.BLOB: "'day'::BLOB",
    TypeKind.BIT: "'01'::BIT",
    TypeKind.BOOLEAN: "true",
    TypeKind.DECIMAL: "1.5::DECIMAL(4,1)",
    TypeKind.FLOAT: "0.5::FLOAT",
    TypeKind.DOUBLE: "0.5::DOUBLE",
    TypeKind.DATE: "DATE '2020-01-02'",
    TypeKind.TIME: "TIME '12:34:56'",
    TypeKind.TIME_TZ: "TIMETZ '12:34:56+01'",
    TypeKind.INTERVAL: "INTERVAL '1 month 2 days'",
    TypeKind.UUID: "'019482e4-1441-7aad-8127-eec99573b0a0'::UUID",
    TypeKind.ARRAY: "[1, 2]::FLOAT[2]",
    TypeKind.LIST: "[[1, 2], [3]]",
}
#: Constants that functions ask for, by name and place.
_CONSTANTS = {
    ("negate_unsigned", 0): "0::UHUGEINT",
    ("strftime", 0): "'%Y'",
    ("strftime", 1): "'%Y'",
    ("strptime", 0): "'2020'",
    ("strptime", 1): "'%Y'",
    ("regexp_matches", 2): "'i'",
    ("regexp_full_match", 2): "'i'",
    ("regexp_replace", 3): "'g'",
    ("regexp_extract", 2): "0",
    ("regexp_extract", 3): "'i'",
    ("string_split_regex", 2): "'i'",
    ("regexp_extract_all", 2): "0",
    ("regexp_extract_all", 3): "'i'",
    ("like", 2): "'!'",
    ("ilike", 2): "'!'",
    ("from_hex", 0): "'da'",
    ("from_binary", 0): "'01'",
    ("bitstring", 0): "'01'",
    ("bitstring", 1): "2",
    ("from_base64", 0): "'ZGF5'",
    ("to_base", 1): "2",
    ("time_bucket", 0): "INTERVAL '1 month'",
    ("bar", 3): "2.0::DOUBLE",
    **{(name, 1): "'system'" for name in ("parse_filename", "parse_dirname", "parse_dirpath")},
    **{(name, 0): """'{"day": {"day": 1}}'""" for name in SCALARS if name.startswith("json")},
    ("json_contains", 1): "'1'",
    ("timezone", 0): "'Asia/Tokyo'",
    ("list_sort", 1): "'DESC'",
    ("list_sort", 2): "'NULLS FIRST'",
    ("list_grade_up", 1): "'DESC'",
    ("list_grade_up", 2): "'NULLS FIRST'",
    ("list_reverse_sort", 1): "'NULLS FIRST'",
}
#: Of the integer types, and the timestamps, one will do; what takes NULL alone is NULL without a kernel.
_OTHERS = frozenset(
    kind
    for kind in TypeKind
    if kind is TypeKind.NULL
    or (DataType(kind).is_integer and kind not in (TypeKind.INTEGER, TypeKind.BIGINT))
    or (DataType(kind).is_timestamp and kind is not TypeKind.TIMESTAMP)
)


def _calls() -> Iterator[tuple[str, Overload]]:
    seen = set()
    for name in scalar_names():
        for overload in scalar_overloads(name) or ():
            kinds = {each.kind for each in overload.parameters if isinstance(each, DataType)}
            key = (overload.canonical, overload.parameters, overload.swapped)
            if key not in seen and not kinds & _OTHERS:
                seen.add(key)
                yield name, overload


def _sample(overload: Overload, place: int) -> str:
    data_type = overload.parameters[place]
    assert isinstance(data_type, DataType)
    constant = _CONSTANTS.get((overload.canonical, place))
    if constant is not None and data_type.kind in (
        TypeKind.VARCHAR,
        TypeKind.INTEGER,
        TypeKind.DOUBLE,
        TypeKind.INTERVAL,
        TypeKind.UHUGEINT,
    ):
        return constant
    if data_type.kind is TypeKind.VARCHAR and any(
        isinstance(each, DataType) and each.is_time_of_day for each in overload.parameters
    ):
        return "'hour'"
    if data_type.is_timestamp:
        return f"CAST('2020-01-02 03:04:05' AS {data_type})"
    if data_type.kind is TypeKind.LIST and data_type.children:
        return f"[{_SAMPLES.get(data_type.element.kind) or '1'}]::{data_type}"
    return _SAMPLES.get(data_type.kind) or f"1::{data_type}"


def _constant_places(overload: Overload) -> frozenset[int]:
    """Arguments of the call as written for which the kernel takes constants only."""
    if overload.canonical not in SCALAR_FUNCTIONS:
        return frozenset()
    concrete = {
        ANY_ARRAY: DataType(TypeKind.ARRAY, size=2),
        ANY_DECIMAL: DataType(TypeKind.DECIMAL, 4, 1),
        ANY_LIST: list_of(list_of(DataType(TypeKind.INTEGER))),
    }
    types = [concrete.get(each, each) for each in overload.parameters if isinstance(each, DataType)]
    resolution = resolve_call([overload], [ColumnRef(0, each) for each in types])
    given = list(resolution.argument_types)
    if overload.swapped:
        given.reverse()
    if overload.constant is not None:
        given.insert(0, DataType(TypeKind.VARCHAR))
    places = resolve(overload.canonical, tuple(given), resolution.result).constant_arguments
    if overload.swapped:
        return frozenset(len(types) - 1 - place for place in places)
    return frozenset(place - (overload.constant is not None) for place in places)


@pytest.mark.parametrize("backend", ["host", "torch"])
def test_scalar_functions_are_null_where_they_say(backend: str) -> None:
    with tqp.connect(backend=backend) as connection:
        for name, overload in _calls():
            places = range(len(overload.parameters))
            constants = _constant_places(overload)
            samples = [_sample(overload, place) for place in places]
            columns = [place for place in places if place not in constants]
            arguments = [samples[place] if place in constants else f"a{place}" for place in places]
            if not columns:
                continue
            rows = [samples[place] for place in columns]
            nulls = [
                [
                    f"CASE WHEN false THEN {value} END" if other == place else value
                    for other, value in enumerate(rows)
                ]
                for place in range(len(rows))
            ]
            values = ", ".join(f"({', '.join(row)})" for row in (rows, *nulls))
            written = f"{name}({', '.join(arguments)})" if name.isidentifier() else _operator(name, arguments)
            query = (
                f"SELECT {written} FROM (VALUES {values}) t({', '.join(f'a{place}' for place in columns)})"
            )
            (first,), *others = connection.sql(query).fetchall()
            function = SCALARS[overload.canonical]
            assert first is not None or function.null is NullRule.PROPAGATES, query
            assert function.is_null_for_null and all(value is None for (value,) in others), query


def test_kernels_put_out_64_bits_or_say_that_they_may_not() -> None:
    concrete = {ANY_DECIMAL: DataType(TypeKind.DECIMAL, 4, 0)}
    num_kernels = 0
    for name, overload in _calls():
        types = [concrete.get(each, each) for each in overload.parameters if isinstance(each, DataType)]
        is_kernel = overload.canonical in SCALAR_FUNCTIONS and overload.constant is None
        if not is_kernel or not all(each.is_integer_like for each in types):
            continue
        resolution = resolve_call([overload], [ColumnRef(0, each) for each in types])
        kernel = resolve(overload.canonical, resolution.argument_types, resolution.result)
        if kernel.any_width or kernel.constant_arguments or not resolution.result.is_integer_like:
            continue
        of_version_7 = torch.tensor([[0x7000, 1], [0x7000, 2]])
        zeros_or_ones = torch.tensor([[-(2**63), int(name != "-")]] * 2)
        small = torch.tensor([1, 2], dtype=torch.int8)
        given = {TypeKind.UUID: of_version_7, TypeKind.UHUGEINT: zeros_or_ones}
        result = kernel.function(*(given.get(each.kind, small) for each in types))
        values = result[0] if kernel.returns_validity else result
        assert values.dtype == torch.int64, name
        num_kernels += 1
    assert num_kernels > 10


def _operator(name: str, arguments: list[str]) -> str:
    shown = {"~~": "LIKE", "~~*": "ILIKE"}.get(name, name)
    if len(arguments) == 1:
        return f"{shown} {arguments[0]}"
    escape = f" ESCAPE {arguments[2]}" if len(arguments) > 2 else ""
    return f"{arguments[0]} {shown} {arguments[1]}{escape}"


@pytest.mark.parametrize("backend", ["host", "torch"])
def test_aggregates_need_as_many_values_as_they_say(backend: str) -> None:
    rows = "(1, NULL, NULL), (2, 5, true), (3, 5, true), (3, 6, false), (3, 6, false), (3, 9, false)"
    with tqp.connect(backend=backend) as connection:
        for name, function in AGGREGATES.items():
            overloads = aggregate_overloads(name)
            if not overloads or not overloads[0].parameters:
                continue
            argument = aggregate_arguments(name, "x", "b")
            by_key = connection.sql(
                f"SELECT {name}({argument}) FROM (VALUES {rows}) t(k, x, b) GROUP BY k ORDER BY k"
            ).fetchall()
            nothing = connection.sql(f"SELECT {name}({argument}) FROM (VALUES {rows}) t(k, x, b) WHERE k > 3")
            assert nothing.fetchall() == [(function.of_nothing,)], name
            if function.fewest_values:
                assert by_key[0] == (function.of_nothing,), name
            assert (by_key[1][0] is None) == (function.fewest_values > 1) and by_key[2][0] is not None, name
            if function.ignores_duplicates:
                both = (
                    f"SELECT {name}(DISTINCT {argument}), {name}({argument}) FROM (VALUES {rows}) t(k, x, b)"
                )
                ((distinct, all_values),) = connection.sql(both).fetchall()
                assert distinct == all_values, name


@pytest.mark.parametrize("backend", ["host", "torch"])
def test_window_functions_are_null_and_raise_where_they_say(backend: str) -> None:
    with tqp.connect(backend=backend) as connection:
        for name, function in WINDOWS.items():
            for overload in window_overloads(name) or ():
                samples = ["x", "n", "5"][: len(overload.parameters)]
                arguments = ["n"] if name == "ntile" else samples
                call = f"{name}({', '.join(arguments)}) OVER (ORDER BY x NULLS FIRST)"
                query = f"SELECT {call} FROM (VALUES (NULL, NULL), (1, 1), (2, 1)) t(x, n) ORDER BY x"
                answer = connection.sql(query).fetchall()
                assert function.nullable == ((None,) in answer), query
                if function.numbers_rows:
                    assert all(value is None or 1 <= value <= 3 for (value,) in answer), query
                if function.raises:
                    with pytest.raises(tqp.ExecutionError):
                        connection.sql(query.replace("(1, 1)", "(1, -1)")).fetchall()
