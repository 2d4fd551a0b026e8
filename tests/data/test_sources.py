"""Everything that can be registered, what is said of what cannot, and what is remembered."""

import datetime
import gc
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch

import tqp
from tqp.core.errors import BindError, UnsupportedError
from tqp.data.results.to_arrow import column_to_arrow
from tqp.data.sources.base import Source
from tqp.data.sources.make_source import make_source
from tqp.data.sources.objects import arrow_tables as frames

CPU = torch.device("cpu")
TABLE = pa.table({"a": [1, 2, None], "b": ["x", None, "y"]})


def source(data: object) -> Source:
    return make_source("t", data, CPU)


def rows(data: object) -> dict[str, list]:
    table = source(data)
    table.encode(table.column_names)
    return {name: column_to_arrow(name, table.column(name)).to_pylist() for name in table.column_names}


class OnlyStream:
    def __arrow_c_stream__(self, requested_schema=None):
        return TABLE.__arrow_c_stream__(requested_schema)


class OnlyArray:
    def __arrow_c_array__(self, requested_schema=None):
        return TABLE.combine_chunks().to_batches()[0].__arrow_c_array__(requested_schema)


@pytest.mark.parametrize(
    "data",
    [
        TABLE,
        TABLE.to_batches()[0],
        TABLE.to_batches() * 1,
        TABLE.to_reader(),
        OnlyStream(),
        OnlyArray(),
        TABLE.__arrow_c_stream__(),  # a capsule
        pl.from_arrow(TABLE),
        pl.from_arrow(TABLE).lazy(),
        TABLE.to_pandas(types_mapper=pd.ArrowDtype),
        pd.DataFrame({"a": pd.array([1, 2, None], "Int64"), "b": ["x", None, "y"]}),
        {"a": pa.array([1, 2, None]), "b": ["x", None, "y"]},
    ],
    ids=lambda data: type(data).__name__,
)
def test_tables(data):
    assert rows(data) == TABLE.to_pydict()


def test_types_are_known_before_anything_is_encoded():
    table = source(TABLE.slice(0))
    assert table.num_rows == 3 and list(table.column_names) == ["a", "b"]
    assert [str(table.column_type(name)) for name in table.column_names] == ["BIGINT", "VARCHAR"]
    assert table.memory_bytes == 0
    assert table.column_nullable("a") and table.column_facts("a").maximum == 2
    assert table.memory_bytes > 0


def test_names_are_made_unique_ignoring_case():
    assert list(source(pa.table([[1], [2], [3]], names=["a", "a", "A"])).column_names) == ["a", "a_1", "A_2"]
    assert list(source(pd.DataFrame({1: [1], "x": [2]})).column_names) == ["1", "x"]


def test_unknown_column_offers_the_nearest():
    with pytest.raises(BindError, match='table "t" has no column "bb".*"b"'):
        source(TABLE).column_type("bb")


def test_pandas():
    frame = pd.DataFrame(
        {
            "float": [1.0, np.nan, 2.0],
            "category": pd.Categorical(["a", "b", None]),
            "time": pd.to_datetime(["2020-01-01", None, "1960-01-01"]),
            "delta": pd.to_timedelta([1, 2, None], unit="s"),
            "date": [datetime.date(2020, 1, 1), None, None],
            "zone": pd.to_datetime(["2020-01-01"] * 3).tz_localize("Europe/Oslo"),
        },
        index=[5, 6, 7],
    )
    table = source(frame)
    assert [str(table.column_type(name)) for name in ("float", "category", "delta", "date", "zone")] == [
        "DOUBLE", "ENUM('a', 'b')", "INTERVAL", "DATE", "TIMESTAMP WITH TIME ZONE",
    ]  # fmt: skip
    values = rows(frame)
    assert values["float"] == [1.0, None, 2.0]  # as DuckDB: NaN from pandas is NULL
    assert values["category"] == ["a", "b", None]
    assert values["date"] == [datetime.date(2020, 1, 1), None, None]
    assert values["zone"][0] == datetime.datetime(2019, 12, 31, 23, tzinfo=datetime.UTC)


def test_pandas_columns_of_mixed_types_are_named():
    with pytest.raises(BindError, match='column "m" of table "t"'):
        source(pd.DataFrame({"m": pd.Series([1, "x", 2.5], dtype=object)})).column_type("m")


