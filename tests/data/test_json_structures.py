"""JSON files whose values differ in their types, or are no objects: as DuckDB reads them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import tqp
from tests.oracle import answer_of, duckdb_database

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
    *(
        ("\n".join(f'{{"a":{each}}}' for each in numbers), "")
        for numbers in (
            (2**63, -1, "null"),
            (2**64 - 1,),
            (2**64,),
            (2**63, 1.5),
            (-(2**63) - 1,),
            (2**63, 1, '"x"'),
        )
    ),
    (
        '{"a":["10:00", null, "1:02:03.5"],"s":{"u":"550E8400-e29b-41d4-a716-446655440000","d":"2020-1-2"}}\n{}',
        "",
    ),
    ('{"a":[["2020-01-01"], null, []]}\n{"a":null}', ""),
    ('{"a":"10:00","b":"2020-01-01","c":1}\n{"a":"11:00","b":"2020-01-02","c":[]}', ""),
    ('{"a":"10:00","b":"2020-01-01"}', ", dateformat='%Y'"),
    ('["10:00", null]', ""),
    ('{"a":"10:00"}', ", columns={a: 'VARCHAR'}"),
)

#: What the one text of a key is: a date, a time, a timestamp, a UUID, or nothing of these.
TEXTS = """2020-01-01T10:00:00
2020-01-01T10:00:00Z
2020-01-01 10:00:00+02:30
2020-01-01 10:00:00-02
2020-01-01 10:00
2020-1-1
2020-1-1 1:00:00
2020-02-30
2020-01-01 10:00:00.123
2020-01-01T10:00:00.123
2020-01-01T10:00:00.123Z
2020-01-01 10:00:00.1234567
2020-01-01 10:00:00 PM
2020-01-01  10:00:00
 2020-01-01
01-02-2020
13-02-2020
01-13-2020
20-01-01
70-01-01
01-02-20
2020/01/01
20200101
10:05
10:5
1:2:3
10:05:5.1234567
24:00:00
24:00:01
10:60
 10:00:00
10:00:00Z
100:00:00
10
550e8400-e29b-41d4-a716-446655440000
550e8400e29b41d4a716446655440000
550e8400-e29b-41d4-a716-44665544000g
{550e8400-e29b-41d4-a716-446655440000}""".split("\n")


@pytest.mark.parametrize(("content", "options"), CASES)
def test_json_of_any_structure(tmp_path: Path, content: str, options: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(content)
    query = f"FROM read_json('{path}'{options})"
    with tqp.connect() as connection, duckdb_database() as oracle:
        assert answer_of(connection, query) == answer_of(oracle, query)


@pytest.mark.parametrize("text", TEXTS)
def test_forms_of_texts(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps([{"a": text}, {"a": None}, {"b": [text]}]))
    query = f"SELECT typeof(a), a::VARCHAR, typeof(b), b::VARCHAR FROM '{path}'"
    with tqp.connect() as connection, duckdb_database() as oracle:
        assert answer_of(connection, query) == answer_of(oracle, query)


#: Files that are read together.
FILES = (
    ('{"a":1}', '{"a":1.5}'),
    ('{"a":1.5}', '{"a":1}', '{"a":null}'),
    ('{"a":1,"b":"x"}', '{"a":"x","b":true}'),
    ('{"a":"2020-01-01"}', '{"a":"x"}'),
    ('{"a":"2020-01-01"}', '{"a":"2020-01-02 10:00:00"}'),
    ('{"a":{"x":1}}', '{"a":{"y":2.5},"b":1}'),
    ('{"a":[1]}', '{"a":[2.5]}', '{"b":{}}'),
    ('{"a":[1]}', '[{"a":["x"]}]'),
    ('{"a":1}', "[1,2]"),
    ('{"a":1}', ""),
    ("", ""),
    ("1", '"x"'),
    ('{"a":9223372036854775808}', '{"a":1}'),
)


@pytest.mark.parametrize("contents", FILES)
def test_files_whose_types_differ(tmp_path: Path, contents: tuple[str, ...]) -> None:
    for number, content in enumerate(contents):
        (tmp_path / f"{number}.json").write_text(content)
    for query in (
        f"FROM '{tmp_path}/*.json'",
        f"FROM read_json('{tmp_path}/*.json', filename=true, union_by_name=true)",
        f"FROM read_json({[f'{tmp_path}/{at}.json' for at in reversed(range(len(contents)))]})",
    ):
        with tqp.connect() as connection, duckdb_database() as oracle:
            assert answer_of(connection, query) == answer_of(oracle, query)


def test_files_with_other_keys(tmp_path: Path) -> None:
    for name, content in ("a", '{"a":1}'), ("b", '{"b":2,"a":null}'), ("c", "{}"):
        (tmp_path / f"{name}.json").write_text(content)
    for query in (
        f"FROM '{tmp_path}/[ab].json'",
        f"FROM read_json(['{tmp_path}/b.json', '{tmp_path}/a.json'])",
    ):
        with tqp.connect() as connection, duckdb_database() as oracle:
            assert answer_of(connection, query) == answer_of(oracle, query)
