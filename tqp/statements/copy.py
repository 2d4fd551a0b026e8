"""COPY: queries and tables to files, files to tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tqp.core.datatypes import TypeKind
from tqp.core.definitions import ColumnDefinition
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.file_kinds import kind_of_name
from tqp.core.keywords import KEYWORDS, in_quotes, in_quotes_joined, lower_ascii, quoted_text
from tqp.data.sources.file_systems import located
from tqp.data.sources.parquet.statistics import file_statistics
from tqp.planner.syntax.clauses import CopyFrom, CopyOption, CopyTo
from tqp.planner.syntax.parts import Part
from tqp.planner.syntax.words import NAME
from tqp.queries import Rows
from tqp.result import Result
from tqp.statements.changes import insert_rows
from tqp.statements.execution import TRUTH_WORDS, Execution, counted
from tqp.statements.pieces import Piece
from tqp.writing.formats import OPTIONS_OF_FORMATS
from tqp.writing.options import Options
from tqp.writing.targets import Written, write_files


def copy_to(execution: Execution) -> Result:
    """COPY ... TO: how many rows were written."""
    clauses = execution.command.clauses
    assert isinstance(clauses, CopyTo)
    path = located(path_of(execution, clauses.path))
    options = options_of(execution, clauses.options)
    returns_files, returns_statistics = (
        Options(options).flag(each) for each in ("return_files", "return_stats")
    )
    if returns_files and returns_statistics:
        raise BindError("COPY returns files or statistics: RETURN_FILES does not go with RETURN_STATS")

    def write(rows: Rows) -> Written:
        return write_files(rows.names, rows.tables, path, options)

    written = execution.written(execution.command.query(*_query(clauses)), write)
    if returns_statistics:
        return _statistics(execution, written)
    if not returns_files:
        return counted(written.num_rows)
    files = ", ".join(map(quoted_text, written.files))
    answer = f'SELECT {written.num_rows}::BIGINT AS "Count", [{files}]::VARCHAR[] AS "Files"'
    return execution.rows_of(answer, execution.state)


def _statistics(execution: Execution, written: Written) -> Result:
    """A row of each file, of what is in it."""
    found = list(map(file_statistics, written.files))
    said = pa.map_(pa.string(), pa.string())
    partitions = [None if each is None else sorted(each.items()) for each in written.partitions]
    columns = [[(name, list(each.items())) for name, each in file.columns.items()] for file in found]
    table = pa.table(
        {
            "filename": pa.array(written.files, pa.string()),
            "count": pa.array([file.num_rows for file in found], pa.uint64()),
            "file_size_bytes": pa.array([file.num_bytes for file in found], pa.uint64()),
            "footer_size_bytes": pa.array([file.footer_bytes for file in found], pa.uint64()),
            "column_statistics": pa.array(columns, pa.map_(pa.string(), said)),
            "partition_keys": pa.array(partitions, said),
            "extra_info": pa.array(
                [[("row_group_count", file.num_row_groups)] for file in found],
                pa.map_(pa.string(), pa.int64()),
            ),
        }
    )
    return execution.rows_of_table(table)


def _query(clauses: CopyTo) -> list[Piece]:
    if clauses.query is not None:
        return [clauses.query]
    assert clauses.table is not None
    columns = "*" if clauses.columns is None else in_quotes_joined(name.text for name in clauses.columns)
    return [f"SELECT {columns} FROM {clauses.table.in_quotes}"]


#: Of JSON it is one of the texts of objects: types are those of the table.
_FUNCTIONS = {"csv": "read_csv", "json": "read_json_objects", "parquet": "read_parquet"}


def copy_from(execution: Execution) -> Result:
    """COPY ... FROM: how many rows were inserted."""
    clauses = execution.command.clauses
    assert isinstance(clauses, CopyFrom)
    path = located(path_of(execution, clauses.path))
    options = options_of(execution, clauses.options)
    form = lower_ascii(str(options.pop("format", kind_of_name(path) or "csv")))
    if form not in _FUNCTIONS:
        raise UnsupportedError(f"COPY FROM a file of the format {form!r} is not supported")
    definition = execution.state.stored_table(clauses.table).definition
    columns = definition.columns
    if clauses.columns is not None:
        columns = tuple(columns[definition.place_of(each.text, each.span)] for each in clauses.columns)
    read = _reading_of(form, path, options, columns)
    return insert_rows(execution, clauses.table, clauses.columns, read)


def _reading_of(form: str, path: str, options: dict[str, Any], columns: Sequence[ColumnDefinition]) -> str:
    """A query of the file's rows, as these columns. Of JSON a column is the value of its name, of other files that of its place."""
    for option in ("codec", *OPTIONS_OF_FORMATS["parquet"]) if form == "parquet" else ():
        options.pop(option, None)  # the file says so itself
    selected = "*"
    if form == "csv":
        options["columns"] = {column.name: str(column.data_type) for column in columns}
        never_null = options.pop("force_not_null", [])
        if never_null:
            kept = [name for name in _names(never_null) if name in options["columns"]]
            replaced = ", ".join(f"coalesce({in_quotes(name)}, '') AS {in_quotes(name)}" for name in kept)
            selected = f"* REPLACE ({replaced})" if kept else "*"
    elif form == "json":
        options.pop("auto_detect", None)
        if Options({"array": options.pop("array", False)}).flag("array"):
            options["format"] = "array"
        selected = ", ".join(map(_value_of_key, columns))
    said = "".join(f", {in_quotes(name)} = {constant_text(value)}" for name, value in options.items())
    return f"SELECT {selected} FROM {_FUNCTIONS[form]}({constant_text(path)}{said})"


