"""Reads, runs and completes `.slt` files: SQL in, rows out, in the format of sqllogictest.

A file holds records, separated by blank lines; a line that starts with `#` is a comment.

    statement ok                        setup, run by DuckDB; its tables are then registered with tqp as Arrow tables.
    CREATE TABLE t AS ...               All of a file's setup is done before its first query.

    query IT rowsort                    I integer, N decimal, R float, B boolean, T string, X blob, D date, P timestamp,
    SELECT i, s FROM t                  Z timestamp with time zone, M time, V interval, A list, S struct, G map, U union, ? NULL; then `nosort`
    ----                                (the default: rows come in this order), `rowsort` (in any order) or `valuesort`,
    1<tab>one                           and a label: records of one label must have the same rows.
    2<tab>(empty)

    params [7, "x"]                     a line before `query` or `statement error`, as JSON: a list for ? and $1,
    query I                             an object for $name
    ...

    statement error                     the pattern is searched for in `ErrorClass: message`; DuckDB refuses it too
    SELECT CAST('x' AS INTEGER)
    ----
    <REGEX>:ExecutionError: .*'x'

    statement unsupported               DuckDB can do this, tqp says that it cannot

`python -m tests.complete_slt FILE ...` writes the types and rows, as DuckDB gives them, into the files.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

import tqp
from tests.oracle import arrow_of, duckdb_database
from tqp.data.results.display import cell_texts

DIRECTORY = Path(__file__).parent / "slt"

Parameters = list[Any] | dict[str, Any] | None


@dataclass
class Record:
    """One record. `head` is its first line, `expected` the lines under `----`."""

    line: int
    head: list[str]
    sql: str
    expected: list[str] = field(default_factory=list)
    comment: list[str] = field(default_factory=list)
    params: Parameters = None

    @property
    def kind(self) -> str:
        """`query`, or `statement ok`, `statement error` or `statement unsupported`."""
        return "query" if self.head[0] == "query" else " ".join(self.head[:2])

    @property
    def sort(self) -> str:
        return self.head[2] if len(self.head) > 2 else "nosort"

    @property
    def label(self) -> str | None:
        return self.head[3] if len(self.head) > 3 else None

    def __str__(self) -> str:
        lines = list(self.comment)
        if self.params is not None:
            lines.append(f"params {json.dumps(self.params, ensure_ascii=False)}")
        lines += [" ".join(self.head), self.sql]
        if self.kind != "statement ok":
            lines += ["----", *self.expected]
        return "\n".join(lines)


def parse(text: str) -> list[Record]:
    """The records of a file."""
    records = []
    line_number = 1
    for block in re.split(r"(\n(?:[ ]*\n)+)", text):
        lines = block.split("\n")
        if block.strip():
            record = _parse_block(lines, line_number)
            if record is not None:
                records.append(record)
        line_number += block.count("\n")
    return records


def _parse_block(lines: Sequence[str], line_number: int) -> Record | None:
    comment: list[str] = []
    params: Parameters = None
    for index, line in enumerate(lines):
        if line.startswith("#") or not line.strip():
            comment.append(line)
        elif line.startswith("params "):
            params = json.loads(line.removeprefix("params "))
        elif line.startswith(("query", "statement")):
            body = list(lines[index + 1 :])
            cut = body.index("----") if "----" in body else len(body)
            expected = body[cut + 1 :]
            while expected and not expected[-1]:
                expected.pop()
            sql = "\n".join(body[:cut]).strip()
            kept = [text for text in comment if text]
            return Record(line_number + index, line.split(), sql, expected, kept, params)
        else:
            raise ValueError(f"line {line_number + index}: a record cannot start with {line!r}")
    return Record(line_number, ["comment"], "", [], comment) if comment else None


def set_up(records: Sequence[Record], connection: duckdb.DuckDBPyConnection) -> None:
    """Give a DuckDB the file's tables."""
    connection.execute("SET TimeZone = 'UTC'")
    for record in records:
        if record.kind == "statement ok":
            connection.execute(record.sql)


