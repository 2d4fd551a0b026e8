"""Functions of BIT that those of text and of integers are not."""

from __future__ import annotations

from tqp.planner.algebra.expressions import Call
from tqp.planner.functions.declaration import scalar
from tqp.planner.functions.ranges import Range, Ranges, any_length

_PAIR = "BIT BIT -> BIT"


def _is_bit(call: Call, ranges: Ranges) -> Range:
    return 0, 1


BITS = (
    # of two of one length
    scalar("and_bits", f"&: {_PAIR}", raises=True),
    scalar("or_bits", f"|: {_PAIR}", raises=True),
    scalar("xor_bits", f"xor: {_PAIR}", raises=True),
    scalar("not_bits", "~: BIT -> BIT"),
    scalar("shift_bits_left", "<<: BIT INTEGER -> BIT", raises=True),
    scalar("shift_bits_right", ">>: BIT INTEGER -> BIT"),
    scalar("octets_of_bits", "octet_length: BIT -> BIGINT", range=any_length),
    scalar("count_bits", "bit_count: BIT -> BIGINT", range=any_length),
    scalar("bitstring_byte_comparable", "BIT -> BLOB"),
    scalar("get_bit", "BIT INTEGER -> INTEGER", raises=True, range=_is_bit),
    scalar("set_bit", "BIT INTEGER INTEGER -> BIT", raises=True),
    scalar("bitstring", "VARCHAR INTEGER -> BIT", "BIT INTEGER -> BIT", raises=True),
)
