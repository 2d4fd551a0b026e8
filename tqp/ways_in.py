"""Relations of tables, files and data: the methods of connections that begin a chain of them."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from types import FrameType
from typing import Any, TypeVar

import torch

from tqp.appending import Appender, appender_of_statement, appender_of_table
from tqp.catalog.variables import Variables
from tqp.compiled import Parameters
from tqp.core.arguments import check_name, check_parameters
from tqp.core.errors import BindError
from tqp.core.keywords import in_quotes, quoted_text
from tqp.data.sources.copied_files import SupportsRead
from tqp.data.sources.make_source import make_source
from tqp.planner.catalog_protocol import View
from tqp.planner.parse import parse
from tqp.relation import UNNAMED, QueryResult, Relation
from tqp.statements.session import Session
from tqp.table_relation import FileRelation, TableRelation

Made = TypeVar("Made", bound=Relation)
#: A path, a pattern, an address, an open file, or a list of these.
OnePath = str | os.PathLike[str] | SupportsRead
Paths = OnePath | Sequence[OnePath]
#: What pandas calls options of read_csv, by the names that SQL has for them.
_OPTIONS = {
    "delimiter": "delim",
    "dtype": "types",
    "na_values": "nullstr",
    "skiprows": "skip",
    "quotechar": "quote",
    "escapechar": "escape",
    "date_format": "dateformat",
    "timestamp_format": "timestampformat",
}


class WaysIn(ABC):
    """What makes relations. Nothing is read but names and types before an answer is asked for."""

    _session: Session
    _device: torch.device

    @abstractmethod
    def _answer(
        self, query: str, params: Parameters | None, variables: Variables | None, alias: str = ""
    ) -> QueryResult:
        """Run a query."""

    def table(self, name: str) -> TableRelation:
        """A table or view as a relation, from which methods make queries. Raises BindError if there is none of that name.

        >>> import tqp
        >>> with tqp.connect() as con:
        ...     _ = con.sql("CREATE TABLE t AS SELECT i, i % 2 AS g FROM range(6) r(i)")
        ...     con.table("t").filter("i > 0").aggregate("g, sum(i)").order("g").fetchall()
        [(0, 6), (1, 9)]
        """
        check_name("a table", name)
        return self._checked(TableRelation(self._session, self._session.named(name)))

    def view(self, name: str) -> TableRelation:
        """`table`."""
        return self.table(name)

    def read_parquet(self, /, paths: Paths, **options: Any) -> Relation:
        """Parquet files; `options` are those of SQL's read_parquet, such as `filename=True`."""
        return self._read("read_parquet", paths, options)

    def from_parquet(self, /, paths: Paths, **options: Any) -> Relation:
        """`read_parquet`."""
        return self.read_parquet(paths, **options)

    def from_csv_auto(self, /, paths: Paths, **options: Any) -> Relation:
        """`read_csv`."""
        return self.read_csv(paths, **options)

    def read_csv(self, /, paths: Paths, **options: Any) -> Relation:
        """CSV files; `options` are those of SQL's read_csv, such as `header=True`, or pandas' names for them: `dtype`, `skiprows`.

        >>> import os, tempfile, tqp
        >>> path = os.path.join(tempfile.mkdtemp(), "t.csv")
        >>> with tqp.connect() as con:
        ...     con.sql("SELECT 1 AS a, '01' AS b").write_csv(path)
        ...     con.read_csv(path, dtype={"b": "INTEGER"}).fetchall()
        [(1, 1)]
        """
        return self._read("read_csv", paths, options)

    def read_json(self, /, paths: Paths, **options: Any) -> Relation:
        """JSON files; `options` are those of SQL's read_json."""
        return self._read("read_json", paths, options)

    def from_df(self, df: object) -> Relation:
        """A pandas or Polars frame, or whatever else `Connection.register` takes."""
        source = make_source("df", df, self._device)
        return self._checked(
            Relation(self._session, View(UNNAMED, parse('FROM "df"').reading({"df": source})))
        )

    def from_arrow(self, arrow_object: object) -> Relation:
        """`from_df`."""
        return self.from_df(arrow_object)

    def query(self, query: str, params: Parameters | None = None, *, alias: str = "") -> QueryResult:
        """`Connection.sql`, under another of DuckDB's names."""
        return self._answer(query, params, self._variables(sys._getframe(1)), alias)

    def from_query(self, query: str, params: Parameters | None = None, *, alias: str = "") -> QueryResult:
        """`Connection.sql`, under another of DuckDB's names."""
        return self._answer(query, params, self._variables(sys._getframe(1)), alias)

    def values(self, *values: Any) -> QueryResult:
        """A row of these values, or with tuples or lists a row of each.

        >>> import tqp
        >>> with tqp.connect() as con:
        ...     con.values((1, "a"), (2, None)).fetchall()
        [(1, 'a'), (2, None)]
        """
        if len(values) == 1 and isinstance(values[0], list):
            values = tuple(values[0])  # DuckDB's other form
        rows = values if values and all(isinstance(row, tuple | list) for row in values) else (values,)
        texts = [f"({', '.join('?' * len(row))})" for row in rows]
        return self._answer(f"VALUES {', '.join(texts)}", [value for row in rows for value in row], None)

    def table_function(self, name: str, parameters: Sequence[Any] = ()) -> QueryResult:
        """The rows of a table function, such as `range`."""
        check_name("a table function", name)
        check_parameters(parameters)
        return self._answer(f"FROM {in_quotes(name)}({', '.join('?' * len(parameters))})", parameters, None)

    def append(self, table_name: str, df: object, *, by_name: bool = False) -> None:
        """Insert the rows of a frame, or of whatever else `Connection.register` takes, into a table."""
        self.from_df(df).insert_into(table_name, by_name=by_name)

    def appender(
        self,
        table: str,
        *,
        columns: Sequence[str] | None = None,
        action: str = "insert",
        key: Sequence[str] | None = None,
    ) -> Appender:
        """What takes rows one by one and inserts them at once: see `Appender`.

        `action`: "insert", "upsert" (which replaces rows of the same primary key), "update" or "delete" of the rows that have the
        values of the columns in `key`.
        """
        return appender_of_table(self._session, table, columns, action, key)

    def query_appender(
        self, dml: str, columns: Mapping[str, object], *, source: str | None = None
    ) -> Appender:
        """What takes rows of these columns, by their types, and runs a statement of them, such as `INSERT INTO t FROM appender_data`."""
        return appender_of_statement(self._session, dml, columns, source)

    def _read(self, function: str, paths: Paths, options: Mapping[str, Any]) -> Relation:
        copied = self._session.copies.path_of
        places = [copied(each) for each in paths] if isinstance(paths, list | tuple) else copied(paths)
        said = [_constant(places)]
        for name, value in options.items():
            if value is not None:
                said.append(f"{in_quotes(_OPTIONS.get(name, name))} = {_constant(value)}")
        return self._checked(FileRelation(self._session, f"{function}({', '.join(said)})"))

    def _checked(self, relation: Made) -> Made:
        _ = relation.columns  # names what is not there
        return relation

    def _variables(self, frame: FrameType) -> Variables:
        return self._session.variables(frame)


def _constant(value: Any) -> str:
    """An argument of a function that reads files, as SQL."""
    if isinstance(value, bool | int | float):
        return str(value).lower()
    if isinstance(value, str | bytes | os.PathLike):
        return quoted_text(os.fsdecode(value))
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{in_quotes(str(key))}: {_constant(each)}' for key, each in value.items())}}}"
    if isinstance(value, Sequence):
        return f"[{', '.join(map(_constant, value))}]"
    raise BindError(f"{value!r} is no option, nor the path of a file")
