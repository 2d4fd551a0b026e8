"""Several files as one table: partitions in the names of directories, columns in another order, paths of all kinds."""

from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tqp

ONE = pa.table({"a": [1]})

#: What lies in a folder, by path. All are read as DuckDB reads them.
FOLDERS: dict[str, dict[str, pa.Table]] = {
    "years": {"y=2024/x.parquet": ONE, "y=2025/x.parquet": pa.table({"a": [2, 3]})},
    "leading zeros": {"m=01/x.parquet": ONE, "m=02/x.parquet": ONE},
    "days": {"d=2024-01-01/x.parquet": ONE, "d=2024-01-02/x.parquet": ONE},
    "no days": {"d=2024-02-30/x.parquet": ONE},
    "text and NULL": {"s=a%20b/x.parquet": ONE, "s=__HIVE_DEFAULT_PARTITION__/x.parquet": ONE},
    "numbers and NULL": {"y=1/x.parquet": ONE, "y=__HIVE_DEFAULT_PARTITION__/x.parquet": ONE},
    "several": {"y=1/m=a/x.parquet": ONE, "y=2/m=b/x.parquet": ONE},
    "several in another order": {"y=1/m=a/x.parquet": ONE, "m=b/y=3/x.parquet": ONE},
    "different names": {"y=1/x.parquet": ONE, "z=1/x.parquet": ONE},
    "not all": {"y=1/x.parquet": ONE, "x.parquet": ONE},
    "in place of a column": {"a=5/x.parquet": ONE},
    "fractions": {"y=1.5/x.parquet": ONE},
    "empty": {"y=/x.parquet": ONE},
    "beyond 64 bits": {"y=99999999999999999999/x.parquet": ONE},
    "another order": {"x.parquet": pa.table({"a": [1], "b": ["x"]}), "y.parquet": pa.table({"b": ["y"], "a": [2]})},
    "another case": {"x.parquet": ONE, "y.parquet": pa.table({"A": [2]})},
    "a further column": {"x.parquet": ONE, "y.parquet": pa.table({"a": [2], "c": [3]})},
    "narrower": {"x.parquet": ONE, "y.parquet": pa.table({"a": pa.array([2], pa.int32())})},
    "names twice": {"x.parquet": pa.table([[1], [2], ["x"], [4]], names=["a", "a", "b", "A"])},
}  # fmt: skip


def write(folder: Path, files: dict[str, pa.Table]) -> None:
    for name, table in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, folder / name)


@pytest.mark.parametrize("files", FOLDERS.values(), ids=FOLDERS.keys())
def test_folders_agree_with_duckdb(tmp_path: Path, files: dict[str, pa.Table]) -> None:
    write(tmp_path, files)
    pattern = str(tmp_path / "**" / "*.parquet")
    expected = duckdb.sql(f"FROM '{pattern}'")
    with tqp.connect(threads=1) as connection:
        for registered in (pattern, tmp_path):
            result = connection.register("t", registered).sql("FROM t")
            assert list(result.columns) == expected.columns
            assert list(map(str, result.types)) == list(map(str, expected.types))
            assert sorted(result.fetchall(), key=str) == sorted(expected.fetchall(), key=str)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (pa.table({"b": [1]}), 'y.parquet: it has no column "a"'),
        (pa.table({"a": ["x"]}), 'y.parquet: its column "a" is string, but int32'),
        (pa.table({"a": [2**40]}), 'column "a" of .*y.parquet as int32'),
    ],
)
def test_files_that_do_not_fit_together(tmp_path: Path, other: pa.Table, message: str) -> None:
    write(tmp_path, {"x.parquet": pa.table({"a": pa.array([1], pa.int32())}), "y.parquet": other})
    with tqp.connect(threads=1) as connection, pytest.raises(tqp.ExecutionError, match=message):
        connection.register("t", tmp_path).sql("SELECT a FROM t")


