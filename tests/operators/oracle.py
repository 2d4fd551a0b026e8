"""Runs a kernel and DuckDB on the same rows and compares them: the tests of scalar kernels share it."""

from __future__ import annotations

import decimal
import math
from collections.abc import Sequence
from typing import Any

import duckdb
import torch
from torch import Tensor

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.errors import ExecutionError
from tqp.operators.kernel import Kernel, NullRule
from tqp.operators.numbers import wide
from tqp.operators.numbers.wide_forms import exceeds_64_bits
from tqp.operators.scalar_kernels import resolve
from tqp.operators.strings import layout as string_layout

_CONNECTION = duckdb.connect()

#: An expression that turns a value of each type into its storage value.
_STORAGE: dict[TypeKind, str] = {
    TypeKind.DATE: "({0} - DATE '1970-01-01')::BIGINT",
    TypeKind.TIMESTAMP_S: "epoch_us({0}::TIMESTAMP) // 1000000",
    TypeKind.TIMESTAMP_MS: "epoch_us({0}::TIMESTAMP) // 1000",
    TypeKind.TIMESTAMP: "epoch_us({0})",
    TypeKind.TIMESTAMP_TZ: "epoch_us({0})",
    TypeKind.TIMESTAMP_NS: "epoch_ns({0})",
    TypeKind.TIME: "epoch_us({0})",
}
#: And back.
_FROM_STORAGE: dict[TypeKind, str] = {
    TypeKind.DATE: "(DATE '1970-01-01' + {0}::INTEGER)",
    TypeKind.TIMESTAMP_S: "make_timestamp({0} * 1000000)::TIMESTAMP_S",
    TypeKind.TIMESTAMP_MS: "make_timestamp({0} * 1000)::TIMESTAMP_MS",
    TypeKind.TIMESTAMP: "make_timestamp({0})",
    TypeKind.TIMESTAMP_TZ: "make_timestamp({0})::TIMESTAMPTZ",
    TypeKind.TIMESTAMP_NS: "make_timestamp_ns({0})",
    TypeKind.TIME: "(TIME '00:00:00' + to_microseconds({0}))",
}

Rows = Sequence[Any]


def duckdb_rows(expression: str, types: Sequence[DataType], columns: Sequence[Rows]) -> tuple[str, list[Any]]:
    """DuckDB's type of `expression` over the columns a, b, c, ... of storage values, and its values row by row."""
    names = "abcdefgh"[: len(columns)]
    selected = ", ".join(
        f"{_value_of(f'r[{i + 1}]', data_type)} AS {name}"
        for i, (name, data_type) in enumerate(zip(names, types))
    )
    rows = list(zip(*columns, strict=True))
    texts = [[_text(value, data_type) for value, data_type in zip(row, types)] for row in rows]
    query = f"SELECT typeof({expression}), {expression} FROM (SELECT {selected} FROM (SELECT unnest(?::VARCHAR[][]) AS r))"
    result = _CONNECTION.execute(query, [texts]).fetchall()
    return result[0][0], [row[1] for row in result]


def _text(value: Any, data_type: DataType) -> str | None:
    if value is None:
        return None
    if data_type.is_decimal:
        return f"{decimal.Decimal(value).scaleb(-data_type.scale, decimal.Context(prec=50)):f}"
    return ":".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _value_of(text: str, data_type: DataType) -> str:
    kind = data_type.kind
    if kind is TypeKind.INTERVAL:
        parts = [f"split_part({text}, ':', {i})::BIGINT" for i in (1, 2, 3)]
        return f"(to_months({parts[0]}) + to_days({parts[1]}) + to_microseconds({parts[2]}))"
    if kind in _FROM_STORAGE:
        return _FROM_STORAGE[kind].format(f"({text})::BIGINT")
    return f"{text}::{data_type}"


def tensor_of(values: Rows, data_type: DataType) -> Any:
    """Storage of a type for a column of storage values; NULL becomes an arbitrary value."""
    if data_type.is_string:
        return string_layout.from_list(values)
    if data_type.kind is TypeKind.INTERVAL:
        return torch.tensor([value or (0, 0, 0) for value in values], dtype=torch.int64).reshape(-1, 3)
    dtypes = {TypeKind.DOUBLE: torch.float64, TypeKind.FLOAT: torch.float32, TypeKind.BOOLEAN: torch.bool}
    if data_type.kind in dtypes:
        return torch.tensor([0 if value is None else value for value in values], dtype=dtypes[data_type.kind])
    integers = [value or 0 for value in values]
    if any(not -(2**63) <= value < 2**63 for value in integers):
        return wide.from_ints(integers)
    return torch.tensor(integers, dtype=torch.int64)


