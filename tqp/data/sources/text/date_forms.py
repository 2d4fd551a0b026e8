"""Dates, times and timestamps in the forms in which texts are written that are not those of SQL, such as `31/01/2024`."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

Convert = Callable[[pa.ChunkedArray], pa.ChunkedArray | None]

#: Parts of forms, as regular expressions.
LONG_YEAR, SHORT_YEAR = r"(?P<y>[0-9]{4})", r"(?P<y>[0-9]{2})"
MONTH, DAY = r"(?P<m>[0-9]{1,2})", r"(?P<d>[0-9]{1,2})"
CLOCK = r"(?P<H>[0-9]{1,2}):(?P<M>[0-9]{2}):(?P<S>[0-9]{2})"
#: The parts of a date in the orders in which DuckDB tries them.
_ORDERS = (
    (LONG_YEAR, MONTH, DAY),
    (SHORT_YEAR, MONTH, DAY),
    (DAY, MONTH, LONG_YEAR),
    (DAY, MONTH, SHORT_YEAR),
    (MONTH, DAY, LONG_YEAR),
    (MONTH, DAY, SHORT_YEAR),
)
_WITH_HALF = rf"{CLOCK}\s+(?P<p>[AaPp][Mm])"
_TIME = r"\s*(?P<H>[0-9]{1,2}):(?P<M>[0-9]{1,2})(?::(?P<S>[0-9]{1,2})(?:\.(?P<f>[0-9]{0,9}))?)?\s*"
_FIRST_OF_CENTURY = 69
_NOON = 12
_MICROSECONDS_OF_DAY = 86_400_000_000

#: What stands between the parts of a date.
SEPARATORS = ("-", "/", r"\.", " ")

Parts = dict[str, pa.ChunkedArray]


def parts_of(form: str, texts: pa.ChunkedArray) -> Parts | None:
    """The named parts of texts that all have this form; None where one has not, which the first one mostly tells."""
    first = texts[0].as_py() if len(texts) else None
    if first is not None and re.fullmatch(form, first) is None:
        return None
    found = pc.extract_regex(texts, f"^{form}$")
    if found.null_count != texts.null_count:
        return None
    combined = found.combine_chunks()
    names = [field.name for field in combined.type]
    return {name: pa.chunked_array([values]) for name, values in zip(names, combined.flatten(), strict=True)}


def dates(form: str) -> Convert:
    """Reads texts of a form as dates; raises ArrowInvalid for what is none."""

    def convert(texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
        parts = parts_of(form, texts)
        return None if parts is None else _day(parts).cast(pa.date32())

    return convert


def timestamps(form: str, zone: str | None = None) -> Convert:
    """Reads texts of a form, with a zone as its part `z` if there is one, as timestamps; raises ArrowInvalid for what is none."""

    def convert(texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
        parts = parts_of(form, texts)
        if parts is None:
            return None
        hour = parts["H"]
        if "p" in parts:
            hour = _of_24_hours(hour, parts["p"])
        clock = pc.binary_join_element_wise(_two_digits(hour), parts["M"], parts["S"], ":")
        if "f" in parts:
            point = pc.if_else(pc.equal(parts["f"], ""), "", ".")
            clock = pc.binary_join_element_wise(clock, point, parts["f"], "")
        moments = pc.binary_join_element_wise(_day(parts), clock, " ")
        if zone is not None:
            moments = pc.binary_join_element_wise(moments, parts["z"], "")
        return moments.cast(pa.timestamp("us", zone))

    return convert


def written_dates(separators: Sequence[str]) -> tuple[Convert, ...]:
    """Dates in all orders, in that in which they are tried."""
    return tuple(dates(rf"\s*{each.join(order)}\s*") for order in _ORDERS for each in separators)


def written_timestamps(separators: Sequence[str]) -> tuple[Convert, ...]:
    """Timestamps of such dates: of 24 hours, and where the month comes first of twice 12."""
    return tuple(
        timestamps(rf"\s*{each.join(order)}\s+{_WITH_HALF if order[0] == MONTH else CLOCK}\s*")
        for order in _ORDERS
        for each in separators
    )


def times(texts: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Times of a day, up to 24:00:00; digits beyond microseconds are left out."""
    parts = parts_of(_TIME, texts)
    if parts is None:
        return None
    is_short = pc.and_(pc.equal(parts["S"], ""), pc.less(pc.utf8_length(parts["M"]), 2))
    hours, minutes, seconds = (
        pc.if_else(pc.equal(parts[key], ""), "0", parts[key]).cast(pa.int64()) for key in "HMS"
    )
    fraction = pc.utf8_rpad(pc.utf8_slice_codeunits(parts["f"], 0, 6), 6, "0").cast(pa.int64())
    clock = pc.add(pc.multiply(pc.add(pc.multiply(hours, 60), minutes), 60), seconds)
    values = pc.add(pc.multiply(clock, 1_000_000), fraction)
    fits = pc.less_equal(values, _MICROSECONDS_OF_DAY), pc.less(minutes, 60), pc.less(seconds, 60)
    if pc.any(is_short).as_py() or any(pc.all(each).as_py() is False for each in fits):
        return None
    return values.cast(pa.time64("us"), safe=False)


def _day(parts: Parts) -> pa.ChunkedArray:
    """The text of a date as Arrow reads it. Of a year of two digits, those from 69 on are in the twentieth century, as for strptime."""
    year = parts["y"]
    if pc.max(pc.utf8_length(year)).as_py() == len("69"):
        is_old = pc.greater_equal(year.cast(pa.int32()), _FIRST_OF_CENTURY)
        year = pc.binary_join_element_wise(pc.if_else(is_old, "19", "20"), year, "")
    return pc.binary_join_element_wise(year, _two_digits(parts["m"]), _two_digits(parts["d"]), "-")


def _of_24_hours(hour: pa.ChunkedArray, half: pa.ChunkedArray) -> pa.ChunkedArray:
    """The hours of clocks with two times 12 of them, as texts; 99 for what is no such hour."""
    number = hour.cast(pa.int32())
    fits = pc.and_(pc.greater_equal(number, 1), pc.less_equal(number, _NOON))
    in_half = pc.if_else(pc.equal(number, _NOON), 0, number)
    shift = pc.if_else(pc.equal(pc.utf8_upper(half), "PM"), _NOON, 0)
    return pc.if_else(fits, pc.add(in_half, shift), 99).cast(pa.string())


def _two_digits(numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.utf8_lpad(numbers, 2, "0")
