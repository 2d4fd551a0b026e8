"""Text made and read for all rows at once, against Python one row at a time, DuckDB, and the form for other devices."""

from __future__ import annotations

import datetime
import random
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import torch

import tqp
from tqp.core import datatypes as t
from tqp.data.strings import Strings
from tqp.operators.strings import build as string_build
from tqp.operators.strings.graphemes import graphemes
from tqp.operators.strings.layout import from_list, take, to_list
from tqp.operators.strings.transform import reverse, translate
from tqp.operators.strings.words import leading_words
from tqp.operators.text import number_format, time_format
from tqp.operators.text import runs as text_runs
from tqp.operators.text.fields import read_fields, read_fraction, read_integers

TEXTS = [
    "",
    "a",
    "  padded ",
    "héllo wörld",
    "日本語テキスト",
    "e\u0301x",
    "👨‍👩‍👧ab",
    "🇳🇴🇸🇪x",
    "a\r\nb",
    "é\r\nb",
    "x" * 3000,
    "ä" * 700,
    "a/b//c",
    "no,parts",
    "𝒳𝒴z",
    "tab\t",
    "nul\0inside",
    "0012",
    "A-b_C",
]
SIZES = [1, 3, 7, len(TEXTS)]


def some(values: Sequence[Any], size: int) -> list[Any]:
    return random.Random(size).sample(list(values), size) if size < len(values) else list(values)


def texts_of(strings: Strings) -> list[str]:
    return [value.decode() for value in to_list(strings)]


class _Elsewhere(torch.Tensor):
    """A tensor that says that it is not on the CPU, so that kernels take their form for other devices."""

    @property
    def is_cpu(self) -> bool:
        return False


