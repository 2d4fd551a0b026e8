"""The settings that no answer may depend on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any

import torch

import tqp
import tqp.streaming
from tqp.data.sources.parquet import files as parquet_files
from tqp.planner.optimizer import REQUIRED, RULES
from tqp.planner.physical.planner import PHYSICAL_RULES
from tqp.runtime import fuse


def switchable_rules() -> tuple[str, ...]:
    """Every optimizer rule and physical choice that can be switched off."""
    return (*(name for name, _ in RULES if name not in REQUIRED), *PHYSICAL_RULES)


def fuse_everything() -> None:
    """With `fuse="on"`, compile regions of two calls and few rows too, and keep them however slow they are."""
    fuse._MIN_CALLS = fuse._MIN_ROWS = 2
    fuse._MEASURED_CALLS = 1
    fuse._MIN_GAIN = 1e9


@contextmanager
def streaming_small_files() -> Iterator[None]:
    """In the block, first queries on small Parquet files stream, too, a few rows at a time."""
    before = tqp.streaming._LARGE, parquet_files._STREAMED_ROWS
    tqp.streaming._LARGE, parquet_files._STREAMED_ROWS = 0, 8
    try:
        yield
    finally:
        tqp.streaming._LARGE, parquet_files._STREAMED_ROWS = before


def compute_on(device: str) -> None:
    """From now on, connections that name no device are on this one, but for those that ask for arrays of the CPU."""
    make = tqp.Connection.__init__

    @wraps(make)
    def make_there(
        self: tqp.Connection, where: str | torch.device | None = None, *others: Any, **options: Any
    ) -> None:
        asks_for_host = options.get("backend") == "host"
        named = where if where is not None else options.pop("device", None)
        make(self, device if named is None and not asks_for_host else named, *others, **options)

    tqp.Connection.__init__ = make_there  # type: ignore[method-assign]


@contextmanager
def sharing_threads(threads: int) -> Iterator[None]:
    """In the block, work is shared as that of a query of a connection with so many threads is."""
    with tqp.connect(threads=threads) as connection, connection._executor.memory.query():
        yield
