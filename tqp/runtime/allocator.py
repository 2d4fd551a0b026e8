"""Tells the C library to keep freed memory for the next batch instead of giving it back, or to give it back now.

The first touch of a fresh page costs as much as computing thousands of values in it (see docs/performance.md), and every
batch of every query would pay it again.
"""

from __future__ import annotations

import ctypes
import functools
import os
import sys
from typing import Any

import pyarrow as pa

from tqp.core.memory import was_freed
from tqp.operators.memory import allocation

# names and numbers as in glibc's malloc.h
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
#: The largest threshold that glibc takes; larger blocks go back when they are freed.
_LARGEST_BLOCK = 32 << 20
_PAD = 64 << 20
#: Bytes of tables that are freed before freed memory goes back, which takes about 1 ms, and some more where it is wanted
#: again; to encode a table of that size takes at least 20 ms.
_WORTH_GIVING_BACK = 8 << 20


@functools.cache
def keep_freed_memory() -> None:
    """Once a process: keep up to a sixteenth of the machine's memory when it is freed.

    Does nothing where the C library is not glibc. The thresholds are the process's: they also hold for the caller's own code.
    How many heaps its threads have is left to the C library.
    """
    mallopt = _c_function("mallopt")
    if mallopt is None:
        return
    kept = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 16
    mallopt(_MMAP_THRESHOLD, _LARGEST_BLOCK)
    mallopt(_TRIM_THRESHOLD, min(kept, 1 << 30))
    mallopt(_TOP_PAD, _PAD)


def give_freed_memory_back() -> None:
    """What nobody uses goes back to the operating system: kept blocks, Arrow's, and where the C library is glibc its free pages."""
    allocation.forget_kept_blocks()
    pa.default_memory_pool().release_unused()
    trim = _c_function("malloc_trim")
    if trim is not None:
        trim(0)


def give_back_memory_of_tables() -> None:
    """`give_freed_memory_back` if tables of some size were freed since: to be called where tables may have been.

    What was freed lies in pieces between what is still in use, and the next table's columns seldom fit into them: with one
    table after another under one name, more and more of the heap would be touched.
    """
    if was_freed(_WORTH_GIVING_BACK):
        give_freed_memory_back()


def _c_function(name: str) -> Any:
    """A function of the C library, None where it has none of that name."""
    return getattr(ctypes.CDLL(None), name, None) if sys.platform.startswith("linux") else None
