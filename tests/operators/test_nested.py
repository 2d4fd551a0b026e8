"""Kernels of lists and structs against Python's own lists, on random ones."""

from __future__ import annotations

from random import Random
from typing import Any

import pyarrow as pa
import pytest
import torch

from tqp.core.datatypes import INTEGER, VARCHAR, DataType, list_of, struct
from tqp.core.errors import ExecutionError
from tqp.data.column import column_of
from tqp.data.encoding.columns import encode_column
from tqp.data.nested import Lists, Values, take
from tqp.data.results.to_python import python_values
from tqp.operators.nested import functions, layout, lists, maps
from tqp.operators.nested.order_keys import leading_numbers, order_key
from tqp.operators.strings import layout as string_layout

_STRUCT = struct({"a": INTEGER, "b": list_of(VARCHAR)})


def _random(random: Random, data_type: DataType, depth: int = 0) -> Any:
    if depth and random.random() < 0.2:
        return None
    if data_type == INTEGER:
        return random.choice((0, 1, -1, 7, 2**31 - 1, -(2**31)))
    if data_type == VARCHAR:
        return random.choice(("", "a", "ab", "é", "😀", "\0", "b"))
    if data_type.names:
        return {
            name: _random(random, each, 1)
            for name, each in zip(data_type.names, data_type.children, strict=True)
        }
    return [_random(random, data_type.element, 1) for _ in range(random.randrange(4))]


def _values(items: list[Any], arrow: pa.DataType) -> Values:
    column = encode_column("x", pa.array(items, arrow), torch.device("cpu"))
    assert column.nested is not None
    return column.nested


def _python(data_type: DataType, values: Values, count: int) -> list[Any]:
    return python_values(column_of(data_type, count, values, None))


_ARROW = {
    list_of(INTEGER): pa.list_(pa.int32()),
    list_of(VARCHAR): pa.list_(pa.string()),
    list_of(list_of(INTEGER)): pa.list_(pa.list_(pa.int32())),
    list_of(_STRUCT): pa.list_(pa.struct({"a": pa.int32(), "b": pa.list_(pa.string())})),
    _STRUCT: pa.struct({"a": pa.int32(), "b": pa.list_(pa.string())}),
}


def _compare(left: Any, right: Any) -> int:
    """NULL is equal to NULL and greater than all else; lists and structs element by element, shorter first."""
    if left is None or right is None:
        return (left is None) - (right is None)
    if isinstance(left, dict):
        left, right = list(left.values()), list(right.values())
    if isinstance(left, list):
        found = next((order for pair in zip(left, right, strict=False) if (order := _compare(*pair))), 0)
        return found or (len(left) > len(right)) - (len(left) < len(right))
    if isinstance(left, str):
        left, right = left.encode(), right.encode()
    return (left > right) - (left < right)


@pytest.mark.parametrize("data_type", _ARROW, ids=str)
def test_order_keys_compare_as_the_values(data_type: DataType) -> None:
    random = Random(str(data_type))
    items = [_random(random, data_type) for _ in range(60)]
    keys = string_layout.to_list(order_key(_values(items, _ARROW[data_type]), data_type))  # type: ignore[arg-type]
    for left, of_left in zip(items, keys, strict=True):
        for right, of_right in zip(items, keys, strict=True):
            assert (of_left > of_right) - (of_left < of_right) == _compare(left, right), (left, right)


@pytest.mark.parametrize("data_type", _ARROW, ids=str)
def test_leading_numbers_are_in_the_order_of_the_values(data_type: DataType) -> None:
    random = Random(f"leading {data_type}")
    items = [_random(random, data_type) for _ in range(60)]
    values = _values(items, _ARROW[data_type])
    numbers = leading_numbers(values, data_type).tolist()
    keys = string_layout.to_list(order_key(values, data_type))  # type: ignore[arg-type]
    by_key = [number for _, number in sorted(zip(keys, numbers, strict=True))]
    assert by_key == sorted(numbers)
    assert len(set(numbers)) > 1


@pytest.mark.parametrize("data_type", _ARROW, ids=str)
def test_rows_are_moved_joined_and_chosen(data_type: DataType) -> None:
    random = Random(f"rows {data_type}")
    parts = [[_random(random, data_type) for _ in range(size)] for size in (5, 1, 7)]
    values = [_values(items, _ARROW[data_type]) for items in parts]
    rows = torch.tensor([4, 0, 0, 2])
    assert _python(data_type, take(values[0], rows), 4) == [parts[0][row] for row in rows.tolist()]
    assert _python(data_type, layout.concatenate(values), 13) == [item for part in parts for item in part]
    padded = layout.take_padded_values(values[0], torch.tensor([-1, 3]))
    assert _python(data_type, padded, 2)[1] == parts[0][3]
    chosen = layout.choose([torch.tensor([True, False] * 2 + [True])], [values[0]], values[1])
    expected = [item if row % 2 == 0 else parts[1][0] for row, item in enumerate(parts[0])]
    assert _python(data_type, chosen, 5) == expected


def _integers(random: Random, count: int) -> list[list[int | None]]:
    return [[random.choice((None, 0, 1, 2, 3)) for _ in range(random.randrange(6))] for _ in range(count)]


