"""The columns of the tables that `store_rejects` of read_csv() fills."""

from __future__ import annotations

from tqp.core.datatypes import BOOLEAN, VARCHAR, DataType, TypeKind, enum
from tqp.core.definitions import ColumnDefinition

_UBIGINT = DataType(TypeKind.UBIGINT)
ERROR_TYPES = (
    "CAST",
    "MISSING COLUMNS",
    "TOO MANY COLUMNS",
    "UNQUOTED VALUE",
    "LINE SIZE OVER MAXIMUM",
    "INVALID ENCODING",
    "INVALID STATE",
)
#: Of each error, where it is and what it says.
ERROR_COLUMNS = (
    ColumnDefinition("scan_id", _UBIGINT),
    ColumnDefinition("file_id", _UBIGINT),
    ColumnDefinition("line", _UBIGINT),
    ColumnDefinition("line_byte_position", _UBIGINT),
    ColumnDefinition("byte_position", _UBIGINT),
    ColumnDefinition("column_idx", _UBIGINT),
    ColumnDefinition("column_name", VARCHAR),
    ColumnDefinition("error_type", enum(ERROR_TYPES)),
    ColumnDefinition("csv_line", VARCHAR),
    ColumnDefinition("error_message", VARCHAR),
)
#: Of each file of a query, how it was read.
SCAN_COLUMNS = (
    ColumnDefinition("scan_id", _UBIGINT),
    ColumnDefinition("file_id", _UBIGINT),
    ColumnDefinition("file_path", VARCHAR),
    ColumnDefinition("delimiter", VARCHAR),
    ColumnDefinition("quote", VARCHAR),
    ColumnDefinition("escape", VARCHAR),
    ColumnDefinition("newline_delimiter", VARCHAR),
    ColumnDefinition("skip_rows", DataType(TypeKind.UINTEGER)),
    ColumnDefinition("has_header", BOOLEAN),
    ColumnDefinition("columns", VARCHAR),
    ColumnDefinition("date_format", VARCHAR),
    ColumnDefinition("timestamp_format", VARCHAR),
    ColumnDefinition("user_arguments", VARCHAR),
)
