"""avg of integers and decimals rounds as DuckDB's does, to the last bit."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from random import Random

import pyarrow as pa
import pytest
import torch

import tqp
from tests.oracle import duckdb_database
from tqp.operators.groups import averages
from tqp.operators.numbers import wide

EXTENDED_FLOATS = averages._HAS_EXTENDED_FLOATS


@pytest.mark.parametrize("by_pairs", [False, True])
@pytest.mark.parametrize("scale", [0, 2, 6, 7, 30])
@pytest.mark.parametrize("digits", [3, 15, 18, 30, 37])
def test_averages_are_those_of_duckdb(
    scale: int, digits: int, by_pairs: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(averages, "_HAS_EXTENDED_FLOATS", EXTENDED_FLOATS and not by_pairs)
    random = Random(f"{scale} {digits}")
    groups = [
        [random.randint(-(10**digits), 10**digits) for _ in range(random.randint(1, 5))] for _ in range(400)
    ]
    totals = [sum(group) for group in groups]
    counts = torch.tensor([len(group) for group in groups])
    table = pa.table(
        {
            "g": [number for number, group in enumerate(groups) for _ in group],
            "v": pa.array(
                [
                    Decimal((int(v < 0), tuple(map(int, str(abs(v)))), -scale))
                    for group in groups
                    for v in group
                ],
                pa.decimal128(38, scale),
            ),
        }
    )
    power = Fraction(10**scale if scale <= 6 else float(10**scale))
    expected = [
        float(_extended(_extended(Fraction(total)) / _extended(len(group) * power)))
        for total, group in zip(totals, groups, strict=True)
    ]
    if EXTENDED_FLOATS:  # DuckDB's own answers depend on the machine
        with duckdb_database() as connection:
            connection.register("t", table)
            answers = connection.sql("SELECT avg(v) FROM t GROUP BY g ORDER BY g").fetchall()
            assert [row[0] for row in answers] == expected
    assert averages.average(wide.from_ints(totals), counts, scale).tolist() == expected
    if digits < 18:
        assert averages.average(torch.tensor(totals), counts, scale).tolist() == expected


def _extended(value: Fraction) -> Fraction:
    """The nearest number of 64 bits, ties to even."""
    if value == 0:
        return value
    exponent = abs(value.numerator).bit_length() - value.denominator.bit_length() - 64
    unit = Fraction(2) ** exponent
    while abs(value / unit) >= 2**64:
        unit *= 2
    return round(value / unit) * unit


@pytest.mark.skipif(not EXTENDED_FLOATS, reason="compares with the `long double` of x86")
@pytest.mark.parametrize("scale", [0, 3, 9, 22])
@pytest.mark.parametrize("is_wide", [False, True])
def test_pairs_of_floats_round_as_long_doubles_do(scale: int, is_wide: bool) -> None:
    random = Random(scale)
    totals, counts = [0, 1, -1, 2**63 - 1, -(2**63)], [1, 3, 3, 7, 2**20]
    if is_wide:
        totals += [2**64, -(2**64), 2**127 - 1, -(2**127), 2**104 + 1]
        counts += [3, 5, 7, 1, 2**11]
    for _ in range(20_000):
        # Many quotients lie at, or one unit beside, the middle between two floats of 53 or 64 bits.
        bits = random.randint(2, 126 if is_wide else 62)
        total = random.getrandbits(bits) >> (cut := random.randint(0, bits)) << cut
        count = random.choice(
            [1 << random.randint(0, 12), random.randint(1, 1000), random.getrandbits(40) + 1]
        )
        totals.append(
            min(total * random.choice([1, count]), 2**62) * random.choice([1, -1]) + random.randint(-1, 1)
        )
        counts.append(count)
    sums = wide.from_ints(totals) if is_wide else torch.tensor(totals)
    numbers = torch.tensor(counts)
    expected = averages.average(sums, numbers, scale)
    assert torch.equal(averages._by_pairs(sums, numbers, scale), expected)


def test_the_average_of_nothing_is_no_number() -> None:
    assert averages._by_pairs(torch.tensor([0]), torch.tensor([0]), 2).isnan().all()
    assert averages.average(torch.tensor([0]), torch.tensor([0]), 2).isnan().all()
    assert averages.average(
        torch.zeros(0, 2, dtype=torch.int64), torch.zeros(0, dtype=torch.int64), 2
    ).shape == (0,)


@pytest.mark.parametrize(
    "outputs",
    [
        "avg(v)", "avg(v), sum(v)", "avg(v), count(v)", "avg(v), count(*)", "avg(v) FILTER (g > 3)", "avg(DISTINCT v)",
        "avg(v), sum(v) FILTER (g > 3)", "avg(v), avg(w), count(w)",
    ],
)  # fmt: skip
def test_averages_beside_other_aggregates(outputs: str) -> None:
    """What else is computed decides whether DuckDB rounds the sum before it divides."""
    random = Random(7)
    with tqp.connect(threads=2) as connection, duckdb_database() as oracle:
        for scale, digits, share in ((0, 18, 0.0), (5, 7, 0.0), (5, 7, 0.2), (3, 18, 0.1), (10, 30, 0.0)):
            numbers = [
                None
                if random.random() < share
                else Decimal(random.randint(-(10**digits), 10**digits)).scaleb(-scale)
                for _ in range(300)
            ]
            data_type = pa.decimal128(38 if digits > 18 else 18, scale)
            column: pa.Array = pa.array(numbers, data_type)
            column = column.cast(pa.int64()) if scale == 0 else column
            table = pa.table({"g": [row % 60 for row in range(300)], "v": column, "w": column})
            connection.register("t", table)
            oracle.register("source", table)
            oracle.execute("CREATE OR REPLACE TABLE t AS FROM source")  # which knows of its NULLs
            for query in (
                f"SELECT g, {outputs} FROM t GROUP BY g ORDER BY g",
                f"SELECT {outputs} FROM t WHERE g < 7",
                f"SELECT {outputs} FROM t WHERE g < 0",
            ):
                got, want = connection.sql(query).fetchall(), oracle.sql(query).fetchall()
                assert got == want, (query, data_type)


@pytest.mark.parametrize("digits", [1, 12, 18])
def test_averages_of_instants_are_exact(digits: int) -> None:
    """Against Python's integers: to the nearest above zero, towards zero below, halves towards zero."""
    random = Random(digits)
    cases = []
    for _ in range(2000):
        count = random.choice((1, 2, 3, 7, 10**6, random.randint(1, 10**7)))
        cases.append(
            (random.randint(-(10**digits), 10**digits) * count + random.randint(1 - count, count - 1), count)
        )
    cases += [((2**63 - 1) * 5, 5), (-(2**63) * 5, 5), (0, 0)]
    expected = []
    for total, count in cases:
        whole = abs(total) // max(count, 1) * (1 if total > 0 else -1)
        expected.append(whole + (2 * (total - whole * count) > count))
    counts = torch.tensor([count for _, count in cases])
    found = averages.average_instant(wide.from_ints([total for total, _ in cases]), counts)
    assert found.tolist() == expected
    narrow = [place for place, (total, _) in enumerate(cases) if abs(total) < 2**63]
    found = averages.average_instant(torch.tensor([cases[place][0] for place in narrow]), counts[narrow])
    assert found.tolist() == [expected[place] for place in narrow]


@pytest.mark.parametrize("scale", [0, 1, 2, 4, 5, 7])
def test_groups_of_any_size_get_the_bits_of_a_long_double(scale: int) -> None:
    """Quotients next to the middle of two floats are where two roundings and one may differ."""
    random = Random(scale)
    totals, counts = [], []
    for _ in range(3000):
        count = random.choice(
            [random.randint(1, 100), random.randint(2000, 2100), 2 ** random.randint(0, 12), 0]
        )
        middle = Fraction(2 * random.randint(2**52, 2**53) + 1, 2 ** random.randint(1, 54))
        total = int(middle * count * 10**scale) + random.randint(-1, 1)
        totals.append(
            random.choice([-1, 1]) * total if abs(total) < 2**62 else random.choice([2**53, -(2**63)])
        )
        counts.append(count)
    found = averages.average(torch.tensor(totals), torch.tensor(counts), scale)
    pairs = averages._by_pairs(torch.tensor(totals), torch.tensor(counts), scale)
    is_counted = torch.tensor(counts) > 0
    assert torch.equal(found[is_counted], pairs[is_counted])
