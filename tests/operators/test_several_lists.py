"""Kernels of several lists against Python's own lists, on random ones."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest
import torch

from tqp.core.datatypes import BIGINT, INTEGER, DataType, list_of, row_of
from tqp.core.errors import ExecutionError, UnsupportedError
from tqp.data.column import column_of
from tqp.data.encoding.columns import encode_column
from tqp.data.nested import Lists, take
from tqp.data.results.to_python import python_values
from tqp.operators.nested import arrays, several
from tqp.operators.nested.lists import Pair

_ROWS = 60
_LIST = list_of(INTEGER)
_Items = list[list[int | None] | None]


def _random_lists(seed: int, nulls: bool = True) -> _Items:
    random = Random(seed)

    def element() -> int | None:
        return None if nulls and random.random() < 0.2 else random.randrange(5)

    return [
        None if nulls and random.random() < 0.15 else [element() for _ in range(random.randrange(6))]
        for _ in range(_ROWS)
    ]


def _pair(items: list[Any], arrow: pa.DataType | None = None) -> Pair:
    """Lists in another order of their elements than of their rows."""
    order = torch.randperm(len(items))
    shuffled = [items[place] for place in order.tolist()]
    column = encode_column("x", pa.array(shuffled, arrow or pa.list_(pa.int32())), torch.device("cpu"))
    assert column.nested is not None
    back = torch.argsort(order)
    return take(column.nested, back), None if column.validity is None else column.validity[back]


def _lists(pair: Pair) -> Lists:
    assert isinstance(pair[0], Lists)
    return pair[0]


def _python(data_type: DataType, pair: tuple[Any, torch.Tensor | None]) -> list[Any]:
    return python_values(column_of(data_type, _ROWS, *pair))


def test_zip() -> None:
    left, right = _random_lists(1), _random_lists(2)
    stops = [Random(3 + row).random() < 0.5 for row in range(_ROWS)]
    expected = []
    for one, other, stop in zip(left, right, stops, strict=True):
        a, b = one or [], other or []
        length = (min if stop else max)(len(a), len(b))
        padded = [[*each, *[None] * (length - len(each))][:length] for each in (a, b)]
        expected.append(list(zip(*padded, strict=True)))
    found = several.list_zip(_pair(left), _pair(right), (torch.tensor(stops), None), truncates=True)
    assert _python(list_of(row_of((INTEGER, INTEGER))), found) == expected


def test_select_and_where() -> None:
    lists, places = _random_lists(4), _random_lists(5, nulls=False)
    values, validity = _pair(lists)
    found = several.list_select(_lists((values, validity)), _lists(_pair(places)), validity)
    expected = [
        None
        if row is None
        else [
            row[place - 1] if 0 < place <= len(row) else None for place in wanted or () if place is not None
        ]
        for row, wanted in zip(lists, places, strict=True)
    ]
    assert _python(_LIST, (found, validity)) == expected
    masks = [[bool(each and each % 2) for each in row or ()] for row in places]
    kept = several.list_where(
        _lists((values, validity)), _lists(_pair(masks, pa.list_(pa.bool_()))), validity
    )
    expected = [
        None
        if row is None
        else [row[at] if at < len(row) else None for at, is_kept in enumerate(mask) if is_kept]
        for row, mask in zip(lists, masks, strict=True)
    ]
    assert _python(_LIST, (kept, validity)) == expected
    with pytest.raises(ExecutionError, match="NULL"):
        several.list_select(_lists(_pair([[1]])), _lists(_pair([[None]])))


def test_resize_and_repeat() -> None:
    lists, random = _random_lists(6), Random(7)
    sizes = [random.randrange(8) for _ in range(_ROWS)]
    filling = torch.arange(_ROWS)
    found = several.list_resize(
        (_LIST, BIGINT, INTEGER), _pair(lists), (torch.tensor(sizes), None), (filling, None)
    )
    assert _python(_LIST, found) == [
        None if row is None else [*row, *[place] * size][:size]
        for place, (row, size) in enumerate(zip(lists, sizes, strict=True))
    ]
    values, validity = _pair(lists)
    repeated = several.list_repeat(_lists((values, validity)), torch.tensor(sizes) - 2)
    assert _python(_LIST, (repeated, validity)) == [
        None if row is None else row * (size - 2) for row, size in zip(lists, sizes, strict=True)
    ]


def test_sets() -> None:
    left, right = _random_lists(8), _random_lists(9)
    pairs = _pair(left), _pair(right)
    shared: list[Any] = []
    has_any: list[Any] = []
    has_all: list[Any] = []
    for one, other in zip(left, right, strict=True):
        a, b = ([each for each in row or () if each is not None] for row in (one, other))
        walked = one if one and len(one) > len(other or ()) else other
        common = [each for each in dict.fromkeys(walked or ()) if each in a and each in b]
        shared.append(None if one is None else common)
        is_null = one is None or other is None
        has_any.append(None if is_null else bool(common))
        has_all.append(None if is_null else set(b) <= set(a))
    assert _python(_LIST, several.list_intersect(*pairs, element=INTEGER)) == shared
    for tests_all, expected in ((False, has_any), (True, has_all)):
        found, validity = several.list_has(*pairs, element=INTEGER, has_all=tests_all)
        assert validity is not None
        shown = zip(found.tolist(), validity.tolist(), strict=True)
        assert [value if is_there else None for value, is_there in shown] == expected


def test_arrays_are_lists_of_one_length() -> None:
    rows: _Items = [[1, 2], None, [3, None], [5, 6]]
    values, validity = _pair(rows)
    lists = _lists((values, validity))
    assert arrays.checked_arrays(lists, 2, validity) is lists
    with pytest.raises(ExecutionError, match="another length"):
        arrays.checked_arrays(_lists(_pair([[1], [2, 3]])), 2)
    assert arrays.have_length(_lists(_pair([[1], [2, 3]])), 2).tolist() == [False, True]
    vectors = torch.tensor([[1.5, -2.0], [0.0, 4.0]])
    made = arrays.lists_of_vectors(vectors)
    assert torch.equal(arrays.vectors_of_lists(made, 2), vectors)
    some = arrays.vectors_of_lists(made, 2, torch.tensor([False, True]))
    assert some.tolist() == [[0.0, 0.0], [0.0, 4.0]]
    with pytest.raises(UnsupportedError, match="NULL"):
        arrays.vectors_of_lists(lists, 2, validity)
