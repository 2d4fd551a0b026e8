"""Objects that can be registered, by name: at least one for every kind, type and form that tqp or DuckDB reads."""

from __future__ import annotations

import datetime
import decimal
import enum
import pathlib
import uuid
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import torch

D, DATE, MOMENT = decimal.Decimal, datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2, 3, 4, 5, 678)
ZONE = datetime.timezone(datetime.timedelta(hours=1))
ID = uuid.UUID("550e8400-e29b-41d4-a716-446655440000")


class Row(NamedTuple):
    a: int
    b: str | None


class Colour(enum.Enum):
    RED = 1


class Text(enum.StrEnum):
    A = "a"


class Number(enum.IntEnum):
    ONE = 1


class Opaque(pa.ExtensionType):
    """An extension type that DuckDB and tqp have never heard of, and that has no hash."""

    def __init__(self) -> None:
        super().__init__(pa.int64(), "tests.opaque")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    @classmethod
    def __arrow_ext_deserialize__(cls, storage_type: pa.DataType, serialized: bytes) -> Opaque:
        return cls()

    __hash__ = None  # type: ignore[assignment]


class OnlyStream:
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return pa.table({"a": [1, None]}).__arrow_c_stream__(requested_schema)


class OnlyArray:
    def __arrow_c_array__(self, requested_schema: object | None = None) -> object:
        return pa.record_batch({"a": pa.array([1, None])}).__arrow_c_array__(requested_schema)


#: Values of a pandas object column.
OBJECTS: dict[str, list[Any]] = {
    "date and datetime": [DATE, MOMENT],
    "dates": [DATE, None],
    "datetimes": [MOMENT, None],
    "times": [datetime.time(1, 2, 3, 4), None],
    "time with zone": [datetime.time(1, 2, tzinfo=ZONE)],
    "datetimes with zones": [MOMENT.replace(tzinfo=ZONE), MOMENT.replace(tzinfo=datetime.UTC)],
    "datetimes with and without zone": [MOMENT, MOMENT.replace(tzinfo=ZONE)],
    "timedeltas": [datetime.timedelta(days=1, microseconds=5), -datetime.timedelta(microseconds=5), None],
    "timestamps of pandas": [pd.Timestamp("2024-01-02 03:04:05"), pd.NaT],
    "nanoseconds": [pd.Timestamp("2024-01-02 03:04:05.123456789"), None],
    "timedeltas of pandas": [pd.Timedelta(5, "us"), pd.NaT],
    "dates of numpy": [np.datetime64("2024-01-02"), None],
    "durations of numpy": [np.timedelta64(5, "s"), None],
    "integers": [1, None, -3],
    "integers of 64 bits": [2**40, -(2**40)],
    "unsigned integers": [2**63, 1],
    "integers of 128 bits": [2**70, 1, None],
    "least HUGEINT": [-(2**127), 2**127 - 1],
    "integers beyond 128 bits": [2**127],
    "integers and floats": [1, 2.5, None],
    "wide integers and floats": [2**70, 1.5],
    "integers and NaN": [1, float("nan")],
    "integers and booleans": [1, True],
    "integers and text": [1, "x"],
    "integers and dates": [1, DATE],
    "floats": [1.5, None, float("inf")],
    "floats and booleans": [1.5, True],
    "numpy scalars": [np.int8(1), np.int64(2)],
    "numpy floats": [np.float32(1.5), None],
    "decimals": [D("1.50"), D("100.123"), None],
    "decimals and integers": [D("1.5"), 2],
    "decimals and floats": [D("1.5"), 2.25],
    "decimal NaN": [D("NaN"), D("1")],
    "decimal infinity": [D("Infinity"), D("1")],
    "wide decimals": [D("12345678901234567890123456789.123456789"), None],
    "too wide decimals": [D("1e30"), D("1e-20")],
    "booleans": [True, None, np.bool_(False)],
    "text": ["a", None, "Ærø"],
    "text and NaN": ["a", float("nan")],
    "text with NUL": ["a\0b", ""],
    "text of numpy": [np.str_("x"), "y"],
    "half of a character": ["\ud800"],
    "bytes": [b"a\0", None],
    "bytearrays": [bytearray(b"ab")],
    "text and bytes": ["a", b"b"],
    "enumeration": [Colour.RED, None],
    "enumeration of text": [Text.A, "b"],
    "enumeration of numbers": [Number.ONE, 2],
    "paths": [pathlib.PurePosixPath("/a/b"), None],
    "identifiers": [ID, None],
    "None": [None, None],
    "NaN": [float("nan"), None],
    "NaT": [pd.NaT, None],
    "NA": [pd.NA, None],
    "lists": [[1, 2], None],
    "dicts": [{"a": 1}],
    "tuples": [(1, 2)],
    "sets": [{1}],
    "complex": [1j],
    "objects": [object()],
}

