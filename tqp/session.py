"""`tqp.connect` and `tqp.sql`: the two ways in. `sql` finds data frames in the caller's variables."""

from __future__ import annotations

import sys
from collections.abc import Mapping

import torch

from tqp.catalog.variables import Variables
from tqp.compiled import Parameters
from tqp.connection import Connection
from tqp.core.arguments import check_tables
from tqp.core.errors import BindError
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

    Other names that the query uses are looked up among the caller's variables, local before global.

    >>> import tqp
    >>> tqp.sql("SELECT max(x) AS top FROM t", {"t": {"x": torch.tensor([1, 5, 2])}}).fetchall()
    [(5,)]
    """
    check_tables("tables", tables)
    check_tables("models", models)
    with connect(device) as connection:
        for name, data in (tables or {}).items():
            connection.register(name, data)
        for name, model in (models or {}).items():
            original, keywords = model if isinstance(model, tuple) and len(model) == 2 else (model, {})
            if not isinstance(keywords, Mapping):
                raise BindError(f'models["{name}"]: give the model, or a pair of it and a dict of keywords')
            connection.register_model(name, original, **keywords)
        return connection._session.run(query, params, Variables(sys._getframe(1), connection.device))
