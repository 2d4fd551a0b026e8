"""UHUGEINT, unsigned integers of 128 bits, as the signed ones of their bits with the first one turned: these sort alike."""

from __future__ import annotations

LAST_UNSIGNED = 2**128 - 1
_FIRST_BIT = 2**127


def stored_unsigned(value: int) -> int:
    """The stored integer of a number.

    >>> stored_unsigned(0) == -(2**127) and stored_unsigned(LAST_UNSIGNED) == 2**127 - 1
    True
    """
    return value - _FIRST_BIT


def unsigned_of_stored(stored: int) -> int:
    """The number of a stored integer.

    >>> unsigned_of_stored(stored_unsigned(5))
    5
    """
    return stored + _FIRST_BIT
