"""Short strings joined by windows, spread over rows and chosen: every byte against Python, at the ends of buffers too."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
import torch

import tqp
from tests.oracle import assert_same_rows
from tqp.data.string_buffers import gathered
from tqp.data.strings import Strings
from tqp.operators.strings import build, join_short
from tqp.operators.strings.layout import choose, choose_made, from_list, spread, take, to_list


def _strings(chance: random.Random, count: int, longest: int) -> tuple[Strings, list[bytes]]:
    """Rows in any order that lie up to the very end of their buffer."""
    values = [bytes(chance.choices(range(256), k=chance.randint(0, longest))) for _ in range(count)]
    order = chance.sample(range(count), count)
    return take(from_list(values), torch.tensor(order)), [values[place] for place in order]


@pytest.mark.parametrize("longest", [0, 1, 7, 8, 9, 40, 128, 129])
@pytest.mark.parametrize("count", [2, 3, 50])
def test_join(count: int, longest: int) -> None:
    chance = random.Random(count * 1000 + longest)
    for width in (1, 2, 3, 6):
        parts, expected = [], [b""] * count
        for _ in range(width):
            strings, values = _strings(chance, 1 if chance.random() < 0.4 else count, longest)
            parts.append(strings)
            expected = [
                before + value
                for before, value in zip(expected, values if len(values) > 1 else values * count, strict=True)
            ]
        joined = join_short.join_short(parts, count)
        if joined is None:
            assert sum(int(part.lengths.max()) + 7 for part in parts) > join_short.WIDEST
        else:
            assert to_list(joined) == expected
            assert joined.data.shape[0] == sum(map(len, expected))
        if any(part.num_rows > 1 for part in parts):
            assert to_list(build.join(parts)) == expected


@pytest.mark.parametrize("values", [[b"a", b"bcd", b""], [b"one", b"two"], [b"\xc3\xa9", b"zz", b"yy"]])
def test_slices_that_rows_share_are_joined_once(values: list[bytes]) -> None:
    chance = random.Random(len(values))
    rows = [chance.randrange(len(values)) for _ in range(200)]
    few = take(from_list(values), torch.tensor(rows))
    joined = build.join([from_list(["<"]), few, from_list(["é>"])])
    assert joined.data.shape[0] < 40
    assert to_list(joined) == [b"<" + values[row] + "é>".encode() for row in rows]
    cut_short = few._replace(lengths=few.lengths * torch.tensor([row % 2 for row in range(200)]))
    assert to_list(build.join([cut_short, from_list(["!"])])) == [
        (values[row] if place % 2 else b"") + b"!" for place, row in enumerate(rows)
    ]


@pytest.mark.parametrize("width", [1, 3, 8, 64, 65])
def test_rows_of_one_length_are_gathered(width: int) -> None:
    chance = random.Random(width)
    content = [bytes(chance.choices(range(256), k=width)) for _ in range(30)]
    order = [chance.randrange(30) for _ in range(90)]
    strings = take(from_list([b"before", *content]), torch.tensor(order) + 1)
    array = gathered(strings)
    assert array.to_pylist() == [content[place] for place in order]
    shorter = strings._replace(lengths=strings.lengths - torch.tensor([place % 2 for place in range(90)]))
    assert gathered(shorter).to_pylist() == [
        content[place][: width - row % 2] for row, place in enumerate(order)
    ]


@pytest.mark.parametrize("count", [1, 2, 60])
def test_spread_and_choose(count: int) -> None:
    chance = random.Random(count)
    others, other_values = _strings(chance, count, 9)
    rows = [row for row in range(count) if chance.random() < 0.5]
    few, few_values = _strings(chance, len(rows), 9) if rows else (from_list([]), [])
    spread_out = spread(few, torch.tensor(rows, dtype=torch.int64), count)
    expected = [few_values[rows.index(row)] if row in rows else b"" for row in range(count)]
    assert to_list(spread_out) == expected
    mask = torch.tensor([row in rows for row in range(count)])
    literal = from_list([b"literal"])
    upper = torch.tensor([chance.random() < 0.3 for _ in range(count)])
    assert to_list(choose([mask, upper], [spread_out, literal], others)) == [
        one if picked else b"literal" if second else other
        for one, picked, second, other in zip(
            expected, mask.tolist(), upper.tolist(), other_values, strict=True
        )
    ]


@pytest.mark.parametrize("count", [0, 1, 2, 60])
@pytest.mark.parametrize("made", ["none", "first", "last", "first and last", "all"])
def test_choose_made_for_some_rows(count: int, made: str) -> None:
    chance = random.Random(count)
    taken = [chance.randrange(3) for _ in range(count)]  # which value each row has
    conditions = [
        torch.tensor([number == 0 for number in taken], dtype=torch.bool),
        torch.tensor([number < 2 for number in taken], dtype=torch.bool),
    ]
    wanted, values = [b""] * count, list[tuple[Strings, torch.Tensor | None]]()
    for number in range(3):
        is_made = made == "all" or (number == 0 and "first" in made) or (number == 2 and "last" in made)
        rows = [row for row in range(count) if taken[row] == number] if is_made else list(range(count))
        strings, texts = _strings(chance, len(rows), 9) if rows else (from_list([]), [])
        if number == 1 and not is_made:
            strings, texts = from_list([b"literal"]), [b"literal"] * count
        for row, text in zip(rows, texts, strict=True):
            wanted[row] = text if taken[row] == number else wanted[row]
        values.append((strings, torch.tensor(rows, dtype=torch.int64) if is_made else None))
    before = [(part.starts.clone(), part.lengths.clone()) for part, _ in values]
    assert to_list(choose_made(conditions, values, count)) == wanted
    for (part, _), (starts, lengths) in zip(values, before, strict=True):  # may be a table's own
        assert torch.equal(part.starts, starts) and torch.equal(part.lengths, lengths)


@pytest.mark.parametrize(
    "expression",
    [
        "CASE WHEN k % 2 = 0 THEN s || '!' ELSE r || '?' END",
        "CASE WHEN k % 3 = 0 THEN s || '!' WHEN s = 'b' THEN NULL WHEN k % 3 = 1 THEN r ELSE 'none' END",
        "CASE WHEN s IS NULL THEN r WHEN s < 'c' THEN upper(s) WHEN r IS NULL THEN 'r' ELSE s END",
        "CASE WHEN k % 3 = 0 THEN s || '!' WHEN k % 3 = 1 THEN upper(r) ELSE lpad(s, 5, '*') END",
        "CASE WHEN k % 2 = 0 THEN CASE WHEN k > 9 THEN reverse(s) ELSE s || r END WHEN s = 'b' THEN repeat(r, 2) END",
        "CASE WHEN k > 100 THEN s || 'none' ELSE trim(s) END",
        "CASE WHEN k % 2 = 0 THEN chr(CASE WHEN k % 2 = 0 THEN k + 60 ELSE -1 END) ELSE 'x' || k END",
        "CASE WHEN k % 2 = 0 THEN chr(60 + k) WHEN k % 5 = 0 THEN chr((k - 3)::INTEGER) ELSE r END",
        "coalesce(s, r || '?', k::VARCHAR || '-')",
        "coalesce(s || r, upper(r), 'none')",
        "'<' || s || '-' || (r || '|') || k || '>'",
        "s || CASE WHEN k % 2 = 0 THEN s || 'e' ELSE r || 'o' END || coalesce(r, s || 'n')",
    ],
)
def test_text_for_some_rows(expression: str) -> None:
    table = pa.table(
        {
            "k": pa.array(range(3, 23), pa.int32()),
            "s": [None if row % 7 == 3 else chr(97 + row % 5) * (row % 4) for row in range(20)],
            "r": [None if row % 5 == 1 else f"r{row}" for row in range(20)],
        }
    )
    for batch_rows in (None, 4):
        assert_same_rows({"t": table}, f"SELECT k, {expression} FROM t ORDER BY k", batch_rows=batch_rows)


def test_a_branch_makes_text_for_its_own_rows() -> None:
    with tqp.connect() as connection:
        connection.register("t", {"k": [1, 2**60, 3], "s": ["a", "b", "c"]})
        code = connection.compile("SELECT CASE WHEN k > 2 THEN 'x' || k ELSE s END FROM t").code
    assert "choose_made(" in code and "spread(" not in code
