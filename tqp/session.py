"""`tqp.connect` and `tqp.sql`: the two ways in. `sql` finds data frames in the caller's variables; the others begin on its connection."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any, overload

import torch

from tqp.compiled import Parameters
from tqp.connection import Connection
from tqp.core.arguments import check_tables
from tqp.core.errors import BindError
from tqp.core.process.forks import renew_after_fork
from tqp.relation import QueryResult, Relation
from tqp.result import Result
from tqp.ways_in import Paths

connect = Connection


class _Default:
    """The connection behind `sql` where neither tables nor models are given: made when it is first used."""

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """Called in a forked child, where no other thread can hold the lock."""
        self._lock = threading.Lock()

    def connection(self) -> Connection:
        with self._lock:
            if self._connection is None or self._connection._catalog.is_closed:
                self._connection = connect()
            return self._connection


_default = _Default()


@overload
def sql(query: str, tables: None = None, *, params: Parameters | None = None) -> QueryResult: ...


@overload
def sql(
    query: str,
    tables: Mapping[str, object] | None = None,
    *,
    params: Parameters | None = None,
    device: str | torch.device | None = None,
    models: Mapping[str, object] | None = None,
) -> Result: ...


def sql(
    query: str,
    tables: Mapping[str, object] | None = None,
    *,
    params: Parameters | None = None,
    device: str | torch.device | None = None,
    models: Mapping[str, object] | None = None,
) -> Result:
    """Run one query on `tables`, a mapping from table name to data; see `Connection.register` for what data may be.

    `models`: trained models by the names under which the query calls them; see `Connection.register_model`. One that needs
    more than the model itself is a pair of it and a mapping of keywords, such as `(net, {"inputs": ["a", "b"]})`.

    Without `tables`, `models` and `device`, tables that statements make stay for the next call: there is one connection behind
    all these. Other names that the query uses are looked up among the caller's variables, local before global.

    >>> import tqp
    >>> tqp.sql("SELECT max(x) AS top FROM t", {"t": {"x": torch.tensor([1, 5, 2])}}).fetchall()
    [(5,)]
    """
    check_tables("tables", tables)
    check_tables("models", models)
    if tables is None and models is None and device is None:
        connection = _default.connection()
        try:
            return connection._answer(query, params, connection._variables(sys._getframe(1)))
        finally:
            connection._catalog.forget_files()
    with connect(device) as connection:
        for name, data in (tables or {}).items():
            connection.register(name, data)
        for name, model in (models or {}).items():
            original, keywords = model if isinstance(model, tuple) and len(model) == 2 else (model, {})
            if not isinstance(keywords, Mapping):
                raise BindError(f'models["{name}"]: give the model, or a pair of it and a dict of keywords')
            connection.register_model(name, original, **keywords)
        return connection._session.run(query, params, connection._variables(sys._getframe(1)))


def default_connection() -> Connection:
    """The connection behind `sql` where neither tables nor models are given, with which these work, too:

    `query`, `execute`, `table`, `view`, `values`, `from_df`, `from_arrow`, `read_csv`, `read_parquet`, `read_json`, `from_csv_auto`,
    `from_parquet`, `register`,
    `unregister` and `create_function` of this module, which are its methods.
    """
    return _default.connection()


def query(query: str, params: Parameters | None = None) -> QueryResult:
    """`Connection.query` of the default connection."""
    connection = _default.connection()
    return connection._answer(query, params, connection._variables(sys._getframe(1)))


def execute(query: str, params: Parameters | None = None) -> QueryResult:
    """`Connection.execute` of the default connection; its rows are those of what is returned only."""
    connection = _default.connection()
    return connection._answer(query, params, connection._variables(sys._getframe(1)))


def table(name: str) -> Relation:
    """`Connection.table` of the default connection."""
    return _default.connection().table(name)


def view(name: str) -> Relation:
    """`Connection.view` of the default connection."""
    return _default.connection().view(name)


def values(*values: Any) -> QueryResult:
    """`Connection.values` of the default connection."""
    return _default.connection().values(*values)


def from_df(df: object) -> Relation:
    """`Connection.from_df` of the default connection."""
    return _default.connection().from_df(df)


def from_arrow(arrow_object: object) -> Relation:
    """`Connection.from_arrow` of the default connection."""
    return _default.connection().from_arrow(arrow_object)


def read_csv(paths: Paths, **options: Any) -> Relation:
    """`Connection.read_csv` of the default connection.

    >>> import os, tempfile, tqp
    >>> path = os.path.join(tempfile.mkdtemp(), "t.csv")
    >>> tqp.values((1, "a"), (2, "b")).write_csv(path)
    >>> tqp.read_csv(path).filter("col0 > 1").fetchall()
    [(2, 'b')]
    """
    return _default.connection().read_csv(paths, **options)


def read_parquet(paths: Paths, **options: Any) -> Relation:
    """`Connection.read_parquet` of the default connection."""
    return _default.connection().read_parquet(paths, **options)


def from_csv_auto(paths: Paths, **options: Any) -> Relation:
    """`read_csv`."""
    return _default.connection().read_csv(paths, **options)


def from_parquet(paths: Paths, **options: Any) -> Relation:
    """`read_parquet`."""
    return _default.connection().read_parquet(paths, **options)


def read_json(paths: Paths, **options: Any) -> Relation:
    """`Connection.read_json` of the default connection."""
    return _default.connection().read_json(paths, **options)


def register(name: str, data: object) -> Connection:
    """`Connection.register` of the default connection."""
    return _default.connection().register(name, data)


def unregister(name: str) -> None:
    """`Connection.unregister` of the default connection."""
    _default.connection().unregister(name)


def create_function(name: str, function: Callable[..., object], *types: Any, **options: Any) -> Connection:
    """`Connection.create_function` of the default connection, with its arguments."""
    return _default.connection().create_function(name, function, *types, **options)