NUMPY_TYPES = ("bool", *(f"{sign}{size}" for sign in "iu" for size in (1, 2, 4, 8)), "f2", "f4", "f8")
MOMENTS = ("M8[D]", "M8[s]", "M8[ms]", "M8[us]", "M8[ns]", "m8[s]", "m8[ms]", "m8[us]", "m8[ns]")
NULLABLE = (
    *(f"{sign}{size}" for sign in ("Int", "UInt") for size in (8, 16, 32, 64)),
    "Float32",
    "Float64",
    "boolean",
)


def _pandas() -> Iterator[tuple[str, Any]]:
    for name, values in OBJECTS.items():
        yield f"object {name}", pd.Series(values, dtype=object)
    for name in NUMPY_TYPES:
        yield name, np.array([0, 1, 1]).astype(name)
    for name in MOMENTS:
        yield name, np.array([1, 20_000, "NaT"], name)
    yield "f8 with NaN", np.array([1.5, np.nan, np.inf])
    for name in NULLABLE:
        yield name, pd.array([1, None, 0], name)
    yield (
        "Float64 with NaN",
        pd.arrays.FloatingArray(np.array([1.0, np.nan, 3.0]), np.array([False, False, True])),
    )
    for name in ("str", "string[python]", "string[pyarrow]"):
        yield name, pd.array(["b", None, "a\0"], name)
    yield "zone", pd.to_datetime(["2024-01-01", None]).tz_localize("Europe/Oslo")
    yield "zone and nanoseconds", pd.to_datetime(["2024-01-01 00:00:00.123456789"]).tz_localize("UTC")
    yield "category", pd.Categorical(["b", "a", None])
    yield "ordered category", pd.Categorical(["lo", "hi"], categories=["lo", "hi"], ordered=True)
    yield (
        "category in an order of its own",
        pd.Categorical(["b", "it's", None], categories=["é", "b", "", "it's"]),
    )
    yield "category of nothing", pd.Categorical([None], categories=pd.Index([], dtype="str"))
    yield "category without a row", pd.Categorical([])
    yield "category of bytes", pd.Categorical([b"a", None])
    yield "category of everything", pd.Categorical(["a", 1])
    yield "category of integers", pd.Categorical([3, 1, None])
    yield "category of dates", pd.Categorical([DATE, None])
    yield "category of wide integers", pd.Categorical([2**70, None])
    yield "sparse", pd.arrays.SparseArray([0, 1, 0])
    yield "period", pd.period_range("2024", "2025", freq="Y")
    yield "interval", pd.arrays.IntervalArray.from_breaks([0, 1, 2])
    yield "complex", np.array([1j])
    for name, values in ARROW.items():
        if name in ("int64", "string", "date32", "decimal128", "dictionary", "NaN", "list", "timestamp us"):
            yield f"arrow {name}", pd.Series(values, dtype=pd.ArrowDtype(values.type))


