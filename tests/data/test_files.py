"""Parquet, CSV and Arrow files, and the messages when they cannot be read."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from tqp.core.errors import BindError, ExecutionError
from tqp.data.results.to_arrow import column_to_arrow
from tqp.data.sources.base import Source
from tqp.data.sources.make_source import make_source

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


def test_missing_files_are_named(tmp_path):
    for path in (tmp_path / "none.parquet", str(tmp_path / "*.csv"), tmp_path):
        with pytest.raises(BindError, match='table "t": no'):
            source(path)


def test_files_that_do_not_agree(parquet):
    pq.write_table(pa.table({"other": [1]}), parquet / "three.parquet")
    with pytest.raises(ExecutionError, match=r'cannot read .*three\.parquet: it has no column "n"'):
        source(parquet)
    (parquet / "x.csv").write_text("a\n1\n")
    with pytest.raises(BindError, match="different kinds"):
        source([parquet / "one.parquet", parquet / "x.csv"])


def test_unknown_kind_of_file(tmp_path):
    (tmp_path / "x.xyz").write_text("a")
    with pytest.raises(BindError, match="cannot tell what kind of file"):
        source(tmp_path / "x.xyz")


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
