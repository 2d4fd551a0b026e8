"""Short strings that are read as words, in Arrow's view layout and in those with offsets: the same columns from each."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest
import torch

from tqp.data.encoding.columns import encode_column
from tqp.operators.strings.layout import to_list

CPU = torch.device("cpu")
TEXT = [pa.string_view(), pa.string(), pa.large_string()]
LAYOUTS = [*TEXT, pa.binary_view(), pa.binary(), pa.large_binary()]
SHORT = ["AIR", "MAIL", "REG AIR", "", "exactly 12 b", "nul\0", "nul\0\0", "é"]
#: Of one length and beginning, and different in one byte somewhere between.
LONG = [
    "same" + "".join("x" if at == place else "-" for at in range(size - 4))
    for size in (13, 20, 21, 28, 60)
    for place in range(0, size - 4, 3)
]


def decoded(column: object) -> list[bytes]:
    assert column.values is not None and column.pool_is_dictionary  # type: ignore[attr-defined]
    entries = to_list(column.pool)  # type: ignore[attr-defined]
    assert entries == sorted(set(entries))
    return [entries[code] for code in column.values.tolist()]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "rare", [[], ["RARE"], [f"rare {i}" for i in range(40)], ["longer than twelve bytes"]], ids=len
)
@pytest.mark.parametrize("with_nulls", [False, True])
@pytest.mark.parametrize(
    "common",
    [
        SHORT,
        SHORT + LONG,
        LONG,
        ["x" * 61, "y"],
        ["A", "N", "R"],
        ["seven77", "seven78"],
        [""],
        ["exactly 12 b", "different 12"],
        ["eight888", ""],
    ],
    ids=lambda values: values[0][:12] + str(len(values)),
)
def test_all_layouts_give_the_same_column(common: list[str], rare: list[str], with_nulls: bool) -> None:
    chance = random.Random(0)
    values: list[str | None] = [chance.choice(common) for _ in range(80_000)]
    for position, value in enumerate(rare * 2):  # hardly in a sample
        values[position * 701 + 3] = value
    if with_nulls:
        values[::7] = [None] * len(values[::7])
    whole = pa.array(values, pa.string())
    chunks = [whole.slice(0, 40_001), whole.slice(40_001)]
    expected = encode_column("s", pa.chunked_array(chunks), CPU)
    for layout in LAYOUTS:
        cut = pa.concat_arrays([pa.array(["cut off"], pa.string()), whole])
        sliced = (cut.cast(layout) if layout in TEXT else cut.cast(pa.binary()).cast(layout)).slice(1)
        column = encode_column("s", pa.chunked_array([sliced.slice(0, 40_001), sliced.slice(40_001)]), CPU)
        keep = [value is not None for value in values]
        found = [value for value, valid in zip(decoded(column), keep, strict=True) if valid]
        assert found == [value.encode() for value in values if value is not None]
        assert (column.validity is None) == (not with_nulls)
        if column.validity is not None:
            assert column.validity.tolist() == keep
        assert column.facts.dictionary_size == expected.facts.dictionary_size


def as_views(values: list[str | None], num_buffers: int) -> pa.Array:
    """A string_view array whose long strings lie in several buffers, one after the other."""
    parts = [
        pa.array(values[number::num_buffers], pa.string()).cast(pa.string_view())
        for number in range(num_buffers)
    ]
    chunks = pa.chunked_array(parts)
    buffers: list[pa.Buffer] = []
    views = []
    for part in chunks.chunks:
        part_views = np.frombuffer(part.buffers()[1], np.int32).reshape(-1, 4).copy()
        part_views[part_views[:, 0] > 12, 2] += len(buffers)
        views.append(part_views)
        buffers.extend(part.buffers()[2:])
    joined = np.concatenate(views)
    validity = np.concatenate([np.array(part.is_valid()) for part in chunks.chunks])
    bits = pa.py_buffer(np.packbits(validity, bitorder="little"))
    return pa.Array.from_buffers(pa.string_view(), len(joined), [bits, pa.py_buffer(joined), *buffers])


def shuffled(array: pa.Array) -> pa.Array:
    order = np.random.default_rng(0).permutation(len(array))
    views = np.frombuffer(array.buffers()[1], np.int64).reshape(-1, 2)[order]
    bits = np.packbits(np.array(array.is_valid())[order], bitorder="little")
    buffers = [pa.py_buffer(bits), pa.py_buffer(np.ascontiguousarray(views)), *array.buffers()[2:]]
    return pa.Array.from_buffers(array.type, len(array), buffers)


@pytest.mark.parametrize("kind", ["long", "long, empty or NULL", "some short", "all short"])
@pytest.mark.parametrize("num_buffers", [1, 7])
@pytest.mark.parametrize("in_order", [True, False])
def test_views_of_unlike_strings(kind: str, num_buffers: int, in_order: bool) -> None:
    values: list[str | None] = [f"number {i} of a lot of strings" for i in range(80_000)]
    if kind == "long, empty or NULL":
        values[::5] = [""] * len(values[::5])
        values[::7] = [None] * len(values[::7])
    elif kind == "some short":
        values[::9] = ["short"] * len(values[::9])
    elif kind == "all short":
        values = [f"{i}" for i in range(80_000)]
    array = as_views(values, num_buffers)
    if not in_order:
        array = shuffled(array)
    column = encode_column("s", pa.chunked_array([array.slice(0, 40_001), array.slice(40_001)]), CPU)
    assert column.values is None and column.pool is not None
    expected = array.cast(pa.string()).to_pylist()
    assert to_list(column.pool) == [(value or "").encode() for value in expected]
    if column.validity is None:
        assert None not in expected
    else:
        assert column.validity.tolist() == [value is not None for value in expected]


@pytest.mark.parametrize("num_buffers", [1, 7])
@pytest.mark.parametrize("in_order", [True, False])
def test_codes_of_strings_anywhere_in_buffers(num_buffers: int, in_order: bool) -> None:
    chance = random.Random(1)
    values: list[str | None] = [chance.choice([*LONG, *SHORT, None]) for _ in range(80_000)]
    array = as_views(values, num_buffers)
    if not in_order:
        array = shuffled(array)
    column = encode_column("s", pa.chunked_array([array.slice(0, 40_001), array.slice(40_001)]), CPU)
    expected = array.cast(pa.string()).to_pylist()
    assert column.validity is not None
    assert column.validity.tolist() == [value is not None for value in expected]
    pairs = zip(decoded(column), expected, strict=True)
    assert all(value is None or found == value.encode() for found, value in pairs)


def test_no_value_is_mistaken_for_another() -> None:
    """Strings in the sample, and others that differ from those in a byte that no hash looks at."""
    base = "twenty-nine bytes of this one"
    others = [base[:at] + "#" + base[at + 1 :] for at in range(4, len(base))]
    values = [base] * 100_000 + others + ["short"] * 100
    column = encode_column("s", pa.array(values, pa.string()).cast(pa.string_view()), CPU)
    assert decoded(column) == [value.encode() for value in values]
