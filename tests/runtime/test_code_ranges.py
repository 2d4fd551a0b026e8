"""Predicates on dictionary columns as ranges of codes, against the same predicates on the strings one by one."""

from __future__ import annotations

import random
import re

import pyarrow as pa
import pytest
import torch

import tqp
from tqp.core.datatypes import BIGINT, BOOLEAN, VARCHAR
from tqp.operators.strings.layout import from_list
from tqp.planner.algebra.expressions import Call, ColumnRef, Expression, InList, Literal
from tqp.runtime.lowering.expressions.code_ranges import DictionaryEntries, code_ranges, complement, union

WORDS = ["", "A", "AB", "ABC", "B", "BA", "a", "b%", "ä", "äb", "žz", "\U0001f600", "\U0010ffff"]
COLUMN = ColumnRef(1, VARCHAR, "s")
COMPARISONS = {
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
}


def random_predicate(chance: random.Random, depth: int) -> Expression:
    word = Literal(chance.choice([*WORDS, "AA", "C", "zz"]), VARCHAR)
    kind = chance.randrange(8 if depth else 5)
    match kind:
        case 0 | 1:
            sides = (COLUMN, word) if chance.random() < 0.7 else (word, COLUMN)
            return Call(chance.choice(list(COMPARISONS)), sides, BOOLEAN)
        case 2:
            values = tuple(
                Literal(chance.choice([*WORDS, "x"]), VARCHAR) for _ in range(chance.randint(1, 5))
            )
            return InList(COLUMN, values)
        case 3:
            pattern = str(word.value).replace("%", "!%") + chance.choice(["", "%"])
            return Call("like", (COLUMN, Literal(pattern, VARCHAR), Literal("!", VARCHAR)), BOOLEAN)
        case 4:
            return Call("starts_with", (COLUMN, word), BOOLEAN)
        case 5:
            return Call("not", (random_predicate(chance, depth - 1),), BOOLEAN)
    parts = tuple(random_predicate(chance, depth - 1) for _ in range(chance.randint(2, 3)))
    return Call("and" if kind == 6 else "or", parts, BOOLEAN)


def holds(expression: Expression, entry: bytes) -> bool:
    def text(part: Expression) -> bytes:
        return str(part.value).encode() if isinstance(part, Literal) else entry

    match expression:
        case InList(_, values):
            return entry in [text(value) for value in values]
        case Call("and", parts):
            return all(holds(part, entry) for part in parts)
        case Call("or", parts):
            return any(holds(part, entry) for part in parts)
        case Call("not", (part,)):
            return not holds(part, entry)
        case Call("starts_with", (_, word)):
            return entry.startswith(text(word))
        case Call("like", (_, Literal(str() as pattern), _)):
            parts = re.split(r"(!%|%)", pattern)
            expected = "".join(".*" if p == "%" else re.escape(p.removeprefix("!")) for p in parts)
            return re.fullmatch(expected, entry.decode(), re.DOTALL) is not None
        case Call(function, (left, right)):
            return COMPARISONS[function](text(left), text(right))
    raise AssertionError(expression)


def dictionary(entries: list[bytes], is_sorted: bool = True) -> DictionaryEntries:
    return DictionaryEntries(from_list(entries, torch.device("cpu")), is_sorted)


def needs_order(expression: Expression) -> bool:
    match expression:
        case Call("and" | "or" | "not", parts):
            return any(map(needs_order, parts))
        case Call("like", (_, Literal(str() as pattern), _)):
            return pattern.replace("!%", "").endswith("%")
        case Call(function, _):
            return function not in ("equal", "not_equal")
    return False


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize("seed", range(300))
def test_ranges_hold_the_codes_of_the_entries_that_satisfy_the_predicate(seed: int, is_sorted: bool) -> None:
    chance = random.Random(seed)
    entries = [word.encode() for word in chance.sample(WORDS, chance.randint(0, len(WORDS)))]
    predicate = random_predicate(chance, 3)
    if is_sorted:
        entries.sort()
    ranges = code_ranges(predicate, dictionary(entries, is_sorted))
    assert (ranges is not None) == (is_sorted or not needs_order(predicate))
    if ranges is None:
        return
    inside = [code for first, after in ranges for code in range(first, after)]
    assert inside == [code for code, entry in enumerate(entries) if holds(predicate, entry)]
    assert union([ranges]) == ranges