def _value_of_key(column: ColumnDefinition) -> str:
    is_text = column.data_type.kind in (TypeKind.VARCHAR, TypeKind.BLOB) and not column.data_type.is_json
    arrow = "->>" if is_text else "->"
    key = quoted_text("$." + in_quotes(column.name))
    value = f"json {arrow} {key}"
    if column.data_type.is_json:
        value = f"nullif({value}, 'null')"
    return f"CAST({value} AS {column.data_type})"


def constant_text(value: Any) -> str:
    """The constant of an option as SQL."""
    if isinstance(value, list):
        return f"[{', '.join(map(constant_text, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{in_quotes(key)}: {constant_text(each)}' for key, each in value.items())}}}"
    return str(value).lower() if isinstance(value, bool | int) else quoted_text(str(value))


# options


def path_of(execution: Execution, part: Part) -> str:
    """The text that a statement names a file, or a folder, with."""
    found = execution.value_of(part)
    if not isinstance(found, str):
        raise BindError("the path of a file is a text", execution.command.span(part))
    if not found:
        raise BindError("the path of a file cannot be empty", execution.command.span(part))
    return found


def options_of(execution: Execution, options: tuple[CopyOption, ...]) -> dict[str, Any]:
    """The values by their names in lower case."""
    found: dict[str, Any] = {}
    for option in options:
        name = lower_ascii(option.name.text)
        if name in found:
            raise BindError(f"the option {name.upper()} is given twice", option.name.span)
        name = "delimiter" if name == "delimiters" else name
        found[name] = True if option.value is None else _value(execution, option.value)
    return found


def _value(execution: Execution, part: Part) -> Any:
    """A constant expression, a word, `*`, or a list of names."""
    tokens = execution.command.tokens
    kinds = tokens.kinds[part.start : part.stop]
    if len(kinds) == 1 and (kinds[0] in KEYWORDS or kinds[0] in (NAME, "*")):
        word = tokens.name(part.start)
        return TRUTH_WORDS.get(lower_ascii(word), word)
    if (kinds[0] == "(" or "," in kinds) and all(
        kind in KEYWORDS or kind in (NAME, ",", "(", ")") for kind in kinds
    ):
        return [
            tokens.name(place) for place, kind in enumerate(kinds, part.start) if kind not in (",", "(", ")")
        ]
    return execution.value_of(part)


def _names(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)
