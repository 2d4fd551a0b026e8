"""The types of columns of text: the narrowest from which the text could be written again, so that no value is lost.

All values count, not a sample. A number with a leading zero or a plus sign is text: it is a code or a telephone number.
"""

from __future__ import annotations

import decimal
import functools
import re
from collections.abc import Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from tqp.core.datatypes import TypeKind
from tqp.core.keywords import lower_ascii
from tqp.core.read_options import NO_OPTIONS, ReadOptions
from tqp.data.arrow_types import HUGEINT_ARRAY
from tqp.data.sharing import share
from tqp.data.sources.text.date_forms import SEPARATORS, Convert, written_dates, written_timestamps

#: Rows of either end of a column that rule out most types.
_SAMPLE_ROWS = 1_000
_TRUE, _FALSE = ("true", "t", "yes"), ("false", "f", "no")
#: Up to this a double holds every integer.
_EXACT_DOUBLES = 2.0**53
#: What a double would not give back: a leading zero, a plus sign.
_NOT_A_NUMBER = r"^\s*(\+|-?0[0-9])"
#: Dates and times written with fewer digits or slashes, to those with two digits and hyphens.
_CANONICAL = (
    (r"^([0-9]{4})[/-]([0-9]{1,2})[/-]", r"\1-\2-"),
    (r"^([0-9]{4})-([0-9])-", r"\1-0\2-"),
    (r"^([0-9]{4}-[0-9]{2})-([0-9])($|[ T])", r"\1-0\2\3"),
    (r"^([0-9]):", r"0\1:"),
    (r"^([0-9]{2}:[0-9]{2}):([0-9])$", r"\1:0\2"),
)
#: Dates that are not written as in SQL, with one of the separators, and timestamps of these.
_WRITTEN_DATES, _WRITTEN_TIMESTAMPS = written_dates(SEPARATORS), written_timestamps(SEPARATORS)
#: The shortest date with a time, and the shortest time: Arrow reads less as well.
_SHORTEST_TIMESTAMP, _SHORTEST_TIME = len("2024-01-02 03:04"), len("03:04")


def typed(table: pa.Table, options: ReadOptions = NO_OPTIONS) -> pa.Table:
    """The table with each column of text in the type that `typed_column` finds, but for those that are to stay text."""

    def read(place: int) -> tuple[Convert | None, pa.ChunkedArray]:
        column, tried = table.column(place), conversions(table.column_names[place], options)
        if column.null_count == len(column):
            return None, column
        at, values = converted(column, tried)
        return (tried[at] if at < len(tried) else None), values

    found = share(read, range(table.num_columns))
    columns = [values for _, values in found]
    for place, convert in in_one_form([convert for convert, _ in found]).items():
        values = values_or_none(convert, table.column(place))
        columns[place] = table.column(place) if values is None else values
    return pa.Table.from_arrays(columns, names=table.column_names)


def in_one_form(found: Sequence[Convert | None]) -> dict[int, Convert]:
    """By place, how columns of dates are to be read as the first column of them is: a file writes them in one form, as it does timestamps."""
    changed: dict[int, Convert] = {}
    for plain, written in ((_dates, _WRITTEN_DATES), (_timestamps_plain, _WRITTEN_TIMESTAMPS)):
        forms = {plain, _in_plain_form(plain), *written}
        first = next((each for each in found if each in forms), None)
        changed |= {
            place: first
            for place, each in enumerate(found)
            if first is not None and each is not first and each in written
        }
    return changed


def conversions(name: str, options: ReadOptions = NO_OPTIONS) -> Sequence[Convert]:
    """What a column of this name may be made of its text, in the order in which that is tried.

    Each value is converted by itself, so that what holds of all blocks of a column holds of the column.
    """
    if options.text_columns is None or lower_ascii(name) in options.text_columns:
        return ()
    formats, kinds = formats_of(options), _KINDS
    written = _written(options)
    if options.candidates is not None:
        kinds = tuple(convert for kind, convert in _CANDIDATES.items() if kind in options.candidates)
    tried = _in_both_forms(kinds)
    if options.decimal_separator == "." and not options.thousands:
        return (*formats, *tried, *written)
    numbers = [partial(_of_plain_numbers, each, options) for each in tried]
    return (*formats, *numbers, *_in_both_forms([each for each in kinds if each is not _doubles]), *written)


