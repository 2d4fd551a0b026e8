"""CAST and TRY_CAST from and to VARCHAR and BLOB.

Texts are read by Arrow where all rows have the plain form on which Arrow and DuckDB agree; else each distinct text goes
through a parser in Python (`tqp.core.text_values`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from tqp.core.datatypes import MAX_DECIMAL_PRECISION, DataType, TypeKind
from tqp.core.errors import ExecutionError, UnsupportedError
from tqp.core.text_numbers import ParseFailure, format_bytes, parse_bytes
from tqp.core.text_values import Parser, parser_of
from tqp.data.strings import Strings
from tqp.operators import wide
from tqp.operators.kernel import Kernel
from tqp.operators.rows import row_indices
from tqp.operators.string_codes import factorize
from tqp.operators.string_format import formatter
from tqp.operators.string_layout import compact, from_list, take, to_arrow, to_list
from tqp.operators.string_words import words
from tqp.operators.wide_forms import fix_form

#: Values, and per row the index of its distinct text and per distinct text why it failed (None: nothing failed).
Attempt = tuple[Any, Tensor | None, list[str | None]]


def resolve_string_cast(source: DataType, target: DataType, is_try: bool) -> Kernel:
    """The kernel of a cast from or to VARCHAR or BLOB. Raises UnsupportedError if there is no such cast.

    With `is_try` the kernel returns (values, validity) and never raises for a value.
    """
    if not source.is_string:
        write = formatter(source)
        if write is None or target.kind is not TypeKind.VARCHAR:
            raise UnsupportedError(f"Unimplemented type for cast ({source} -> {target})")
        return _total_kernel(write, is_try)
    if target.is_string:
        if source.kind is target.kind:
            return _total_kernel(lambda strings: strings, is_try)
        if source.kind is TypeKind.BLOB:
            return _total_kernel(_blob_to_text, is_try)
        return _partial_kernel(_text_to_blob, is_try)
    parser = parser_of(target)
    if parser is None or source.kind is TypeKind.BLOB:
        raise UnsupportedError(f"Unimplemented type for cast ({source} -> {target})")
    kernel = _partial_kernel(lambda strings, validity: _parse(strings, validity, target, parser), is_try)
    return fix_form(kernel, target)


def _total_kernel(function: Callable[[Any], Strings], is_try: bool) -> Kernel:
    """A cast that cannot fail."""
    if not is_try:
        return Kernel(function, accepts_wide=True)
    return Kernel(lambda values: (function(values), None), returns_validity=True, accepts_wide=True)


def _partial_kernel(attempt: Callable[[Strings, Tensor | None], Attempt], is_try: bool) -> Kernel:
    """A cast that raises for the first valid row that fails, or makes all that fail NULL."""

    def cast(strings: Strings, *, validity: Tensor | None = None) -> Any:
        values, codes, failures = attempt(strings, validity)
        failed = _failed_rows(codes, failures, validity)
        if codes is not None and failed is not None:
            row = int(failed.to(torch.uint8).argmax())
            raise ExecutionError(str(failures[int(codes[row])]))
        return values

    def try_cast(strings: Strings, *, validity: Tensor | None = None) -> tuple[Any, Tensor | None]:
        values, codes, failures = attempt(strings, validity)
        failed = _failed_rows(codes, failures, validity)
        return values, None if failed is None else ~failed

    return Kernel(try_cast if is_try else cast, checks=True, returns_validity=is_try)


def _failed_rows(codes: Tensor | None, failures: list[str | None], validity: Tensor | None) -> Tensor | None:
    """Valid rows whose text failed: bool [n]; None if none did."""
    if codes is None or all(failure is None for failure in failures):
        return None
    bad = torch.tensor([failure is not None for failure in failures], device=codes.device)
    failed = torch.index_select(bad, 0, codes)
    if validity is not None:
        failed = failed & validity
    return failed if bool(failed.any()) else None


def _parse(strings: Strings, validity: Tensor | None, target: DataType, parser: Parser) -> Attempt:
    if validity is not None:
        validity = validity.expand(strings.num_rows)
    plain = _parse_plain(strings, validity, target)
    if plain is not None:
        return plain.to(strings.starts.device), None, []
    codes, distinct = factorize(strings, validity)
    values: list[Any] = []
    failures: list[str | None] = []
    default: Any = (0, 0, 0) if target.kind is TypeKind.INTERVAL else 0
    for content in to_list(distinct):
        try:
            values.append(parser(content.decode(), target))
            failures.append(None)
        except ParseFailure as failure:
            values.append(default)
            failures.append(str(failure))
    return torch.index_select(_storage(values, target, codes.device), 0, codes), codes, failures


def _storage(values: list[Any], target: DataType, device: torch.device) -> Tensor:
    """Storage values of a type as a tensor [n], [n, 2] for wide integers, [n, 3] for intervals."""
    if target.is_float:
        dtype = torch.float32 if target.kind is TypeKind.FLOAT else torch.float64
        return torch.tensor(values, dtype=dtype, device=device)
    if target.kind is TypeKind.BOOLEAN:
        return torch.tensor(values, dtype=torch.bool, device=device)
    if target.kind is TypeKind.INTERVAL:
        return torch.tensor(values, dtype=torch.int64, device=device).reshape(len(values), 3)
    if any(not -(2**63) <= value < 2**63 for value in values):
        return wide.from_ints(values, device)
    return torch.tensor(values, dtype=torch.int64, device=device)


# The plain forms ------------------------------------------------------------------------------------------------------

_ARROW_TYPES: dict[TypeKind, pa.DataType] = {
    TypeKind.TINYINT: pa.int8(),
    TypeKind.SMALLINT: pa.int16(),
    TypeKind.INTEGER: pa.int32(),
    TypeKind.BIGINT: pa.int64(),
    TypeKind.UTINYINT: pa.uint8(),
    TypeKind.USMALLINT: pa.uint16(),
    TypeKind.UINTEGER: pa.uint32(),
    TypeKind.HUGEINT: pa.int64(),
    TypeKind.FLOAT: pa.float32(),
    TypeKind.DOUBLE: pa.float64(),
    TypeKind.DATE: pa.date32(),
    TypeKind.TIMESTAMP: pa.timestamp("us"),
}


def _parse_plain(strings: Strings, validity: Tensor | None, target: DataType) -> Tensor | None:
    """Values read by Arrow, on the host; None where a text needs DuckDB's rules."""
    arrow_type = (
        pa.decimal128(target.precision, target.scale) if target.is_decimal else _ARROW_TYPES.get(target.kind)
    )
    if arrow_type is None or strings.num_rows == 0:
        return None
    if target.kind is TypeKind.TIMESTAMP and not _has_plain_timestamps(strings, validity):
        return None
    if target.is_decimal and not _has_plain_decimals(strings, target.scale):
        return None
    try:
        parsed = to_arrow(strings, validity).cast(arrow_type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return None
    if target.is_decimal:
        return _decimal_storage(parsed, validity)
    if pa.types.is_date(arrow_type):
        parsed = parsed.view(pa.int32())
    elif pa.types.is_timestamp(arrow_type):
        parsed = parsed.view(pa.int64())
    numbers = parsed.fill_null(0).to_numpy(zero_copy_only=False)
    values = torch.from_numpy(np.array(numbers) if target.is_float else numbers.astype(np.int64))
    if target.is_float and bool(values.isnan().any()):
        return None  # Arrow takes more spellings of it
    if target.is_integer and bool((values < 0).any()) and not _have_minus(strings, values < 0):
        return None  # Arrow takes 0xFF for -1
    return values


def _have_minus(strings: Strings, flags: Tensor) -> bool:
    """Whether all flagged rows start with a minus."""
    first = words(take(strings, row_indices(flags.to(strings.starts.device))), 0) & 0xFF
    return bool((first == ord("-")).all())


def _has_plain_timestamps(strings: Strings, validity: Tensor | None) -> bool:
    """Whether all are dates, or dates with at least hours and minutes: Arrow would take hours alone as well."""
    lengths = strings.lengths if validity is None else torch.where(validity, strings.lengths, 10)
    return bool(((lengths == 10) | (lengths >= 16)).all())


def _has_plain_decimals(strings: Strings, scale: int) -> bool:
    """Whether none has an exponent, or more digits than Arrow can count and scale without wrapping round."""
    if int(strings.lengths.max()) + scale > MAX_DECIMAL_PRECISION:
        return False
    data = compact(strings).data
    return data.shape[0] == 0 or int(data.max()) <= ord("9")


def _decimal_storage(parsed: pa.Array[Any], validity: Tensor | None) -> Tensor:
    """The scaled integers of a decimal128 array: int64 [n], or wide [n, 2]."""
    halves = np.frombuffer(parsed.buffers()[1], dtype=np.int64).reshape(-1, 2)
    halves = halves[parsed.offset : parsed.offset + len(parsed)]
    values = torch.from_numpy(np.ascontiguousarray(halves[:, ::-1]))  # Arrow has the low half first
    if validity is not None:
        values = values * validity.cpu().unsqueeze(1)
    return values[:, 1].contiguous() if bool(wide.fits_narrow(values).all()) else values


# Blobs ----------------------------------------------------------------------------------------------------------------


def _blob_to_text(strings: Strings) -> Strings:
    codes, distinct = factorize(strings)
    return take(from_list([format_bytes(value) for value in to_list(distinct)], codes.device), codes)


def _text_to_blob(strings: Strings, validity: Tensor | None) -> Attempt:
    codes, distinct = factorize(strings, None if validity is None else validity.expand(strings.num_rows))
    values: list[bytes] = []
    failures: list[str | None] = []
    for content in to_list(distinct):
        try:
            values.append(parse_bytes(content))
            failures.append(None)
        except ParseFailure as failure:
            values.append(b"")
            failures.append(str(failure))
    return take(from_list(values, codes.device), codes), codes, failures
