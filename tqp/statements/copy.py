"""COPY: queries and tables to files, files to tables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tqp.core.datatypes import TypeKind
from tqp.core.definitions import ColumnDefinition
from tqp.core.errors import BindError, UnsupportedError, nearest
from tqp.core.file_kinds import kind_of_name
from tqp.core.keywords import KEYWORDS, in_quotes, in_quotes_joined, lower_ascii, quoted_text
from tqp.data.column import Table
from tqp.data.sources.file_systems import located
from tqp.planner.syntax.clauses import CopyFrom, CopyOption, CopyTo
from tqp.planner.syntax.parts import Part
from tqp.planner.syntax.words import NAME
from tqp.queries import Rows
from tqp.result import Result
from tqp.statements.changes import insert_rows
from tqp.statements.execution import TRUTH_WORDS, Execution, counted
from tqp.statements.pieces import Piece
from tqp.writing.csv_writer import CsvFormat, write_csv
from tqp.writing.json_writer import write_json
from tqp.writing.parquet_writer import ROW_GROUP_ROWS, write_parquet
from tqp.writing.partitions import write_partitions

#: Writes tables to the file of a path, and says how many rows they have.
Writer = Callable[[Iterable[Table], str], int]

_FORMATS = ("csv", "json", "parquet")
_OF_PARTITIONS = ("partition_by", "overwrite_or_ignore", "overwrite", "write_partition_columns")
_OF_FORMAT: Mapping[str, tuple[str, ...]] = {
    "csv": (
        "header",
        "delimiter",
        "delim",
        "sep",
        "quote",
        "escape",
        "null",
        "nullstr",
        "compression",
        "force_quote",
        "dateformat",
        "timestampformat",
    ),
    "json": ("array", "compression", "dateformat", "timestampformat"),
    "parquet": ("compression", "codec", "row_group_size"),
}

_SPELLINGS = {
    "delim": "delimiter",
    "sep": "delimiter",
    "nullstr": "null",
    "date_format": "dateformat",
    "timestamp_format": "timestampformat",
}


def copy_to(execution: Execution) -> Result:
    """COPY ... TO: how many rows were written."""
    clauses = execution.command.clauses
    assert isinstance(clauses, CopyTo)
    path = located(path_of(execution, clauses.path))
    options = options_of(execution, clauses.options)
    form = format_of(path, options)
    partition_by = _names(options.pop("partition_by", []))
    overwrite = bool(options.pop("overwrite_or_ignore", False))
    keeps_columns = bool(options.pop("write_partition_columns", False))
    formats: dict[str, Any] = {
        key: options.pop(key) for key in ("dateformat", "timestampformat") if key in options
    }
    if options.pop("overwrite", False):
        raise UnsupportedError("OVERWRITE, which removes files, is not supported; OVERWRITE_OR_IGNORE is")

    def write(rows: Rows) -> int:
        write_rows = _writer(form, dict(options), rows.names)
        if not partition_by:
            return write_rows(rows.tables, path)
        (table,) = rows.tables  # sorted, and so one
        write_partitions(table, path, partition_by, form, write_rows, overwrite, keeps_columns)
        return table.num_rows

    query = _query(execution, clauses, partition_by)
    if formats:
        query = _with_formats(execution, query, formats, form, partition_by)
    return counted(execution.written(execution.command.query(*query), write))


def _query(execution: Execution, clauses: CopyTo, partition_by: list[str]) -> list[Piece]:
    order = f"ORDER BY {in_quotes_joined(partition_by)}"
    if clauses.query is not None:
        return ["FROM (", clauses.query, f") {order}"] if partition_by else [clauses.query]
    assert clauses.table is not None
    columns = "*" if clauses.columns is None else in_quotes_joined(name.text for name in clauses.columns)
    return [f"SELECT {columns} FROM {clauses.table.in_quotes}", *[order] * bool(partition_by)]


def _with_formats(
    execution: Execution, query: list[Piece], formats: dict[str, Any], form: str, partition_by: list[str]
) -> list[Piece]:
    """The query with texts for the dates and timestamps that the formats are for, as strftime() writes them."""
    for name, value in formats.items():
        if not isinstance(value, str):
            raise BindError(f"{name.upper()} is a text such as '%d/%m/%Y'")
    session = execution.session
    described = session.queries.describe(
        execution.command.query(*query), execution.state, execution.variables, execution.params
    )
    kept = set(map(lower_ascii, partition_by))
    inner = [in_quotes(f"%{place}") for place in range(len(described.names))]
    outputs = []
    for value, name, data_type in zip(inner, described.names, described.types, strict=True):
        is_timestamp = data_type.kind in (TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_TZ) or (
            form == "json" and data_type.is_timestamp  # a CSV file holds those of other units as they are
        )
        key = "timestampformat" if is_timestamp else "dateformat" if data_type.kind is TypeKind.DATE else ""
        written = formats.get(key)
        if written is not None and lower_ascii(name) not in kept:
            value = f"strftime({value}, {quoted_text(written)})"
        outputs.append(f"{value} AS {in_quotes(name)}")
    return [f"SELECT {', '.join(outputs)} FROM (", *query, f") AS q({', '.join(inner)})"]


def _writer(form: str, options: dict[str, Any], names: tuple[str, ...]) -> Writer:
    compression = options.pop("compression", options.pop("codec", None))
    if form == "parquet":
        group = int(options.pop("row_group_size", ROW_GROUP_ROWS))
        return lambda rows, path: write_parquet(rows, path, str(compression or "snappy"), group)
    how = None if compression in (None, "none", "auto", "uncompressed", "auto_detect") else str(compression)
    if form == "json":
        array = bool(options.pop("array", False))
        return lambda rows, path: write_json(rows, path, array, how)
    force = options.pop("force_quote", [])
    forced = names if force == "*" else _names(force)
    quote = str(options.pop("quote", '"'))
    csv = CsvFormat(
        bool(options.pop("header", True)),
        str(options.pop("delimiter", ",")).replace("\\t", "\t"),
        quote,
        str(options.pop("escape", quote)),
        str(options.pop("null", "")),
        frozenset(place for place, name in enumerate(names) if name in forced),
    )
    return lambda rows, path: write_csv(rows, path, csv, how)


def format_of(path: str, options: dict[str, Any]) -> str:
    """The format that is said, or that the name of the file tells; takes it out of the options, which are checked."""
    name = lower_ascii(path).removesuffix(".gz").removesuffix(".zst")
    by_name = "json" if name.endswith((".json", ".ndjson", ".jsonl")) else kind_of_name(path)
    form = lower_ascii(str(options.pop("format", by_name if by_name in _FORMATS else "csv")))
    if form not in _FORMATS:
        raise UnsupportedError(f"the format {form!r} is not supported; choose one of {', '.join(_FORMATS)}")
    for spelling, option in _SPELLINGS.items():
        if spelling in options:
            options[option] = options.pop(spelling)
    known = (*_OF_FORMAT[form], *_OF_PARTITIONS)
    for option in options:
        if option not in known:
            raise UnsupportedError(
                f"the option {option.upper()} of {form} files is not supported{nearest(option, known)}"
            )
    return form


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
    for option in _OF_FORMAT["parquet"] if form == "parquet" else ():
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