def _written(options: ReadOptions) -> Sequence[Convert]:
    """Dates and timestamps in forms that are not those of SQL, where the options do not say another one."""
    asked = (TypeKind.DATE, TypeKind.TIMESTAMP) if options.candidates is None else options.candidates
    dates = TypeKind.DATE in asked and options.date_format is None
    timestamps = TypeKind.TIMESTAMP in asked and options.timestamp_format is None
    return (*(_WRITTEN_DATES if dates else ()), *(_WRITTEN_TIMESTAMPS if timestamps else ()))


def formats_of(options: ReadOptions) -> list[Convert]:
    """The formats of timestamps and dates that are said."""
    formats: list[Convert] = []
    if options.timestamp_format is not None:
        formats.append(partial(_in_format, options.timestamp_format, "us", None))
    if options.date_format is not None:
        formats.append(partial(_in_format, options.date_format, "s", pa.date32()))
    return formats


def _of_plain_numbers(
    convert: Convert, options: ReadOptions, column: pa.ChunkedArray
) -> pa.ChunkedArray | None:
    plain = _plain_numbers(column, options)
    return None if plain is None else convert(plain)


def _plain_numbers(column: pa.ChunkedArray, options: ReadOptions) -> pa.ChunkedArray | None:
    """The column with numbers as SQL writes them; None if one of its values is no number as the options say."""
    point, comma = re.escape(options.decimal_separator), re.escape(options.thousands)
    grouped = f"|[0-9]{{1,3}}(?:{comma}[0-9]{{3}})+" if comma else ""
    number = rf"^\s*-?(?:[0-9]*{grouped})(?:{point}[0-9]*)?(?:[eE][-+]?[0-9]+)?\s*$"
    if not _holds(pc.match_substring_regex(column, number)):
        return None
    if comma:
        column = pc.replace_substring(column, options.thousands, "")
    return pc.replace_substring(column, options.decimal_separator, ".")


