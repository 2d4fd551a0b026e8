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
from tqp.relation import Relation
from tqp.result import Result
from tqp.session import (
    connect,
    create_function,
    default_connection,
    execute,
    from_arrow,
    from_df,
    query,
    read_csv,
    read_json,
    read_parquet,
    register,
    sql,
    table,
    unregister,
    values,
    view,
)
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
    "Relation",
    "ResourceError",
    "Result",
    "Statement",
    "UnsupportedError",
    "connect",
    "create_function",
    "default_connection",
    "execute",
    "from_arrow",
    "from_df",
    "query",
    "read_csv",
    "read_json",
    "read_parquet",
    "register",
    "sql",
    "table",
    "unregister",
    "values",
    "view",
]
