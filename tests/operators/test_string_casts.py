"""Casts from and to VARCHAR and BLOB against DuckDB, text by text."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import torch

from tqp.core import datatypes as t
from tqp.core.datatypes import DataType
from tqp.core.errors import ExecutionError, UnsupportedError
from tqp.data.strings import Strings
from tqp.operators.numbers import wide
from tqp.operators.string_keys.codes import distinct_slices
from tqp.operators.strings.layout import from_list, take, to_list
from tqp.operators.text.casts import resolve_string_cast

NUMBERS = """|0| 12 |+5|-5|1.5|2.5|-2.5|0.49999|1e3|1.5e1|1.5e-1|2147483647|2147483648|-2147483648|0x1F|0XfF|0xFF|0b11|1_000|1__0|_1|1_
|abc|1 2|.5|.|5.|1e|1e-1|--5|\t7\n|12345678901234567890|1e10|+|-|true|9.99999|0x|-0x1|2147483647.4|2147483647.5|1,000|1e400|1e-400
|1e09|0001|5e-1|4.5e0|1_000.5|0x_1|-1|-0|255.4|256|127|128|-128|-129|65535|65536|170141183460469231731687303715884105727
|170141183460469231731687303715884105728|-170141183460469231731687303715884105728|1e38|1e20|18446744073709551615|1e19
|9223372036854775807|9223372036854775808|-9223372036854775808|9.223372036854775807e18|1.005|1.004|-1.005|999.99|999.995|1000|1e2|5e-3
|1.0049999999999999999999999|99999999999999999999999999999999999999|100000000000000000000000000000000000000|inf|-Infinity|nan|NaN|+inf|INF
|infinit|1.5f|0.1|16777217|1e39|-.5e-2| +1|+ 1|1e308|4.9e-324|٣|1e99999999999|12345e-2|1000e-1|001e-1|0.12345e2|00.5|0e5|.5e-1|.5e1|99999999999999999999999999999999999999.5""".replace("\n", "").split("|")  # fmt: skip

BOOLEANS = ["true", "T", "t", "1", "0", "f", "FALSE", "yes", "no", "y", "n", "on", "off", " true ", "2", ""]

DATES = """2020-01-01|2020-1-1| 2020-01-01 |2020/01/01|20200101|2020-02-30|2020-02-29|2019-02-29|1900-02-29|2000-02-29|0001-01-01
|-0001-01-01|0000-01-01|2020-01-01 (BC)|2020-01-01 (bc)|2020-01-01 12:00:00|infinity|-infinity|inf|epoch|Epoch|12020-01-01|abc|
|2020-01-01x|2020-13-01|2020-00-01|2020-01-00|2020\\01\\01|2020 01 01|20-01-01|5881580-07-10|5881580-07-11|-5877641-06-25|2020-01-01T00:00:00
|2020-01-01 BC|2020-01|1-1-1|+2020-01-01|2020-01-01 12:00:00 (BC)|2020-001-01|2020-01-01 foo|2020-01-01T|2020-1/1|1000000000-01-01
|2020-01-01 12:00:00+02|2020-01-01 99:00:00|-2020-01-01 (BC)|0000-01-01 (BC)|2020-01-01-|2020-01-01 12|0044-03-15 (BC)""".replace("\n", "").split("|")  # fmt: skip

TIMESTAMPS = """2020-01-01|2020-01-01 12:34:56|2020-01-01T12:34:56.123456789|2020-01-01 12:34:56.1234567|2020-01-01 12:34|2020-01-01 12
|2020-01-01 24:00:00|2020-01-01 12:34:56Z|2020-01-01 12:34:56+02|2020-01-01 12:34:56+02:30|2020-01-01 12:34:56 -0530|2020-01-01 12:34:56 UTC
|2020-01-01 12:34:56 Europe/Oslo|2020-07-01 12:34:56 America/New_York| 2020-01-01 12:34:56 |infinity|-infinity|epoch|2020-01-01 1:2:3|2020-01-01 12:60:00
|abc||2020-01-01 12:34:56.|2020/01/01 12:34:56|2020-01-01  12:34:56|0044-03-15 (BC) 12:00:00|2020-01-01 12:34:56.5 UTC|2020-01-01 25:00:00
|2020-01-01 12:34:60|2020-01-01 12:34:56+2|2020-01-01 12:34:56.5Z|2020-01-01 12:34Z|2020-01-01 12:34:56+25|2020-01-01 12:34:56+15:59:59
|2020-01-01 12:34:56+0530|2020-01-01 12:34:56 +05:30|2020-01-01 12:34:56+053015|2020-01-01 12:34:56+05:30 UTC|2020-01-01 12:34:56+05x|2020-01-01 12:34:56 foo bar|2020-01-01x12:34:56|2020-01-01 12:34:567|300000-01-01 00:00:00|2020-02-30 00:00:00|2020-01-01 24:00:01
|2020-01-01t12:34:56|2020-01-01 12:34:56 utc|2020-01-01Z|2020-01-01T|2020-01-01 (BC)|2020-01-01+02|2020-01-01 12:34:56 EST
|2020-01-01 12:34:56-05:00|1969-12-31 23:59:59.9996|1969-12-31 23:59:59.5|290000-01-01 00:00:00|1600-01-01 00:00:00.9999|2262-04-11 23:47:16.854775807""".replace("\n", "").split("|")  # fmt: skip

TIMES = """12:34:56|1:2:3|12:34|24:00:00|12:34:56.123456789|12:34:56+01|abc|| 12:34:56 |2020-01-01 12:34:56|12|12:34:56.1234565|25:00:00
|12:34:56 x|1:2|2020-01-01 foo|2020-01-01|2020-01-01T12:34:56|12:34x|12:34:5x|12:60:00|12:34:60|24:00:01|12:34:56.|-1:00:00|12:34:56.9999999
|123:00:00|12:3456|12:34:56.5abc|00:00:00.000001""".replace("\n", "").split("|")  # fmt: skip

INTERVALS = """1 year|1 year 2 months 3 days 04:05:06|-1 day|1.5 days|1 day ago|P1Y|04:05:06.789|-04:05:06|1y 2mon|2 weeks|1 quarter|abc|
|1 decade 2 centuries|1.5 months|90 minutes|1 day -1 hour|@ 1 day|@1 day|1|-5|1.5|1 year, 2 days|5 ms|1.5 years|100 us|1 hour 30 seconds|1d|1d2h|P1W
|12:30|1 days 2 days|1 month ago 1 day|2 hours ago|1 day 2 hours ago|1.7 seconds|1 1|1 day 5|-1.5 days|-1.5 months|1.5 weeks|1.5 quarters|1.25 years
|100:00:00|1:2:3.5|-1 year -2 months|1 day 01:00:00|1 day -01:00:00|+1 day|1e3 days|1 DAY|1 millennium|1.5 us|99999999999 days|1:60:00|1:2| 1 day
|.5 days|5. days|day|1 dayx|1 day 1 ago|1.0000005 seconds|0.00001 days|1.5 decades|00:00:00.1234567|-00:00:00.5|1 q|1.33 months|1.1 days|1.999999 months
|9223372036854775807 us|1 hour 00:01:00|00:01:00 1 hour|5 ago|- 1 day|-00:00:01 ago|1:2:3:4|1:2x|12:|1.5.5 days|--1 day|1,5 days|ago|1 day ago ago
|123456789:00:00|2147483648 months|1 nanosecond|1 epoch|1.0000004 seconds|-1.0000005 seconds|1.0005 ms|1.9999999 us|1.00000001 days|0.0000005 months|1.0000005 years""".replace("\n", "").split("|")  # fmt: skip

BLOBS = ["abc", r"\xAB", "\\\\", "é", r"a\x", r"\xGG", "", r"\x00\xff!", "\0"]

PARSED: list[tuple[DataType, list[str]]] = [
    *[(kind, NUMBERS) for kind in (t.TINYINT, t.SMALLINT, t.INTEGER, t.BIGINT, t.HUGEINT)],
    *[(kind, NUMBERS) for kind in (t.UTINYINT, t.USMALLINT, t.UINTEGER, t.UBIGINT, t.FLOAT, t.DOUBLE)],
    *[(t.decimal(*shape), NUMBERS) for shape in ((5, 2), (18, 3), (38, 0), (38, 10), (3, 3))],
    (t.BOOLEAN, BOOLEANS),
    (t.DATE, DATES),
    *[
        (kind, TIMESTAMPS)
        for kind in (t.TIMESTAMP, t.TIMESTAMP_S, t.TIMESTAMP_MS, t.TIMESTAMP_NS, t.TIMESTAMP_TZ)
    ],
    (t.TIME, TIMES),
    (t.INTERVAL, INTERVALS),
    (t.BLOB, BLOBS),
]


def connect() -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def oracle(texts: list[str], target: DataType) -> list[str | None]:
    """TRY_CAST to the target and back to text."""
    connection = connect()
    connection.register("t", pa.table({"s": texts, "i": range(len(texts))}))
    found = []
    for index in range(len(texts)):
        try:
            row = connection.execute(
                f"SELECT TRY_CAST(s AS {target})::VARCHAR FROM t WHERE i = {index}"
            ).fetchall()
            found.append(row[0][0])
        except duckdb.Error:
            found.append(None)  # a few failures escape its TRY_CAST
    return found


def show(values: Any, target: DataType) -> list[str]:
    """Values of a type as text, by this module's own casts."""
    result = resolve_string_cast(target, t.VARCHAR, is_try=False).function(values)
    return [value.decode() for value in to_list(result)]


