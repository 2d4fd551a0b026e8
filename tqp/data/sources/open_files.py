"""The files that queries name in place of tables: `FROM 'sales.parquet'`."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import NamedTuple

import torch

from tqp.core.file_kinds import FileKind
from tqp.core.process.forks import renew_after_fork
from tqp.core.read_options import NO_OPTIONS, ReadOptions
from tqp.data.sources.base import Source
from tqp.data.sources.files import file_source, up_to_date

#: Tables of files that a connection keeps; the one that was opened first goes.
_MOST = 16


class NamedFiles(NamedTuple):
    """What a query said: paths or patterns, what kind of files they are, if it said that, and how to read them."""

    paths: tuple[str, ...]
    kind: FileKind | None
    options: ReadOptions = NO_OPTIONS


class OpenFiles:
    """The last files that the queries of a connection named. Their columns are kept as those of registered tables are.

    Safe to use from several threads.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._sources: Mapping[NamedFiles, Source] = {}
        self._any_gone = False
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """Called in a forked child, where no other thread can hold the lock."""
        self._lock = threading.Lock()

    def open(self, named: NamedFiles) -> Source:
        """The table that the files are now. Raises BindError if there are none, ExecutionError if one cannot be read."""
        known = self._sources.get(named)
        if known is not None and known.error is None:
            return known
        source = file_source(
            ", ".join(named.paths), list(named.paths), self._device, named.kind, named.options
        )
        with self._lock:
            kept = [(each, table) for each, table in self._sources.items() if each != named]
            self._any_gone |= len(kept) >= _MOST
            self._sources = dict([*kept[1 - _MOST :], (named, source)])
        return source

    @property
    def device(self) -> torch.device:
        """Where columns are kept."""
        return self._device

    def tables(self) -> Mapping[NamedFiles, Source]:
        """All that are open."""
        return self._sources

    def renew(self) -> bool:
        """Reads files that have changed anew. Are tables gone since it was asked last: of such files, or of too many?"""
        with self._lock:
            before, any_gone = self._sources, self._any_gone
            self._any_gone = False
            self._sources = {named: up_to_date(source) for named, source in before.items()}
            return any_gone or any(before[named] is not source for named, source in self._sources.items())

    def close(self) -> None:
        """Forget them."""
        with self._lock:
            self._sources = {}