def _dicts() -> Iterator[tuple[str, Any]]:
    for name in (*NUMPY_TYPES, ">i4", "<f8", ">f8"):
        yield f"numpy {name}", np.array([0, 1, 1]).astype(name)
    for name in (
        *MOMENTS,
        "M8[h]",
        "M8[m]",
        "M8[M]",
        "M8[Y]",
        "M8[W]",
        "m8[D]",
        "m8[h]",
        "M8[ps]",
        "m8[Y]",
        "M8[25s]",
    ):
        yield f"numpy {name}", np.array([1, 20, "NaT"], name)
    yield "numpy NaN", np.array([1.5, np.nan])
    yield "numpy U", np.array(["a\0b", "", "cc"])
    yield "numpy S", np.array([b"a\0b", b"", b"cc"])
    yield "numpy StringDType", np.array(["a\0b", ""], np.dtypes.StringDType())
    yield "numpy objects", np.array([DATE, MOMENT], object)
    yield "numpy longdouble", np.array([1.5], np.longdouble)
    yield "numpy complex", np.array([1j])
    yield "numpy bytes of fixed size", np.array([b"ab"], "V2")
    yield "numpy records", np.array([(1, 2.0)], [("x", "i4"), ("y", "f8")])
    yield "numpy strided", np.arange(6)[::-2]
    yield "numpy masked", np.ma.array([1, 2], mask=[False, True])
    yield "numpy masked floats", np.ma.array([1.5, np.nan, 3], mask=[False, False, True])
    yield "numpy masked text", np.ma.array(["a\0b", "b"], mask=[False, True])
    yield "numpy vectors", np.array([[1, 2], [3, np.nan]], np.float32)
    yield "numpy half vectors", np.ones((2, 3), np.float16)
    yield (
        "numpy masked vectors",
        np.ma.array(np.ones((2, 2), np.float32), mask=[[True, True], [False, False]]),
    )
    yield (
        "numpy half masked vectors",
        np.ma.array(np.ones((2, 2), np.float32), mask=[[True, False], [False, False]]),
    )
    yield "numpy vectors of doubles", np.ones((2, 2))
    yield "numpy vectors of another byte order", np.ones((2, 2), ">f4")
    yield "numpy U of no rows", np.array([], "U5")
    yield "numpy S of no rows", np.array([], "S5")
    yield "numpy U that is no Unicode", np.array(["\ud800"])
    yield "numpy far days", np.array([2**40], "M8[D]")
    yield "numpy days before Christ", np.array(["-0044-03-15"], "M8[D]")
    yield "numpy scalar", np.array(1)
    for dtype in (torch.bool, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint8, torch.uint16, torch.uint32, torch.uint64, torch.float16, torch.bfloat16, torch.float32, torch.float64):  # fmt: skip
        yield f"tensor {str(dtype)[6:]}", torch.tensor([0, 1, 1]).to(dtype)
    yield "tensor NaN", torch.tensor([1.0, float("nan")])
    yield "tensor vectors", torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    yield "tensor bfloat16 vectors", torch.ones(2, 3, dtype=torch.bfloat16)
    yield "tensor with gradient", torch.tensor([1.0, 2.0], requires_grad=True)
    yield "tensor strided", torch.arange(6)[::2]
    yield "tensor complex", torch.zeros(2, dtype=torch.complex64)
    yield "tensor sparse", torch.tensor([0.0, 1.0]).to_sparse()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield "tensor CSR", torch.eye(2).to_sparse_csr()
    yield "tensor nested", torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)
    yield "tensor meta", torch.ones(2, device="meta")
    yield "tensor vectors of doubles", torch.ones(2, 2, dtype=torch.float64)
    yield "list", [1, None, 3]
    yield "list of text", ["a", None]
    yield "list of everything", [1, "a", DATE]
    yield "range", range(3)
    yield "tuple", (1.5, None)
    yield "empty list", []
    yield "pandas series", pd.Series([DATE, MOMENT], dtype=object)
    yield "polars series", pl.Series([1, None])
    yield "arrow array", pa.array([1, None])
    yield "arrow chunks", pa.chunked_array([[1], [None, 2]])
    yield "text", "abc"
    yield "number", 5


def _array(values: list[Any], arrow_type: pa.DataType) -> pa.Array:
    return pa.array(values, arrow_type)


def _extension(arrow_type: pa.DataType, values: list[Any]) -> pa.Array:
    return pa.ExtensionArray.from_storage(arrow_type, pa.array(values, arrow_type.storage_type))


