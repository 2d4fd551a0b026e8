"""CAST and TRY_CAST from and to VARCHAR, BLOB and BIT.

Rows in plain forms are read all at once (`plain_forms`); each other distinct text goes through a parser in Python
(`tqp.core.text.parsers`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from tqp.core.datatypes import BIT, BLOB, JSON, UUID, VARCHAR, DataType, TypeKind
from tqp.core.errors import ExecutionError, UnsupportedError
from tqp.core.text.numbers import ParseFailure, format_bytes, parse_bytes
from tqp.core.text.parsers import Parser, parse_json_text, parser_of
from tqp.data.strings import Strings
from tqp.operators.kernel import Kernel
from tqp.operators.numbers import wide
from tqp.operators.numbers.casts import storage_dtype
from tqp.operators.numbers.wide_forms import fix_form
from tqp.operators.rows.selection import row_indices
from tqp.operators.string_keys.codes import (
    distinct_slices,
    distinct_values,
    is_mostly_distinct,
    of_each_value,
)
from tqp.operators.strings.json_documents import Documents
from tqp.operators.strings.layout import from_list, replace_rows, take, to_list
from tqp.operators.text.bit_casts import bit_reader, bit_writer, bits_of_bytes, bytes_of_bits, read_bits
from tqp.operators.text.plain_forms import read_plain
from tqp.operators.text.uuids import format_uuid_bytes, read_uuid_bytes
from tqp.operators.text.value_format import formatter

#: Values, the rows that failed (int64 [m], ascending; None: none did), and why each did.
Attempt = tuple[Any, Tensor | None, Sequence[str]]


def resolve_string_cast(source: DataType, target: DataType, is_try: bool) -> Kernel:
    """The kernel of a cast from or to VARCHAR, BLOB or BIT. Raises UnsupportedError if there is no such cast.

    With `is_try` the kernel returns (values, validity) and never raises for a value.
    """
    if not source.is_string:
        write = _writer(source, target)
        if write is None:
            raise UnsupportedError(f"Unimplemented type for cast ({source} -> {target})")
        return _total_kernel(write, is_try)
    if target.is_string:
        if target.is_json:
            return _partial_kernel(_checked_json, is_try)
        if source.kind is target.kind:
            return _total_kernel(lambda strings: strings, is_try)
        kinds = (source.kind, target.kind)
        recode = _RECODED.get(kinds)
        if recode is not None:
            return _total_kernel(recode, is_try)
        return _partial_kernel(_CHECKED[kinds], is_try)
    read = _reader(source, target)
    if read is not None:
        return fix_form(_partial_kernel(read, is_try), target)
    parser = parser_of(target)
    if parser is None or source != VARCHAR:
        raise UnsupportedError(f"Unimplemented type for cast ({source} -> {target})")
    kernel = _partial_kernel(lambda strings, validity: _parse(strings, validity, target, parser), is_try)
    return fix_form(kernel, target)


def _writer(source: DataType, target: DataType) -> Callable[[Any], Strings] | None:
    """What writes stored values of a type as texts, bytes or bits; None where nothing does."""
    if target == VARCHAR:
        return formatter(source)
    if target == BIT:
        return bit_writer(source)
    return format_uuid_bytes if source == UUID and target == BLOB else None


def _reader(source: DataType, target: DataType) -> Callable[[Strings, Tensor | None], Attempt] | None:
    """What reads stored values of a type out of bytes or bits; None where nothing does."""
    if source == BIT:
        return bit_reader(target)
    return read_uuid_bytes if source == BLOB and target == UUID else None


def _total_kernel(function: Callable[[Any], Strings], is_try: bool) -> Kernel:
    """A cast that cannot fail."""
    if not is_try:
        return Kernel(function, accepts_wide=True)
    return Kernel(lambda values: (function(values), None), returns_validity=True, accepts_wide=True)


def _partial_kernel(attempt: Callable[[Strings, Tensor | None], Attempt], is_try: bool) -> Kernel:
    """A cast that raises for the first valid row that fails, or makes all that fail NULL."""

    def cast(strings: Strings, *, validity: Tensor | None = None) -> Any:
        values, failed, reasons = attempt(strings, validity)
        if failed is not None:
            raise ExecutionError(reasons[0])
        return values

    def try_cast(strings: Strings, *, validity: Tensor | None = None) -> tuple[Any, Tensor | None]:
        values, failed, _ = attempt(strings, validity)
        if failed is None:
            return values, None
        kept = torch.ones(strings.num_rows, dtype=torch.bool, device=failed.device)
        return values, kept.index_fill_(0, failed, False)

    return Kernel(try_cast if is_try else cast, checks=True, returns_validity=is_try)


def _parse(strings: Strings, validity: Tensor | None, target: DataType, parser: Parser) -> Attempt:
    if validity is not None:
        validity = validity.expand(strings.num_rows)
    shared = distinct_slices(strings, validity)
    if shared is not None:
        codes, slices = shared
        values, failed, _ = _parse(slices, None, target, parser)
        if failed is None:
            return torch.index_select(values, 0, codes), None, []
    reading = read_plain(strings, validity, target)
    if reading is None:
        rows = (
            torch.arange(strings.num_rows, device=strings.starts.device)
            if validity is None
            else row_indices(validity)
        )
        values = None
    else:
        values, is_read = reading
        values = values.to(strings.starts.device)
        if is_read is None:
            return values, None, []
        others = ~is_read if validity is None else validity & ~is_read
        rows = row_indices(others)
        if rows.shape[0] == 0:
            return values, None, []
    default: Any = (0, 0, 0) if target.kind is TypeKind.INTERVAL else 0
    codes, distinct, failed, reasons = _each_distinct(
        take(strings, rows), lambda content: parser(content.decode(), target), default
    )
    read = torch.index_select(_storage(distinct, target, codes.device), 0, codes)
    merged = _merged(values, rows, read, strings.num_rows)
    return merged, None if failed is None else torch.index_select(rows, 0, failed), reasons


def _each_distinct(
    strings: Strings, parse: Callable[[bytes], Any], default: Any
) -> tuple[Tensor, list[Any], Tensor | None, Sequence[str]]:
    """The number of each row's text, what each distinct text is, read once, the rows that failed and why."""
    codes, distinct = distinct_values(strings)
    values: list[Any] = []
    failures: dict[int, str] = {}
    for number, content in enumerate(to_list(distinct)):
        try:
            values.append(parse(content))
        except ParseFailure as failure:
            values.append(default)
            failures[number] = str(failure)
    return codes, values, *_failed_rows(codes, failures)