def register_tables(records: Sequence[Record], connection: tqp.Connection) -> None:
    """Register the file's tables, which DuckDB makes, as Arrow tables."""
    with duckdb_database() as oracle:
        set_up(records, oracle)
        for (name,) in oracle.execute("SHOW TABLES").fetchall():
            connection.register(name, arrow_of(oracle.sql(f'FROM "{name}"')))


def check(record: Record, connection: tqp.Connection) -> None:
    """Raises AssertionError unless tqp does what a record that is no setup says."""
    if record.kind == "query":
        answer = connection.sql(record.sql, params=record.params)
        letters = type_letters(answer)
        assert letters == record.head[1], f"types {letters}, not {record.head[1]}, of\n{record.sql}"
        actual = rows(answer, record.sort)
        if not same_rows(actual, record.expected, letters):
            difference = "\n".join(difflib.ndiff(record.expected, actual))
            raise AssertionError(f"rows of\n{record.sql}\n{difference}")
        return
    try:
        connection.sql(record.sql, params=record.params).to_arrow()
    except tqp.Error as error:
        if record.kind == "statement unsupported":
            assert isinstance(error, tqp.UnsupportedError), f"{type(error).__name__}: {error}"
        pattern = "\n".join(record.expected).removeprefix("<REGEX>:")
        message = f"{type(error).__name__}: {error}"
        assert re.search(pattern, message, re.IGNORECASE), f"{message}\nis not the error\n{pattern}"
    else:
        raise AssertionError(f"no error of\n{record.sql}")


def type_letters(answer: tqp.Result) -> str:
    """One letter a column."""
    return "".join(_type_letter(column.type) for column in answer.to_arrow().schema)


def rows(answer: tqp.Result, sort: str) -> list[str]:
    """The lines that stand under `----`."""
    columns = [[_cell(text) for text in cell_texts(column)] for column in answer._table.columns]
    lines = ["\t".join(row) for row in zip(*columns, strict=True)]
    if sort == "rowsort":
        return sorted(lines)
    if sort == "valuesort":
        return sorted(cell for line in lines for cell in line.split("\t"))
    return lines


def same_rows(actual: Sequence[str], expected: Sequence[str], letters: str) -> bool:
    """Are the lines equal, floats to a relative 1e-12?"""
    if list(actual) == list(expected):
        return True
    if len(actual) != len(expected) or "R" not in letters:
        return False
    return all(map(_same_line, actual, expected, [letters] * len(actual)))


def _same_line(actual: str, expected: str, letters: str) -> bool:
    pairs = list(zip(actual.split("\t"), expected.split("\t"), strict=False))
    if len(pairs) != len(letters):
        return False
    for (left, right), letter in zip(pairs, letters, strict=True):
        if left != right and (letter != "R" or "NULL" in (left, right)):
            return False
        if left != right and not math.isclose(float(left), float(right), rel_tol=1e-12):
            return False
    return True


def _cell(text: str | None) -> str:
    if text is None:
        return "NULL"
    return text.replace("\\", "\\\\").replace("\t", "\\t").replace("\n", "\\n") or "(empty)"


def _type_letter(data_type: pa.DataType) -> str:
    types = pa.types
    if types.is_dictionary(data_type):
        return _type_letter(data_type.value_type)
    if types.is_timestamp(data_type):
        return "P" if data_type.tz is None else "Z"
    for letter, predicates in _LETTERS.items():
        if any(predicate(data_type) for predicate in predicates):
            return letter
    raise ValueError(f"no letter for {data_type}")


_LETTERS = {
    "I": [pa.types.is_integer],
    "N": [pa.types.is_decimal],
    "R": [pa.types.is_floating],
    "B": [pa.types.is_boolean],
    "T": [pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view],
    "X": [pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view],
    "D": [pa.types.is_date],
    "M": [pa.types.is_time],
    "V": [pa.types.is_interval],
    "A": [pa.types.is_list, pa.types.is_fixed_size_list],
    "S": [pa.types.is_struct],
    "G": [pa.types.is_map],
    "U": [pa.types.is_union],
    "?": [pa.types.is_null],
}