def elsewhere(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.as_subclass(_Elsewhere)


# Strings from strings -------------------------------------------------------------------------------------------------

EXPRESSIONS = [
    "reverse(s)", "lpad(s, 9, '-+')", "rpad(s, 9, 'é')", "lpad(s, 0, 'x')", "translate(s, 'abe', 'é')", "translate(s, 'éä', 'xy')",
    "translate(s, '日x', '')", "trim(s)", "ltrim(s, ' e')", "rtrim(s, 'xé/c')", "repeat(s, 3)", "repeat(s, -1)", "replace(s, 'a', '')",
    "replace(s, 'é', '<>')", "s || '-' || s", "concat(s, 'é', s)", "concat_ws(', ', s, r, 'x')", "concat_ws('-', s, nullif(s, 'a'))", "upper(s)", "lower(s)", "left(s, 3)",
    "left(s, -2)", "right(s, 3)", "right(s, -2)", "substring(s, 2, 2)", "substring(s, -3, 2)", "split_part(s, '/', 2)",
    "split_part(s, '/', -1)", "split_part(s, '//', 2)", "split_part(s, '', 3)", "split_part(s, '', -1)", "split_part(s, '/', 0)",
    "split_part(s, 'é', 2)", "regexp_replace(s, '[a-z]+', '#')", "regexp_extract(s, '([a-z]+)', 1)",
    "CASE WHEN i % 2 = 0 THEN s || '!' WHEN i % 3 = 0 THEN r ELSE upper(s) END", "chr(i + 60)", "chr(i * 2000 + 600)", "chr(i + 128512)",
]  # fmt: skip


@pytest.mark.parametrize("size", SIZES)
def test_strings_made_of_strings(size: int) -> None:
    chosen = some(TEXTS, size)
    rows = {
        "s": [*chosen, None],
        "r": [None, *reversed(chosen)],
        "i": list(range(size + 1)),
    }
    table = pa.table({"s": rows["s"], "r": rows["r"], "i": pa.array(rows["i"], pa.int32())})
    query = f"SELECT {', '.join(EXPRESSIONS)} FROM t ORDER BY i"
    _agree(query, table)


def _agree(query: str, table: pa.Table) -> None:
    reference = duckdb.connect()
    reference.register("t", table)
    expected = reference.execute(query).fetchall()
    for batch_rows in (None, 3):
        with tqp.connect(threads=2, batch_rows=batch_rows) as connection:
            connection.register("t", table)
            found = connection.sql(query).fetchall()
        for row, wanted in zip(found, expected, strict=True):
            assert list(map(repr, row)) == list(map(repr, wanted))


@pytest.mark.parametrize("size", SIZES)
def test_reverse_and_join_in_both_forms(size: int) -> None:
    chosen = some(TEXTS, size)
    strings = from_list(chosen)
    assert texts_of(reverse(strings)) == [
        text[::-1] if text.isascii() else "".join(reversed(graphemes(text))) for text in chosen
    ]
    other = take(strings, torch.arange(size - 1, -1, -1))
    wanted = [first + "|" + second for first, second in zip(chosen, reversed(chosen), strict=True)]
    assert texts_of(string_build.join([strings, from_list(["|"]), other])) == wanted
    far = Strings(elsewhere(other.starts), other.lengths, other.data)
    assert texts_of(string_build.join([far, from_list(["|"]), strings])) == [
        second + "|" + first for first, second in zip(chosen, reversed(chosen), strict=True)
    ]


@pytest.mark.parametrize("source, target", [("abc", "xy"), ("é日", "e𝒳"), ("aé", ""), ("𝒳aab", "bA")])
def test_translate(source: str, target: str) -> None:
    table: dict[int, str | None] = {}
    for index, character in enumerate(source):
        table.setdefault(ord(character), target[index] if index < len(target) else None)
    assert texts_of(translate(from_list(TEXTS), source, target)) == [text.translate(table) for text in TEXTS]


# Values to text -------------------------------------------------------------------------------------------------------

INTEGERS = [0, 1, -1, 9, 10, 99, 100, 12345678, 123456789, -(10**8), 10**16, 10**18, 2**63 - 1, -(2**63) + 1]


@pytest.mark.parametrize("form", [lambda tensor: tensor, elsewhere], ids=["arrays", "tensors"])
def test_integers_and_decimals(form: Callable[[torch.Tensor], torch.Tensor]) -> None:
    for numbers in (INTEGERS, [5], [-7, 0, 3], [*INTEGERS, -(2**63)], list(range(-50, 50))):
        values = form(torch.tensor(numbers))
        assert texts_of(number_format.format_integers(values)) == list(map(str, numbers))
        for scale in (1, 2, 9, 17):
            decimals = texts_of(number_format.format_decimals(values, t.decimal(18, scale)))
            assert decimals == [f"{Decimal(number).scaleb(-scale):f}" for number in numbers]
    assert texts_of(number_format.format_integers(torch.tensor([], dtype=torch.int64))) == []


def test_floats_against_duckdb() -> None:
    chance = random.Random(3)
    numbers = [chance.uniform(-1, 1) * 10.0 ** chance.randint(-20, 25) for _ in range(2000)]
    numbers += [float(chance.randint(-(10**15), 10**15)) for _ in range(500)]
    numbers += [round(chance.uniform(-1000, 1000), 2) for _ in range(500)]
    numbers += [
        1e10,
        1e10 + 0.5,
        9999999999.5,
        1e16,
        1e15 + 0.5,
        1e-4,
        9.999e-5,
        1e-10,
        9.9e-11,
        0.0,
        -0.0,
        1.0,
    ]
    numbers += [float("nan"), -float("nan"), float("inf"), float("-inf"), 5e-324, 1.7976931348623157e308]
    narrow = torch.tensor(numbers, dtype=torch.float32)
    table = pa.table({"x": numbers, "f": narrow.numpy(), "i": range(len(numbers))})
    reference = duckdb.connect()
    reference.register("t", table)
    expected = reference.execute("SELECT x::VARCHAR, f::VARCHAR FROM t ORDER BY i").fetchall()
    doubles = texts_of(number_format.format_floats(torch.tensor(numbers, dtype=torch.float64)))
    floats = texts_of(number_format.format_floats(narrow))
    assert list(zip(doubles, floats, strict=True)) == expected


@pytest.mark.parametrize("digits", range(6))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["floats", "doubles"])
def test_floats_that_are_decimals_of_few_digits(digits: int, dtype: torch.dtype) -> None:
    """Most of them, of any size; the others are written by other steps."""
    chance = random.Random(digits)
    others = [
        float("nan"),
        float("inf"),
        -float("inf"),
        1 / 3,
        1e-7,
        16777217.0,
        0.1 + 0.2,
        999_999.5,
        1e15 + 0.5,
    ]
    for size in (1, 3, 7, 14, 17):
        numbers = [chance.randint(-(10**size), 10**size) / 10**digits for _ in range(2000)] + [0.0, -0.0]
        for some in (numbers, numbers + others, [-abs(number) for number in numbers], numbers[:1]):
            values = torch.tensor(some, dtype=dtype)
            reference = duckdb.connect()
            reference.register("t", pa.table({"x": values.numpy(), "i": range(len(some))}))
            expected = [
                text for (text,) in reference.execute("SELECT x::VARCHAR FROM t ORDER BY i").fetchall()
            ]
            assert texts_of(number_format.format_floats(values)) == expected


