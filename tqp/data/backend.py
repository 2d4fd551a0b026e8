"""Devices, and which backend the calling thread computes with.

`HOST` is for the CPU: arrays over the memory of tensors, for numpy's vector instructions and its short calls. `TORCH` is for
every device, the CPU included: torch's own operations, and nothing that reads a tensor from the host except where a size has
to be known. A connection has one backend; its programs are planned and lowered for it, and its workers compute with it. Only
functions that are called outside of a graph, by others, ask `is_host`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from tqp.core.arguments import IN_MEMORY, check_choice, check_database
from tqp.core.backends import BACKEND_CHOICES, Backend
from tqp.core.errors import BindError

#: Devices of torch on which no query can run as it should.
_LACKING = {"mps": "Metal has no 64-bit floats, and a DOUBLE is one; use the CPU of the same computer"}


def parse_device(device: str | torch.device | None) -> torch.device:
    """The torch device of a name such as "cpu", "cuda" or "cuda:1"; None is the CPU. Raises BindError if unusable.

    So is ":memory:", which other engines call a database that ends with its connection, as all do here. What looks like a file
    is an UnsupportedError that says so.
    """
    if isinstance(device, str) and (device == "" or "/" in device or device.endswith((".db", ".duckdb"))):
        check_database(device)
    try:
        parsed = torch.device("cpu" if device in (None, "", IN_MEMORY) else device)
        if parsed.type in _LACKING:
            raise BindError(f"device {device!r} cannot be used: {_LACKING[parsed.type]}")
        return torch.empty(0, device=parsed).device  # with the number of the one that is meant
    except (RuntimeError, AssertionError, TypeError) as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise BindError(f"device {device!r} cannot be used: {reason}") from error


def choose_backend(name: str, device: torch.device) -> Backend:
    """The backend that a user asked for. Raises BindError for "host" on another device than the CPU, and for no such name."""
    check_choice("backend", name, BACKEND_CHOICES)
    if name == "auto":
        return Backend.HOST if device.type == "cpu" else Backend.TORCH
    if name == "host" and device.type != "cpu":
        raise BindError(
            f'backend="host" computes on the CPU only, not on {device}; leave it out, or say "torch"'
        )
    return Backend(name)


class _Thread(threading.local):
    """The calling thread's backend: HOST unless it is said otherwise, as columns are encoded on the CPU."""

    is_host = True


_thread = _Thread()


def use_backend(backend: Backend) -> None:
    """The calling thread computes with this backend from now on."""
    _thread.is_host = backend is Backend.HOST


@contextmanager
def computing_with(backend: Backend) -> Iterator[None]:
    """In the block, the calling thread computes with this backend."""
    before = _thread.is_host
    _thread.is_host = backend is Backend.HOST
    try:
        yield
    finally:
        _thread.is_host = before


def is_host(values: Tensor) -> bool:
    """May the calling thread read these values as an array, and make arrays in place of tensors?"""
    return values.is_cpu and _thread.is_host


def is_host_device(device: torch.device) -> bool:
    """As `is_host`, of values that are on the device, or will be."""
    return device.type == "cpu" and _thread.is_host


def has_core_caches(values: Tensor) -> bool:
    """Are these values computed by cores, each with caches of its own, so that many are better taken in blocks?"""
    return values.is_cpu


def divides_by_reciprocals(values: Tensor) -> bool:
    """Are floats of this device divided by a number of the host by way of its reciprocal, which rounds twice?"""
    return not values.is_cpu
