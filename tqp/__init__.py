"""tqp runs SQL as PyTorch programs.

>>> import numpy, tqp
>>> tqp.sql("SELECT sum(amount) AS total FROM sales", {"sales": {"amount": numpy.array([1, 2, 3])}}).fetchall()
[(6,)]
"""

from tqp.connection import Connection
from tqp.core.errors import (
    BindError,
    ConstraintError,
    Error,
    ExecutionError,
    InterruptError,
    ParseError,
    ResourceError,
    UnsupportedError,
)
from tqp.result import Result
from tqp.session import connect, sql
from tqp.statement import Statement

__version__ = "0.1.0"

__all__ = [
    "BindError",
    "Connection",
    "ConstraintError",
    "Error",
    "ExecutionError",
    "InterruptError",
    "ParseError",
    "ResourceError",
    "Result",
    "Statement",
    "UnsupportedError",
    "connect",
    "sql",
]
