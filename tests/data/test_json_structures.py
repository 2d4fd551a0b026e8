"""JSON files whose values differ in their types, or are no objects: as DuckDB reads them."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

import tqp

#: What a file holds, and options.
CASES = (
    ('{"a":1}\n{"a":"x"}\n', ""),
    ('{"a":1.5}\n{"a":true}\n{"a":null}', ""),
    ('{"a": {"b" : 1, "c":"x y"}}\n{"a":[1 , 2]}\n', ""),
    ('{"a":{"b":1}}\n{"a":{"b":"x"}}\n{"a":null}', ""),
    ('{"a":[1]}\n{"a":["x"]}\n{}', ""),
    ('{"a":[{"b":1},{"c":2}, null]}\n', ""),
    ('{"a":"2020-01-01"}\n{"a":5}\n', ""),
    ('{"a":{"b":{"c":[1,{"d":2}]}}, "t": "2020-01-01 10:00:00"}', ""),
    ('{"a":{}}\n{"a":null}\n{}', ""),
    ('{"a":[{}, null]}\n', ""),
    ('{"a":{"b":{}, "c": 1}}\n', ""),
    ('{"a":{}}\n{"a":{"b":1}}\n', ""),
    ("1\n2\n", ""),
    ('1\n"x"\n', ""),
    ("[1,2]\n[3]\n", ""),
    ('[1,"x"]', ""),
    ("[[1],[2]]", ""),
    ('[1,{"a":1}]', ""),
    ('{"a":1}\n2\n', ""),
    ('null\n{"a":1}\n', ""),
    ('[\n{"a":1},\n{"a":"x"}\n]', ""),
    ('"2020-01-01"\n', ""),
    ("null", ""),
    ("", ""),
    (" \n\n", ""),
    ("[]", ""),
    ('{"a":1}\n{"a":\n{"a":3}\n', ", ignore_errors=true"),
    ('{"a":1}\nxx\n{"a":3}\n', ", ignore_errors=true, format='newline_delimited'"),
    ('{"a":1}\n{"a":"x"}\n', ", ignore_errors=true, columns={a: 'INT'}"),
    *(('{"a":{"b":{"c":[1,{"d":2}]}},"e":1,"f":[1]}', f", maximum_depth={depth}") for depth in range(-1, 6)),
    *(
        (content, f", records={records}")
        for content in ('{"a":1,"b":"x"}\n{"a":2}\n', "1\n2\n", '[{"a":1}]')
        for records in ("true", "false", "'auto'", "'x'")
    ),
    ('{"a":1}\n{"a":"x"}\n', ", columns={a: 'VARCHAR'}"),
    ('{"a":1}\n{"a":"2"}\n', ", columns={a: 'INT'}"),
    ('{"a":{"b":1}}\n{"a":{"b":"x"}}\n', ", columns={a: 'STRUCT(b VARCHAR)'}"),
    ('{"a":[1]}\n{"a":["x"]}\n', ", columns={a: 'VARCHAR[]'}"),
    ('{"a":1,"b":"x"}\n', ", auto_detect=false, columns={a: 'INT'}"),
    ('{"a":1,"b":"x"}\n', ", auto_detect=false"),
    ('{"d":"01/02/2020"}\n{"d":"13/02/2020"}\n', ", dateformat='%d/%m/%Y'"),
    ('{"d":"01/02/2020"}\n{"d":"x"}\n', ", date_format='%d/%m/%Y'"),
    ('{"d":"01/02/2020 10h"}\n{"d":"13/02/2020 11h"}\n', ", timestampformat='%d/%m/%Y %Hh'"),
    ('{"d":"2020-02-01"}\n', ", dateformat='%d/%m/%Y'"),
    ('{"d":"2020-02-01"}\n', ", dateformat='iso'"),
    ('{"d":"2020-02-01", "t":"2020-02-01 10:00:00"}\n', ", timestampformat='%d/%m/%Y %Hh'"),
    ('{"d":"01/02/2020"}', ", dateformat='%d/%m/%Y', columns={d: 'DATE'}"),
    ('{"d":"01/02/2020"}', ", dateformat='%d/%m/%Y', columns={d: 'VARCHAR'}"),
    ('[{"a":1}]', ", format='newline_delimited'"),
    ('[{"a":1}]', ", format='unstructured'"),
    ('{"a":1}', ", format='array'"),
    ('{"a":1} {"a":2}', ", format='unstructured'"),
)


def _answer(connection: duckdb.DuckDBPyConnection | tqp.Connection, query: str) -> object:
    try:
        found = connection.execute(query)
    except (duckdb.Error, tqp.Error):
        return None
    description = found.description
    assert description is not None
    types = ['"NULL"' if str(each[1]) == "NULL" else str(each[1]) for each in description]
    return [each[0] for each in description], types, found.fetchall()


@pytest.mark.parametrize(("content", "options"), CASES)
def test_json_of_any_structure(tmp_path: Path, content: str, options: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    query = f"FROM read_json('{path}'{options})"
    with tqp.connect() as connection, duckdb.connect() as oracle:
        assert _answer(connection, query) == _answer(oracle, query)


def test_files_with_other_keys(tmp_path: Path) -> None:
    for name, content in ("a", '{"a":1}'), ("b", '{"b":2,"a":null}'), ("c", "{}"):
        (tmp_path / f"{name}.json").write_text(content)
    for query in (
        f"FROM '{tmp_path}/[ab].json'",
        f"FROM read_json(['{tmp_path}/b.json', '{tmp_path}/a.json'])",
    ):
        with tqp.connect() as connection, duckdb.connect() as oracle:
            assert _answer(connection, query) == _answer(oracle, query)