ARROW: dict[str, pa.Array] = {
    "null": pa.nulls(2),
    "bool": pa.array([True, None, False]),
    **{str(t): _array([0, None, 1], t) for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())},
    **{str(t): _array([0, None, 1], t) for t in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())},
    "uint64 beyond int64": pa.array([2**64 - 1, 0], pa.uint64()),
    **{str(t): _array([0.5, None, 1], t) for t in (pa.float16(), pa.float32(), pa.float64())},
    "NaN": pa.array([float("nan"), None, float("-inf")]),
    **{
        name: _array([D("1.25"), None, D("-0.5")], t)
        for name, t in (
            ("decimal32", pa.decimal32(5, 2)), ("decimal64", pa.decimal64(15, 2)), ("decimal128", pa.decimal128(15, 2)),
            ("wide decimal128", pa.decimal128(38, 10)), ("decimal256", pa.decimal256(38, 2)), ("too wide decimal256", pa.decimal256(50, 2)),
        )
    },
    "decimal of negative scale": pa.array([D("100")], pa.decimal128(5, -2)),
    **{str(t): _array(["b", None, "Ærø", "a string of more than twelve bytes"], t) for t in (pa.string(), pa.large_string(), pa.string_view())},
    **{str(t): _array([b"b\0", None, b"\xff", b"more than twelve bytes"], t) for t in (pa.binary(), pa.large_binary(), pa.binary_view())},
    "binary of fixed size": pa.array([b"ab", None], pa.binary(2)),
    "date32": pa.array([DATE, None]),
    "date64": pa.array([DATE, None], pa.date64()),
    **{f"time {t.unit}": _array([3_000, None], pa.int32()).cast(t) for t in (pa.time32("s"), pa.time32("ms"))},
    **{f"time {t.unit}": _array([3_000, None], pa.int64()).cast(t) for t in (pa.time64("us"), pa.time64("ns"))},
    "time of nanoseconds": pa.array([3_001]).cast(pa.time64("ns")),
    **{f"timestamp {unit}": _array([1, None, -1], pa.int64()).cast(pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")},
    **{f"timestamp with zone {unit}": _array([1_000, None, -1_000], pa.int64()).cast(pa.timestamp(unit, "Europe/Oslo")) for unit in ("s", "ms", "us", "ns")},
    "timestamp with zone of nanoseconds": pa.array([1_001]).cast(pa.timestamp("ns", "UTC")),
    **{f"duration {unit}": _array([1_500, None, -1_500], pa.int64()).cast(pa.duration(unit)) for unit in ("s", "ms", "us", "ns")},
    "interval": pa.array([(1, 2, 3_000), None], pa.month_day_nano_interval()),
    "dictionary": pa.array(["b", None, "a", "b"]).dictionary_encode(),
    "ordered dictionary": pa.DictionaryArray.from_arrays(pa.array([0, 1, 0]), pa.array(["lo", "hi"]), ordered=True),
    "ordered dictionary with NULL": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, None]), pa.array(["x", None]), ordered=True
    ),
    "ordered dictionary of integers": pa.DictionaryArray.from_arrays([0, 1], pa.array([5, 3]), ordered=True),
    "dictionary of integers": pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array([5, 3])),
    "dictionary with NULL": pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["x", None])),
    "run ends": pa.RunEndEncodedArray.from_arrays([2, 3], ["a", "b"]),
    "run ends of integers": pa.RunEndEncodedArray.from_arrays([2, 3], pa.array([1, None])),
    "vectors": pa.array([[1, 2], None], pa.list_(pa.float32(), 2)),
    "half vectors": pa.array([[1, 2], None], pa.list_(pa.float16(), 2)),
    "vectors of doubles": pa.array([[1, 2], None], pa.list_(pa.float64(), 2)),
    "vectors with NULL inside": pa.array([[1, None]], pa.list_(pa.float32(), 2)),
    "list": pa.array([[1], None]),
    "large list": pa.array([[1], None], pa.large_list(pa.int64())),
    "list view": pa.array([[1], None], pa.list_view(pa.int64())),
    "struct": pa.array([{"a": 1}]),
    "map": pa.array([[("a", 1)]], pa.map_(pa.string(), pa.int64())),
    "union": pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
    "uuid": _extension(pa.uuid(), [ID.bytes, None]),
    "bool8": _extension(pa.bool8(), [1, 0, None]),
    "json": _extension(pa.json_(), ['{"a": 1}', None]),
    "opaque": _extension(pa.opaque(pa.binary(), "type", "vendor"), [b"a", None]),
    "opaque of DuckDB": _extension(pa.opaque(pa.binary(), "bignum", "DuckDB"), [b"a"]),
    "bits of DuckDB": _extension(pa.opaque(pa.binary(), "bit", "DuckDB"), [b"\x04\xf5", None]),
    "unknown extension": _extension(Opaque(), [1, None]),
    "tensor": _extension(pa.fixed_shape_tensor(pa.float32(), [2]), [[1, 2]]),
    "tensor of two dimensions": _extension(pa.fixed_shape_tensor(pa.float32(), [2, 2]), [[1, 2, 3, 4]]),
    "empty": pa.array([], pa.string()),
    "slice": pa.array([1, None, 3, 4, None])[1:4],
    "slice of booleans": pa.array([True, None, False] * 5)[5:11],
    "slice of text": pa.array(["a", "b", None, "c"])[1:],
}  # fmt: skip


