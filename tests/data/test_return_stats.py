"""COPY ... (RETURN_STATS) beside DuckDB: all that it says but the sizes, which are those of what another writer makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import tqp
from tests.oracle import duckdb_database

COPIES = [
    """(SELECT i, i % 3 = 0 AS b, CASE WHEN i % 4 > 0 THEN 'x' || i END AS s, i / 2 AS d, DATE '2024-01-01' + i::INTEGER AS dt,
        i::DECIMAL(9, 2) AS dc, CASE WHEN i = 3 THEN 'nan'::DOUBLE ELSE -i END AS dn, 'é"' || chr(10) AS q, NULL::INTEGER AS nn,
        '1'::JSON AS js, TIME '01:02:03' AS tm FROM range(10) r(i)) TO 's.parquet' (RETURN_STATS)""",
    """(SELECT 'a"b' AS "q""x", 'abc'::BLOB AS b, '\\xff'::BLOB AS b2, TIMESTAMP '2024-01-01 01:02:03' AS ts,
        TIMESTAMP_NS '2024-01-01 01:02:03.123456789' AS ns, 1e30::DOUBLE AS d, 1.5::FLOAT AS f, 0.5::DECIMAL(1, 1) AS d1, 'inf'::DOUBLE AS i,
        TIMESTAMPTZ '2024-01-01 00:00:00+00' AS tz, '0c62cae1-56b0-4698-a2f7-7f2ea4427963'::UUID AS uu) TO 't.parquet' (RETURN_STATS)""",
    """(FROM VALUES ([1, 2], {a: [1.5, 'nan'::DOUBLE], b: 'x'}, [{z: 1}], MAP {'k': 2}), ([], NULL, NULL, NULL),
        (NULL, {a: NULL, b: NULL}, [{z: NULL}, NULL], MAP {}) t(l, s, ls, m)) TO 'n.parquet' (RETURN_STATS)""",
    "(SELECT 1 AS a WHERE false) TO 'e.parquet' (RETURN_STATS)",
    "(SELECT 1 AS a WHERE false) TO 'e2.parquet' (RETURN_STATS, WRITE_EMPTY_FILE false)",
    """(SELECT (-i)::INTEGER AS a, i::DOUBLE AS d, -(i::DECIMAL(20, 3)) AS e, (i % 200 + 56)::UTINYINT AS u, i::VARCHAR AS v
        FROM range(300000) r(i)) TO 'groups' (FORMAT parquet, PER_THREAD_OUTPUT, RETURN_STATS)""",
    """(FROM VALUES (1, NULL, 'a/b'), (2, 'x', NULL), (3, 'x', 'é') t(v, p, q)) TO 'p'
        (FORMAT parquet, PARTITION_BY (p, q), RETURN_STATS)""",
    "(SELECT range AS a FROM range(10)) TO 'c.parquet' (RETURN_STATS false)",
]


def _without_sizes(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    if not rows or len(rows[0]) == 1:
        return rows
    return sorted(
        (
            file,
            count,
            {name: {key: text for key, text in said.items() if key != "column_size_bytes"} for name, said in columns.items()},
            *others,
        )
        for file, count, _, _, columns, *others in rows
    )  # fmt: skip


@pytest.mark.parametrize("copy", COPIES)
def test_statistics_are_those_of_duckdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, copy: str) -> None:
    answers = []
    with duckdb_database() as oracle, tqp.connect() as connection:
        oracle.execute("SET TimeZone = 'UTC'")
        oracle.execute("SET threads = 1")
        for name, engine in (("oracle", oracle), ("tqp", connection)):
            (tmp_path / name).mkdir()
            monkeypatch.chdir(tmp_path / name)
            answers.append(_without_sizes(engine.execute(f"COPY {copy}").fetchall()))
    assert answers[0] == answers[1]


def test_columns_and_sizes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    copy = "COPY (SELECT range AS a FROM range(10)) TO 'a.parquet' (RETURN_STATS)"
    with duckdb_database() as oracle, tqp.connect() as connection:
        expected, found = oracle.execute(copy), connection.execute(copy)
        assert list(found.columns) == [column[0] for column in expected.description]
        types = [str(column[1]) for column in expected.description]
        assert list(map(str, found.types)) == [*types[:-1], "MAP(VARCHAR, BIGINT)"]
        [(_, _, num_bytes, footer_bytes, columns, _, _)] = found.fetchall()
        footer = "SELECT file_size_bytes, footer_size FROM parquet_file_metadata('a.parquet')"
        assert oracle.execute(footer).fetchall() == [(num_bytes, footer_bytes)]
        chunks = "SELECT sum(total_compressed_size)::VARCHAR FROM parquet_metadata('a.parquet')"
        assert oracle.execute(chunks).fetchall() == [(columns['"a"']["column_size_bytes"],)]


@pytest.mark.parametrize(
    "options", ["FORMAT csv, RETURN_STATS", "FORMAT json, RETURN_STATS", "RETURN_STATS, RETURN_FILES"]
)
def test_what_is_refused(tmp_path: Path, options: str) -> None:
    with tqp.connect() as connection, pytest.raises(tqp.Error, match="RETURN_STATS"):
        connection.execute(f"COPY (SELECT 1 AS a) TO '{tmp_path}/a.parquet' ({options})")