#: Values of types by which columns of one name may differ.
VALUES = {
    "TINYINT": "(5), (-3)",
    "INTEGER": "(1000), (-7), (0)",
    "UINTEGER": "(4000000000)",
    "BIGINT": "(120), (7)",
    "FLOAT": "(2.5), (-0.5), (1.5)",
    "DOUBLE": "(0.1), (-2.5), (3)",
    "DECIMAL(9,2)": "(1.25), (-1.25), (1.5), (2.5), (-0.5)",
    "DECIMAL(3,1)": "(99.5), (-99.9)",
    "BOOLEAN": "(true), (false)",
    "DATE": "('1969-12-31'), ('2024-02-29')",
    "TIMESTAMP": "('1969-12-31 10:00:00.5'), ('2024-02-29 23:59:59.999999')",
    "TIMESTAMP_NS": "('2024-01-01 10:00:00')",
    "VARCHAR": "('x'), ('5')",
}
#: By the type of the first file, those of others that are not cast to it, though DuckDB casts them.
REFUSED = {
    "FLOAT": ["DECIMAL(9,2)", "DECIMAL(3,1)", "BOOLEAN"],
    "DOUBLE": ["DECIMAL(9,2)", "DECIMAL(3,1)", "BOOLEAN"],
    "DECIMAL(9,2)": ["FLOAT", "DOUBLE", "BOOLEAN"],
    "DECIMAL(3,1)": ["FLOAT", "DOUBLE", "BOOLEAN"],
    "BOOLEAN": [
        "TINYINT",
        "INTEGER",
        "UINTEGER",
        "BIGINT",
        "FLOAT",
        "DOUBLE",
        "DECIMAL(9,2)",
        "DECIMAL(3,1)",
    ],
    "VARCHAR": ["FLOAT", "DOUBLE", "DECIMAL(9,2)", "DECIMAL(3,1)", "TIMESTAMP", "TIMESTAMP_NS"],
}


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("first", VALUES)
def test_types_that_differ(tmp_path: Path, first: str, by_name: bool) -> None:
    """Columns are of the type of the first file; with union_by_name, of one that holds the values of all."""
    for name, values in VALUES.items():
        rows = f"SELECT x::{name} AS x FROM (VALUES {values}, (NULL)) t(x)"
        duckdb.sql(rows).write_parquet(str(tmp_path / f"{name}.parquet"), row_group_size=2)
    refused = []
    for other in VALUES:
        for condition in ("", "WHERE x < 3", "WHERE x IS NULL"):
            query = f"""SELECT typeof(x), x::VARCHAR FROM read_parquet(
                ['{tmp_path}/{first}.parquet', '{tmp_path}/{other}.parquet'], union_by_name = {by_name}) {condition}"""
            try:
                expected = duckdb.sql(query).fetchall()
            except duckdb.Error:
                continue
            try:
                assert tqp.sql(query).fetchall() == expected, query
            except tqp.ExecutionError:
                if not condition:  # else DuckDB may leave out what cannot be cast
                    refused.append(other)
    if not by_name:
        assert refused == REFUSED.get(first, [])


def test_nested_columns_beside_others_are_read_by_position(tmp_path: Path) -> None:
    vectors = pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2))
    table = pa.table({"s": [{"x": 1, "y": 2}], "m": pa.array([[("k", 1)]], pa.map_(pa.string(), pa.int64())), "v": vectors, "a": [7]})  # fmt: skip
    pq.write_table(table, tmp_path / "x.parquet")
    assert tqp.sql("SELECT v, a FROM t", {"t": tmp_path / "x.parquet"}).fetchall() == [((1.0, 2.0), 7)]


def test_paths(tmp_path: Path) -> None:
    file = tmp_path / "a b%20c.parquet"
    pq.write_table(ONE, file)
    for path in (file, str(file), file.as_uri(), [file, file.as_uri()]):
        assert tqp.sql("SELECT min(a) FROM t", {"t": path}).fetchall() == [(1,)]
    for path, message in (
        ("nowhere://bucket/x.parquet", "Protocol not known: nowhere"),
        ("file://elsewhere/x.parquet", "on another computer"),
        ("x\0.parquet", "NUL"),
        ("", "no file matches"),
    ):
        with pytest.raises(tqp.BindError, match=message):
            tqp.sql("SELECT 1 FROM t", {"t": path})