@pytest.mark.parametrize(("target", "texts"), PARSED, ids=[str(target) for target, _ in PARSED])
def test_parsing_and_printing_agree_with_duckdb(target: DataType, texts: list[str]) -> None:
    expected = oracle(texts, target)
    try_cast = resolve_string_cast(t.VARCHAR, target, is_try=True).function
    cast = resolve_string_cast(t.VARCHAR, target, is_try=False).function
    values, validity = try_cast(from_list(texts))
    valid = [True] * len(texts) if validity is None else validity.tolist()
    found = [text if keep else None for text, keep in zip(show(values, target), valid, strict=True)]
    wrong = [(text, want, got) for text, want, got in zip(texts, expected, found, strict=True) if want != got]
    assert not wrong
    # Each text by itself, so that plain ones take the fast way and bad ones raise.
    for text, want in zip(texts, expected, strict=True):
        if want is None:
            with pytest.raises(ExecutionError):
                pytest.fail(f"{text!r} was read as {show(cast(from_list([text])), target)}")
        else:
            assert show(cast(from_list([text])), target) == [want], text
    assert show(cast(from_list([])), target) == []
    no_values, no_validity = try_cast(from_list(["", ""]), validity=torch.tensor([False, False]))
    assert no_validity is None
    assert len(show(no_values, target)) == 2