def test_functions_of_lists() -> None:
    random = Random("functions")
    items, others = _integers(random, 50), _integers(random, 50)
    arrow, data_type = pa.list_(pa.int32()), list_of(INTEGER)
    values, more = _values(items, arrow), _values(others, arrow)
    assert isinstance(values, Lists)
    for descending in (False, True):
        for how in ((), ("NULLS FIRST",)):
            made = functions.list_sort(values, *how, element=INTEGER, descending=descending)
            for item, found in zip(items, _python(data_type, made, 50), strict=True):
                there = sorted((each for each in item if each is not None), reverse=descending)
                nulls = [None] * item.count(None)
                assert found == (nulls + there if how else there + nulls)
    different = _python(data_type, functions.list_distinct(values, element=INTEGER), 50)
    assert [set(each) for each in different] == [set(item) - {None} for item in items]
    assert functions.list_unique(values, element=INTEGER).tolist() == [len(each) for each in different]
    joined = functions.list_concat((values, None), (more, None))[0]
    assert _python(data_type, joined, 50) == [a + b for a, b in zip(items, others, strict=True)]
    nested = _values([[a, b] for a, b in zip(items, others, strict=True)], pa.list_(arrow))
    assert isinstance(nested, Lists)
    assert _python(data_type, functions.flatten(nested), 50) == _python(data_type, joined, 50)


def test_slices() -> None:
    random = Random("slices")
    items = _integers(random, 30)
    values = _values(items, pa.list_(pa.int32()))
    assert isinstance(values, Lists)
    for first in range(-7, 8):
        for last in range(-7, 8):
            made = lists.list_slice(values, torch.tensor([first]), torch.tensor([last]))
            for item, found in zip(items, _python(list_of(INTEGER), made, 30), strict=True):
                begin = max(len(item) + first + 1, 1) if first < 0 else max(first, 1)
                end = len(item) + last + 1 if last < 0 else last
                assert found == item[begin - 1 : max(end, 0)]


def test_pieces_of_text() -> None:
    texts = ["a,b", "", ",", ",,x", "no", "é,😀,"]
    strings = string_layout.from_list(texts)
    for separator in (",", "😀", "zz", "aa"):
        made = functions.string_split(strings, separator)
        assert _python(list_of(VARCHAR), made, len(texts)) == [text.split(separator) for text in texts]


@pytest.mark.parametrize("separator", [" ", "ab", "é"])
def test_pieces_of_many_texts(separator: str) -> None:
    random = Random("pieces")
    parts = ["a", "b", " ", "ab", "é", "", "x"]
    texts = ["".join(random.choices(parts, k=random.randrange(6))) for _ in range(6000)]
    strings = string_layout.from_list(texts)
    kept = torch.tensor([row for row in range(6000) if row % 5])  # with bytes of no row in between
    for rows in (None, kept):
        chosen = strings if rows is None else string_layout.take(strings, rows)
        made = functions.string_split(chosen, separator)
        expected = [text.split(separator) for row, text in enumerate(texts) if rows is None or row % 5]
        assert _python(list_of(VARCHAR), made, len(expected)) == expected


def test_ranges() -> None:
    for includes_end in (False, True):
        cases = [(a, b, step) for a in (-2, 0, 3) for b in (-3, 0, 4) for step in (-2, -1, 1, 3)]
        ends = [torch.tensor(each) for each in zip(*cases, strict=True)]
        made = functions.integer_range(*ends, includes_end=includes_end)
        expected = [
            list(range(a, b + (step > 0) - (step < 0) if includes_end else b, step)) for a, b, step in cases
        ]
        assert _python(list_of(INTEGER), made, len(cases)) == expected


def _lists_of(items: list[Any], element: DataType) -> Lists:
    values = _values(items, _ARROW[list_of(element)])
    assert isinstance(values, Lists)
    return values


@pytest.mark.parametrize("key_type", [INTEGER, VARCHAR, list_of(INTEGER)])
def test_maps_of_lists_and_of_maps_against_dicts(key_type: DataType) -> None:
    random = Random(11)

    def random_keys() -> list[Any]:
        keys = [_random(random, key_type) for _ in range(random.randrange(6))]
        return list({repr(key): key for key in keys}.values())

    def random_values(keys: list[list[Any]]) -> list[list[Any]]:
        return [[_random(random, INTEGER, 1) for _ in each] for each in keys]

    def parts(made: Lists) -> tuple[list[Any], list[Any]]:
        found = (maps.map_part(made, place=place) for place in range(2))
        types = (list_of(key_type), list_of(INTEGER))
        keys, values = (_python(each, part, 40) for each, part in zip(types, found, strict=True))
        return keys, values

    made: list[tuple[Lists, torch.Tensor | None]] = []
    expected: list[dict[str, tuple[Any, Any]]] = [{} for _ in range(40)]
    for _ in range(3):
        keys = [random_keys() for _ in range(40)]
        values = random_values(keys)
        one = maps.map_of_lists(_lists_of(keys, key_type), _lists_of(values, INTEGER), key_type=key_type)
        assert parts(one) == (keys, values)
        made.append((one, None))
        for known, *row in zip(expected, keys, values, strict=True):
            known |= {repr(key): (key, value) for key, value in zip(*row, strict=True)}
    joined, validity = maps.map_concat(*made, key_type=key_type)
    assert validity is None
    entries = [list(known.values()) for known in expected]
    assert parts(joined) == tuple([[entry[place] for entry in row] for row in entries] for place in range(2))


def test_keys_are_looked_at_in_the_rows_that_count() -> None:
    keys, values = _lists_of([[1, 1], [2]], INTEGER), _lists_of([[10, 20], [30]], INTEGER)
    with pytest.raises(ExecutionError, match="twice"):
        maps.map_of_lists(keys, values, key_type=INTEGER)
    made = maps.map_of_lists(keys, values, torch.tensor([False, True]), key_type=INTEGER)
    assert made.lengths.tolist() == [0, 1]
    with pytest.raises(ExecutionError, match="different lengths"):
        maps.map_of_lists(keys, keys._replace(lengths=keys.lengths - 1), key_type=INTEGER)
    with pytest.raises(ExecutionError, match="NULL"):
        maps.map_of_lists(_lists_of([[None]], INTEGER), _lists_of([[1]], INTEGER), key_type=INTEGER)
