"""EXPORT DATABASE and IMPORT DATABASE: a folder with the statements that make a database, and a file of each table."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from tqp.catalog.definitions_as_sql import kept_tables, schema_statements
from tqp.catalog.state import Kind
from tqp.core.errors import BindError, Error, UnsupportedError
from tqp.core.keywords import lower_ascii, quoted, quoted_text
from tqp.core.names import DATABASE, MAIN, ObjectName, shown
from tqp.core.process.deep_recursion import call_deep
from tqp.data.sources.file_identity import reading
from tqp.data.sources.file_systems import content_of, located, make_directory
from tqp.data.sources.stored_tables import StoredTable
from tqp.planner.parse import Command, parse, parse_statement, split_statements
from tqp.planner.syntax.clauses import ExportDatabase, ImportDatabase, Transaction
from tqp.result import Result
from tqp.statements.copy import constant_text, options_of, path_of
from tqp.statements.execution import Execution, done
from tqp.writing.formats import OPTIONS_OF_FORMATS, format_of
from tqp.writing.options import Options
from tqp.writing.replaced_files import stream_beside, writing
from tqp.writing.targets import TARGET_OPTIONS

_SCHEMA, _LOAD = "schema.sql", "load.sql"
#: What a file of tables is read with, by its format, unless options say otherwise; of CSV, an empty text is in quotes and NULL is not.
_READ: Mapping[str, Mapping[str, Any]] = {
    "csv": {"allow_quoted_nulls": False, "quote": '"', "delimiter": ",", "header": True},
    "json": {},
    "parquet": {},
}
#: Options of writing that reading need not know, or that are said otherwise there.
_ONLY_WRITTEN = ("force_quote", "array", *OPTIONS_OF_FORMATS["parquet"])
#: Options that say which files there are, or that reading would have to know.
_REFUSED = (*TARGET_OPTIONS, "prefix", "suffix", "new_line")


def export_database(execution: Execution) -> Result:
    """EXPORT DATABASE. Every file appears whole, that of the tables' definitions last."""
    clauses, catalog = execution.command.clauses, execution.session.catalog
    assert isinstance(clauses, ExportDatabase)
    database = clauses.database
    if database is not None and lower_ascii(database.text) != DATABASE:
        raise BindError(f'there is no database "{database.text}"; its name is "{DATABASE}"', database.span)
    folder = located(path_of(execution, clauses.path))
    said = Options(options_of(execution, clauses.options))
    form = format_of("", said, TARGET_OPTIONS)
    options = said.left()
    refused = [*_REFUSED, *(["compression"] if form != "parquet" else [])]
    for option in refused:
        if option in options:
            raise UnsupportedError(
                f"the option {option.upper()} of EXPORT DATABASE to {form} files is not supported"
            )
    read = {key: value for key, value in options.items() if key not in _ONLY_WRITTEN}
    if "null" in read:
        read["nullstr"] = read.pop("null")
    with writing(folder):
        make_directory(folder)
    with catalog.writing:
        loads = []
        for table, name in _file_names(kept_tables(execution.state)):
            path = quoted_text(os.path.join(folder, f"{name}.{form}"))
            copied = f"COPY {shown(table.name, table.definition.schema)}"
            if table.definition.generated:
                copied += f"({', '.join(map(quoted, table.definition.names))})"
            execution.session.run_one(f"{copied} TO {path} {_said(form, options)}", None, execution.variables)
            loads.append(f"{copied} FROM {path} {_said(form, {**_READ[form], **read})};")
        _write(os.path.join(folder, _LOAD), loads)
        names_read = partial(_names_read, execution)
        _write(os.path.join(folder, _SCHEMA), schema_statements(execution.state, names_read))
    return done()


def _names_read(execution: Execution, query: str, kind: Kind) -> Collection[ObjectName]:
    """None of a query that fails, as that of a view whose table was dropped."""
    try:
        return execution.session.queries.names_read(parse(query), execution.state, kind)
    except Error:
        return ()


def import_database(execution: Execution) -> Result:
    """IMPORT DATABASE: the statements of the folder, all of them or none."""
    clauses, catalog = execution.command.clauses, execution.session.catalog
    assert isinstance(clauses, ImportDatabase)
    folder = located(path_of(execution, clauses.path))
    with catalog.whole():
        for file in (_SCHEMA, _LOAD):
            path = os.path.join(folder, file)
            for statement in _statements(path):
                with _naming(f"{statement.strip()!r} of {path}"):
                    _run(execution, statement)
    return done()


def _run(execution: Execution, statement: str) -> None:
    parsed = call_deep(lambda: parse_statement(statement))
    if isinstance(parsed, Command) and isinstance(parsed.clauses, Transaction | ImportDatabase):
        raise UnsupportedError(f"{parsed.word} in what IMPORT DATABASE reads is not supported")
    execution.session.execute(parsed, None, execution.variables)


@contextmanager
def _naming(place: str) -> Iterator[None]:
    """Errors of the block say where they come from, and not a place in the statement that is executed."""
    try:
        yield
    except Error as error:
        raise type(error)(f"{error.message}, in {place}") from None


def _file_names(tables: Iterable[StoredTable]) -> Iterator[tuple[StoredTable, str]]:
    """The tables that are exported, each with a name for its file that no other has."""
    taken = set[str]()
    for table in tables:
        place = table.place
        schema = "" if place.schema == MAIN else f"{place.schema}_"
        plain = re.sub(r"\W", "_", f"{schema}{place.name}")
        name, number = plain, 0
        while name in taken:
            number += 1
            name = f"{plain}_{number}"
        taken.add(name)
        yield table, name


def _said(form: str, options: Mapping[str, Any]) -> str:
    """The options in parentheses."""
    return f"({', '.join(f'{name} {constant_text(value)}' for name, value in {'FORMAT': form, **options}.items())})"


def _write(path: str, statements: Iterable[str]) -> None:
    with stream_beside(path, None) as stream:
        stream.write("".join(f"{statement}\n" for statement in statements).encode())


def _statements(path: str) -> list[str]:
    with reading(path):
        text = content_of(path).decode()
    with _naming(path):
        return call_deep(lambda: split_statements(text)) if text.strip() else []
