"""`python -m tests.complete_slt [FILE ...]`: writes what DuckDB answers into `.slt` files (default: all of them).

Every record is reviewed by reading the difference that this leaves. A query that DuckDB refuses, or a `statement error`
that it accepts (or the reverse for `statement unsupported`), is reported and left as it is.
"""

from __future__ import annotations

import sys
from pathlib import Path

import duckdb

import tqp
from tests import sqllogic
from tests.oracle import with_bits


def complete(path: Path) -> list[str]:
    """Rewrites the file; returns what is wrong with it."""
    records = sqllogic.parse(path.read_text(encoding="utf-8"))
    connection = duckdb.connect()
    sqllogic.set_up(records, connection)
    problems = []
    for record in records:
        where = f"{path.name}:{record.line}"
        if record.kind == "query":
            try:
                answer = _as_result(connection.sql(record.sql, params=record.params))
            except duckdb.Error as error:
                problems.append(f"{where}: DuckDB refuses: {str(error).splitlines()[0]}")
                continue
            record.head[1:2] = [sqllogic.type_letters(answer)]
            record.expected = sqllogic.rows(answer, record.sort)
        elif record.kind != "statement ok" and not _holds(connection, record):
            problems.append(f"{where}: {record.kind} does not hold of DuckDB: {record.sql!r}")
    path.write_text("\n\n".join(map(_text, records)) + "\n", encoding="utf-8")
    return problems


def _as_result(relation: duckdb.DuckDBPyRelation) -> tqp.Result:
    """DuckDB's answer as one of tqp, whose texts the files hold."""
    answer = with_bits(relation)
    with tqp.connect() as connection:
        connection.register(
            "answer", answer.rename_columns([f"c{place}" for place in range(answer.num_columns)])
        )
        return connection.sql("FROM answer")


def _holds(connection: duckdb.DuckDBPyConnection, record: sqllogic.Record) -> bool:
    """Does DuckDB refuse what is an error, and accept what is merely unsupported?"""
    if record.kind == "comment":
        return True
    try:
        connection.sql(record.sql, params=record.params).to_arrow_table()
    except duckdb.Error:
        return record.kind == "statement error"
    return record.kind == "statement unsupported"


def _text(record: sqllogic.Record) -> str:
    return "\n".join(record.comment) if record.head == ["comment"] else str(record)


def main(arguments: list[str]) -> int:
    """Completes the files that `arguments` name."""
    paths = [Path(argument) for argument in arguments] or sorted(sqllogic.DIRECTORY.glob("**/*.slt"))
    problems = [problem for path in paths for problem in complete(path)]
    print("\n".join(problems) or f"{len(paths)} files completed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