def _in_format(form: str, unit: str, target: pa.DataType | None, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Timestamps, or what is to be made of them, written in this format; raises ArrowInvalid if one value is not."""
    values = pc.strptime(column, format=form, unit=unit)
    return values if target is None else values.cast(target)


def typed_column(column: pa.ChunkedArray, tried: Sequence[Convert] | None = None) -> pa.ChunkedArray:
    """BOOLEAN, BIGINT, HUGEINT, DOUBLE, DATE, TIME, TIMESTAMP or the like if all values are; else the text itself."""
    return (
        column
        if column.null_count == len(column)
        else converted(column, _CONVERSIONS if tried is None else tried)[1]
    )


def converted(
    column: pa.ChunkedArray, tried: Sequence[Convert], start: int = 0
) -> tuple[int, pa.ChunkedArray]:
    """The place, from `start` on, of the first conversion that every value has, and the values; their number and the text
    itself if there is none."""
    found = column.drop_null()
    sample = pa.chunked_array([*found[:_SAMPLE_ROWS].chunks, *found[-_SAMPLE_ROWS:].chunks], pa.string())
    for place in range(start, len(tried)):
        if values_or_none(tried[place], sample) is not None:
            values = values_or_none(tried[place], column)
            if values is not None:
                return place, values
    return len(tried), column


def values_or_none(convert: Convert, column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """What the text of a column is converted to; None where a value is not of that type."""
    try:
        return convert(column)
    except pa.ArrowInvalid:
        return None


def text_column_type(values: Sequence[str]) -> pa.DataType:
    """The Arrow type of a column with these values, an empty one being NULL.

    >>> text_column_type(["1", "", "2.5"]), text_column_type(["01"])
    (DataType(double), DataType(string))
    """
    column = pa.chunked_array([[value or None for value in values]], pa.string())
    return typed_column(column).type


def _canonical(column: pa.ChunkedArray) -> pa.ChunkedArray:
    column = pc.utf8_trim_whitespace(column)
    for pattern, replacement in _CANONICAL:
        column = pc.replace_substring_regex(column, pattern, replacement)
    return column


def _holds(condition: pa.ChunkedArray) -> bool:
    return pc.all(condition).as_py() is not False


def _booleans(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    lower = pc.utf8_lower(column)
    is_true = pc.is_in(lower, pa.array(_TRUE))
    known = pc.or_(is_true, pc.is_in(lower, pa.array(_FALSE)))
    return (
        pc.if_else(pc.is_valid(column), is_true, None) if _holds(pc.or_(known, pc.is_null(column))) else None
    )


def _integers(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    values = column.cast(pa.int64())
    return values if _holds(pc.equal(values.cast(pa.string()), column)) else None


def _huge_integers(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    values = column.cast(pa.decimal128(38, 0))
    if not _holds(pc.equal(values.cast(pa.string()), column)):
        return None
    chunks = [pa.ExtensionArray.from_storage(HUGEINT_ARRAY, chunk) for chunk in values.chunks]
    return pa.chunked_array(chunks, HUGEINT_ARRAY)


def _doubles(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    values = column.cast(pa.float64())
    too_large = pc.and_(pc.invert(pc.is_finite(values)), pc.match_substring_regex(column, "[0-9]"))
    if pc.any(too_large).as_py() or pc.any(pc.match_substring_regex(column, _NOT_A_NUMBER)).as_py():
        return None
    large = pc.and_(pc.is_finite(values), pc.greater_equal(pc.abs(values), _EXACT_DOUBLES))
    rounded = (
        decimal.Decimal(text.as_py()) != decimal.Decimal(value.as_py())
        for text, value in zip(column.filter(large), values.filter(large), strict=True)
        if "e" not in text.as_py().lower()
    )
    return None if any(rounded) else values


def _dates(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.date32())


def _times(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    if not _holds(pc.greater_equal(pc.binary_length(column), _SHORTEST_TIME)):
        return None
    moments = pc.binary_join_element_wise("1970-01-01", column, " ")
    return moments.cast(pa.timestamp("us")).cast(pa.time64("us"))


def _timestamps(unit: str, zone: str | None) -> Convert:
    def convert(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
        if not _holds(pc.greater_equal(pc.binary_length(column), _SHORTEST_TIMESTAMP)):
            return None
        return column.cast(pa.timestamp(unit, zone))

    return convert


_timestamps_plain = _timestamps("us", None)


@functools.cache
def _in_plain_form(convert: Convert) -> Convert:
    """The conversion of values without blanks around them, and of dates and times with all their digits."""
    return lambda column: convert(_canonical(column))


def _narrower(convert: Convert, target: pa.DataType) -> Convert:
    """Those of a conversion's values that are of a narrower type: all of them, or ArrowInvalid is raised."""

    def narrowed(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
        values = convert(column)
        return None if values is None else values.cast(target)

    return narrowed


def _dates_and_timestamps(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    """Timestamps, of which all may be written without a time."""
    values = values_or_none(_timestamps_plain, column)
    return _dates(column).cast(pa.timestamp("us")) if values is None else values


def _in_both_forms(kinds: Sequence[Convert]) -> tuple[Convert, ...]:
    return tuple(form for each in kinds for form in (each, _in_plain_form(each)))


#: What may be asked for, in the order in which it is tried.
_CANDIDATES: Mapping[TypeKind, Convert] = {
    TypeKind.BOOLEAN: _booleans,
    TypeKind.TINYINT: _narrower(_integers, pa.int8()),
    TypeKind.SMALLINT: _narrower(_integers, pa.int16()),
    TypeKind.INTEGER: _narrower(_integers, pa.int32()),
    TypeKind.BIGINT: _integers,
    TypeKind.HUGEINT: _huge_integers,
    TypeKind.FLOAT: _narrower(_doubles, pa.float32()),
    TypeKind.DOUBLE: _doubles,
    TypeKind.DATE: _dates,
    TypeKind.TIME: _times,
    TypeKind.TIMESTAMP: _dates_and_timestamps,
    TypeKind.TIMESTAMP_TZ: _timestamps("us", "UTC"),
}
#: In the order in which they are tried where nothing is said.
_KINDS: tuple[Convert, ...] = (
    _booleans,
    _integers,
    _huge_integers,
    _doubles,
    _dates,
    _times,
    _timestamps_plain,
    _timestamps("us", "UTC"),
    _timestamps("ns", None),
)
_CONVERSIONS = (*_in_both_forms(_KINDS), *_WRITTEN_DATES, *_WRITTEN_TIMESTAMPS)
