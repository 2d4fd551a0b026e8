"""Arrow -> Column -> Arrow for every type, in every shape in which Arrow hands out columns."""

import datetime
from decimal import Decimal

import pyarrow as pa
import pytest
import torch

from tqp.core.errors import ExecutionError, UnsupportedError
from tqp.data.column import Column
from tqp.data.encoding import strings
from tqp.data.encoding.columns import encode_column
from tqp.data.results.to_arrow import column_to_arrow
from tqp.data.results.to_python import python_values

CPU = torch.device("cpu")
UTC = datetime.UTC
HUGE = Decimal("99999999999999999999999999999999999.999")
MINUS_HUGE = Decimal("-99999999999999999999999999999999999.999")  # unary minus would round to 28 digits


def encode(column: pa.Array | pa.ChunkedArray) -> Column:
    return encode_column("x", column, CPU)


#: (Arrow type in, values, Arrow type out, values out if they differ)
CASES = [
    (pa.null(), [None, None], pa.null(), None),
    (pa.bool_(), [True, False, True], pa.bool_(), None),
    (pa.int8(), [-128, 127, 0], pa.int8(), None),
    (pa.int16(), [-300, 300, 1], pa.int16(), None),
    (pa.int32(), [-(2**31), 2**31 - 1], pa.int32(), None),
    (pa.int64(), [-(2**63), 2**63 - 1, 5], pa.int64(), None),
    (pa.uint8(), [0, 255], pa.uint8(), None),
    (pa.uint16(), [0, 65535], pa.uint16(), None),
    (pa.uint32(), [0, 2**32 - 1], pa.uint32(), None),
    (pa.uint64(), [0, 2**64 - 1, 2**63], pa.uint64(), None),
    (pa.uint64(), [7, 8], pa.uint64(), None),
    (pa.float16(), [1.5, -2.0], pa.float32(), None),
    (pa.float32(), [1.5, float("inf"), -0.0], pa.float32(), None),
    (pa.float64(), [1e300, -1.5, 0.0], pa.float64(), None),
    (pa.decimal32(5, 2), [Decimal("1.25"), Decimal("-999.99")], pa.decimal128(5, 2), None),
    (pa.decimal64(12, 2), [Decimal("1.25"), Decimal("-9999999999.99")], pa.decimal128(12, 2), None),
    (pa.decimal128(15, 2), [Decimal("1.25"), Decimal("-0.01")], pa.decimal128(15, 2), None),
    (
        pa.decimal128(38, 3),
        [HUGE, MINUS_HUGE, Decimal("0.001"), Decimal("-0.001")],
        pa.decimal128(38, 3),
        None,
    ),
    (pa.decimal256(38, 3), [HUGE, MINUS_HUGE, Decimal("-0.001")], pa.decimal128(38, 3), None),
    (pa.decimal128(3, -2), [Decimal(12300), Decimal(-100)], pa.decimal128(5, 0), None),
    (pa.date32(), [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)], pa.date32(), None),
    (pa.date64(), [datetime.date(1969, 12, 31), datetime.date(2020, 2, 29)], pa.date32(), None),
    (pa.time32("s"), [datetime.time(1, 2, 3)], pa.time64("us"), None),
    (pa.time32("ms"), [datetime.time(1, 2, 3, 4000)], pa.time64("us"), None),
    (pa.time64("us"), [datetime.time(23, 59, 59, 999999)], pa.time64("us"), None),
    (pa.time64("ns"), [datetime.time(23, 59, 59, 999999)], pa.time64("us"), None),
    (
        pa.timestamp("s"),
        [datetime.datetime(1960, 1, 1), datetime.datetime(2020, 1, 1)],
        pa.timestamp("s"),
        None,
    ),
    (pa.timestamp("ms"), [datetime.datetime(1960, 1, 1, 1, 1, 1, 5000)], pa.timestamp("ms"), None),
    (
        pa.timestamp("us"),
        [datetime.datetime(1, 1, 1), datetime.datetime(9999, 12, 31)],
        pa.timestamp("us"),
        None,
    ),
    (
        pa.timestamp("ns"),
        [datetime.datetime(1960, 1, 1), datetime.datetime(2020, 1, 1)],
        pa.timestamp("ns"),
        None,
    ),
    (
        pa.timestamp("s", "Europe/Oslo"),
        [datetime.datetime(1960, 6, 1, tzinfo=UTC)],
        pa.timestamp("us", "UTC"),
        None,
    ),
    (
        pa.timestamp("ns", "UTC"),
        [datetime.datetime(1960, 6, 1, 1, tzinfo=UTC)],
        pa.timestamp("us", "UTC"),
        None,
    ),
    (pa.month_day_nano_interval(), [(1, -2, 3000), (-5, 6, -7000)], pa.month_day_nano_interval(), None),
    (
        pa.duration("s"),
        [datetime.timedelta(days=1, seconds=1)],
        pa.month_day_nano_interval(),
        [(0, 0, 86401 * 10**9)],
    ),
    (pa.duration("ns"), [datetime.timedelta(seconds=-1)], pa.month_day_nano_interval(), [(0, 0, -(10**9))]),
    (pa.string(), ["b", "", "ÆØÅ", "a string longer than twelve bytes", "日本"], pa.string(), None),
    (pa.large_string(), ["b", "", "a string longer than twelve bytes"], pa.string(), None),
    (pa.string_view(), ["b", "", "a string longer than twelve bytes"], pa.string(), None),
    (pa.binary(), [b"\x00\xff", b"", b"a"], pa.binary(), None),
    (pa.large_binary(), [b"\x00\xff", b""], pa.binary(), None),
    (pa.binary_view(), [b"\x00\xff", b"more than twelve bytes of it"], pa.binary(), None),
    (pa.binary(2), [b"ab", b"\x00\x00"], pa.binary(), None),
    (pa.dictionary(pa.int8(), pa.string()), ["b", "a", "b"], pa.string(), None),
    (pa.dictionary(pa.uint16(), pa.large_string()), ["b", "a", "b"], pa.string(), None),
    (pa.dictionary(pa.int32(), pa.int64()), [500, 2, 500], pa.int64(), None),
    (pa.list_(pa.float32(), 2), [[1.0, 2.0], [3.0, 4.0]], pa.list_(pa.float32(), 2), None),
    (pa.list_(pa.float16(), 1), [[1.0], [3.0]], pa.list_(pa.float32(), 1), None),
]


