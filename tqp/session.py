"""`tqp.connect` and `tqp.sql`: the two ways in. `sql` finds data frames in the caller's variables."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from types import FrameType

import torch

from tqp.compiled import Parameters, Snapshot
from tqp.connection import Connection
from tqp.core.arguments import check_tables
from tqp.core.errors import BindError
from tqp.core.schema import TableSource
from tqp.data.sources.base import Source
from tqp.data.sources.make_source import make_source
from tqp.data.sources.open_files import OpenFiles
from tqp.ml.model import Model
from tqp.result import Result

connect = Connection


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

    Without `tables`, names that the query uses are looked up among the caller's variables, local before global.

    >>> import tqp
    >>> tqp.sql("SELECT max(x) AS top FROM t", {"t": {"x": torch.tensor([1, 5, 2])}}).fetchall()
    [(5,)]
    """
    check_tables("tables", tables)
    check_tables("models", models)
    connection = connect(device) if tables is not None else _CallerConnection(sys._getframe(1), device)
    with connection:
        for name, data in (tables or {}).items():
            connection.register(name, data)
        for name, model in (models or {}).items():
            original, keywords = model if isinstance(model, tuple) and len(model) == 2 else (model, {})
            if not isinstance(keywords, Mapping):
                raise BindError(f'models["{name}"]: give the model, or a pair of it and a dict of keywords')
            connection.register_model(name, original, **keywords)
        return connection.sql(query, params)


class _CallerConnection(Connection):
    """A connection whose tables are the variables of the frame that called `sql`."""

    def __init__(self, frame: FrameType, device: str | torch.device | None) -> None:
        super().__init__(device=device)
        self._frame: FrameType | None = frame

    def _snapshot(self) -> Snapshot:
        super()._snapshot()
        return _CallerSnapshot(self, self._sources, self._models, self._files, self._frame)

    def close(self) -> None:
        self._frame = None
        super().close()


class _CallerSnapshot(Snapshot):
    """A snapshot that registers variables of `frame` when their names are looked up."""

    def __init__(
        self,
        connection: Connection,
        tables: dict[str, Source],
        models: dict[str, Model],
        files: OpenFiles,
        frame: FrameType | None,
    ) -> None:
        super().__init__(tables, models, files)
        self._connection, self._frame = connection, frame

    def lookup(self, name: str) -> TableSource | None:
        """The table, or the variable of that name: local before global. BindError if it is there and is no table."""
        if name.lower() in self._tables or self._frame is None:
            return super().lookup(name)
        unreadable: BindError | None = None
        for variables in (self._frame.f_locals, self._frame.f_globals):
            for variable, value in variables.items():
                if variable.lower() != name.lower() or isinstance(value, str):
                    continue  # any string would do for a path; a query has to say that it is one
                try:
                    source = make_source(variable, value, self._connection.device)
                except BindError as error:
                    unreadable = unreadable or error
                else:
                    self._tables = {**self._tables, name.lower(): source}
                    return super().lookup(name)
        if unreadable is not None:
            raise unreadable
        return None