@pytest.mark.parametrize("form", [lambda tensor: tensor, elsewhere], ids=["arrays", "tensors"])
def test_days_and_clocks(form: Callable[[torch.Tensor], torch.Tensor]) -> None:
    chance = random.Random(4)
    days = [chance.randint(-719_162, 2_932_896) for _ in range(200)] + [0, -1, -719_162, 2_932_896]
    wanted = [str(datetime.date.fromordinal(day + 719_163)) for day in days]
    assert texts_of(time_format.format_dates(form(torch.tensor(days)))) == wanted
    seconds = [0, 1, 59, 60, 3600, 86_399, 86_400, *(chance.randint(0, 86_399) for _ in range(50))]
    run = time_format.clock_run(form(torch.tensor(seconds)))
    texts = texts_of(text_runs.strings_of(run, form(torch.tensor(seconds))))
    assert texts == [f"{s // 3600:02}:{s // 60 % 60:02}:{s % 60:02}" for s in seconds]


def test_days_are_written_once_for_all_batches() -> None:
    """Of batches whose days lie close together, the first writes a table that the others look up."""
    written: list[int] = []

    def write(days: Any) -> Any:
        written.append(len(days))
        return time_format.date_run(days)

    chance = random.Random(5)
    for low, high in ((-700, 20), (-690, 15), (-1_024, 1_023), (3, 100)):
        days = [low, high, *(chance.randint(low, high) for _ in range(600))]
        values = np.array(days)
        texts = texts_of(text_runs.strings_of(time_format.by_day(values, write), values))
        assert texts == [str(datetime.date.fromordinal(day + 719_163)) for day in days]
    assert written == [2048, 1024]  # the last batch has no day before 1970


@pytest.mark.parametrize("days", [np.arange(0, 100_000, 300), np.arange(0, 3_000_000, 10), np.arange(0)])
def test_days_far_apart_are_written_by_themselves(days: Any) -> None:
    rows = []
    time_format.by_day(days, lambda some: rows.append(some.shape[0]) or time_format.date_run(some))
    assert rows == [days.shape[0]]


CASTS = [
    "d", "ts", "ti", "(ts - TIMESTAMP '2020-01-01 00:00:00.5')", "(d - INTERVAL 14 MONTH)::TIMESTAMPTZ", "b", "h", "m", "x",
    "ts::TIMESTAMP_S", "ts::TIMESTAMP_MS", "INTERVAL (i) MONTH + INTERVAL (i * 7) DAY", "to_hours(i * 977)",
]  # fmt: skip