def shapes(arrow_type: pa.DataType, values: list) -> dict[str, pa.Array | pa.ChunkedArray]:
    """The same kind of column plain, with NULLs, sliced, chunked with empty chunks, all NULL, empty."""
    with_nulls = [None, *values, None, *values, None]
    array = pa.array(with_nulls, arrow_type)
    return {
        "plain": pa.array(values, arrow_type),
        "nulls": array,
        "sliced": pa.array([values[-1]] * 11 + with_nulls, arrow_type).slice(9),
        "sliced to no nulls": array.slice(1, len(values)),
        "chunked": pa.chunked_array(
            [array.slice(2), array.slice(0, 0), array, pa.array(values, arrow_type)], arrow_type
        ),
        "all null": pa.nulls(3, arrow_type),
        "empty": array.slice(0, 0),
        "no chunks": pa.chunked_array([], arrow_type),
        "repeated": pa.chunked_array(
            [pa.array(values * 600, arrow_type), pa.array(with_nulls * 300, arrow_type)]
        ),
    }


SHAPES = list(shapes(pa.int8(), [1]))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("arrow_in", "values", "arrow_out", "expected"), CASES, ids=[str(case[0]) for case in CASES]
)
def test_round_trip(arrow_in, values, arrow_out, expected, shape):
    column = shapes(arrow_in, values)[shape]
    encoded = encode(column)
    exported = column_to_arrow("x", encoded)
    exported.validate(full=True)
    translation = dict(zip(values, expected, strict=True)) if expected else None
    want = [
        translation[value] if translation and value is not None else value for value in column.to_pylist()
    ]
    assert exported.type == arrow_out
    assert [tuple(x) if isinstance(x, tuple) else x for x in exported.to_pylist()] == want
    assert encoded.num_rows == len(column)
    assert (encoded.validity is not None) == (column.null_count > 0)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [([0, 127], torch.int8), ([-129], torch.int16), ([32768], torch.int32), ([-(2**31) - 1], torch.int64)],
)
def test_integers_take_the_narrowest_width(values, dtype):
    assert encode(pa.array(values, pa.int64())).values.dtype == dtype


def test_decimals_are_scaled_integers():
    column = encode(pa.array([Decimal("1.25"), Decimal("-3.00")], pa.decimal128(38, 2)))
    assert column.values.tolist() == [125, -300]
    assert column.values.dtype == torch.int16


def test_wide_decimals_are_high_and_low_words():
    value = Decimal(2**64 + 7)
    column = encode(pa.array([value, None, -value], pa.decimal128(38, 0)))
    assert column.values.tolist() == [[1, 7], [-2, -7], [-2, -7]]  # NULL holds the minimum
    assert (column.facts.minimum, column.facts.maximum) == (-int(value), int(value))


def test_values_under_null_lie_within_the_bounds():
    column = encode(pa.array([1000, None, 1005], pa.int64()))
    assert column.values.tolist() == [1000, 1000, 1005]
    garbage = pa.Array.from_buffers(
        pa.int32(), 2, [pa.py_buffer(b"\x01"), pa.array([3, 99], pa.int32()).buffers()[1]]
    )
    assert encode(garbage).values.tolist() == [3, 3]


def test_floats_share_arrow_memory():
    array = pa.array([1.0, 2.0, 3.0]).slice(1)
    column = encode(array)
    assert column.values.data_ptr() == array.buffers()[1].address + 8


def test_plain_strings_share_arrow_memory():
    array = pa.array([f"word {i}" for i in range(5000)], pa.large_string())
    column = encode(array)
    assert column.values is None
    assert column.pool.data.data_ptr() == array.buffers()[2].address


def test_timestamp_out_of_range_names_the_column():
    with pytest.raises(ExecutionError, match='"x".*TIMESTAMP WITH TIME ZONE'):
        encode(pa.array([2**62], pa.timestamp("s", "UTC")))