@pytest.mark.parametrize("kind", [t.INTEGER, t.DOUBLE, t.decimal(9, 2), t.DATE, t.TIMESTAMP])
def test_rows_that_are_null_are_not_read(kind: DataType) -> None:
    good = {t.DATE: "2020-02-29", t.TIMESTAMP: "2020-02-29 01:02:03"}.get(kind, "12")
    strings = take(from_list(["unused", good, "", good]), torch.tensor([3, 2, 1]))
    cast = resolve_string_cast(t.VARCHAR, kind, is_try=False).function
    values = cast(strings, validity=torch.tensor([True, False, True]))
    shown = show(values, kind)
    assert shown[0] == shown[2]
    assert shown[0].startswith(good)
    with pytest.raises(ExecutionError):
        cast(strings)


def test_rows_that_share_the_text_of_a_dictionary_are_read_once_a_text() -> None:
    texts = ["bad", "7", "worse", "-12", "1e2"]
    numbers = torch.tensor([1, 3, 4, 3, 0, 2] * 50)
    strings = take(from_list(texts), numbers)
    validity = (numbers != 0) & (numbers != 2)
    shared = distinct_slices(strings, validity)
    assert shared is not None
    assert sorted(to_list(shared[1])) == [b"-12", b"1e2", b"7"]
    cast = resolve_string_cast(t.VARCHAR, t.INTEGER, is_try=False).function
    values = cast(strings, validity=validity)
    assert values[validity].tolist() == [7, -12, 100, -12] * 50
    with pytest.raises(ExecutionError, match="'bad'"):
        cast(strings)
    rest = Strings(strings.starts, strings.lengths - (torch.arange(300) > 150).to(torch.int32), strings.data)
    assert distinct_slices(rest, None) is None  # rows that begin at one place and end at others


@pytest.mark.parametrize(
    ("target", "text", "message"),
    [
        (t.INTEGER, "abc", "Could not convert string 'abc' to INTEGER"),
        (t.UBIGINT, "-1", "Could not convert string '-1' to UBIGINT"),
        (t.decimal(5, 2), "1000", r'Could not convert string "1000" to DECIMAL\(5,2\)'),
        (t.DOUBLE, "x", "Could not convert string 'x' to DOUBLE"),
        (t.BOOLEAN, "maybe", "Could not convert string 'maybe' to BOOL"),
        (t.DATE, "abc", r'invalid date field format: "abc", expected format is \(YYYY-MM-DD\)'),
        (t.DATE, "2020-02-30", 'date field value out of range: "2020-02-30"'),
        (t.TIMESTAMP, "abc", 'invalid timestamp field format: "abc", expected format is'),
        (t.TIMESTAMP_TZ, "2020-01-01 00:00:00 Foo/Bar", "Unknown TimeZone 'Foo/Bar'"),
        (t.TIME, "abc", 'time field value out of range: "abc"'),
        (t.INTERVAL, "1 fortnight", "Could not convert string '1 fortnight' to INTERVAL"),
        (t.BLOB, "é", "Invalid byte encountered in STRING -> BLOB"),
    ],
)
def test_messages_quote_the_first_bad_valid_row(target: DataType, text: str, message: str) -> None:
    strings = from_list(["also bad", text, "bad too"])
    cast = resolve_string_cast(t.VARCHAR, target, is_try=False).function
    with pytest.raises(ExecutionError, match=message):
        cast(strings, validity=torch.tensor([False, True, True]))


