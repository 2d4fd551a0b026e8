"""How files are read where a query says more than their names."""

from __future__ import annotations

from dataclasses import dataclass

from tqp.core.datatypes import DataType, TypeKind


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """None and empty: the file tells. Of CSV: `delimiter`, `quote`, `escape` (of a quote in quotes), `strict` (no
    quote but a doubled one stands in a value in quotes), `comment` (what begins one;
    empty: nothing does), `header`, `skip` (lines at the start), `nulls` (texts of NULL; with `quoted_nulls` in quotes, too),
    `names`, their `types` where all columns have one, `candidates` (the types that are looked for), `date_format` and `timestamp_format` (as strptime has them), `encoding` (as Python knows it), `decimal_separator`
    and `thousands` (between groups of digits).

    `null_padding`: rows that are too short end with NULLs. `ignore_errors`: rows that are too short or too long, or hold what is
    not of the type that is given, are left out. `normalize_names`: names of columns become plain identifiers.

    `text_columns`: in lower case, columns of CSV files that stay text; None: all do. `hive`: directories may be named after columns, of
    which `text_partitions` are text, in lower case; None: all are. `filename`: the name of a column that tells the file of each row.
    `row_numbers`: of Parquet, a column `file_row_number` counts the rows of each file. `by_name`: a file may lack columns that others have. `json_form`: see `read_json_values`. `json_records`: whether objects are rows; None: where all values are objects.
    `json_depth`: what lies deeper is JSON; -1: nothing does. `written`: the
    options with their values as SQL, for who tells of them.
    """

    delimiter: str | None = None
    quote: str | None = None
    strict: bool = True
    escape: str | None = None
    comment: str | None = None
    header: bool | None = None
    skip: int = 0
    nulls: tuple[str, ...] = ("",)
    quoted_nulls: bool = True
    names: tuple[str, ...] = ()
    types: tuple[DataType, ...] = ()
    candidates: frozenset[TypeKind] | None = None
    date_format: str | None = None
    timestamp_format: str | None = None
    encoding: str | None = None
    decimal_separator: str = "."
    thousands: str = ""
    null_padding: bool = False
    ignore_errors: bool = False
    normalize_names: bool = False
    text_columns: frozenset[str] | None = frozenset()
    hive: bool = True
    text_partitions: frozenset[str] | None = frozenset()
    filename: str = ""
    row_numbers: bool = False
    by_name: bool = False
    json_form: str | None = None
    json_records: bool | None = None
    json_depth: int = -1
    written: tuple[tuple[str, str], ...] = ()

    def format_of(self, data_type: DataType) -> str | None:
        """The one that is said for texts of dates, or of timestamps."""
        if data_type.kind is TypeKind.DATE:
            return self.date_format
        return self.timestamp_format if data_type.kind is TypeKind.TIMESTAMP else None

    @property
    def says_of_json(self) -> bool:
        """Whether a JSON file is to be read in another way than it would be without options."""
        says = (self.json_form, self.json_records, self.date_format, self.timestamp_format)
        return self.ignore_errors or self.json_depth >= 0 or any(each is not None for each in says)


@dataclass(frozen=True, slots=True)
class RejectTables:
    """The names of the temporary tables that tell of what a reader of CSV files leaves out, and how these were read.

    `limit`: of what is told of each file; None: all.
    """

    errors: str = "reject_errors"
    scans: str = "reject_scans"
    limit: int | None = None


#: What `candidates` may be.
CANDIDATES = frozenset(
    {
        TypeKind.BOOLEAN,
        TypeKind.TINYINT,
        TypeKind.SMALLINT,
        TypeKind.INTEGER,
        TypeKind.BIGINT,
        TypeKind.HUGEINT,
        TypeKind.FLOAT,
        TypeKind.DOUBLE,
        TypeKind.DATE,
        TypeKind.TIME,
        TypeKind.TIMESTAMP,
        TypeKind.TIMESTAMP_TZ,
        TypeKind.VARCHAR,
    }
)
NO_OPTIONS = ReadOptions()