@pytest.mark.parametrize(
    "arrow_type",
    [
        pa.struct([]),
        pa.list_(pa.float64(), 0),
        pa.decimal256(50, 2),
        pa.opaque(pa.binary(), "geometry", "DuckDB"),
    ],
)
def test_unsupported_types_are_named(arrow_type):
    with pytest.raises(UnsupportedError, match='column "x"'):
        encode(pa.nulls(1, arrow_type))


def test_a_map_keeps_its_entries_and_a_key_stands_in_it_once():
    arrow_type = pa.map_(pa.string(), pa.int32())
    column = encode(pa.array([[("a", 1)], None, [], [("a", 2), ("b", None)]], arrow_type).slice(1))
    assert python_values(column) == [None, {}, {"a": 2, "b": None}]
    with pytest.raises(ExecutionError, match="a key stands twice in a map"):
        encode(pa.array([[("a", 1), ("a", 1)]], arrow_type))


def test_null_inside_an_array_is_refused_but_not_under_a_null_array():
    arrow_type = pa.list_(pa.float32(), 2)
    with pytest.raises(UnsupportedError, match="NULL inside an array"):
        encode(pa.array([[1.0, None]], arrow_type))
    assert encode(pa.array([None, [1.0, 2.0]], arrow_type)).values.tolist() == [[0.0, 0.0], [1.0, 2.0]]


def test_dictionary_with_null_and_duplicate_entries():
    dictionary = pa.array(["b", None, "a", "b"])
    array = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 3, None, 0]), dictionary)
    column = encode(array)
    assert column_to_arrow("x", column).to_pylist() == ["b", None, "a", "b", None, "b"]
    assert column.pool_is_dictionary and column.pool.num_rows == 2


def test_dictionary_is_sorted_by_bytes_and_compact():
    words = ["é", "z", "Z", "", "日本", "a"]
    array = (
        pa.array(words * 300)
        .dictionary_encode()
        .slice(0, 600)
        .filter(pa.array([word != "z" for word in words] * 100))
    )
    column = encode(array)
    assert column.pool_is_dictionary
    entries = [
        bytes(column.pool.data[s : s + n].tolist()) for s, n in zip(column.pool.starts, column.pool.lengths)
    ]
    assert entries == sorted(word.encode() for word in words if word != "z")
    assert column.values.dtype == torch.int8
    assert column.facts.dictionary_size == 5


def test_strings_of_small_tables_have_a_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    array = pa.array([f"{i}" for i in range(5000)])
    monkeypatch.setattr(strings, "_SMALL_TABLE", 5000)
    assert encode(array).pool_is_dictionary
    monkeypatch.setattr(strings, "_SMALL_TABLE", 4999)
    assert not encode(array).pool_is_dictionary


def test_many_distinct_strings_stay_plain():
    assert encode(pa.array([f"{i}" for i in range(5000)])).values is None
    assert encode(pa.array([f"{i % 10}" for i in range(5000)])).pool_is_dictionary
    wide = pa.array([f"{i}" for i in range(5000)]).dictionary_encode()
    assert encode(wide).values is None


@pytest.mark.parametrize("place", [3, -1, 2**31 - 1])
def test_codes_beyond_their_dictionary_are_an_error(place: int) -> None:
    """Arrow does not look at those that a damaged file holds."""
    indices = pa.array([0, 1, place], pa.int32())
    damaged = pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b", "c"]), safe=False)
    with pytest.raises(ExecutionError, match='column "x"'):
        encode(damaged)


def test_dictionaries_of_many_chunks() -> None:
    """Each has its own order and entries, some of them unused, and anything under NULL."""
    chunks = []
    expected: list[str | None] = []
    for number in range(5):
        words = pa.array([f"w{(each * 7 + number) % 10}" for each in range(6)])
        indices = pa.array([0, 5, None, 3, 3], pa.int8())
        chunks.append(pa.DictionaryArray.from_arrays(indices, words))
        expected += [None if index is None else words[index].as_py() for index in indices.to_pylist()]
    column = encode(pa.chunked_array(chunks))
    assert column_to_arrow("x", column).to_pylist() == expected
    assert column.facts.dictionary_size == len({word for word in expected if word})


def test_bytes_that_are_no_text_may_be_frequent() -> None:
    column = encode(pa.array([b"\xff\x00", b"\xff\x00", b"ab", None]))
    assert python_values(column) == [b"\xff\x00", b"\xff\x00", b"ab", None]


def test_lists_and_structs_keep_their_values_in_any_slicing() -> None:
    values = [[{"a": 1, "b": ["x", None]}], [], None, [None, {"a": None, "b": []}], [{"a": 3, "b": None}]]
    array = pa.array(values)
    for start in range(len(values) + 1):
        assert python_values(encode(array.slice(start))) == values[start:]
        chunks = pa.chunked_array([array.slice(0, start), array.slice(start)])
        column = encode(chunks)
        assert python_values(column) == values
        assert column_to_arrow("x", column).to_pylist() == values
