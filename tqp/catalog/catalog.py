"""The catalog of a connection: the state that queries see now, changed under a lock, and the transaction around it."""

from __future__ import annotations

import contextlib
import gc
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch

from tqp.catalog.snapshot import Snapshot
from tqp.catalog.state import CatalogState
from tqp.catalog.variables import Variables
from tqp.core.errors import BindError, Error, ExecutionError, InterruptError
from tqp.core.process.forks import renew_after_fork
from tqp.data.sources.files import up_to_date
from tqp.data.sources.open_files import OpenFiles
from tqp.runtime.memory_limit import give_back_memory_of_tables

_CLOSED = "the connection is closed; open a new one with tqp.connect()"


class Catalog:
    """Safe to use from several threads, which share its transaction as they share the connection.

    `writing`: a lock that is held by whoever makes the next state of the state that there is. Readers do not take it.
    """

    def __init__(self, device: torch.device) -> None:
        self.state = CatalogState()
        #: Called with what names mean now when that has changed.
        self.on_change: Callable[[Snapshot], None] = lambda _: None
        self.files = OpenFiles(device)
        self._before: CatalogState | None = None
        self._failed = False
        self._only_reads = False
        self._closed = False
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """Called in a forked child, where no other thread can hold a lock."""
        self.lock, self.writing = threading.RLock(), threading.RLock()

    def check_open(self) -> None:
        """Raises BindError after `close`, ExecutionError in a transaction in which something has failed."""
        if self._closed:
            raise BindError(_CLOSED)
        if self._failed:
            raise ExecutionError("a statement of this transaction has failed; ROLLBACK ends it")

    @contextlib.contextmanager
    def failing(self) -> Iterator[None]:
        """What the block raises makes the transaction fail, if there is one: then nothing of it is kept."""
        try:
            yield
        except BaseException:
            self._failed = self._before is not None
            raise

    @contextlib.contextmanager
    def trying(self) -> Iterator[None]:
        """Errors of the block, but for interruptions, do not make the transaction fail: its caller goes another way then."""
        failed = self._failed
        try:
            yield
        except InterruptError:
            raise
        except Error:
            self._failed = failed
            raise

    @property
    def in_transaction(self) -> bool:
        """Whether BEGIN has begun a transaction that has not ended."""
        return self._before is not None

    @property
    def has_local_changes(self) -> bool:
        """Whether the transaction, if there is one, has changed what names mean."""
        before = self._before
        if before is None:
            return False
        return replace(self.state, began=before.began).with_session_of(before) != before

    def forget_files(self) -> None:
        """Forget what was read of files that queries named."""
        with self.lock:
            if self.files.tables():
                self.files.close()
                self.on_change(self.now())
                free_tables()

    @property
    def is_closed(self) -> bool:
        return self._closed

    def change(self, next_state: Callable[[CatalogState], CatalogState]) -> None:
        """What queries see from now on. What `next_state` raises changes nothing."""
        with self.writing, self.lock:
            self.check_open()
            state = next_state(self.state)
            if self._only_reads and not state.keeps_what_lasts(self.state):
                raise BindError(
                    "this transaction was begun as READ ONLY; what is not temporary cannot change"
                )
            self._set(state)

    def now(self, variables: Variables | None = None) -> Snapshot:
        """What names mean, with files as they were when they were looked at last."""
        return Snapshot(self.state, self.files, variables)

    def snapshot(self, variables: Variables | None = None) -> Snapshot:
        """What a query is bound to. Tables whose files have changed are read anew. Raises BindError after `close`."""
        with self.lock:
            self.check_open()
            tables = self.state.tables
            renewed = {name: up_to_date(table) for name, table in tables.items() if table.files is not None}
            for name, table in renewed.items():
                if tables[name] is not table:
                    self._set(self.state.with_table(table))
            if self.files.renew():
                self.on_change(self.now())
                free_tables()
            return self.now(variables)

    def begin(self, only_reads: bool = False) -> None:
        """Begin a transaction, in which nothing but what is temporary changes where it `only_reads`. Raises BindError within one."""
        with self.writing, self.lock:
            self.check_open()
            if self._before is not None:
                raise BindError("a transaction has begun already; COMMIT or ROLLBACK ends it")
            self._before, self._only_reads = self.state, only_reads
            self.state = replace(self.state, began=time.time_ns() // 1000)

    def end(self, keep: bool) -> None:
        """End the transaction, and `keep` its changes or take them back, as where it has failed.

        Raises BindError where there is none.
        """
        with self.writing, self.lock:
            if self._closed:
                raise BindError(_CLOSED)
            if self._before is None:
                raise BindError(
                    f"there is no transaction to {'commit' if keep else 'roll back'}; BEGIN starts one"
                )
            before, failed = self._before, self._failed
            self._before, self._failed, self._only_reads = None, False, False
            is_kept = keep and not failed
            after = self.state if is_kept else before
            self._set(replace(after, began=None).with_session_of(self.state))

    @contextlib.contextmanager
    def whole(self) -> Iterator[None]:
        """What the block changes is kept whole; where it raises, nothing of it is. Changes of other threads wait for its end."""
        with self.writing:
            before = self.state
            try:
                yield
            except BaseException:
                with self.lock:
                    if not self._closed:
                        self._set(before)
                raise

    def close(self) -> None:
        """Forget everything."""
        with self.lock:
            self._closed = True
            self.state, self._before = CatalogState(), None
            self.files.close()

    def _set(self, state: CatalogState) -> None:
        before, self.state = self.state, state
        self.on_change(self.now())
        if any(state.tables.get(name) is not table for name, table in before.tables.items()):
            del before
            free_tables()


def free_tables() -> None:
    """Free what nobody but garbage refers to any more, and give back what large tables held.

    Planning leaves cycles that refer to its tables; they are among the youngest objects (see `collected_later`).
    """
    gc.collect(0)
    give_back_memory_of_tables()
