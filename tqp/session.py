"""`tqp.connect` and `tqp.sql`: the two ways in. `sql` finds data frames in the caller's variables."""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping

import torch

from tqp.catalog.variables import Variables
from tqp.compiled import Parameters
from tqp.connection import Connection
from tqp.core.arguments import check_tables
from tqp.core.errors import BindError
from tqp.core.forks import renew_after_fork
from tqp.result import Result

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
            return connection._answer(query, params, Variables(sys._getframe(1), connection.device))
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
        return connection._session.run(query, params, Variables(sys._getframe(1), connection.device))
