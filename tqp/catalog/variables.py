"""Tables among the variables of whoever sends a query: local before global, as DuckDB finds them."""

from __future__ import annotations

from types import FrameType

import torch

from tqp.core.errors import BindError
from tqp.core.keywords import lower_ascii
from tqp.data.sources.base import Source
from tqp.data.sources.make_source import make_source
from tqp.data.sources.stored_tables import table_of_rows
from tqp.planner.catalog_protocol import View
from tqp.result import Result


class Variables:
    """The variables of a frame, looked at when a query names something that is no table: each once for a query."""

    def __init__(self, frame: FrameType, device: torch.device, catalog: object) -> None:
        """`catalog`: of the connection that asks, whose relations alone are tables to it."""
        self._frame, self._device, self._catalog = frame, device, catalog
        self._found: dict[str, Source | View | None] = {}

    def table(self, name: str) -> Source | None:
        """The variable of that name, in lower case; None if there is none. BindError if it is there and is no table."""
        found = self._lookup(name)
        return None if isinstance(found, View) else found

    def view(self, name: str) -> View | None:
        """The relation of that name; see `table`."""
        found = self._lookup(name)
        return found if isinstance(found, View) else None

    def _lookup(self, name: str) -> Source | View | None:
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    def _find(self, name: str) -> Source | View | None:
        unreadable: BindError | None = None
        for variables in (self._frame.f_locals, self._frame.f_globals):
            for variable, value in variables.items():
                if lower_ascii(variable) != name or isinstance(value, str):
                    continue  # any string would do for a path; a query has to say that it is one
                if hasattr(type(value), "__tqp_view__"):
                    view: View = value.__tqp_view__(self._catalog)
                    return view
                if isinstance(value, Result):
                    return table_of_rows(variable, value.columns, value.types, value._table, self._device)
                try:
                    return make_source(variable, value, self._device, for_one_query=True)
                except BindError as error:
                    unreadable = unreadable or error
        if unreadable is not None:
            raise unreadable
        return None


class OneVariable(Variables):
    """One name, in lower case, and what it means."""

    def __init__(self, name: str, meaning: Source | View) -> None:
        self._found: dict[str, Source | View | None] = {name: meaning}

    def _find(self, name: str) -> None:
        return None
