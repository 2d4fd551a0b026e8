"""Parquet, CSV and Arrow files, and the messages when they cannot be read."""

import datetime
import gzip
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from tqp.core.errors import BindError, ExecutionError
from tqp.data.export import column_to_arrow
from tqp.data.source_base import Source
from tqp.data.sources import make_source

TABLE = pa.table(
    {
        "n": pa.array([1, None, 3, 4] * 1250, pa.int64()),
        "few": pa.array(["x", None, "y", "x"] * 1250, pa.string_view()),
        "many": pa.array([f"value number {i}" for i in range(5000)], pa.large_string()),
    }
)


def source(path: object) -> Source:
    return make_source("t", path, torch.device("cpu"))


def rows(table: Source) -> dict[str, list]:
    return {name: column_to_arrow(name, table.column(name)).to_pylist() for name in table.column_names}


@pytest.fixture
def parquet(tmp_path: Path) -> Path:
    pq.write_table(TABLE, tmp_path / "one.parquet", row_group_size=300)
    pq.write_table(TABLE.slice(0, 10), tmp_path / "two.parquet")
    return tmp_path


def test_parquet_file(parquet):
    table = source(parquet / "one.parquet")
    assert table.num_rows == 5000 and table.memory_bytes == 0
    assert rows(table) == TABLE.to_pydict()
    assert table.column("few").pool_is_dictionary and not table.column("many").pool_is_dictionary


@pytest.mark.parametrize("form", ["list", "glob", "directory"])
def test_several_parquet_files(parquet, form):
    paths = {
        "list": [parquet / "one.parquet", str(parquet / "two.parquet")],
        "glob": str(parquet / "*.parquet"),
        "directory": parquet,
    }
    table = source(paths[form])
    assert table.num_rows == 5010
    assert rows(table) == pa.concat_tables([TABLE, TABLE.slice(0, 10)]).to_pydict()


def test_empty_parquet_file(tmp_path):
    pq.write_table(TABLE.slice(0, 0), tmp_path / "empty.parquet")
    assert rows(source(tmp_path / "empty.parquet")) == {"n": [], "few": [], "many": []}


@pytest.mark.parametrize("content", [b"", b"PAR1 this is not Parquet PAR1"])
def test_corrupt_parquet_file_is_named(tmp_path, content):
    (tmp_path / "bad.parquet").write_bytes(content)
    with pytest.raises(ExecutionError, match=r"cannot read .*bad\.parquet: "):
        source(tmp_path / "bad.parquet")


def test_parquet_page_that_is_corrupt_is_found_when_touched(parquet):
    file = parquet / "one.parquet"
    content = bytearray(file.read_bytes())
    content[4:3000] = b"\xff" * 2996
    file.write_bytes(content)
    table = source(file)
    with pytest.raises(ExecutionError, match=r"cannot read .*one\.parquet: "):
        table.column("n")


def test_a_file_that_changed_is_noticed(parquet):
    table = source(parquet / "two.parquet")
    pq.write_table(TABLE.slice(0, 5), parquet / "two.parquet")
    with pytest.raises(ExecutionError, match="has changed since"):
        table.column("n")


def test_missing_files_are_named(tmp_path):
    for path in (tmp_path / "none.parquet", str(tmp_path / "*.csv"), tmp_path):
        with pytest.raises(BindError, match='table "t": no'):
            source(path)


def test_files_that_do_not_agree(parquet):
    pq.write_table(pa.table({"other": [1]}), parquet / "three.parquet")
    with pytest.raises(ExecutionError, match=r"cannot read .*three\.parquet: its columns"):
        source(parquet)
    (parquet / "x.csv").write_text("a\n1\n")
    with pytest.raises(BindError, match="different kinds"):
        source([parquet / "one.parquet", parquet / "x.csv"])


def test_unknown_kind_of_file(tmp_path):
    (tmp_path / "x.xyz").write_text("a")
    with pytest.raises(BindError, match="cannot tell what kind of file"):
        source(tmp_path / "x.xyz")


CSV = {
    "typed": "a,b,c,d,e,f,g\n1,2.5,x,2020-01-01,2020-01-01 10:00:00,true,\n2,,,2020-01-02,2020-01-01 10:00:00.5,false,\n",
    "quoted": 'a,b\n"x, y","line\nbreak"\n"say ""hi""",\n',
    "no header": "1,2.5,x\n2,3.5,y\n",
    "header and strings": "a,b\nx,y\nz,w\n",
    "semicolon": "x;y\n1;2\n",
    "tab": "x\ty\n1\t2\n",
    "one column": "number\n1\n2\n",
    "accents": "städte,größe\nMünchen,3\n",
}


@pytest.mark.parametrize("text", CSV.values(), ids=CSV.keys())
def test_csv_agrees_with_duckdb(tmp_path, text):
    file = tmp_path / "x.csv"
    file.write_text(text, encoding="utf-8")
    table = source(file)
    expected = duckdb.sql(f"SELECT * FROM read_csv('{file}')").to_arrow_table()
    assert list(table.column_names) == expected.column_names
    assert [str(t) for t in map(table.column_type, table.column_names)] == [
        str(t) for t in duckdb.sql(f"SELECT * FROM read_csv('{file}')").types
    ]
    assert rows(table) == expected.to_pydict()


def test_compressed_csv(tmp_path):
    with gzip.open(tmp_path / "x.csv.gz", "wt") as stream:
        stream.write("a,d\n1,2020-01-01\n")
    assert rows(source(tmp_path / "x.csv.gz")) == {"a": [1], "d": [datetime.date(2020, 1, 1)]}


def test_csv_that_cannot_be_read(tmp_path):
    (tmp_path / "ragged.csv").write_text("a,b\n1,2\n1,2,3\n")
    (tmp_path / "empty.csv").write_text("")
    for name in ("ragged", "empty"):
        with pytest.raises(ExecutionError, match=rf"cannot read .*{name}\.csv: "):
            source(tmp_path / f"{name}.csv")


def test_arrow_files(tmp_path):
    with pa.ipc.new_file(tmp_path / "x.arrow", TABLE.schema) as writer:
        writer.write_table(TABLE)
    with pa.ipc.new_stream(tmp_path / "y.arrow", TABLE.schema) as writer:
        writer.write_table(TABLE)
    for name in ("x", "y"):
        assert rows(source(tmp_path / f"{name}.arrow")) == TABLE.to_pydict()


def test_parquet_column_names_and_widths(tmp_path):
    """A dot in a name is not a path; row groups of very different widths meet in one column."""
    table = pa.table(
        {
            "a.b": ["x", "y", "x", None] * 100,
            "few": pa.array(["x", "y", "x", None] * 100, pa.large_string()),
            "bytes": pa.array([b"x", b"y"] * 200),
            "all null": pa.nulls(400, pa.string()),
            "wide": pa.array([1, 2, None, 2**100] * 100, pa.decimal128(38, 0)),
            "growing": [*range(200), *range(2**40, 2**40 + 200)],
            "day": pa.array([None, *range(399)], pa.int32()).view(pa.date32()),
        }
    )
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=150)
    read = source(tmp_path / "x.parquet")
    assert rows(read) == table.to_pydict()
    assert read.column("growing").values.dtype == torch.int64
    assert read.column("wide").values.shape == (400, 2)