def _failed_rows(codes: Tensor, failures: Mapping[int, str]) -> tuple[Tensor | None, Sequence[str]]:
    """The rows whose distinct text is among the failures, and why the first of them did."""
    if not failures:
        return None, []
    bad = torch.zeros(int(codes.max()) + 1, dtype=torch.bool, device=codes.device)
    bad[torch.tensor(list(failures), device=codes.device)] = True
    rows = row_indices(torch.index_select(bad, 0, codes))
    return rows, [failures[int(codes[rows[0]])]]


def _merged(values: Tensor | None, rows: Tensor, read: Tensor, num_rows: int) -> Tensor:
    """`values` with what was `read` at `rows`; wide where either is."""
    if rows.shape[0] == num_rows:
        return read
    if values is None:
        values = read.new_zeros((num_rows, *read.shape[1:]))
    if wide.is_wide(read) != wide.is_wide(values):
        values, read = wide.widen(values), wide.widen(read)
    return values.index_copy(0, rows, read)


def _storage(values: list[Any], target: DataType, device: torch.device) -> Tensor:
    """Storage values of a type as a tensor [n], [n, 2] for wide integers, [n, 3] for intervals."""
    if target.is_integer_like and any(not -(2**63) <= value < 2**63 for value in values):
        return wide.from_ints(values, device)
    made = torch.tensor(values, dtype=storage_dtype(target), device=device)
    return made.reshape(len(values), 3) if target.kind is TypeKind.INTERVAL else made


# JSON -----------------------------------------------------------------------------------------------------------------


def _checked_json(strings: Strings, validity: Tensor | None) -> Attempt:
    """The texts themselves, those that are JSON."""
    others = ~Documents(strings).are_plain() if is_mostly_distinct(strings) else None
    if validity is not None:
        validity = validity.expand(strings.num_rows)
        others = validity if others is None else validity & others
    rows = None if others is None else row_indices(others)
    some = strings if rows is None else take(strings, rows)
    _, _, failed, reasons = _each_distinct(
        some, lambda content: parse_json_text(content.decode(), JSON), None
    )
    return strings, failed if failed is None or rows is None else rows[failed], reasons


# Blobs ----------------------------------------------------------------------------------------------------------------


def _blob_to_text(strings: Strings) -> Strings:
    return of_each_value(strings, format_bytes)


def _text_to_blob(strings: Strings, validity: Tensor | None) -> Attempt:
    rows = None if validity is None else row_indices(validity.expand(strings.num_rows))
    some = strings if rows is None else take(strings, rows)
    codes, values, failed, reasons = _each_distinct(some, parse_bytes, b"")
    blobs = take(from_list(values, codes.device), codes)
    if rows is None:
        return blobs, failed, reasons
    empty = strings._replace(lengths=torch.zeros_like(strings.lengths))
    return replace_rows(empty, rows, blobs), None if failed is None else rows[failed], reasons


# Between kinds of strings ---------------------------------------------------------------------------------------------

_RECODED: dict[tuple[TypeKind, TypeKind], Callable[[Strings], Strings]] = {
    (TypeKind.BLOB, TypeKind.VARCHAR): _blob_to_text,
    (TypeKind.BIT, TypeKind.VARCHAR): lambda strings: strings,
    (TypeKind.BIT, TypeKind.BLOB): bytes_of_bits,
}
#: Of these some values fail.
_CHECKED: dict[tuple[TypeKind, TypeKind], Callable[[Strings, Tensor | None], Attempt]] = {
    (TypeKind.VARCHAR, TypeKind.BLOB): _text_to_blob,
    (TypeKind.VARCHAR, TypeKind.BIT): read_bits,
    (TypeKind.BLOB, TypeKind.BIT): bits_of_bytes,
}
