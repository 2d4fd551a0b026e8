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


#: By what the command line calls them.
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
        "once from Parquet: files registered with a new connection, and one query, median of {connections}",
        "DuckDB likewise, by views over the same files",
    ),
    "arrow": Column(
        "once from\nArrow",
        "once from Arrow: tables in memory registered with a new connection, and one query, median of {connections}",
        "DuckDB likewise, by views over the same tables",
    ),
    "pandas": Column(
        "once from\npandas",
        "once from pandas: data frames (decimals as DOUBLE) registered with a new connection, and one query, median of {connections}",
        "DuckDB likewise, by views over the same frames",
    ),
}

#: Columns that tell what the first query of a new connection costs, by where its tables are.
ONCE = ("parquet", "arrow", "pandas")

#: Of these, where columns have other types, and answers too.
OTHER_TYPES = ("pandas",)

#: No column of the table: all queries together, each once.
FIRST_RUNS = "first-runs"

#: All that can be asked for.
CHOICES = (*COLUMNS, FIRST_RUNS)

#: What is compared if nothing is asked for; data frames take much memory, and long to be made.
COMPARED = tuple(name for name in CHOICES if name != "pandas")

#: What can be asked for where no rules say which other constants a query may have.
CHOICES_OF_FIXED_TEXTS = tuple(name for name in CHOICES if name != "new")
