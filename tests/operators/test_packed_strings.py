"""Strings as integers by their first bits: they compare as the strings do, as far as they go; and queries that use them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa
import pytest
import torch

from tests.oracle import assert_same_rows
from tqp.operators.string_keys import first_bits as packed_strings
from tqp.operators.string_keys.first_bits import pack_leading_bits, packed_range
from tqp.operators.strings.layout import from_list
from tqp.runtime.lowering import program_builder


def one_worker(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    return [function(item) for item in items]


def texts(num_rows: int, nulls: bool, seed: int = 1) -> list[str | None]:
    generator = torch.Generator().manual_seed(seed)
    picks = torch.randint(0, 2**31, (num_rows,), generator=generator).tolist()
    endings = ["", "\0", "\0\0", "ß", " and some more words after it", "\U0010ffff", "-"]
    made: list[str | None] = [
        "common beginning " * (pick % 3)
        + "ab"[pick // 3 % 2] * (pick % 11)
        + endings[pick // 7 % 7]
        + str(pick)
        for pick in picks
    ]
    if nulls:
        made[::3] = [None] * len(made[::3])
    return made


@pytest.mark.parametrize("num_rows", [0, 1, 2, 9, 1000])
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("prefix", ["", "Customer#", "much longer than the sixteen bytes that come first "])
def test_codes_compare_as_the_strings_do(
    num_rows: int, nulls: bool, prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed_strings, "_PIECE_ROWS", 77)
    monkeypatch.setattr(packed_strings, "_SAMPLE_ROWS", 5)
    values = [None if text is None else prefix + text for text in texts(num_rows, nulls)]
    validity = torch.tensor([value is not None for value in values]) if nulls else None
    packed = pack_leading_bits(from_list(values), validity, one_worker)
    known = sorted(
        (value.encode(), code)
        for value, code in zip(values, packed.codes.tolist(), strict=True)
        if value is not None
    )
    width = packed.num_bytes
    for (text, code), (later, later_code) in itertools.pairwise(known):
        assert code <= later_code
        assert (code == later_code) == (text[:width].ljust(width, b"\0") == later[:width].ljust(width, b"\0"))
    assert torch.equal(packed_range(packed, 1, 3), packed.codes[1:4])
    assert packed.nbytes == 8 * num_rows


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize(
    "order",
    [
        "a, n",
        "a DESC, n DESC",
        "a NULLS FIRST, n",
        "a DESC NULLS LAST, n LIMIT 7 OFFSET 2",
        "a, n LIMIT 20",
        "b, a, n",
        "b DESC, n",
        "n, a",
        "upper(a), n",
    ],
)
def test_queries(nulls: bool, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_builder, "_MANY_ROWS", 0)
    size = 6000
    long = [None if text is None else 9 * "long " + text[:3] for text in texts(size, nulls, 2)]
    table = pa.table({"a": texts(size, nulls), "b": pa.array(long, pa.large_string()), "n": range(size)})
    assert_same_rows({"t": table}, f"SELECT a, b, n FROM t ORDER BY {order}", batch_rows=5000)
    assert_same_rows({"t": table}, f"SELECT b, n FROM t WHERE n % 3 < 2 ORDER BY {order}")
