"""How files are read where a query says more than their names."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """None and empty: the file tells. Of CSV: `delimiter`, `quote`, `header`, `skip` (lines at the start), `nulls` (texts of NULL),
    `names`, `date_format` and `timestamp_format` (as strptime has them).

    `text_columns`: in lower case, columns of CSV files that stay text; None: all do. `filename`: a column of that name tells
    the file of each row. `by_name`: a file may lack columns that others have.
    """

    delimiter: str | None = None
    quote: str | None = None
    header: bool | None = None
    skip: int = 0
    nulls: tuple[str, ...] = ("",)
    names: tuple[str, ...] = ()
    date_format: str | None = None
    timestamp_format: str | None = None
    text_columns: frozenset[str] | None = frozenset()
    filename: bool = False
    by_name: bool = False


NO_OPTIONS = ReadOptions()
