"""UUIDs: read from text and bytes, written as both, drawn at random, and what their versions say."""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.core.errors import ExecutionError
from tqp.data.strings import Strings
from tqp.data.uuids import DIGITS, HYPHENS, UUID_BYTES, UUID_TEXT_BYTES, uuid_bytes, uuid_texts, uuid_values
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.numbers import wide
from tqp.operators.rows.selection import row_indices
from tqp.operators.strings.layout import of_equal_lengths

_RANDOM, _TIME_ORDERED = 4, 7
#: Of the first 64 bits: the version follows 48, and 12 more follow it. The next 64 begin with the variant, 10.
_VERSION_SHIFT, _LOW_BITS = 12, (1 << 12) - 1
_VARIANT = -(2**63)
_VARIANT_MASK = 2**62 - 1
#: What DuckDB makes of versions beyond 9: the codes of their letters, counted from that of 0.
_LETTER_GAP = ord("a") - ord("0") - 10


def format_uuids(values: Tensor) -> Strings:
    """The texts of stored values [n] or [n, 2]."""
    return of_equal_lengths(uuid_texts(values))


def format_uuid_bytes(values: Tensor) -> Strings:
    """The 16 bytes of each stored value, as a BLOB."""
    return of_equal_lengths(uuid_bytes(values))


def _bytes_of(strings: Strings, width: int) -> tuple[Tensor, Tensor]:
    """uint8 [n, width], any bytes in rows of another length, and bool [n]: which rows have that length."""
    fits = strings.lengths == width
    places = torch.arange(width, device=strings.starts.device)
    if not strings.data.shape[0]:
        return places.new_zeros((strings.num_rows, width), dtype=torch.uint8), fits
    read = (strings.starts * fits).unsqueeze(1) + places
    return strings.data[read.clamp_(max=strings.data.shape[0] - 1)], fits


def read_uuids(strings: Strings) -> tuple[Tensor, Tensor]:
    """Stored values, int64 [n, 2], of the rows in the form in which UUIDs are written; bool [n]: which rows are."""
    content, fits = _bytes_of(strings, UUID_TEXT_BYTES)
    hyphens, digits = (torch.tensor(places, device=content.device) for places in (HYPHENS, DIGITS))
    fits = fits & (content[:, hyphens] == ord("-")).all(1)
    nibbles = _nibbles(content[:, digits])
    fits &= (nibbles < 16).all(1)
    pairs = nibbles.view(-1, UUID_BYTES, 2)
    values = uuid_values((pairs[:, :, 0] << 4) | (pairs[:, :, 1] & 15))
    return values * fits.unsqueeze(1), fits


def _nibbles(letters: Tensor) -> Tensor:
    """uint8: what each digit of base 16 counts, and more than 15 for other letters."""
    table = [255] * 256
    for value, pair in enumerate(zip("0123456789abcdef", "0123456789ABCDEF", strict=True)):
        for letter in pair:
            table[ord(letter)] = value
    known = torch.tensor(table, dtype=torch.uint8, device=letters.device)
    return torch.index_select(known, 0, letters.reshape(-1).to(torch.int64)).view(letters.shape)


def read_uuid_bytes(strings: Strings, validity: Tensor | None) -> tuple[Tensor, Tensor | None, list[str]]:
    """Stored values of BLOBs, the valid rows that have not 16 bytes (None: no row), and a message for the first."""
    content, fits = _bytes_of(strings, UUID_BYTES)
    failed = row_indices(~fits if validity is None else ~fits & validity)
    if not failed.shape[0]:
        return uuid_values(content), None, []
    length = int(strings.lengths[failed[0]])
    return uuid_values(content), failed, [f"a BLOB of {length} bytes is no UUID, which has {UUID_BYTES}"]


def _random_uuids(first: Tensor, second: Tensor) -> Tensor:
    """Version 4, of two random numbers below 2**62 for each row."""
    return _stored(_first_words(first >> 14, _RANDOM, first), second)


def _time_ordered_uuids(first: Tensor, second: Tensor, milliseconds: Tensor) -> Tensor:
    """Version 7, of two random numbers below 2**62 for each row and the time since 1970."""
    return _stored(_first_words(milliseconds, _TIME_ORDERED, first), second)


def _first_words(leading: Tensor, version: int, following: Tensor) -> Tensor:
    """The first 64 bits: 48, the version, and the lowest 12 of others."""
    return (leading << 16) | (version << _VERSION_SHIFT) | (following & _LOW_BITS)


def _stored(high: Tensor, low: Tensor) -> Tensor:
    high, low = torch.broadcast_tensors(high.reshape(-1), low.reshape(-1))  # type: ignore[no-untyped-call]
    return torch.stack([high ^ wide.SIGN_BIT, (low & _VARIANT_MASK) | _VARIANT], 1)


def _first_word(values: Tensor) -> Tensor:
    """The first 64 bits, as a signed integer."""
    return wide.widen(values)[:, 0] ^ wide.SIGN_BIT


def _version(values: Tensor) -> Tensor:
    digit = (_first_word(values) >> _VERSION_SHIFT) & 15
    return digit + _LETTER_GAP * (digit > 9)


def _instant(values: Tensor, *, validity: Tensor | None = None) -> Tensor:
    """Microseconds since 1970. Raises ExecutionError for a UUID that has no time in it."""
    versions = _version(values)
    wrong = versions != _TIME_ORDERED
    if validity is not None:
        wrong = wrong & validity
    rows = row_indices(wrong)
    if rows.shape[0]:
        version = int(versions[rows[0]])
        raise ExecutionError(f"Given UUID is with version {version}, not version {_TIME_ORDERED}.")
    return ((_first_word(values) >> 16) & (2**48 - 1)) * 1000


UUID_KERNELS: dict[str, Overload] = {
    "random_uuid": lambda argument_types, result_type: Kernel(_random_uuids),
    "time_ordered_uuid": lambda argument_types, result_type: Kernel(_time_ordered_uuids),
    "uuid_extract_version": lambda argument_types, result_type: Kernel(_version, accepts_wide=True),
    "uuid_extract_timestamp": lambda argument_types, result_type: Kernel(
        _instant, accepts_wide=True, checks=True
    ),
}