@pytest.mark.parametrize(
    "predicate",
    [
        Call("like", (COLUMN, Literal("%A", VARCHAR)), BOOLEAN),
        Call("like", (COLUMN, Literal("A_", VARCHAR)), BOOLEAN),
        Call("like", (COLUMN, Literal("A!", VARCHAR), Literal("!", VARCHAR)), BOOLEAN),  # the run raises
        Call("equal", (Call("upper", (COLUMN,), VARCHAR), Literal("A", VARCHAR)), BOOLEAN),
        Call("is_null", (COLUMN,), BOOLEAN),
        Call("or", (Call("is_null", (COLUMN,), BOOLEAN), InList(COLUMN, ())), BOOLEAN),
        Call("equal", (ColumnRef(2, BIGINT, "i"), Literal(3, BIGINT)), BOOLEAN),
    ],
)
def test_what_is_no_matter_of_ranges(predicate: Expression) -> None:
    assert code_ranges(predicate, dictionary([b"A", b"B"])) is None


def test_prefixes_of_the_largest_bytes() -> None:
    entries = [b"a", b"a\xff", b"a\xff\xff", b"b", b"\xff", b"\xff\x01"]
    assert complement(((1, 3),), 0, 6) == ((0, 1), (3, 6))
    # an entry that is no UTF-8 cannot be asked for by LIKE; its neighbours can
    predicate = Call("starts_with", (COLUMN, Literal("a", VARCHAR)), BOOLEAN)
    assert code_ranges(predicate, dictionary(entries)) == ((0, 3),)


ROWS = ["b", None, "a", "c", "d", "e", "f", "g", "h", "b", None, "z"] * 3
CONDITIONS = {
    "s = 'b'": lambda s: s == "b",
    "s <> 'b'": lambda s: s != "b",
    "s = 'absent'": lambda s: False,
    "s <> 'absent'": lambda s: True,
    "s BETWEEN 'b' AND 'dd'": lambda s: "b" <= s <= "dd",
    "NOT (s BETWEEN 'b' AND 'dd')": lambda s: not "b" <= s <= "dd",
    "s IN ('a', 'c', 'e', 'g', 'z')": lambda s: s in "acegz",
    "s IN ('a', 'c', 'e', 'g') OR s LIKE 'b%'": lambda s: s in "abceg",
    "s > 'f' OR s < 'b'": lambda s: s > "f" or s < "b",
    "s NOT LIKE 'b%'": lambda s: s != "b",
}
NUMBERS = {
    "n IN (1, 2, 3)": lambda n: n in (1, 2, 3),
    "n NOT IN (1, 2, 3, 900)": lambda n: n not in (1, 2, 3, 900),
    "n IN (0, 2, 4, 6, 8, 10, 12, 14, 16, 18)": lambda n: n % 2 == 0 and n < 20,
    "n IN (-5, 3000000000)": lambda n: False,
    "m IN (0, 2000000, 4000000, 6000000, 8000000, 10000000, 11000000)": lambda m: (
        (m % 2000000 == 0 and m <= 10000000) or m == 11000000
    ),
}


@pytest.mark.cpu
@pytest.mark.parametrize("condition", [*CONDITIONS, *NUMBERS])
def test_rows_and_nulls(condition: str) -> None:
    numbers = [None if i % 7 == 3 else i for i in range(len(ROWS))]
    table = pa.table({"s": ROWS, "n": numbers, "m": [None if n is None else n * 1_000_000 for n in numbers]})
    con = tqp.connect(batch_rows=5)
    con.register("t", table)
    test = CONDITIONS.get(condition) or NUMBERS[condition]
    name = "s" if condition in CONDITIONS else condition[0]
    given = table.column(name).to_pylist()
    expected = [None if value is None else bool(test(value)) for value in given]
    assert con.sql(f"SELECT {condition} AS x FROM t").to_arrow().column("x").to_pylist() == expected
    kept = con.sql(f"SELECT {name} FROM t WHERE {condition}").to_arrow().column(0).to_pylist()
    assert kept == [value for value, keep in zip(given, expected, strict=True) if keep]
    code = con.compile(f"SELECT count(*) FROM t WHERE {condition}").code
    assert "domain" not in code and "isin" not in code or condition.startswith("m")