def _polars() -> Iterator[tuple[str, Any]]:
    for dtype in (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.Float32, pl.Float64):  # fmt: skip
        yield str(dtype), pl.Series([0, None, 1]).cast(dtype)
    yield "Float16", pl.Series([0.5, None]).cast(pl.Float16)
    yield "UInt128", pl.Series([5, None]).cast(pl.UInt128)
    yield "Boolean", pl.Series([True, None])
    yield "String", pl.Series(["b", None, "a string of more than twelve bytes"])
    yield "Binary", pl.Series([b"b", None])
    yield "Categorical", pl.Series(["b", None, "a"], dtype=pl.Categorical)
    yield "Enum of nothing", pl.Series([None], dtype=pl.Enum([]))
    yield "Enum", pl.Series(["lo", "hi", None], dtype=pl.Enum(["lo", "hi"]))
    yield "Decimal", pl.Series([D("1.25"), None], dtype=pl.Decimal(10, 2))
    yield "Date", pl.Series([DATE, None])
    yield "Time", pl.Series([datetime.time(1, 2, 3), None])
    for unit in ("ms", "us", "ns"):
        yield f"Datetime {unit}", pl.Series([1, None]).cast(pl.Datetime(unit))
        yield f"Duration {unit}", pl.Series([1_500, None]).cast(pl.Duration(unit))
    yield "Datetime with zone", pl.Series([1, None]).cast(pl.Datetime("us", "UTC"))
    yield "Datetime with zone and nanoseconds", pl.Series([1, None]).cast(pl.Datetime("ns", "UTC"))
    yield "Null", pl.Series([None, None])
    yield "Array", pl.Series([[1.0, 2.0], None], dtype=pl.Array(pl.Float32, 2))
    yield "Array of doubles", pl.Series([[1.0, 2.0]], dtype=pl.Array(pl.Float64, 2))
    yield "List", pl.Series([[1], None])
    yield "Struct", pl.Series([{"a": 1}])
    yield "Object", pl.Series([object()], dtype=pl.Object)
    yield "Object of identifiers", pl.Series([ID, None], dtype=pl.Object)


