"""The one error of the benchmark harness."""

from __future__ import annotations


class UsageError(Exception):
    """The benchmark cannot be run as asked; the message says what to change. The command exits with status 2."""