def test_numpy_and_torch():
    data = {
        "i8": np.array([1, -2, 3], np.int8),
        "u64": np.array([1, 2**64 - 1, 3], np.uint64),
        "strided": np.arange(6)[::2],
        "nan": np.array([1.0, np.nan, 2.0]),
        "text": np.array(["a", "bb", "c"]),
        "objects": np.array(["a", None, "c"], object),
        "day": np.array(["2020-01-01", "NaT", "1960-01-01"], "datetime64[D]"),
        "moment": np.array(["2020-01-01", "2020-01-02", "1960-01-01"], "datetime64[ms]"),
        "flag": torch.tensor([True, False, True]),
        "half": torch.tensor([1.5, 2.5, float("nan")], dtype=torch.float16),
        "brain": torch.tensor([1.5, 2.5, 3.5], dtype=torch.bfloat16),
        "gradient": torch.tensor([1.0, 2.0, 3.0], requires_grad=True),
        "embedding": torch.arange(6, dtype=torch.float32).view(3, 2),
        "half embedding": torch.ones(3, 2, dtype=torch.bfloat16),
        "numpy embedding": np.ones((3, 1), np.float32),
    }
    table, values = source(data), rows(data)
    types = {name: str(table.column_type(name)) for name in table.column_names}
    assert types["i8"] == "TINYINT" and types["u64"] == "UBIGINT" and types["day"] == "DATE"
    assert types["moment"] == "TIMESTAMP_MS" and types["half"] == "FLOAT" and types["embedding"] == "FLOAT[2]"
    assert values["u64"] == [1, 2**64 - 1, 3]
    assert values["strided"] == [0, 2, 4]
    assert values["nan"] == [1.0, None, 2.0]
    assert values["text"] == ["a", "bb", "c"] and values["objects"] == ["a", None, "c"]
    assert values["day"] == [datetime.date(2020, 1, 1), None, datetime.date(1960, 1, 1)]
    assert values["flag"] == [True, False, True] and values["half"][:2] == [1.5, 2.5]
    assert str(values["half"][2]) == "nan"  # a tensor has no NULL
    assert values["embedding"] == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    assert values["half embedding"] == [[1.0, 1.0]] * 3


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": np.arange(3), "b": np.arange(2)}, 'equal lengths, but have "a" 3, "b" 2'),
        ({"a": np.zeros((2, 2))}, 'column "a".*shape'),
        ({"a": torch.tensor(1)}, 'column "a".*shape'),
        ({"a": torch.zeros(2, dtype=torch.complex64)}, 'column "a".*complex64'),
        ({"a": "text"}, 'column "a".*is a str'),
        ({"a": ["x", 1]}, 'column "a"'),
        (torch.zeros(2, 2), "cannot read a torch.*Tensor.*tqp reads an Arrow table"),
        (pd.Index([1, 2]), "cannot read a pandas"),
        (3, "cannot read a builtins.int"),
        ([], "cannot read a builtins.list"),
    ],
)
def test_what_cannot_be_registered(data, message):
    with pytest.raises(BindError, match=message):
        table = source(data)
        table.encode(table.column_names)


def test_a_column_of_an_unknown_type_fails_only_when_touched():
    opaque = pa.ExtensionArray.from_storage(pa.opaque(pa.binary(), "time_ns", "DuckDB"), pa.array([b"a"]))
    table = source(pa.table({"a": [1], "s": opaque}))
    assert str(table.column_type("a")) == "BIGINT"
    with pytest.raises(UnsupportedError, match='column "s"'):
        table.column_type("s")


def test_arrow_tables_are_encoded_once_and_forgotten_with_the_table():
    table = pa.table({"a": [1, 2, 3]})
    first, second = source(table), make_source("other name", table, CPU)
    assert first.column("a") is second.column("a")
    assert first.version == second.version != source(pa.table({"a": [1, 2, 3]})).version
    key = (id(table), CPU)
    assert key in frames._memory
    del first, second, table
    gc.collect()
    assert key not in frames._memory


def test_threads_encode_a_column_once():
    table = source(pa.table({f"c{i}": pa.array(range(20_000)) for i in range(4)}))
    with ThreadPoolExecutor(8) as pool:
        columns = list(pool.map(lambda i: table.column(f"c{i % 4}"), range(64)))
    assert len({id(column) for column in columns}) == 4


def test_variables_of_the_caller() -> None:
    numbers = pd.Series([1, 2])
    vectors = np.array([[1, 2], [3, 4]])
    nothing = pd.DataFrame()
    number = 3
    assert tqp.sql("SELECT sum(value) FROM numbers").fetchall() == [(3,)]
    assert tqp.sql("SELECT column0, column1 FROM vectors").fetchall() == [(1, 3), (2, 4)]
    with pytest.raises(BindError, match='table "nothing" has no columns'):
        tqp.sql("SELECT 1 FROM nothing")
    with pytest.raises(BindError, match='table "number": cannot read a builtins.int'):
        tqp.sql("SELECT 1 FROM number")
    with pytest.raises(BindError, match='there is no table "missing"'):
        tqp.sql("SELECT 1 FROM missing")
    assert len(numbers) == len(vectors) == 2 and nothing.empty and number == 3


class Broken(Mapping):
    def __getitem__(self, name):
        raise RuntimeError("out of order")

    def __iter__(self):
        return iter(["a"])

    def __len__(self):
        return 1


def test_what_an_object_raises_is_told():
    with pytest.raises(BindError, match='table "t" cannot be read: out of order'):
        source(Broken())
