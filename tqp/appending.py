"""Rows appended one by one from Python, which one statement puts into their table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from tqp.catalog.variables import OneVariable
from tqp.core.arguments import check_name
from tqp.core.errors import BindError
from tqp.core.keywords import in_quotes, in_quotes_joined, lower_ascii
from tqp.data.sources.stored_tables import table_of_rows
from tqp.sql_types import sql_type
from tqp.statements.many_rows import table_of
from tqp.statements.session import Session

#: Under which statements know the rows.
_ROWS = "appender_data"
_ACTIONS = ("insert", "upsert", "update", "delete")


class Appender:
    """Keeps rows until `flush`, which the end of a `with` block calls; `Connection.appender` makes one.

    >>> import tqp
    >>> with tqp.connect() as con:
    ...     _ = con.execute("CREATE TABLE t (a INTEGER, b VARCHAR DEFAULT 'x')")
    ...     with con.appender("t") as rows:
    ...         rows.append_row(1, "y")
    ...         rows.append_rows([(2, None), (3, "z")])
    ...     con.execute("SELECT count(*), max(b) FROM t").fetchall()
    [(3, 'z')]
    """

    def __init__(self, session: Session, statement: str, columns: Mapping[str, str], source: str) -> None:
        """`columns`: the types of the values by names under which `statement` reads them from `source`."""
        self._session, self._statement, self._columns, self._source = session, statement, columns, source
        self._rows: list[tuple[Any, ...]] = []

    def append_row(self, *values: Any) -> None:
        """One row, a value for each column, of the kinds that parameters have. Values that a column cannot take are an error of `flush`."""
        if len(values) != len(self._columns):
            raise BindError(
                f"a row has {len(self._columns)} values ({', '.join(self._columns)}), not {len(values)}"
            )
        self._rows.append(values)

    def append_rows(self, rows: Iterable[Sequence[Any]]) -> None:
        """Several rows."""
        for row in rows:
            self.append_row(*row)

    def clear(self) -> None:
        """Forget the rows since the last `flush`."""
        self._rows = []

    def flush(self) -> None:
        """Run the statement for the rows since the last one. If it fails nothing has changed, and the rows are kept."""
        if not self._rows:
            return
        made = self._session.queries.run(*self._query())
        given = table_of_rows(self._source, made.columns, made.types, made._table, self._session.device)
        self._session.run_one(self._statement, None, OneVariable(lower_ascii(self._source), given))
        self.clear()

    def _query(self) -> tuple[str, list[Any] | None, OneVariable | None]:
        """A query of the rows in the types of the columns."""
        given = table_of(self._rows, _ROWS, self._session.device)
        if given is not None:
            items = ", ".join(
                f"{given.value(place, data_type)} AS {in_quotes(name)}"
                for place, (name, data_type) in enumerate(self._columns.items())
            )
            return f"SELECT {items} FROM {_ROWS}", None, OneVariable(_ROWS, given.source)
        row = f"({', '.join(f'CAST(? AS {data_type})' for data_type in self._columns.values())})"
        text = f"VALUES {', '.join([row] * len(self._rows))}"
        names = in_quotes_joined(self._columns)
        return f"FROM ({text}) AS given({names})", [value for each in self._rows for value in each], None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.flush()


def appender_of_table(
    session: Session, table: str, columns: Sequence[str] | None, action: str, key: Sequence[str] | None
) -> Appender:
    """An appender that does to a table what `action` says. Raises BindError for names that are not there."""
    check_name("a table", table)
    if action not in _ACTIONS:
        raise BindError(f"action={action!r}: it is one of {', '.join(map(repr, _ACTIONS))}")
    if (key is None) == (action in ("update", "delete")):
        raise BindError(f"action={action!r}: `key` names the columns that pick rows of 'update' and 'delete'")
    name = session.named(table)
    definition = session.catalog.state.stored_table(name).definition
    names = key if action == "delete" else columns
    places = range(len(definition.columns)) if names is None else list(map(definition.place_of, names))
    types = {definition.columns[place].name: str(definition.columns[place].data_type) for place in places}
    listed, into = in_quotes_joined(types), name.in_quotes
    if action in ("insert", "upsert"):
        word = "INSERT" if action == "insert" else "INSERT OR REPLACE"
        return Appender(session, f"{word} INTO {into} ({listed}) SELECT * FROM {_ROWS}", types, _ROWS)
    keys = {definition.columns[definition.place_of(each)].name for each in key or ()}
    if not keys or not keys <= types.keys():
        raise BindError(
            f"the columns of the appender hold those of its key, {', '.join(key or ()) or 'at least one'}"
        )
    found = " AND ".join(
        f"changed.{in_quotes(each)} = {_ROWS}.{in_quotes(each)}" for each in types if each in keys
    )
    if action == "delete":
        return Appender(session, f"DELETE FROM {into} AS changed USING {_ROWS} WHERE {found}", types, _ROWS)
    changes = ", ".join(
        f"{in_quotes(each)} = {_ROWS}.{in_quotes(each)}" for each in types if each not in keys
    )
    if not changes:
        raise BindError("there is no column to update beside those of the key")
    return Appender(
        session, f"UPDATE {into} AS changed SET {changes} FROM {_ROWS} WHERE {found}", types, _ROWS
    )


def appender_of_statement(
    session: Session, statement: str, columns: Mapping[str, object], source: str | None
) -> Appender:
    """An appender that runs any statement over its rows, which it knows as `source`."""
    name = source or _ROWS
    check_name("the source", name)
    if not isinstance(columns, Mapping) or not columns:
        raise BindError("columns is a dict from names to types")
    return Appender(session, statement, {each: sql_type(kind) for each, kind in columns.items()}, name)
