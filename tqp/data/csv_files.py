"""CSV files as Arrow tables, with delimiter, header and types found much as DuckDB finds them."""

from __future__ import annotations

import csv

import pyarrow as pa
import pyarrow.csv as pa_csv

_DELIMITERS = ",|;\t"
_SAMPLE_BYTES = 65_536


def read_csv(file: str) -> pa.Table:
    """The whole file, decompressed if its name says so. Without a header the columns are column0, column1, ...

    Empty fields are NULL, timestamps are TIMESTAMP, and a column without any value is VARCHAR.
    """
    lines = _first_lines(file)
    if not lines:
        raise ValueError("the file is empty, so it has no columns")
    delimiter = _find_delimiter(lines)
    rows = list(csv.reader(lines, delimiter=delimiter))
    names = None if _is_header(rows[0]) else [f"column{index}" for index in range(len(rows[0]))]
    has_line_breaks = (
        sum(line.count('"') for line in lines) > 0
    )  # quoted fields may span lines; slower to read
    table = pa_csv.read_csv(
        file,
        read_options=pa_csv.ReadOptions(column_names=names),
        parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=has_line_breaks),
        convert_options=pa_csv.ConvertOptions(strings_can_be_null=True, null_values=[""]),
    )
    columns = [column.cast(_settled_type(column.type)) for column in table.columns]
    return pa.table(columns, names=table.column_names)


def _first_lines(file: str) -> list[str]:
    with pa.input_stream(file, compression="detect") as stream:
        sample = stream.read(_SAMPLE_BYTES)
    lines = bytes(sample).decode("utf-8-sig", errors="replace").splitlines()
    return lines[:-1] if len(sample) == _SAMPLE_BYTES and len(lines) > 1 else lines


def _find_delimiter(lines: list[str]) -> str:
    """The candidate that splits most lines into as many fields as the first; the earlier candidate on a tie."""

    def agreeing_lines(delimiter: str) -> int:
        widths = [len(row) for row in csv.reader(lines, delimiter=delimiter)]
        return sum(width == widths[0] for width in widths) if widths[0] > 1 else 0

    return max(_DELIMITERS, key=agreeing_lines)


def _is_header(row: list[str]) -> bool:
    """A first row of names: nothing empty, no number, date or boolean among them."""
    types = [
        pa_csv.read_csv(pa.BufferReader(f'"{_quoted(cell)}"\n'.encode()), _NO_HEADER)[0].type
        for cell in row
        if cell
    ]
    return len(types) == len(row) and all(pa.types.is_string(cell_type) for cell_type in types)


_NO_HEADER = pa_csv.ReadOptions(column_names=["cell"])


def _quoted(cell: str) -> str:
    return cell.replace('"', '""').replace("\n", " ")


def _settled_type(arrow_type: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(arrow_type):
        return pa.timestamp("us", arrow_type.tz)
    return pa.string() if pa.types.is_null(arrow_type) else arrow_type