def run(
    function: str | Kernel,
    types: Sequence[DataType],
    columns: Sequence[Rows],
    result_type: DataType,
    constants: Sequence[Any] = (),
    constants_first: bool = False,
    constant_types: Sequence[DataType] = (),
) -> list[Any]:
    """The kernel's storage values, None for NULL. `constants` follow (or precede) the columns."""
    all_types = (*constant_types, *types) if constants_first else (*types, *constant_types)
    kernel = resolve(function, all_types, result_type) if isinstance(function, str) else function
    validities = [_validity(column) for column in columns]
    tensors = [tensor_of(column, data_type) for column, data_type in zip(columns, types)]
    arguments: list[Any] = list(zip(tensors, validities)) if kernel.nulls is NullRule.CUSTOM else tensors
    arguments = [*constants, *arguments] if constants_first else [*arguments, *constants]
    combined = None
    for validity in validities:
        if validity is not None:
            combined = validity if combined is None else combined & validity
    result = kernel.function(*arguments, **({"validity": combined} if kernel.checks else {}))
    if kernel.nulls is NullRule.CUSTOM:
        result, combined = result
    elif kernel.returns_validity:
        result, own = result
        if own is not None:
            combined = own if combined is None else combined & own
    if result_type.is_integer_like:
        assert wide.is_wide(result) == exceeds_64_bits(result_type), "form of the result"
    values = values_of(result)
    if combined is None:
        return values
    return [value if counts else None for value, counts in zip(values, combined.tolist(), strict=True)]


def _validity(column: Rows) -> Tensor | None:
    return torch.tensor([value is not None for value in column]) if None in column else None


def values_of(result: Any) -> list[Any]:
    """Python storage values of a kernel's result."""
    if not isinstance(result, Tensor):
        return [raw.decode() for raw in string_layout.to_list(result)]
    if wide.is_wide(result):
        return wide.to_ints(result) if result.shape[1] == 2 else [tuple(row) for row in result.tolist()]
    return result.tolist()  # type: ignore[no-any-return]


def check(
    sql: str,
    function: str | Kernel,
    types: Sequence[DataType],
    columns: Sequence[Rows],
    result_type: DataType,
    constants: Sequence[Any] = (),
    constants_first: bool = False,
    constant_types: Sequence[DataType] = (),
    tolerance: float = 0.0,
) -> None:
    """Assert that the kernel gives what DuckDB gives for `sql` over the columns a, b, ...; rows that raise must raise.

    `result_type` must be DuckDB's own type, so that tests do not drift from it.
    """
    keywords = {"constants": constants, "constants_first": constants_first, "constant_types": constant_types}
    try:
        type_name, _ = duckdb_rows(sql, types, [column[:1] for column in columns])
        assert type_name == str(result_type), f"DuckDB says {type_name}"
    except duckdb.Error:
        pass  # the first row raises; the loop below deals with it
    expected_sql = _STORAGE.get(result_type.kind, "{0}").format(f"({sql})")
    if result_type.is_decimal:
        expected_sql = f"replace(({sql})::VARCHAR, '.', '')::HUGEINT"
    if result_type.kind is TypeKind.INTERVAL:
        expected_sql = (
            f"CASE WHEN ({sql}) IS NOT NULL THEN (datepart('year', {sql}) * 12 + datepart('month', {sql}), datepart('day', {sql}), epoch_us(({sql})"
            f" - to_months((datepart('year', {sql}) * 12 + datepart('month', {sql}))::INTEGER) - to_days(datepart('day', {sql})::INTEGER))) END"
        )
    try:
        _, expected = duckdb_rows(expected_sql, types, columns)
    except duckdb.Error as error:
        if len(columns[0]) == 1:
            try:
                actual = run(function, types, columns, result_type, **keywords)
            except ExecutionError:
                return
            raise AssertionError(
                f"{sql} of {[c[0] for c in columns]}: {actual}, DuckDB raises {error}"
            ) from None
        for row in range(len(columns[0])):  # one row at a time: each must raise, or agree
            check(
                sql,
                function,
                types,
                [[column[row]] for column in columns],
                result_type,
                **keywords,
                tolerance=tolerance,
            )
        return
    actual = run(function, types, columns, result_type, **keywords)
    for row, (got, want) in enumerate(zip(actual, expected, strict=True)):
        assert _same(got, want, tolerance), (
            f"{sql} of {[column[row] for column in columns]}: {got}, DuckDB says {want}"
        )


def _same(got: Any, want: Any, tolerance: float) -> bool:
    if isinstance(want, float) and isinstance(got, float):
        if math.isnan(want) or math.isnan(got):
            return math.isnan(want) and math.isnan(got)
        return got == want or (
            tolerance > 0 and math.isclose(got, want, rel_tol=tolerance, abs_tol=tolerance)
        )
    return bool(got == want)
