"""Text as lists, structs and maps, beside DuckDB."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

from tests.oracle import duckdb_database
from tqp.core.text.nested import split_list, split_map, split_struct

_PIECES = [*"ab1 ,[](){}=:\"'\\", "null", "NULL", "é", ']"', '"a"', "'a'", "a:", "b:", "\n"]


def _texts(seed: int, count: int) -> list[str]:
    pick = random.Random(seed)
    brackets = ("[]", "[]", "{}", "{}", "()", ("", ""))
    texts = []
    for _ in range(count):
        opened, closed = pick.choice(brackets)
        texts.append(opened + "".join(pick.choice(_PIECES) for _ in range(pick.randrange(10))) + closed)
    return texts


def _answers(sql: str, texts: list[str]) -> list[tuple[Any, ...]]:
    with duckdb_database() as connection:
        connection.register("texts", pa.table({"i": range(len(texts)), "s": texts}))
        return connection.execute(f"{sql} ORDER BY i").fetchall()


@pytest.mark.parametrize("seed", [1, 4, 7])
def test_parts_of_text_are_those_of_duckdb(seed: int) -> None:
    texts = _texts(seed, 4000)
    lists = _answers("SELECT TRY_CAST(s AS VARCHAR[]) FROM texts", texts)
    structs = _answers(
        "SELECT x.a, x.b, x IS NULL FROM (SELECT i, TRY_CAST(s AS STRUCT(a VARCHAR, b VARCHAR)) x FROM texts)",
        texts,
    )
    maps = _answers(
        "SELECT map_keys(m), map_values(m) FROM (SELECT i, TRY_CAST(s AS MAP(VARCHAR, VARCHAR)) m FROM texts)",
        texts,
    )
    for text, (elements,), (a, b, is_null), (keys, values) in zip(texts, lists, structs, maps, strict=True):
        assert split_list(text) == elements, text
        assert split_struct(text, ("a", "b")) == (None if is_null else [a, b]), text
        entries = split_map(text)
        is_map = entries is not None and len({key for key, _ in entries}) == len(entries)
        assert (entries if is_map else None) == (
            None if keys is None else list(zip(keys, values, strict=True))
        )
    assert sum(elements is not None for (elements,) in lists) > 200
