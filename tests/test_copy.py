"""Files out: COPY and Result.write_*, beside what DuckDB writes and reads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from decimal import Decimal
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tqp
from tests.oracle import duckdb_database
from tests.test_slt import SETTINGS

ROWS = """
    SELECT 1 AS i, 'a,b' AS s, 1.5::DOUBLE AS d, true AS b, DATE '2024-01-01' AS dt,
           TIMESTAMP '2024-01-01 01:02:03.5' AS ts, NULL::INT AS n, '\\xAA'::BLOB AS bl, 1.25::DECIMAL(5,2) AS dc,
           TIME '01:02:03' AS tm, TIMESTAMPTZ '2024-01-01 00:00:00+00' AS tz, 'inf'::FLOAT AS f, 12::UBIGINT AS u
    UNION ALL SELECT 2, 'q"x', NULL, false, NULL, NULL, 5, NULL, NULL, NULL, NULL, NULL, 1::UBIGINT
    UNION ALL SELECT 3, '', 0.25, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, 1.5, NULL
    UNION ALL SELECT 4, E'l\\nm\\t\\\\', 3, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    UNION ALL SELECT 5, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
    UNION ALL SELECT 6, ' é𝄞 ''#', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL
"""
#: With a column of JSON, which Parquet and Arrow have as text.
ROWS_WITH_JSON = f"""
    SELECT *, CASE i WHEN 1 THEN '{{"a": [1, 2.50]}}'::JSON WHEN 2 THEN '"é"'::JSON END AS j FROM ({ROWS})
"""


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize(
    "copy",
    [
        "'{}.csv'",
        "'{}.csv' (HEADER false, DELIMITER '|', NULL 'NUL')",
        "'{}.csv' (FORCE_QUOTE (s, i))",
        "'{}.csv' (FORCE_QUOTE *)",
        "'{}.tsv' (SEP ';')",
        "'{}.foo'",
        "'{}.json'",
        "'{}.txt' (FORMAT json, ARRAY)",
    ],
)
def test_text_files_are_those_of_duckdb(tmp_path: Path, copy: str, setting: str) -> None:
    written = []
    with duckdb_database() as oracle, tqp.connect(**SETTINGS[setting]) as connection:
        oracle.execute("SET TimeZone = 'UTC'")
        for engine in (oracle, connection):
            (answer,) = engine.execute(
                f"COPY ({ROWS_WITH_JSON}) TO " + copy.format(tmp_path / "out")
            ).fetchall()
            assert answer == (6,)
            (file,) = tmp_path.iterdir()
            written.append(file.read_text(encoding="utf-8"))
            file.unlink()
    assert written[1] == written[0]


NESTED_ROWS = """
    SELECT [1.50, NULL] AS l, {'a': 2.00, 'b': INTERVAL '1 day 2 hours'} AS s, MAP {DATE '2024-01-01': ['x', NULL]} AS m,
           union_value(num := 2.50) AS u, [1.5, 2]::FLOAT[2] AS v, [[1], [], NULL]::BIGINT[][] AS a, row(1, 'a') AS t,
           ['{"a": [1, 2.50]}'::JSON] AS j, MAP {[1]: 1e300} AS k, ['nan'::DOUBLE, 1e20, -0.0] AS f,
           [TIMESTAMPTZ '2024-01-01 00:00:00+00'] AS z, {'"': '"\n'} AS q, 1.5::DECIMAL(18, 4) AS w, 1.50::DECIMAL(9, 2) AS d
    UNION ALL SELECT [], NULL, MAP {}, NULL, NULL, [], NULL, [], NULL, [], NULL, NULL, NULL, 100
    UNION ALL SELECT NULL, {'a': NULL, 'b': NULL}, NULL, union_value(num := 3), [0, -1], NULL, row(NULL, ''), NULL,
           MAP {[1]: 1e-7, []: 0.1}, NULL, [NULL], {'"': ''}, -0.5, 0
    UNION ALL SELECT [3], {'a': 1, 'b': INTERVAL '0 days'}, MAP {DATE '2024-01-02': []}, union_value(num := 0), NULL, [[5, 6]],
           row(0, NULL), ['null'], NULL, [2], [], NULL, 12345678901234.5678, -1.25
