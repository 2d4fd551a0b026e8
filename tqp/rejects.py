"""What queries leave out of CSV files, told in temporary tables: `store_rejects` of read_csv()."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import torch

from tqp.catalog.reject_tables import ERROR_COLUMNS, SCAN_COLUMNS
from tqp.catalog.state import CatalogState
from tqp.catalog.variables import OneVariable, Variables
from tqp.core.definitions import ColumnDefinition, TableDefinition
from tqp.core.errors import UnsupportedError
from tqp.core.keywords import in_quotes, quoted_text
from tqp.core.names import ObjectName
from tqp.data.sources.base import Source
from tqp.data.sources.file_identity import reading
from tqp.data.sources.objects.arrow_tables import ArrowSource
from tqp.data.sources.stored_tables import StoredTable
from tqp.data.sources.text.csv_layouts import EMPTY, found_layout, plain_name
from tqp.data.sources.text.csv_rejects import CsvRows, Fault
from tqp.planner.catalog_protocol import RejectingScan
from tqp.planner.parse import ParsedStatement, parse
from tqp.result import Result

#: Answers a query in which a name stands for a table.
Ask = Callable[[ParsedStatement, Variables | None], Result]
Rows = list[tuple[object, ...]]
_NAME = "%csv"


def with_rejects(state: CatalogState, scans: Sequence[RejectingScan], ask: Ask) -> CatalogState:
    """The state with what the tables tell of the scans of one query. Raises what keeps the files from being read."""
    scan_id, file_id = 1 + max(_last_scan(state, scan, ask) for scan in scans), 0
    for scan in scans:
        errors, told, row = Rows(), Rows(), 0
        table = scan.table
        assert isinstance(table, Source) and table.files is not None
        wrong = list(_wrong_values(scan, table, ask))
        for file in table.files.files:
            with reading(file, table.files.identities[file]):
                rows = CsvRows(file, scan.options, table.column_names)
            kept = np.flatnonzero(rows.is_whole)
            faults = [
                rows.fault_of_value(int(kept[number - row]), place, value, data_type)
                for number, place, value, data_type in wrong
                if row <= number < row + len(kept)
            ]
            faults += _faults_of_length(scan, table, rows, ask)
            faults.sort()
            if faults:
                told.append((scan_id, file_id, file, *_layout(file, scan, rows.names)))
            errors += ((scan_id, file_id, *_told(rows, each)) for each in faults[: scan.tables.limit])
            file_id, row = file_id + 1, row + len(kept)
        if row != table.num_rows:
            raise UnsupportedError(f"store_rejects for files such as {table.name} is not supported")
        state = _with_rows(state, scan.tables.errors, ERROR_COLUMNS, errors, table.device, ask)
        state = _with_rows(state, scan.tables.scans, SCAN_COLUMNS, told, table.device, ask)
    return state


def _last_scan(state: CatalogState, scan: RejectingScan, ask: Ask) -> int:
    place = ObjectName.of(scan.tables.scans, temporary=True)
    if place not in state.tables:
        return 0
    [(last,)] = ask(parse(f"SELECT max(scan_id) FROM {place.in_quotes}"), None).fetchall()
    return int(last or 0)


def _wrong_values(scan: RejectingScan, rows: Source, ask: Ask) -> Iterator[tuple[int, int, str, str]]:
    """What is not of the type that is given for it: the number of the row, the place of the column, the text, and the type."""
    for place, data_type in scan.casts.items():
        name = in_quotes(rows.column_names[place])
        text = f"CAST({name} AS VARCHAR)"
        if data_type.is_numeric:
            for mark, plain in ((scan.options.thousands, ""), (scan.options.decimal_separator, ".")):
                text = f"replace({text}, {quoted_text(mark)}, '{plain}')" if mark else text
        written = scan.options.format_of(data_type)
        if written is not None:
            text = f"CAST(try_strptime({text}, {quoted_text(written)}) AS VARCHAR)"
        query = f"""
            SELECT n, {name} FROM (SELECT row_number() OVER () - 1 AS n, {name} FROM {in_quotes(_NAME)})
            WHERE {name} IS NOT NULL AND TRY_CAST({text} AS {data_type}) IS NULL
        """
        for number, value in ask(parse(query), OneVariable(_NAME, rows)).fetchall():
            yield number, place, str(value), str(data_type)


def _faults_of_length(scan: RejectingScan, table: Source, rows: CsvRows, ask: Ask) -> Iterator[Fault]:
    """Of rows that are too short or too long, and of the values in them."""
    wrong = list(map(int, np.flatnonzero(~rows.is_whole)))
    if not wrong:
        return
    fields = list(map(rows.fields, wrong))
    columns = [
        [row[place] if place < len(row) and row[place] not in scan.options.nulls else None for row in fields]
        for place in range(len(table.column_names))
    ]
    texts = pa.table([pa.array(each, pa.string()) for each in columns], list(table.column_names))
    source = ArrowSource(_NAME, texts, table.device)
    for number, place, value, data_type in _wrong_values(scan, source, ask):
        yield rows.fault_of_value(wrong[number], place, value, data_type)
    for number in wrong:
        yield from rows.faults_of_length(number)


def _told(rows: CsvRows, fault: Fault) -> tuple[object, ...]:
    row, column, place, kind, message = fault
    line, start = int(rows.lines[row]), int(rows.starts[row]) + 1
    name = rows.names[column - 1] if column <= len(rows.names) else None
    if kind == "MISSING COLUMNS":
        name = rows.names[column]
    return line, start, place + 1, column, name, kind, rows.text(row), message


def _layout(file: str, scan: RejectingScan, names: Sequence[str]) -> tuple[object, ...]:
    """How the file is read."""
    options, table = scan.options, scan.table
    found = found_layout(file, options)
    types = [scan.casts.get(at, table.column_type(name)) for at, name in enumerate(names)]
    columns = zip(names, types, strict=True)
    shown = ",".join(f"{quoted_text(name)}: {quoted_text(str(each))}" for name, each in columns)
    said = sorted((plain_name(name), value) for name, value in options.written if name != "auto_detect")
    return (
        *(found.delimiter, options.quote or found.quote or EMPTY, found.escape or EMPTY, found.newline),
        *(options.skip, found.has_header, f"{{{shown}}}", options.date_format, options.timestamp_format),
        ", ".join(f"{name}={value}" for name, value in said),
    )


def _with_rows(
    state: CatalogState,
    name: str,
    columns: tuple[ColumnDefinition, ...],
    rows: Rows,
    device: torch.device,
    ask: Ask,
) -> CatalogState:
    """With more rows in a temporary table, which is made where there is none."""
    table = state.tables.get(ObjectName.of(name, temporary=True))
    if not isinstance(table, StoredTable):
        table = StoredTable.empty(TableDefinition(name, columns, temporary=True), device)
    if rows:
        values = dict(zip(table.column_names, map(pa.array, zip(*rows, strict=True)), strict=True))
        items = ", ".join(f"CAST({in_quotes(each.name)} AS {each.data_type})" for each in columns)
        source = ArrowSource(_NAME, pa.table(values), device)
        answer = ask(parse(f"SELECT {items} FROM {in_quotes(_NAME)}"), OneVariable(_NAME, source))
        table = table.with_rows(answer._table)
    return state.with_table(table)
