"""Compiled queries that a connection keeps, each no longer than the tables and models that it reads are registered."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence

from tqp.core.schema import TableSource
from tqp.data.sources.base import Source
from tqp.ml.model import Model
from tqp.runtime.program import TensorProgram

#: Compiled queries that a connection keeps. Plans are kept, results never are.
_MAX_PROGRAMS = 256

#: What names meant when they were looked up: the version of a table, a model, or None for nothing.
Meanings = dict[tuple[str, str], int | Model | None]


class Snapshot:
    """The tables and models at one moment, by name in lower case: what one query is bound to, whatever happens meanwhile.

    Implements `tqp.planner.catalog_protocol.Catalog`. `read`: the names that were looked up.
    """

    def __init__(self, tables: dict[str, Source], models: dict[str, Model]) -> None:
        self._tables, self._models = tables, models
        self.read: Meanings = {}

    def lookup(self, name: str) -> TableSource | None:
        """The table of that name, or None. Raises what keeps it from being read, such as that its file is gone."""
        self.read["table", name.lower()] = self.meaning("table", name.lower())
        table = self._tables.get(name.lower())
        if table is not None and table.error is not None:
            raise type(table.error)(table.error.message)
        return table

    def table_names(self) -> Sequence[str]:
        """Every table's name as it was registered."""
        return [table.name for table in self._tables.values()]

    def lookup_model(self, name: str) -> Model | None:
        """The model of that name, or None."""
        self.read["model", name.lower()] = self.meaning("model", name.lower())
        return self._models.get(name.lower())

    def model_names(self) -> Sequence[str]:
        """Every model's name as it was registered."""
        return [model.name for model in self._models.values()]

    def meaning(self, kind: str, name: str) -> int | Model | None:
        """What a name (of a "table" or "model", in lower case) stands for: see `Meanings`."""
        if kind == "model":
            return self._models.get(name)
        table = self._tables.get(name)
        return None if table is None else table.version

    def agrees(self, read: Meanings) -> bool:
        """Whether all these names still mean what they meant."""
        return all(self.meaning(kind, name) == meaning for (kind, name), meaning in read.items())


class CompiledQueries:
    """Programs by text and parameters. Not safe to use from several threads: the connection's lock guards it."""

    def __init__(self) -> None:
        self._programs: OrderedDict[Hashable, tuple[TensorProgram, Meanings]] = OrderedDict()

    def find(self, key: Hashable, now: Snapshot) -> TensorProgram | None:
        """The program kept under `key`, if all that it reads is still the same."""
        program, read = self._programs.get(key, (None, {}))
        if program is None or not now.agrees(read):
            return None
        self._programs.move_to_end(key)
        return program

    def keep(self, key: Hashable, program: TensorProgram, read: Meanings, now: Snapshot) -> None:
        """Keep a program, unless what it reads was replaced while it was compiled."""
        if now.agrees(read):
            self._programs[key] = program, read
            self._programs.move_to_end(key)
            while len(self._programs) > _MAX_PROGRAMS:
                self._programs.popitem(last=False)

    def forget_others(self, now: Snapshot) -> None:
        """Drop the programs that read what is no longer so: they would keep its memory."""
        for key, (_, read) in list(self._programs.items()):
            if not now.agrees(read):
                del self._programs[key]

    def clear(self) -> None:
        """Drop all programs."""
        self._programs.clear()

    def __len__(self) -> int:
        return len(self._programs)
