"""read_json_objects() and read_ndjson_objects() give the texts of values, as DuckDB does."""

from __future__ import annotations

import gzip
from pathlib import Path

import duckdb
import pytest

import tqp

FILES = {
    "lines": '{"a":1}\n{"b":[1,{"x":null}]}\n',
    "blanks": '\n {"a": 1,  "b":"é\\u00e9"} \r\n\n {"c" :2}',
    "array": '[{"a":1},\n 5, [1], "x,]", null , 1.50]',
    "empty array": " [ ] ",
    "nothing": "",
    "pretty": '{\n "a": 1\n}\n{\n "a": 2\n}\n',
    "cut off": '{"a": 1}\n{"b": \n',
    "no JSON": '{"a": 1}\n{"b": NaN}\n',
    "behind an array": '[{"a": 1}] {"b": 2}',
    "no comma": '[{"a": 1} {"b": 2}]',
}
CALLS = [
    "read_json_objects('{}')",
    "read_json_objects_auto('{}')",
    "read_ndjson_objects('{}')",
    "read_json_objects('{}', format = 'array')",
    "read_json_objects('{}', format = 'newline_delimited')",
    "read_json_objects('{}', format = 'unstructured')",
]


@pytest.mark.parametrize("name", FILES)
def test_values(tmp_path: Path, name: str) -> None:
    path = tmp_path / "t.json"
    path.write_text(FILES[name])
    for call in CALLS:
        query = f"SELECT json, typeof(json) FROM {call.format(path)}"
        try:
            expected = duckdb.sql(query).fetchall()
        except duckdb.Error:
            with pytest.raises(tqp.ExecutionError, match=str(path)):
                tqp.sql(query)
        else:
            assert tqp.sql(query).fetchall() == expected, call


def test_several_files(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"k": "é"}\n{"k": 2}')
    (tmp_path / "b.json.gz").write_bytes(gzip.compress(b"[1, 2]"))
    query = f"SELECT json, json ->> 'k', filename FROM read_json_objects('{tmp_path}/*', filename = true) ORDER BY ALL"
    assert tqp.sql(query).fetchall() == duckdb.sql(query).fetchall()


def test_options_of_other_functions_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text("{}")
    with pytest.raises(tqp.UnsupportedError, match="columns"):
        tqp.sql(f"FROM read_json_objects('{tmp_path}/a.json', columns = {{'a': 'INT'}})")
    with pytest.raises(tqp.UnsupportedError, match="format"):
        tqp.sql(f"FROM read_ndjson_objects('{tmp_path}/a.json', format = 'array')")
