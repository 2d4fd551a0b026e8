"""The one error of the benchmark harness."""

from __future__ import annotations

#: Brings DuckDB and the generator of data.
INSTALL_HINT = "pip install 'tensor-query-processor[tpch]'"


class UsageError(Exception):
    """The benchmark cannot be run as asked; the message says what to change. The command exits with status 2."""
