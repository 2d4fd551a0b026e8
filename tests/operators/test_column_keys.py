"""Values of a column that a join build has a row for, against a look at every value, and joins by them against DuckDB."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import torch

import tqp
from tests.oracle import assert_same_rows
from tqp.operators.joins import column_keys
from tqp.operators.joins.offset_array_join import build_offset_array
from tqp.operators.joins.perfect_hash_join import build_membership, build_perfect_hash
from tqp.runtime.lowering import zones


@pytest.fixture(autouse=True)
def few_rows_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(column_keys, "_MANY_ROWS", 1)
    monkeypatch.setattr(zones, "FEWEST_ZONED_ROWS", 1)


@pytest.mark.parametrize("make", [build_membership, build_perfect_hash, build_offset_array])
@pytest.mark.parametrize("dtype", [torch.int8, torch.int16, torch.int32, torch.int64])
@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize(
    "keys",
    [
        [],
        [0],
        [64],
        [3, 4, 5],
        [5, 3, 4],
        [3, 4, 6],
        [62, 63, 64],
        list(range(65)),
        [0, 20, 40],
        [0, 1, 2, 30, 50, 51],
        [*range(30), 64],
        list(range(0, 65, 2)),
    ],
)
def test_values_with_a_partner(make, dtype: torch.dtype, nullable: bool, keys: list[int]) -> None:  # type: ignore[no-untyped-def]
    generator = torch.Generator().manual_seed(len(keys))
    values = torch.randint(-5, 60, (1000,), generator=generator).to(dtype)
    validity = torch.rand(1000, generator=generator) < 0.7 if nullable else None
    build = make(torch.tensor(keys, dtype=torch.int32), 65)
    wanted = torch.isin(values.to(torch.int64) + 5, torch.tensor(keys))
    if validity is not None:
        values = torch.where(validity, values, -5)  # any value that has a key may stand under NULL
        wanted &= validity
    assert torch.equal(column_keys.values_in_build(values, validity, (-5, 65, False), build), wanted)
    assert column_keys.values_in_build(values[:0], None, (-5, 65, False), build).tolist() == []


@pytest.mark.parametrize("nullable", [False, True])
@pytest.mark.parametrize(("others", "is_asked"), [(range(20, 30), True), ([3, 4, 900], True), (range(200, 900), False), (range(0, 999, 7), False), ([], True)])  # fmt: skip
def test_rows_that_another_build_side_lacks_are_not_looked_up(
    monkeypatch: pytest.MonkeyPatch, nullable: bool, others: Sequence[int], is_asked: bool
) -> None:
    generator = torch.Generator().manual_seed(1)
    values, other_values = (torch.randint(0, 1000, (5000,), generator=generator) for _ in range(2))
    validity = torch.rand(5000, generator=generator) < 0.7 if nullable else None
    keys = torch.arange(0, 1000, 3)
    build, other = (
        build_membership(keys, 1000),
        build_membership(torch.tensor(list(others), dtype=torch.int64), 1000),
    )
    looked_up = []

    def noted(*arguments: Any) -> Any:
        looked_up.append(len(arguments[0]))
        return look_up(*arguments)

    look_up = column_keys._look_up
    monkeypatch.setattr(column_keys, "_look_up", noted)
    part = (0, 1000, False)
    also = [(other_values, validity, part, other)]
    found = column_keys.values_in_build(values, validity, part, build, also)
    kept, wanted = torch.isin(other_values, torch.tensor(list(others))), torch.isin(values, keys)
    if validity is not None:
        kept, wanted = kept & validity, wanted & validity
    assert torch.equal(found & kept, wanted & kept) and not bool((found & ~wanted).any())
    assert looked_up == [int(kept.sum()) if is_asked else 5000]


@pytest.mark.parametrize(("dtype", "minimum"), [(torch.int8, 100), (torch.int8, -300), (torch.int16, 32_700)])
def test_ends_beyond_the_type_of_the_column(dtype: torch.dtype, minimum: int) -> None:
    limits = torch.iinfo(dtype)
    low, high = max(minimum, limits.min), min(minimum + 499, limits.max)
    values = torch.arange(low, high + 1).to(dtype)
    build = build_membership(torch.arange(500), 500)
    assert bool(column_keys.values_in_build(values, None, (minimum, 500, False), build).all())
    keys = torch.tensor([0, 1, 250, 499])
    wanted = torch.isin(values.to(torch.int64) - minimum, keys)
    build = build_membership(keys, 500)
    assert torch.equal(column_keys.values_in_build(values, None, (minimum, 500, False), build), wanted)


@pytest.mark.parametrize(
    ("dtype", "most"), [(torch.int8, 9), (torch.int16, 8), (torch.int32, 5), (torch.int64, 3)]
)
def test_few_comparisons_take_the_place_of_look_ups(dtype: torch.dtype, most: int) -> None:
    values = torch.arange(100).to(dtype).numpy()
    for keys, are_compared in ((range(0, 2 * most, 2), True), (range(0, 2 * most + 2, 2), False)):
        build = build_membership(torch.tensor(list(keys)), 65)
        found = column_keys._ranges_of_keys(build, values)
        assert found == ([(key, key + 1) for key in keys] if are_compared else None)
    pairs = build_membership(torch.tensor([0, 1, 10, 11]), 65)
    assert column_keys._ranges_of_keys(pairs, values) == ([(0, 2), (10, 12)] if most >= 4 else None)
    assert column_keys._ranges_of_keys(build_membership(torch.tensor([0, 64]), 65), values[:64]) is None


_random = np.random.default_rng(5)
_TABLES = {
    "sales": pa.table(
        {
            "day": pa.array(_random.integers(0, 500, 3000), mask=_random.random(3000) < 0.1),
            "item": _random.integers(0, 40, 3000),
            "v": _random.integers(-99, 99, 3000),
        }
    ),
    "days": pa.table({"day": range(-30, 600), "month": [day // 30 for day in range(-30, 600)]}),
    "orders": pa.table(
        {"day": _random.integers(0, 500, 9000), "part": _random.integers(0, 2000, 9000), "v": range(9000)}
    ),
    "parts": pa.table({"part": range(2000), "kind": [part % 97 for part in range(2000)]}),
    "items": pa.table({"item": range(40), "kind": [item % 7 for item in range(40)]}),
}


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize("months", ["= 3", "IN (3, 4)", "IN (3, 5)", "= 99", "< 0", ">= 0"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*), sum(v), min(s.day) FROM sales s JOIN days d ON s.day = d.day WHERE month {}",
        "SELECT s.day, month, v FROM sales s JOIN days d ON s.day = d.day WHERE month {}",
        "SELECT kind, sum(v) FROM sales s JOIN days d USING (day) JOIN items i USING (item) WHERE month {} AND kind < 3 GROUP BY 1",
        "SELECT v FROM sales WHERE day IN (SELECT day FROM days WHERE month {})",
        "SELECT v FROM sales s ANTI JOIN (FROM days WHERE month {}) d ON s.day = d.day",
        "SELECT v FROM sales WHERE day NOT IN (SELECT day FROM days WHERE month {})",
    ],
)
def test_joins(query: str, months: str, backend: str) -> None:
    assert_same_rows(_TABLES, query.format(months) + " ORDER BY ALL", backend=backend)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT v, month FROM orders JOIN parts USING (part) JOIN days USING (day) WHERE month {} AND kind = 3",
        "SELECT v FROM orders SEMI JOIN (FROM parts WHERE kind = 3) p USING (part) JOIN days USING (day) WHERE month {}",
        "SELECT kind, count(*) FROM orders JOIN parts USING (part) JOIN days USING (day) WHERE month {} AND kind IN (3, 96) GROUP BY 1",
        "SELECT v, kind IS NULL FROM orders LEFT JOIN (FROM parts WHERE kind = 3) USING (part) JOIN days USING (day) WHERE month {}",
        "SELECT v FROM orders ANTI JOIN (FROM parts WHERE kind = 3) p USING (part) JOIN days USING (day) WHERE month {}",
        "SELECT v, n FROM (SELECT *, row_number() OVER (ORDER BY v) AS n FROM orders JOIN parts USING (part) WHERE kind = 3) JOIN days USING (day) WHERE month {}",
    ],
)
@pytest.mark.parametrize("months", ["= 3", "IN (3, 5)", "< 0", ">= 0"])
def test_joins_of_which_a_later_one_is_asked_first(query: str, months: str) -> None:
    assert_same_rows(_TABLES, query.format(months) + " ORDER BY ALL")


def test_the_first_look_up_knows_the_later_ones() -> None:
    with tqp.connect(threads=1) as connection:
        for name, table in _TABLES.items():
            connection.register(name, table)
        code = connection.compile(
            "SELECT sum(v) FROM orders JOIN parts USING (part) JOIN days USING (day) WHERE kind = 3 AND month = 3"
        ).code
    assert re.search(r"found = values_in_build\(part, None, \(0, 2000, False\), \w+, \[\(day, ", code)