def _values(size: int) -> pa.Table:
    chance = random.Random(size)
    days = [
        chance.choice([0, -1, -719_163, -719_528, -800_000, 18_321, 2_932_897, 11_016]) for _ in range(size)
    ]
    micros = [chance.choice([0, 1, 500_000, 250_000, 999_999, 120, 3_723_000_000]) for _ in range(size)]
    near = [chance.randint(-25_000, 25_000) * 86_400_000_000 + micro for micro in micros]
    return pa.table(
        {
            "i": pa.array(range(-size // 2, -size // 2 + size), pa.int64()),
            "d": pa.array([*days[:-1], None], pa.int32()).cast(pa.date32()),
            "ts": pa.array([None, *near[1:]] if size > 1 else near, pa.timestamp("us")),
            "ti": pa.array(micros, pa.time64("us")),
            "b": [bool(micro % 2) for micro in micros],
            "h": pa.array(
                [Decimal(day) * 10**30 + micro for day, micro in zip(days, micros)], pa.decimal128(38, 0)
            ),
            "m": pa.array([Decimal(day).scaleb(-5) for day in days], pa.decimal128(12, 5)),
            "x": [day / 8 for day in days],
        }
    )


@pytest.mark.parametrize("size", [1, 3, 7, 200])
def test_casts_to_text_and_back(size: int) -> None:
    shown = ", ".join(f"({cast})::VARCHAR" for cast in CASTS)
    _agree(f"SELECT {shown} FROM t ORDER BY i", _values(size))
    types = {
        "d": "DATE",
        "ts": "TIMESTAMP",
        "ti": "TIME",
        "b": "BOOLEAN",
        "h": "HUGEINT",
        "m": "DECIMAL(12, 5)",
        "x": "DOUBLE",
    }
    back = ", ".join(
        f"({name}::VARCHAR)::{type_name} = {name}, TRY_CAST({name}::VARCHAR || 'q' AS {type_name}) IS NULL"
        for name, type_name in types.items()
    )
    _agree(f"SELECT {back} FROM t ORDER BY i", _values(size))
    intervals = "((ts - TIMESTAMP '2020-01-01 00:00:00.5')::VARCHAR)::INTERVAL = ts - TIMESTAMP '2020-01-01 00:00:00.5'"
    _agree(f"SELECT {intervals} FROM t ORDER BY i", _values(size))


PATTERNS = ["%Y-%m-%d", "%d.%m.%y %H:%M:%S.%f", "%A %B %-d %H", "%a %b %j", "%I %p %-M", "%G-W%V-%u %w %U %W", "é%Y%%", "%c %x %X %g", "%H%z%Z"]  # fmt: skip


@pytest.mark.parametrize("size", [1, 3, 7, pytest.param(5000, marks=pytest.mark.slow)])
def test_patterns(size: int) -> None:
    shown = ", ".join(f"strftime({column}, '{pattern}')" for pattern in PATTERNS for column in ("d", "ts"))
    _agree(f"SELECT {shown} FROM t ORDER BY i", _values(size))
    # Only digits of full width are read at once; the others go one by one.
    patterns = [
        "%Y-%m-%d %H:%M:%S.%f",
        "%d/%m/%Y",
        "%b %d %Y %I:%M %p",
        "%d %B %Y",
        "%-d.%-m.%Y",
        "%y%m%d%H%M%S",
    ]
    read = ", ".join(f"strptime(strftime(ts, '{pattern}'), '{pattern}')" for pattern in patterns)
    _agree(f"SELECT {read} FROM t ORDER BY i", _values(size))


# Text to values -------------------------------------------------------------------------------------------------------

NUMBERS = ["0", "-1", "+5", "007", "12345678", "123456789", "9223372036854775807", "-9223372036854775807", "9223372036854775808",
           "18446744073709551615", "", "-", "1a", "a1", "1.5", " 1", "12 ", "--1", "1234567890123456", "12345678901234567", "é", "1\0", "/", ":"]  # fmt: skip


@pytest.mark.parametrize("form", [lambda tensor: tensor, elsewhere], ids=["arrays", "tensors"])
@pytest.mark.parametrize("numbers", [NUMBERS, ["12345678" * 2] * 3, ["5"], []], ids=len)
def test_read_integers(numbers: list[str], form: Callable[[torch.Tensor], torch.Tensor]) -> None:
    strings = from_list(numbers)
    values, fits = read_integers(Strings(form(strings.starts), form(strings.lengths), strings.data))
    plain = [
        text
        for text in numbers
        if text.lstrip("+-").isdecimal()
        and text.lstrip("+-").isascii()
        and len(text.lstrip("+-")) > len(text) - 2
    ]
    plain = [text for text in plain if -(2**63) < int(text) < 2**63]
    assert [int(value) for value, ok in zip(values, fits) if ok] == [int(text) for text in plain]


@pytest.mark.parametrize("form", [lambda tensor: tensor, elsewhere], ids=["arrays", "tensors"])
def test_read_fields(form: Callable[[torch.Tensor], torch.Tensor]) -> None:
    texts = [
        "2024-02-29 Mar",
        "0001-12-01 dec",
        "2024-02-29 xyz",
        "2024/02/29 Mar",
        "2024-02-2x Mar",
        "2024-02",
        "é024-02-29 Mar",
    ]
    strings = from_list(texts)
    months = ("Jan", "Mar", "Dec")
    strings = Strings(form(strings.starts), form(strings.lengths), strings.data)
    numbers, fits = read_fields(strings, (4, "-", 2, "-", 2, " ", months))
    assert torch.as_tensor(fits).tolist() == [True, True, False, False, False, False, False]
    assert [int(number[0]) for number in numbers] == [2024, 2, 29, 1]
    assert [int(number[1]) for number in numbers] == [1, 12, 1, 2]
    fractions = ["x", "x.5", "x.12345678", "x.123456789", "x.", "x.1a", "x5", "x.000001"]
    strings = from_list(fractions)
    number, fits = read_fraction(Strings(form(strings.starts), form(strings.lengths), strings.data), 1)
    assert torch.as_tensor(fits).tolist() == [True, True, True, False, True, False, False, True]
    assert [int(n) for n, ok in zip(number, torch.as_tensor(fits)) if ok] == [
        0,
        500_000_000,
        123_456_780,
        0,
        1000,
    ]


def test_leading_words_cut_rows_that_are_all_long() -> None:
    strings = from_list(["abcdefghij" * 4, "klmnopqrst" * 4])
    (word,) = leading_words(strings, 1)
    assert word.tolist() == [ord("a"), ord("k")]


def test_bad_text_among_good_is_named() -> None:
    table = pa.table({"s": ["12"] * 500 + ["1x"] + ["7"] * 500, "d": ["2024-02-29"] * 1000 + ["2023-02-29"]})
    with tqp.connect() as connection:
        connection.register("t", table)
        with pytest.raises(tqp.Error, match="Could not convert string '1x' to INTEGER"):
            connection.sql("SELECT sum(s::INTEGER) FROM t").fetchall()
        with pytest.raises(tqp.Error, match='out of range: "2023-02-29"'):
            connection.sql("SELECT max(d::DATE) FROM t").fetchall()
        found = connection.sql(
            "SELECT count(TRY_CAST(s AS INTEGER)), count(TRY_CAST(d AS DATE)) FROM t"
        ).fetchall()
    assert found == [(1000, 1000)]


def test_intervals_of_days_and_clocks_in_both_forms() -> None:
    chance = random.Random(4)
    day = 86_400_000_000
    clocks = [0, 1, -1, day - 1, 1 - day, 3_600_000_000, -5_000_000, 1_500_000]
    for span, rows in ((1, 1), (2, 40), (700, 2000), (10**7, 60)):
        values = [
            [
                0,
                chance.choice([0, 1, -1, chance.randint(-span, span)]),
                chance.choice([*clocks, chance.randint(-day + 1, day - 1)]),
            ]
            for _ in range(rows)
        ]
        intervals = torch.tensor(values)
        words = duckdb.execute(
            "SELECT (to_days(v[2]::INTEGER) + to_microseconds(v[3]))::VARCHAR FROM (SELECT unnest(?) AS v)",
            [values],
        ).fetchall()
        expected = [word for (word,) in words]
        assert texts_of(time_format.format_intervals(intervals)) == expected
        assert texts_of(time_format.format_intervals(elsewhere(intervals))) == expected


def test_read_intervals() -> None:
    chance = random.Random(5)
    units = "year yrs mon day days hours minute sec milliseconds us microseconds century decades quarter weeks d".split()
    texts = [
        "1 day\0",
        "12345678 days",
        "1 day 2",
        "day",
        "1  day",
        "-1 dayz",
        "1 day 1:2:3",
        "3 days ago",
        *["1 s " * 20],
    ]
    for _ in range(300):
        numbers = [
            f"{chance.choice(['', '-', '+'])}{chance.randrange(10 ** chance.randint(1, 7))} {chance.choice(units)}"
            for _ in range(chance.randint(0, 3))
        ]
        clock = [
            f"{chance.choice(['', '-'])}{chance.randrange(99):02}:{chance.randrange(60):02}:{chance.randrange(60):02}{chance.choice(['', '.5', '.123456'])}"
        ]
        texts.append(" ".join(numbers + clock * chance.randint(0, 1)) or "0 days")
    for size in (1, 9, len(texts)):
        _agree("SELECT TRY_CAST(s AS INTERVAL)::VARCHAR FROM t", pa.table({"s": texts[:size]}))


def test_floats_that_lie_between_short_numbers() -> None:
    chance = random.Random(6)
    values = [
        chance.randrange(10**digits) / 10**places
        for digits in (3, 5, 7, 8)
        for places in range(1, 5)
        for _ in range(400)
    ]
    values += [chance.randrange(2**24) / 2.0**bits for bits in range(14) for _ in range(300)]
    _agree("SELECT x::VARCHAR FROM t", pa.table({"x": pa.array(values, pa.float32())}))
