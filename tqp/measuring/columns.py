"""What may be measured of a query: the columns of a report, and what each means."""

from __future__ import annotations

from dataclasses import dataclass

#: Engines to compare with, and what they are called in headings.
PEERS = {"duckdb": "DuckDB", "pandas": "pandas"}

#: New connections that are made for one query; a median of three drops one that something disturbed.
CONNECTIONS = 3


@dataclass(frozen=True, slots=True)
class Column:
    """`heading` stands above the ratios; `meaning` says what was timed, of `{runs}` runs; `compared` how the peer did it."""

    heading: str
    meaning: str
    compared: str


#: By what the command line calls them. "arrow" is no column of the table: it is measured for all queries together.
COLUMNS = {
    "same": Column(
        "same\ntext",
        "same text: sent again to the same connection, median of {runs} runs after the first",
        "DuckDB executes a prepared statement, over its own tables in memory",
    ),
    "new": Column(
        "new\nconstants",
        "new constants: other constants in every run by the benchmark's rules, median of {runs} runs",
        "DuckDB gets the same new texts, over its own tables in memory",
    ),
    "parquet": Column(
        "once from\nParquet",
        "once from Parquet: the first query of a new connection over Parquet files, median of {connections}",
        "DuckDB likewise, through views over the same files",
    ),
}

#: All that can be asked for.
CHOICES = (*COLUMNS, "arrow")

#: What can be asked for where no rules say which other constants a query may have.
CHOICES_OF_FIXED_TEXTS = tuple(name for name in CHOICES if name != "new")