def _tables() -> Iterator[tuple[str, Any]]:
    table = pa.table({"a": pa.array([1, None]), "b": ["x", None]})
    yield "table", table
    yield "record batch", table.to_batches()[0]
    yield "record batches", table.to_batches()
    yield "chunks", pa.concat_tables([table, table.slice(1)])
    yield "stream", OnlyStream()
    yield "array", OnlyArray()
    yield "names twice", pa.table([[1], [2], [3]], names=["a", "a", "A"])
    yield "geometry", pa.table([pa.array([b"x"])], pa.schema([pa.field("g", pa.binary(), metadata={"ARROW:extension:name": "geoarrow.wkb"})]))  # fmt: skip
    yield "foreign extension", pa.table([pa.array([7])], pa.schema([pa.field("g", pa.int64(), metadata={"ARROW:extension:name": "foo.bar"})]))  # fmt: skip
    yield "lazy frame", pl.DataFrame({"a": [1, None]}).lazy()
    yield "polars frame", pl.DataFrame({"a": [1, None], "b": ["x", None]})
    yield "frame of names twice", pd.DataFrame([[1, 2]], columns=["a", "a"])
    yield "frame of numbered columns", pd.DataFrame([[1.5, 2.5]])
    yield "frame with index", pd.DataFrame({"a": [1, 2]}, index=["x", "y"])
    yield "frame of no rows", pd.DataFrame({"a": np.array([], "i4"), "b": pd.Series([], dtype="str")})
    yield "frame of no columns", pd.DataFrame()
    yield "frame of rows without columns", pd.DataFrame(index=[1, 2])
    yield "dict of no columns", {}
    yield "table of no columns", pa.table({})
    yield "polars frame of no columns", pl.DataFrame()
    yield "pandas series", pd.Series([1, 2])
    yield "pandas series with name", pd.Series(["x", None], name="z")
    yield "polars series", pl.Series("v", [1, 2])
    yield "arrow array", pa.array([1, None])
    yield "arrow chunks", pa.chunked_array([[1], [2]])
    yield "numpy array", np.array([1, 2])
    yield "numpy array of two dimensions", np.array([[1.0, 2.0], [3.0, 4.0]])
    yield "numpy arrays", [np.array([1, 2]), np.array([3.5, 4.5])]
    yield "tensor", torch.tensor([1, 2])
    records = np.array([(1, 2.5, "x"), (2, float("nan"), "y")], [("a", "i4"), ("b", "f8"), ("c", "U3")])
    yield "structured array", records
    yield "structured array of no rows", records[:0]
    yield "record array", records.view(np.recarray)
    nested = np.array([((1, 2.5),)], [("a", [("x", "i4"), ("y", "f8")])])
    yield "structured array in a structured array", nested
    yield "masked structured array", np.ma.array(records, mask=[(0, 0, 1), (0, 0, 0)])
    yield "list of dicts", [{"a": 1, "b": "x"}, {"b": None, "c": 2.5}]
    yield "list of tuples", [(1, "x"), (2, None)]
    yield "list of named tuples", [Row(1, "x"), Row(2, None)]
    yield "list of tuples of unequal length", [(1, "x"), (2,)]
    yield "list of dicts and tuples", [{"a": 1}, (1,)]
    yield "list of frames", [pd.DataFrame({"a": [1.5, None]}, index=["x", "y"]), pd.DataFrame({"a": [2.5]})]
    yield "list of polars frames", [pl.DataFrame({"a": [1]}), pl.DataFrame({"a": [2]})]
    yield "list of tables", [table, table.slice(1)]
    yield "list of frames of other columns", [pl.DataFrame({"a": [1]}), pl.DataFrame({"b": [2]})]
    yield "empty list", []
    yield "dataset", pyarrow.dataset.dataset(table)
    yield "scanner", pyarrow.dataset.dataset(table).scanner(columns=["b"])
    yield "unequal lengths", {"a": np.arange(2), "b": np.arange(3)}
    yield "number", 3
    yield "list of numbers", [1, 2]
    yield "index", pd.Index([1, 2])
    yield "nothing", None


def all_inputs() -> dict[str, Any]:
    """Every object by a name that tells what holds it and of which type it is."""
    found: dict[str, Any] = {}
    for name, values in _pandas():
        found[f"pandas {name}"] = pd.DataFrame({"x": values})
    for name, values in _dicts():
        found[f"dict of {name}"] = {"x": values}
    for name, array in ARROW.items():
        found[f"arrow {name}"] = pa.table({"x": array})
    for name, series in _polars():
        found[f"polars {name}"] = pl.DataFrame({"x": series})
    for name, data in _tables():
        found[f"table: {name}"] = data
    return found
