"""Every string function against DuckDB, over several layouts of the same strings."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import torch

from tqp.core.datatypes import BIGINT, BOOLEAN, VARCHAR
from tqp.core.errors import ExecutionError
from tqp.data.strings import Strings
from tqp.operators.kernel import NullRule
from tqp.operators.strings.functions import STRING_KERNELS
from tqp.operators.strings.layout import from_list, take, to_list

ASCII_TEXTS = [
    "",
    "a",
    "hello",
    "  padded  ",
    "a,b,,c",
    "special big requests",
    "aaa",
    "A%b_c",
    "x" * 100,
    "tab\t",
    "nul\0inside",
    "\0",
    "line\nbreak",
    "Hello World",
    "abcabcabc",
    "a\\b",
    "12345678",
    "123456789",
]
UNICODE_TEXTS = [
    *ASCII_TEXTS,
    "héllo",
    "ÉCOLE é",
    "ß",
    "日本語テキスト",
    "👨‍👩‍👧ab",
    "e\u0301x",
    "🇳🇴🇸🇪x",
    "\u2003wide\u00a0",
    "naïve café",
    "😀" * 13 + "é😀a" + "😀" * 5,
    "e\u0301" * 9,
]


def contiguous(texts: list[str]) -> Strings:
    return from_list(texts)


def backwards(texts: list[str]) -> Strings:
    """Slices that run against the order of their bytes."""
    strings = from_list(texts[::-1])
    return take(strings, torch.arange(len(texts) - 1, -1, -1))


def scattered(texts: list[str]) -> Strings:
    """Slices with other text, not ASCII, between them."""
    strings = from_list([piece for text in texts for piece in ("ÿ" * 3, text)] + ["é" * 200])
    return take(strings, torch.arange(1, 2 * len(texts), 2))


LAYOUTS = [contiguous, backwards, scattered]
TEXTS = {"ascii": ASCII_TEXTS, "unicode": UNICODE_TEXTS}

#: (SQL over column s, function, arguments after s)
CASES: list[tuple[str, str, list[Any]]] = [
    *[
        (f"s LIKE '{pattern}'", "like", [pattern])
        for pattern in [
            "",
            "%",
            "%%",
            "a%",
            "%c",
            "%a%",
            "a",
            "%special%requests%",
            "%requests%special%",
            "_",
            "__",
            "h_llo",
            "%_b%",
            "a%c",
            "%b%b%",
            "%abc%abc%abc%",
            "aa%aa",
            "a%a",
            "%é%",
            "_é%",
            "%\\%",
            "12345678",
            "12345678%",
            "%12345678",
            "%3456789",
            "nul_inside",
            "line%break",
            "_____",
            "%日本%",
            "a,b%c",
            "%x",
            "%o%o%",
        ]
    ],
    ("s LIKE 'A$%b$_c' ESCAPE '$'", "like", ["A$%b$_c", "$"]),
    ("s LIKE 'A$%%' ESCAPE '$'", "like", ["A$%%", "$"]),
    *[
        (f"s ILIKE '{pattern}'", "ilike", [pattern])
        for pattern in ["HELLO", "%é%", "%WORLD", "éc%", "ß", "A\\%B%", "a_B%", "%LINE%break%"]
    ],
    *[
        (f"regexp_matches(s, '{pattern}')", "regexp_matches", [pattern])
        for pattern in ["^h", "[0-9]+", "a.c", "é$", "", "x{100}", "^b", "\\x00", "e.b"]
    ],
    ("regexp_matches(s, 'HELLO', 'i')", "regexp_matches", ["HELLO", "i"]),
    ("regexp_matches(s, 'e.b', 's')", "regexp_matches", ["e.b", "s"]),
    ("regexp_matches(s, 'A%b_c', 'l')", "regexp_matches", ["A%b_c", "l"]),
    ("regexp_full_match(s, 'a+')", "regexp_full_match", ["a+"]),
    ("regexp_full_match(s, 'a|hello')", "regexp_full_match", ["a|hello"]),
    ("regexp_replace(s, '[abc]', 'X')", "regexp_replace", ["[abc]", "X"]),
    *[
        (f"regexp_replace(s, '{pattern}', '{text}')", "regexp_replace", [pattern, text])
        for pattern in ["x*", "[0-9]+", "^", "$", "\\b", "b|", "(a)(b)?", "[^a-z]+", "é|語", "zzz"]
        for text in ["", "<é>"]
    ],
    ("regexp_replace(s, '[abc]', 'X', 'g')", "regexp_replace", ["[abc]", "X", "g"]),
    ("regexp_replace(s, '(b)(c)', '\\2\\1')", "regexp_replace", ["(b)(c)", "\\2\\1"]),
    ("regexp_replace(s, 'H(.)', '<\\0>', 'gi')", "regexp_replace", ["H(.)", "<\\0>", "gi"]),
    ("regexp_extract(s, '[a-z]+')", "regexp_extract", ["[a-z]+"]),
    ("regexp_extract(s, '(a)(b)', 2)", "regexp_extract", ["(a)(b)", 2]),
    ("regexp_extract(s, '(a)[(](b)', 1)", "regexp_extract", ["(a)[(](b)", 1]),
    ("regexp_extract(s, 'l(z)?l(?:o)(.*)', 2)", "regexp_extract", ["l(z)?l(?:o)(.*)", 2]),
    ("regexp_extract(s, 'l(z)?l', 1)", "regexp_extract", ["l(z)?l", 1]),
    ("regexp_extract(s, 'l', 4)", "regexp_extract", ["l", 4]),
    *[
        (f"{name}(s, '{needle}')", name, [from_list([needle])])
        for name in ("starts_with", "ends_with", "contains")
        for needle in ["", "a", "hello", "é", "12345678", "123456789", "bc", "X" * 3, "x" * 99]
    ],
    *[
        (f"instr(s, '{needle}')", "position", [from_list([needle])])
        for needle in ["", "a", "o", "é", "x", "語", "special"]
    ],
    *[(f"substring(s, {start})", "substring", [start]) for start in [-100, -3, -1, 0, 1, 2, 5, 100]],
    *[
        (f"substring(s, {start}, {count})", "substring", [start, count])
        for start in [-100, -3, -1, 0, 1, 2, 5, 14, 15, 100]
        for count in [-200, -3, -1, 0, 1, 2, 4, 12, 13, 99, 200]
    ],
    *[
        (f"{name}(s, {count})", name, [count])
        for name in ("left", "right")
        for count in [-(2**31), -100, -2, -1, 0, 1, 2, 3, 13, 14, 15, 100, 2**31]
    ],
    ("length(s)", "length", []),
    ("strlen(s)", "octet_length", []),
    ("bit_length(s)", "bit_length", []),
    ("ascii(s)", "ascii", []),
    ("unicode(s)", "unicode", []),
    ("upper(s)", "upper", []),
    ("lower(s)", "lower", []),
    ("reverse(s)", "reverse", []),
    *[(f"{name}(s)", name, []) for name in ("trim", "ltrim", "rtrim")],
    *[
        (f"{name}(s, '{characters}')", name, [characters])
        for name in ("trim", "ltrim", "rtrim")
        for characters in ["a", "", "abc,", "é", "xeo", "日a"]
    ],
    *[
        (f"{name}(s, {width}, '{fill}')", name, [width, fill])
        for name in ("lpad", "rpad")
        for width in [-1, 0, 1, 3, 7, 150]
        for fill in ["x", "xy", "üabc"]
    ],
    ("replace(s, 'a', '')", "replace", ["a", ""]),
    ("replace(s, '', 'x')", "replace", ["", "x"]),
    ("replace(s, 'aa', 'é')", "replace", ["aa", "é"]),
    *[(f"repeat(s, {times})", "repeat", [times]) for times in [-1, 0, 1, 3]],
    ("s || 'é!'", "concat_operator", [from_list(["é!"])]),
    *[
        (f"split_part(s, '{separator}', {index})", "split_part", [separator, index])
        for separator in [",", "", "ab", "aa", "é", " "]
        for index in [-(2**63), -9, -2, -1, 0, 1, 2, 9, 2**63 - 1]
    ],
    ("translate(s, 'abé', 'x')", "translate", ["abé", "x"]),
    ("translate(s, 'aab', 'xyé')", "translate", ["aab", "xyé"]),
]


def run_kernel(function: str, strings: Strings, arguments: list[Any]) -> list[Any]:
    kernel = STRING_KERNELS[function]((VARCHAR, *[VARCHAR] * len(arguments)), VARCHAR)
    assert kernel is not None
    assert kernel.nulls is NullRule.PROPAGATE
    lowered = [
        torch.tensor(argument)
        if isinstance(argument, int) and position not in kernel.constant_arguments
        else argument
        for position, argument in enumerate(arguments, start=1)
    ]
    result = kernel.function(strings, *lowered)
    if isinstance(result, Strings):
        assert result.starts.dtype == torch.int64
        assert result.lengths.dtype == torch.int32
        return [value.decode() for value in to_list(result)]
    assert result.dtype in (torch.bool, torch.int64)
    values: list[Any] = result.tolist()
    return values


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("texts", TEXTS)
def test_functions_agree_with_duckdb(texts: str, layout: Callable[[list[str]], Strings]) -> None:
    values = TEXTS[texts]
    strings = layout(values)
    connection = duckdb.connect()
    connection.register("t", pa.table({"s": values, "i": range(len(values))}))
    columns = ", ".join(f"{sql} AS c{index}" for index, (sql, _, _) in enumerate(CASES))
    rows = connection.execute(f"SELECT {columns} FROM t ORDER BY i").fetchall()
    wrong = []
    for index, (sql, function, arguments) in enumerate(CASES):
        expected = [row[index] for row in rows]
        found = run_kernel(function, strings, arguments)
        wrong += [
            (sql, text, want, got)
            for text, want, got in zip(values, expected, found, strict=True)
            if want != got
        ]
    assert not wrong


@pytest.mark.parametrize(("sql", "function", "arguments"), CASES[:: len(CASES) // 60])
def test_no_rows(sql: str, function: str, arguments: list[Any]) -> None:
    assert run_kernel(function, from_list([]), arguments) == []


def test_columns_as_arguments() -> None:
    texts = UNICODE_TEXTS
    numbers = [(7 * index) % 11 - 5 for index in range(len(texts))]
    needles = [text[1:3] for text in texts[1:] + texts[:1]]
    connection = duckdb.connect()
    connection.register("t", pa.table({"s": texts, "n": numbers, "w": needles, "i": range(len(texts))}))
    strings, number, needle = backwards(texts), torch.tensor(numbers, dtype=torch.int8), scattered(needles)
    cases: list[tuple[str, str, list[Any]]] = [
        ("substring(s, n)", "substring", [number]),
        ("substring(s, n, 2)", "substring", [number, 2]),
        ("substring(s, 2, n)", "substring", [2, number]),
        ("left(s, n)", "left", [number]),
        ("right(s, n)", "right", [number]),
        ("repeat(s, n)", "repeat", [number]),
        ("lpad(s, n::INTEGER, 'xy')", "lpad", [number, "xy"]),
        ("split_part(s, 'l', n::INTEGER)", "split_part", ["l", number]),
        ("starts_with(s, w)", "starts_with", [needle]),
        ("ends_with(s, w)", "ends_with", [needle]),
        ("contains(s, w)", "contains", [needle]),
        ("instr(s, w)", "position", [needle]),
        ("s || w", "concat_operator", [needle]),
    ]
    for sql, function, arguments in cases:
        expected = connection.execute(f"SELECT {sql} FROM t ORDER BY i").fetchall()
        assert run_kernel(function, strings, arguments) == [row[0] for row in expected], sql
        with_literal = re.sub(r"\bs\b", "'héllo'", sql)
        expected = connection.execute(f"SELECT {with_literal} FROM t ORDER BY i").fetchall()
        assert run_kernel(function, from_list(["héllo"]), arguments) == [row[0] for row in expected], sql


def test_concat_and_concat_ws_skip_nulls() -> None:
    first, second = ["a", "é", "", "x"], ["1", "", "22", "y"]
    valid = torch.tensor([True, False, True, False])
    left, right = backwards(first), contiguous(second)
    connection = duckdb.connect()
    columns = pa.table(
        {
            "a": pa.array([v if k else None for v, k in zip(first, valid.tolist(), strict=True)]),
            "b": second,
            "i": range(4),
        }
    )
    connection.register("t", columns)
    concat = STRING_KERNELS["concat"]((VARCHAR, VARCHAR, VARCHAR), VARCHAR)
    assert concat is not None
    result, validity = concat.function((left, valid), (from_list(["-"]), None), (right, None))
    assert validity is None
    expected = connection.execute("SELECT concat(a, '-', b) FROM t ORDER BY i").fetchall()
    assert [value.decode() for value in to_list(result)] == [row[0] for row in expected]

    joined = STRING_KERNELS["concat_ws"]((VARCHAR, VARCHAR, VARCHAR), VARCHAR)
    assert joined is not None
    result, validity = joined.function((from_list([", "]), None), (left, valid), (right, None), (left, valid))
    assert validity is None
    expected = connection.execute("SELECT concat_ws(', ', a, b, a) FROM t ORDER BY i").fetchall()
    assert [value.decode() for value in to_list(result)] == [row[0] for row in expected]
    result, validity = joined.function((left, valid), (right, None), (right, None))
    expected = connection.execute("SELECT concat_ws(a, b, b) FROM t ORDER BY i").fetchall()
    found = [
        value.decode() if keep else None
        for value, keep in zip(to_list(result), validity.tolist(), strict=True)
    ]
    assert found == [row[0] for row in expected]


def test_chr() -> None:
    kernel = STRING_KERNELS["chr"]((BIGINT,), VARCHAR)
    assert kernel is not None
    codes = torch.tensor([0, 65, 233, 0x1F468, 0x10FFFF])
    assert [value.decode() for value in to_list(kernel.function(codes))] == [
        chr(code) for code in codes.tolist()
    ]
    invalid = torch.tensor([65, -1])
    assert to_list(kernel.function(invalid, validity=torch.tensor([True, False])))[0] == b"A"
    with pytest.raises(ExecutionError, match="Invalid UTF8 code point -1"):
        kernel.function(invalid)


@pytest.mark.parametrize(
    ("function", "arguments", "message"),
    [
        ("like", ["s%$", "$"], "must not end with escape"),
        ("like", ["a", "ab"], "Invalid escape string"),
        ("regexp_matches", ["("], r"Invalid regular expression '\('"),
        ("regexp_matches", ["a", "q"], "Unrecognized regular expression option 'q'"),
        ("regexp_extract", ["a", 10], "between 0 and 9"),
        ("lpad", [9, ""], "Insufficient padding in LPAD"),
        ("repeat", [2**40], "longer than 2 GiB"),
    ],
)
def test_errors(function: str, arguments: list[Any], message: str) -> None:
    with pytest.raises(ExecutionError, match=message):
        run_kernel(function, from_list(["some", "text"]), arguments)


def test_errors_do_not_come_from_null_rows() -> None:
    lpad = STRING_KERNELS["lpad"]((VARCHAR, BIGINT, VARCHAR), VARCHAR)
    assert lpad is not None
    result = lpad.function(
        from_list(["ab", ""]), torch.tensor([1, 9]), "", validity=torch.tensor([True, False])
    )
    assert to_list(result)[0] == b"a"


def test_a_function_without_an_overload_for_the_type() -> None:
    assert STRING_KERNELS["upper"]((BOOLEAN,), VARCHAR) is None