"""


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("options", ["ARRAY false", "DATEFORMAT '%d.%m.%y', TIMESTAMPFORMAT '%Y'"])
def test_nested_values_in_json_files_are_those_of_duckdb(tmp_path: Path, options: str, setting: str) -> None:
    written = []
    with duckdb.connect() as oracle, tqp.connect(**SETTINGS[setting]) as connection:
        oracle.execute("SET TimeZone = 'UTC'")
        for engine in (oracle, connection):
            engine.execute(f"COPY ({NESTED_ROWS}) TO '{tmp_path / 'out.json'}' ({options})")
            written.append((tmp_path / "out.json").read_text(encoding="utf-8"))
    assert written[1] == written[0]


def test_many_rows_are_written_in_blocks(tmp_path: Path) -> None:
    with tqp.connect() as con:
        result = con.sql("SELECT i, 'text ' || (i % 7) AS s, i / 4 AS x FROM range(300000) r(i)")
        for name in ("t.csv", "t.csv.gz", "t.json", "t.parquet"):
            con.sql(
                f"COPY (SELECT i, 'text ' || (i % 7) AS s, i / 4 AS x FROM range(300000) r(i)) TO '{tmp_path / name}'"
            )
            found = duckdb.sql(
                f"SELECT count(*), sum(i), sum(x), count(DISTINCT s) FROM '{tmp_path / name}'"
            ).fetchall()
            assert found == [(300000, 44999850000, 11249962500.0, 7)], name
        result.write_parquet(tmp_path / "r.parquet", compression="zstd", row_group_size=100_000)
        assert pq.ParquetFile(tmp_path / "r.parquet").num_row_groups == 3


def test_parquet_holds_what_the_result_holds(tmp_path: Path) -> None:
    with tqp.connect() as con:
        result = con.sql(ROWS)
        result.write_parquet(tmp_path / "t.parquet")
        again = con.sql(f"FROM '{tmp_path / 't.parquet'}'")
        assert again.fetchall() == result.fetchall() and again.types == result.types
        con.sql(
            "CREATE TABLE e AS SELECT 'b'::ENUM('b', 'a') AS m, 170141183460469231731687303715884105727::HUGEINT AS h"
        )
        with pytest.raises(tqp.UnsupportedError, match='"i": INTERVAL'):
            con.sql("SELECT INTERVAL 1 DAY AS i").write_parquet(tmp_path / "i.parquet")
        with pytest.raises(tqp.BindError, match="choose one of"):
            result.write_parquet(tmp_path / "t.parquet", compression="best")
        con.sql("SELECT 1 AS a, 2 AS a WHERE false").write_parquet(tmp_path / "none.parquet")
        assert pq.read_table(tmp_path / "none.parquet").column_names == ["a", "a_1"]


@pytest.mark.parametrize("ending", ("", ".gz", ".zst", ".bz2", ".lz4", ".GZ"))
@pytest.mark.parametrize("form", ("csv", "json"))
def test_what_is_written_by_any_compression_is_read_back(tmp_path: Path, form: str, ending: str) -> None:
    path = tmp_path / f"t.{form}{ending}"
    result = tqp.sql("SELECT i, 'text ' || i AS s FROM range(1000) r(i)")
    (result.write_csv if form == "csv" else result.write_json)(path)
    assert tqp.sql(f"FROM read_{form}('{path}')").fetchall() == result.fetchall()
    assert (len(path.read_bytes()) < 10_000) == bool(ending)


def test_results_write_csv_and_json(tmp_path: Path) -> None:
    result = tqp.sql("SELECT 1 AS a, NULL AS b, 'x;y' AS c")
    result.write_csv(tmp_path / "t.csv", sep=";", na_rep="NA", header=False)
    assert (tmp_path / "t.csv").read_text() == '1;NA;"x;y"\n'
    result.write_json(tmp_path / "t.json", array=True)
    assert json.loads((tmp_path / "t.json").read_text()) == [{"a": 1, "b": None, "c": "x;y"}]
    tqp.sql("SELECT 1 AS a WHERE false").write_json(tmp_path / "t.json", array=True)
    assert json.loads((tmp_path / "t.json").read_text()) == []
    with pytest.raises(tqp.BindError, match="a character each"):
        result.write_csv(tmp_path / "t.csv", quotechar="||")


def test_partitions(tmp_path: Path) -> None:
    with tqp.connect() as con:
        con.sql(
            "CREATE TABLE t AS SELECT i, i % 3 AS k, CASE WHEN i % 2 = 0 THEN 'a/b' END AS s FROM range(10) r(i)"
        )
        assert con.sql(f"COPY t TO '{tmp_path / 'p'}' (FORMAT parquet, PARTITION_BY (k, s))").fetchall() == [
            (10,)
        ]
        read = f"FROM read_parquet('{tmp_path / 'p'}/*/*/*.parquet', hive_partitioning = true)"
        found = duckdb.sql(f"SELECT i, k::INT, s {read} ORDER BY i").fetchall()
        assert found == con.sql("FROM t ORDER BY i").fetchall()
        with pytest.raises(tqp.ExecutionError, match="not empty; OVERWRITE_OR_IGNORE"):
            con.sql(f"COPY t TO '{tmp_path / 'p'}' (FORMAT parquet, PARTITION_BY k)")
        con.sql(f"COPY t TO '{tmp_path / 'p'}' (FORMAT parquet, PARTITION_BY (k, s), OVERWRITE_OR_IGNORE)")
        con.sql(f"COPY t TO '{tmp_path / 'q'}' (PARTITION_BY k)")
        assert sorted(path.name for path in (tmp_path / "q").iterdir()) == ["k=0", "k=1", "k=2"]
        for wrong, message in (("nope", "nope"), ("(i, k, s)", "names all columns")):
            with pytest.raises(tqp.BindError, match=message):
                con.sql(f"COPY t TO '{tmp_path / 'w'}' (PARTITION_BY {wrong})")


def test_copy_from_files(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("i,s\n1,a\n2,\n")
    pq.write_table(pa.table({"s": ["z"], "i": [9.0]}), tmp_path / "t.parquet")
    with tqp.connect() as con:
        con.sql("CREATE TABLE t(i INT NOT NULL, s VARCHAR, d INT DEFAULT 4)")
        assert con.sql(f"COPY t(i, s) FROM '{tmp_path / 't.csv'}'").fetchall() == [(2,)]
        con.sql(f"COPY t(s, i) FROM '{tmp_path / 't.parquet'}'")
        assert con.sql("FROM t").fetchall() == [(1, "a", 4), (2, None, 4), (9, "z", 4)]
        with pytest.raises(tqp.ExecutionError, match="3 names are given, and the file has 2 columns"):
            con.sql(f"COPY t FROM '{tmp_path / 't.csv'}'")
        (tmp_path / "o.csv").write_text("s\nx\n")
        with pytest.raises(tqp.ExecutionError, match="NOT NULL"):
            con.sql(f"COPY t(s) FROM '{tmp_path / 'o.csv'}'")


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("COPY t TO '{}/nowhere/x.csv'", r"cannot write .*/nowhere/x\.csv: No such file or directory"),
        ("COPY t TO '{}'", "it is a directory"),
        ("COPY t TO '/proc/x.parquet'", r"cannot write /proc/x\.parquet: "),
        ("COPY t TO 'nope://bucket/x.csv'", "cannot open nope://bucket/x.csv: Protocol not known"),
        ("COPY t TO ''", "the path of a file cannot be empty"),
        ("COPY t TO 'file://elsewhere/x.csv'", "on another computer"),
        ("COPY t TO '{}/x' (FORMAT xlsx)", "'xlsx' is not supported"),
        ("COPY t TO '{}/x.csv' (NOPE 1)", "the option NOPE of csv files is not supported"),
        ("COPY t TO STDOUT", "not supported"),
        ("COPY t FROM '{}/nope.csv'", r"nope\.csv"),
        ("COPY nope TO '{}/x.csv'", 'no table "nope"'),
    ],
)
def test_errors_name_the_file_and_leave_nothing(tmp_path: Path, statement: str, message: str) -> None:
    with tqp.connect() as con:
        con.sql("CREATE TABLE t AS SELECT 1 AS a")
        with pytest.raises(tqp.Error, match=message):
            con.sql(statement.format(tmp_path))
        assert list(tmp_path.iterdir()) == []
        assert con.sql("FROM t").fetchall() == [(1,)]


def test_a_file_stays_as_it_was_where_writing_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tqp.writing import csv_writer

    path = tmp_path / "t.csv"
    path.write_text("before")
    path.chmod(0o640)
    result = tqp.sql("SELECT i FROM range(10) r(i)")
    with monkeypatch.context() as patch:

        def fail(*_: object) -> None:
            raise OSError(28, "No space left on device")

        patch.setattr(csv_writer, "_lines", fail)
        with pytest.raises(tqp.ExecutionError, match=r"cannot write .*t\.csv: No space left on device"):
            result.write_csv(path)
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]
    result.write_csv(path)
    assert path.read_text().startswith("i\n0\n") and path.stat().st_mode & 0o777 == 0o640


def test_a_killed_process_leaves_no_half_written_file(tmp_path: Path) -> None:
    script = textwrap.dedent(f"""
        import tqp
        con = tqp.connect(threads=1)
        result = con.sql("SELECT i, i::VARCHAR AS s FROM range(3000000) r(i)")
        print("ready", flush=True)
        result.write_csv("{tmp_path}/t.csv")
        print("written", flush=True)
    """)
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        while not any(tmp_path.iterdir()) and process.poll() is None:
            time.sleep(0.001)
        os.kill(process.pid, signal.SIGKILL)
    if (tmp_path / "t.csv").exists():  # it was quicker
        assert (tmp_path / "t.csv").read_bytes().count(b"\n") == 3_000_001
    else:
        assert all(path.name.startswith(".t.csv.") for path in tmp_path.iterdir())


def test_ways_out_under_the_names_of_others() -> None:
    result = tqp.sql("SELECT * FROM (VALUES (1, 'a', 1.5), (NULL, NULL, 2.5)) t(i, s, x)")
    assert result.df().equals(result.to_pandas()) and result.fetchdf().shape == (2, 3)
    assert result.pl().equals(result.to_polars()) and result.arrow().equals(result.fetch_arrow_table())
    assert result.fetchmany(1) == [(1, "a", Decimal("1.5"))] and len(result.fetchmany(5)) == 1
    assert result.fetchmany(5) == [] and [column[0] for column in result.description] == ["i", "s", "x"]
    arrays = result.fetchnumpy()
    assert (
        arrays["i"].tolist() == [1, None]
        and arrays["i"].dtype == np.int32
        and arrays["x"].tolist() == [1.5, 2.5]
    )
    assert np.asarray(tqp.sql("SELECT i, i * 2 AS j FROM range(3) r(i)")).tolist() == [[0, 0], [1, 2], [2, 4]]
    assert np.asarray(tqp.sql("SELECT i FROM range(3) r(i)")).tolist() == [0, 1, 2]
    with tqp.connect() as con:
        assert con.execute("SELECT ? + 1", [1]).fetchone() == (2,) == con.query("SELECT 2").fetchone()


FOLDERS = (  # statements, of which each begins in an empty folder
    "COPY t TO 'o' (FORMAT csv, PARTITION_BY (k), FILENAME_PATTERN 'f_{i}', FILE_EXTENSION 'txt')",
    "COPY t TO 'o' (FORMAT csv, PARTITION_BY (k), FILENAME_PATTERN 'f')",
    "COPY t TO 'o' (FORMAT csv, PARTITION_BY *, WRITE_PARTITION_COLUMNS)",
    "COPY t TO 'o' (FORMAT csv, PARTITION_BY (K), HIVE_FILE_PATTERN false)",
    "COPY t TO 'o' (FORMAT json, PARTITION_BY k, OVERWRITE_OR_IGNORE true)",
    "COPY t TO 'o' (FORMAT csv, PER_THREAD_OUTPUT)",
    "COPY t TO 'o.csv' (APPEND); COPY t TO 'o.csv' (OVERWRITE)",
    "COPY t TO 'o' (FORMAT csv, PER_THREAD_OUTPUT); COPY t TO 'o/other.csv'; COPY t TO 'o' (FORMAT csv, PARTITION_BY k, OVERWRITE)",
    "COPY t TO 'o' (FORMAT csv); COPY t TO 'o' (FORMAT csv, PER_THREAD_OUTPUT, OVERWRITE)",
    "COPY (FROM range(300000)) TO 'o' (FORMAT csv, FILE_SIZE_BYTES 10); COPY (FROM range(3)) TO 'p' (FORMAT csv, FILE_SIZE_BYTES '1kb')",
    "COPY (FROM t LIMIT 0) TO 'o.csv' (WRITE_EMPTY_FILE false); COPY (FROM t LIMIT 0) TO 'p' (FORMAT csv, PARTITION_BY k)",
    "COPY t TO 'o.csv' (PREFIX '[', SUFFIX ']', NEW_LINE '\\r\\n'); COPY t TO 'p.csv' (PREFIX '<', SUFFIX '>', HEADER false)",
    "COPY t TO 'o.csv' (FORCE_QUOTE (s), DATE_FORMAT '%d.%m.%Y', TIMESTAMP_FORMAT '%H', NULL '-', USE_TMP_FILE false)",
    "COPY t TO 'o.json' (TIMESTAMPFORMAT '%Y', ARRAY)",
    "COPY t TO 'o' (FORMAT csv, COMPRESSION gzip, PARTITION_BY k)",
)


@pytest.mark.parametrize("statements", FOLDERS)
def test_folders_of_files_are_those_of_duckdb(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statements: str
) -> None:
    table = """CREATE TABLE t AS SELECT i, i % 2 AS k, CASE WHEN i > 1 THEN 'a b/c=d~"%' END AS s, DATE '2024-01-02' AS d,
        TIMESTAMP '2024-01-02 03:04:05' AS ts FROM range(4) r(i)"""
    found = []
    for name, connection in ("ours", tqp.connect()), ("theirs", duckdb.connect(config={"threads": 1})):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        with connection:
            connection.execute(table)
            for statement in statements.split("; "):
                connection.execute(statement)
        files = [path for path in (tmp_path / name).rglob("*") if path.is_file()]
        found.append(
            {
                str(path.relative_to(tmp_path / name)): path.suffix == ".gz" or path.read_bytes()
                for path in files
            }
        )
    assert found[0] == found[1]


def test_files_are_added_to_folders_and_named(tmp_path: Path) -> None:
    with tqp.connect() as con:
        copy = f"COPY (SELECT i, i % 2 AS k FROM range(4) r(i)) TO '{tmp_path / 'o'}' (FORMAT parquet, PARTITION_BY k"
        con.sql(f"{copy}, APPEND)")
        count, files = con.sql(f"{copy}, APPEND, FILENAME_PATTERN 'x_{{uuid}}', RETURN_FILES)").fetchall()[0]
        assert count == 4 and len(files) == 2 and all(Path(file).is_file() for file in files)
        assert sum(path.name.startswith("x_") for path in tmp_path.rglob("*.parquet")) == 2
        assert con.sql(f"SELECT count(*), sum(k) FROM '{tmp_path}/o/*/*.parquet'").fetchall() == [(8, 4)]


@pytest.mark.parametrize(
    "options",
    (
        "PARTITION_BY ()", "PARTITION_BY (k, k)", "PARTITION_BY", "OVERWRITE, APPEND", "OVERWRITE 'x'", "PER_THREAD_OUTPUT, PARTITION_BY k",
        "APPEND, PER_THREAD_OUTPUT, FILENAME_PATTERN 'x'", "FILENAME_PATTERN 3", "FILE_SIZE_BYTES 'x'", "FORCE_QUOTE (zz)", "PREFIX 'x'",
        "PREFIX 'x', SUFFIX 'y', HEADER", "HEADER 'x'", "DATEFORMAT 3", "DELIM ';', SEP ','", "USE_TMP_FILE, PARTITION_BY k",
        "WRITE_EMPTY_FILE false, PER_THREAD_OUTPUT", "ENCODING 'latin-1'", "DELIMITER 'abcde'", "COMPRESSION_LEVEL 3", "FORMAT parquet, COMPRESSION_LEVEL 3",
        "FORMAT parquet, COMPRESSION zstd, COMPRESSION_LEVEL 99", "FORMAT parquet, KV_METADATA 3", "FORMAT parquet, FIELD_IDS {zz: 1}",
        "FORMAT parquet, FIELD_IDS {i: 1, k: 1}", "FORMAT parquet, PARQUET_VERSION V3", "FORMAT parquet, ROW_GROUP_SIZE 'x'", "nonsense",
    ),
)  # fmt: skip
def test_wrong_options_write_nothing(tmp_path: Path, options: str) -> None:
    statement = f"COPY (SELECT i, i % 2 AS k FROM range(4) r(i)) TO '{tmp_path / 'o'}' ({options})"
    with pytest.raises(duckdb.Error), duckdb_database() as con:
        con.execute(statement)
    with pytest.raises((tqp.BindError, tqp.UnsupportedError)), tqp.connect() as con:
        con.sql(statement)
    assert not list(tmp_path.iterdir())


def test_parquet_files_say_what_they_are_told(tmp_path: Path) -> None:
    path = tmp_path / "t.parquet"
    with tqp.connect() as con:
        query = "SELECT {x: 1, y: [2]} AS s, 3 AS z, MAP {1: 2} AS m"
        con.sql(
            f"COPY ({query}) TO '{path}' (FIELD_IDS auto, KV_METADATA {{a: 'x', b: 3}}, PARQUET_VERSION V2)"
        )
        schema = f"SELECT name, field_id FROM parquet_schema('{path}') WHERE field_id IS NOT NULL"
        numbered = [
            ("s", 0),
            ("x", 1),
            ("y", 2),
            ("element", 3),
            ("z", 4),
            ("m", 5),
            ("key", 6),
            ("value", 7),
        ]
        assert con.sql(schema).fetchall() == duckdb.sql(schema).fetchall() == numbered
        said = con.sql(f"SELECT key::VARCHAR, value::VARCHAR FROM parquet_kv_metadata('{path}')").fetchall()
        assert {("a", "x"), ("b", "3")} <= set(said)
        assert con.sql(f"FROM '{path}'").fetchall() == duckdb.sql(f"FROM '{path}'").fetchall()
        ids = "{s: {__duckdb_field_id: 5, X: 6, y: {__duckdb_field_id: 7, element: 8}}}"
        con.sql(query).to_parquet(path, field_ids=con.sql(f"SELECT {ids}").fetchall()[0][0])
        assert con.sql(schema).fetchall() == [("s", 5), ("x", 6), ("y", 7), ("element", 8)]
        rows = con.sql("SELECT i FROM range(50000) r(i)")
        rows.write_parquet(path, row_group_size_bytes="80KB", compression="zstd", compression_level=3)
        assert pq.ParquetFile(path).num_row_groups == 5
        rows.write_parquet(tmp_path / "o", row_groups_per_file=1, row_group_size=20000)
        assert con.sql(f"SELECT sum(i) FROM '{tmp_path}/o/data_[012].parquet'").fetchall() == [(1249975000,)]


@pytest.mark.parametrize(
    "options",
    (
        {"quoting": "all"}, {"quoting": 1, "sep": "|", "header": False}, {"na_rep": "N", "encoding": "utf-8"},
        {"quotechar": "'", "escapechar": "'", "date_format": "%Y", "timestamp_format": "%m", "compression": None},
        {"partition_by": ["a"], "overwrite": True}, {"partition_by": ["a"], "write_partition_columns": True},
        {"per_thread_output": True}, {"use_tmp_file": False},
    ),
)  # fmt: skip
def test_options_of_to_csv(tmp_path: Path, options: dict[str, object]) -> None:
    rows = (
        "SELECT 1 AS a, 'x''y' AS b, DATE '2024-02-01' AS d, TIMESTAMP '2024-02-01 00:00:00' AS t, NULL AS n"
    )
    found = []
    for module in (tqp, duckdb):
        out = tmp_path / module.__name__
        module.sql(rows).to_csv(str(out), **options)
        files = [out] if out.is_file() else [path for path in out.rglob("*") if path.is_file()]
        found.append({str(path.relative_to(out)): path.read_text() for path in files})
    assert found[0] == found[1]


@pytest.mark.parametrize(
    "options", ({"encoding": "latin-1"}, {"quoting": 3}, {"quoting": "none"}, {"nope": 1}, {"header": "x"})
)
def test_wrong_options_of_to_csv_are_named(tmp_path: Path, options: dict[str, object]) -> None:
    (name,) = options
    with pytest.raises(tqp.Error, match=f"(?i){name}"):
        tqp.sql("SELECT 1 AS a").to_csv(tmp_path / "t.csv", **options)


@pytest.mark.parametrize("mode", ["", ", APPEND", ", OVERWRITE_OR_IGNORE"])
def test_a_file_in_the_place_of_a_folder_is_removed_by_overwrite_alone(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "sales"
    path.write_text("kept")
    statement = "COPY (SELECT 1 AS a, 2 AS b) TO '{}' (FORMAT csv, PARTITION_BY (a){})"
    with pytest.raises(duckdb.IOException, match="is a file"):
        duckdb.sql(statement.format(path, mode))
    with pytest.raises(tqp.ExecutionError, match="it is a file"):
        tqp.sql(statement.format(path, mode))
    assert path.read_text() == "kept"
    tqp.sql(statement.format(path, ", OVERWRITE"))
    assert (path / "a=1" / "data_0.csv").read_text() == "b\n2\n"
