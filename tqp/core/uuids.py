"""UUIDs as they are stored: the integer of their 128 bits with the first bit turned, so that signed order is theirs."""

from __future__ import annotations

import uuid

_FIRST_BIT = 2**127


def stored_uuid(number: int) -> int:
    """The stored integer, -2**127 to 2**127 - 1, of an unsigned number of 128 bits.

    >>> stored_uuid(0) == -(2**127), stored_uuid(2**128 - 1) == 2**127 - 1
    (True, True)
    """
    return number - _FIRST_BIT


def uuid_of_stored(stored: int) -> uuid.UUID:
    """The UUID of a stored integer.

    >>> str(uuid_of_stored(1 - 2**127))
    '00000000-0000-0000-0000-000000000001'
    """
    return uuid.UUID(int=stored + _FIRST_BIT)