def printed(values: Any, source: DataType) -> list[str]:
    return show(values, source)


def test_printing_floats() -> None:
    numbers = [0.0, -0.0, 1.0, 1e15, 1e16, 123456789012345680.0, 1e-4, 1e-5, 1.5e-7, 1e100, 1 / 3, 5e-324, 1.7976931348623157e308,
               9007199254740993.0, float("inf"), float("-inf"), float("nan"), 0.1, 16777217.0, 123456789.0, 3.4e38, 1e-45]  # fmt: skip
    connection = connect()
    for dtype, source in ((torch.float64, t.DOUBLE), (torch.float32, t.FLOAT)):
        values = torch.tensor(numbers, dtype=dtype)
        connection.register("t", pa.table({"x": values.numpy(), "i": range(len(numbers))}))
        expected = connection.execute("SELECT x::VARCHAR FROM t ORDER BY i").fetchall()
        assert printed(values, source) == [row[0] for row in expected]


@pytest.mark.parametrize(
    ("precision", "scale"), [(5, 2), (3, 3), (18, 18), (18, 0), (38, 10), (38, 38), (38, 0)]
)
def test_printing_decimals(precision: int, scale: int) -> None:
    limit = 10**precision - 1
    numbers = [0, 1, -1, 5, -5, 10**scale % limit, limit, -limit, limit // 7]
    connection = connect()
    column = pa.array(
        [Decimal(number).scaleb(-scale) for number in range(1)], pa.decimal128(precision, scale)
    )
    del column
    exact = [Decimal(f"{number}E-{scale}") for number in numbers]
    connection.register(
        "t", pa.table({"x": pa.array(exact, pa.decimal128(precision, scale)), "i": range(len(exact))})
    )
    expected = [row[0] for row in connection.execute("SELECT x::VARCHAR FROM t ORDER BY i").fetchall()]
    source = t.decimal(precision, scale)
    assert printed(wide.from_ints(numbers), source) == expected
    if precision <= 18:
        assert printed(torch.tensor(numbers), source) == expected


def test_printing_other_types() -> None:
    assert printed(torch.tensor([True, False]), t.BOOLEAN) == ["true", "false"]
    assert printed(torch.tensor([-128, 0, 127], dtype=torch.int8), t.TINYINT) == ["-128", "0", "127"]
    assert printed(torch.tensor([-(2**63), 2**63 - 1]), t.BIGINT) == [str(-(2**63)), str(2**63 - 1)]
    assert printed(wide.from_ints([-(2**127), 2**64]), t.HUGEINT) == [str(-(2**127)), str(2**64)]
    assert printed(torch.tensor([[1.0, 0.5]]), t.array(2)) == ["[1.0, 0.5]"]
    blob = from_list([b"\x00\xffabc\\", b"a\"b'c", b"~ \x7f"])
    expected = [r"\x00\xFFabc\x5C", r"a\x22b\x27c", r"~ \x7F"]
    assert printed(blob, t.BLOB) == expected


def test_printing_intervals() -> None:
    rows = [
        (0, 0, 0),
        (14, 0, 0),
        (-14, 0, 0),
        (1, 1, 1),
        (12, -1, -1),
        (0, -3, 1_500_000),
        (0, 0, -90_000_001),
        (0, 0, 360_000_000_000),
    ]
    connection = connect()
    expected = [
        connection.execute(
            f"SELECT (to_months({m}) + to_days({d}) + to_microseconds({u}))::VARCHAR"
        ).fetchall()[0][0]
        for m, d, u in rows
    ]
    assert printed(torch.tensor(rows), t.INTERVAL) == expected


def test_casts_that_do_not_exist() -> None:
    with pytest.raises(UnsupportedError, match=r"Unimplemented type for cast \(VARCHAR -> FLOAT\[3\]\)"):
        resolve_string_cast(t.VARCHAR, t.array(3), is_try=False)
    with pytest.raises(UnsupportedError):
        resolve_string_cast(t.INTEGER, t.BLOB, is_try=False)


def test_try_cast_of_what_cannot_fail() -> None:
    kernel = resolve_string_cast(t.INTEGER, t.VARCHAR, is_try=True)
    strings, validity = kernel.function(torch.tensor([7]))
    assert isinstance(strings, Strings)
    assert (to_list(strings), validity, kernel.returns_validity) == ([b"7"], None, True)
