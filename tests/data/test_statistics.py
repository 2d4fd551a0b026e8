"""Facts that code generation relies on must be exact; estimates must be near."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch

from tqp.core.schema import ColumnEstimates, ColumnFacts, Statistics
from tqp.data.encoding.column_facts import estimate_distinct
from tqp.data.encoding.columns import encode_column


def statistics(values: object, arrow_type: pa.DataType | None = None) -> Statistics:
    column = encode_column("x", pa.array(values, arrow_type), torch.device("cpu"))
    return column.facts, column.estimates


def facts(values: object, arrow_type: pa.DataType | None = None) -> ColumnFacts:
    return statistics(values, arrow_type)[0]


def test_sorted_unique():
    assert statistics([1, 5, 9]) == (ColumnFacts(1, 9, is_unique=True, is_sorted=True), ColumnEstimates(3.0))
    frequent = ((5, 2 / 3),)
    assert statistics([1, 5, 5]) == (ColumnFacts(1, 5, is_sorted=True), ColumnEstimates(2.0, frequent))


def test_unsorted_unique_over_a_dense_range():
    assert statistics([5, 1, 9]) == (ColumnFacts(1, 9, is_unique=True), ColumnEstimates(3.0))
    assert statistics([5, 1, 5]) == (ColumnFacts(1, 5), ColumnEstimates(2.0, ((5, 2 / 3),)))


def test_nulls_do_not_count():
    assert statistics([5, None, 1, None]) == (ColumnFacts(1, 5, is_unique=True), ColumnEstimates(2.0))
    found, estimates = statistics([1, None, 5, 5])
    assert found == ColumnFacts(1, 5) and estimates.distinct_count == 2.0
    assert estimates.frequent == ((5, pytest.approx(0.5)),)
    assert not facts([None, 1, 2]).is_sorted


@pytest.mark.parametrize(
    "arrow_type", [pa.int64(), pa.string(), pa.float32(), pa.date32(), pa.bool_(), pa.null()]
)
def test_nothing_but_null(arrow_type: pa.DataType):
    assert facts([None, None], arrow_type).is_null
    assert not facts([None, 1]).is_null


def test_empty_and_all_null():
    none, estimates = ColumnFacts(is_unique=True, is_null=True), ColumnEstimates(0.0)
    assert statistics([], pa.int64()) == (replace(none, is_sorted=True), estimates)
    assert statistics([None, None], pa.int64()) == (none, estimates)


def test_a_descent_at_a_block_boundary_is_seen():
    values = np.arange(200_000)
    values[65_536] = 0
    found, estimates = statistics(values)
    assert not found.is_sorted and not found.is_unique and estimates.distinct_count == 199_999


def test_extremes():
    low, high = -(2**63), 2**63 - 1
    assert statistics([high, low]) == (ColumnFacts(low, high, is_unique=True), ColumnEstimates(2.0))
    assert statistics([0, 2**64 - 1], pa.uint64())[0].maximum == 2**64 - 1


@pytest.mark.parametrize("with_nulls", [False, True])
def test_unique_or_not_in_a_long_column(with_nulls):
    values = np.random.default_rng(0).permutation(100_000)
    mask = values < 10 if with_nulls else None
    num_valid = 99_990 if with_nulls else 100_000
    found, estimates = statistics(pa.array(values, mask=mask))
    assert found.is_unique and estimates.distinct_count == num_valid
    values[values == 50_000] = 50_001
    found, estimates = statistics(pa.array(values, mask=mask))
    assert not found.is_unique and estimates.distinct_count == num_valid - 1
    assert not facts(pa.array(values * 1000, mask=mask)).is_unique  # not known


@pytest.mark.parametrize("distinct", [50, 5_000, 1_000_000])
def test_distinct_estimates(distinct):
    values = np.random.default_rng(0).integers(0, distinct, 1_000_000)
    actual = len(np.unique(values))
    assert actual / 2 <= estimate_distinct(values, None) <= actual * 2


def test_strings():
    assert facts(["b", "a", "b", "a"] * 500).dictionary_size == 2
    ordered = facts(["a"] * 500 + ["b"] * 500)
    assert ordered.is_sorted and not ordered.is_unique
    assert facts([f"{i}" for i in range(3000)]).is_unique
    assert not facts([f"{i // 2}" for i in range(3000)]).is_unique
    assert not facts([f"{i}" for i in range(30_000)]).is_unique  # more than is looked at: not known


@pytest.mark.parametrize("with_nulls", [False, True])
@pytest.mark.parametrize("kind", ["dense", "sparse", "sorted", "day", "word", "text"])
def test_values_that_many_rows_hold(kind: str, with_nulls: bool):
    """A tenth of the rows holds 7, a twentieth 8, and each of the others a value of few rows."""
    random = np.random.default_rng(3)
    few = 1_000 if kind in ("dense", "word", "day") else 30_000
    numbers = np.where(np.arange(60_000) % 10 == 0, 7, random.integers(10, few, 60_000))
    numbers[np.arange(60_000) % 20 == 1] = 8
    if kind == "sorted":
        numbers.sort()
    values = {
        "sparse": numbers * 10**12,
        "day": numbers.astype("datetime64[D]"),
        "word": numbers.astype(str),
        "text": np.char.add("text ", numbers.astype(str)),
    }.get(kind, numbers)
    keys = {"sparse": (7 * 10**12, 8 * 10**12), "word": ("7", "8"), "text": ("text 7", "text 8")}.get(
        kind, (7, 8)
    )
    nulls = random.random(60_000) < 0.5 if with_nulls else None
    _, estimates = statistics(pa.array(values, mask=nulls))
    shares = (0.05, 0.025) if with_nulls else (0.1, 0.05)
    assert [key for key, _ in estimates.frequent] == list(keys)
    assert [share for _, share in estimates.frequent] == [pytest.approx(share, rel=0.15) for share in shares]


def test_values_are_not_frequent_that_are_as_many_as_others():
    for values in (
        np.arange(60_000) % 5,
        np.arange(60_000) % 5 * 10**12,
        (np.arange(60_000) % 5).astype(str),
    ):
        assert statistics(pa.array(values))[1].frequent == ()


def test_how_far_apart_the_values_of_near_rows_are() -> None:
    days = np.arange(400_000) // 1_000 * 3
    with_nulls = pa.array(days, mask=np.arange(400_000) % 7 == 0)
    mixed = np.random.default_rng(0).permutation(days)
    for values, low, high in ((days, 0.0, 0.01), (with_nulls, 0.0, 0.01), (mixed, 0.3, 0.36)):
        distance = statistics(values)[1].distance
        assert distance is not None and low <= distance <= high
    huge = statistics(np.array([-(2**63), 2**63 - 1] * 20_000))[1].distance
    assert huge is not None and 0.0 <= huge <= 1.0
    assert statistics(days[:20_000])[1].distance is None
    assert statistics(np.zeros(400_000, np.int64))[1].distance == 0.0
