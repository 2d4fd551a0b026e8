"""PEP 249, the interface that Python has for all databases: `tqp.dbapi.connect()`, cursors and exceptions.

>>> from tqp import dbapi
>>> with dbapi.connect() as connection:
...     cursor = connection.cursor().execute("SELECT ? + 1 AS n", [41])
...     cursor.description[0][0], cursor.fetchall()
('n', [(42,)])
"""

from __future__ import annotations

import datetime
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self

from tqp.compiled import Parameters
from tqp.connection import Connection as Engine
from tqp.core import errors
from tqp.core.arguments import parameter_sets
from tqp.core.datatypes import DataType, TypeKind
from tqp.result import Result
from tqp.statements.execution import Effect
from tqp.ways_out import WaysOut

apilevel = "2.0"
#: Threads may share the module and connections.
threadsafety = 2
paramstyle = "qmark"


class Warning(Exception):
    """Never raised."""


class Error(Exception):
    """Base of all errors here; the cause is one of `tqp.Error`."""


class InterfaceError(Error):
    """Of this interface, such as a cursor that is closed."""


class DatabaseError(Error):
    """Of what is queried."""


class DataError(DatabaseError):
    """Of a value."""


class OperationalError(DatabaseError):
    """Of the machine: memory and files."""


class IntegrityError(DatabaseError):
    """Of a constraint."""


class InternalError(DatabaseError):
    """Never raised."""


class ProgrammingError(DatabaseError):
    """Of the SQL."""


class NotSupportedError(DatabaseError):
    """Of a feature that tqp does not have."""


_ERRORS: tuple[tuple[type[errors.Error], type[DatabaseError]], ...] = (
    (errors.UnsupportedError, NotSupportedError),
    (errors.ParseError, ProgrammingError),
    (errors.BindError, ProgrammingError),
    (errors.ResourceError, OperationalError),
    (errors.InterruptError, OperationalError),
    (errors.ConstraintError, IntegrityError),
    (errors.ExecutionError, DataError),
)


@contextmanager
def _errors_of_here() -> Iterator[None]:
    """An error of tqp becomes that of PEP 249."""
    try:
        yield
    except errors.Error as error:
        kind = next(theirs for ours, theirs in _ERRORS if isinstance(error, ours))
        raise kind(str(error)) from error


class TypeObject:
    """Equal to the types of columns of one kind."""

    def __init__(self, *kinds: TypeKind) -> None:
        self._kinds = frozenset(kinds)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataType) and other.kind in self._kinds or self is other

    def __hash__(self) -> int:
        return hash(self._kinds)


_TIMES = (
    TypeKind.TIMESTAMP,
    TypeKind.TIMESTAMP_S,
    TypeKind.TIMESTAMP_MS,
    TypeKind.TIMESTAMP_NS,
    TypeKind.TIMESTAMP_TZ,
)
STRING = TypeObject(TypeKind.VARCHAR, TypeKind.ENUM)
BINARY = TypeObject(TypeKind.BLOB)
DATETIME = TypeObject(TypeKind.DATE, TypeKind.TIME, TypeKind.INTERVAL, *_TIMES)
NUMBER = TypeObject(
    *(
        kind
        for kind in TypeKind
        if DataType(kind).is_whole or DataType(kind).is_float or kind is TypeKind.DECIMAL
    )
)
#: What `cursor.lastrowid` would be equal to: there is none.
ROWID = TypeObject()

Date, Time, Timestamp, Binary = datetime.date, datetime.time, datetime.datetime, bytes


def DateFromTicks(ticks: float) -> datetime.date:
    """The local date of seconds since 1970."""
    return datetime.date(*time.localtime(ticks)[:3])


def TimeFromTicks(ticks: float) -> datetime.time:
    """The local time of day of seconds since 1970."""
    return datetime.time(*time.localtime(ticks)[3:6])


def TimestampFromTicks(ticks: float) -> datetime.datetime:
    """The local time of seconds since 1970."""
    return datetime.datetime(*time.localtime(ticks)[:6])


def connect(**settings: Any) -> Connection:
    """A connection with tables of its own, in memory; `settings` are those of `tqp.connect`."""
    with _errors_of_here():
        return Connection(Engine(**settings))


class Connection:
    """A connection whose changes are kept by `commit`: the first statement after it begins a transaction."""

    Warning, Error, InterfaceError, DatabaseError = Warning, Error, InterfaceError, DatabaseError
    DataError, OperationalError, IntegrityError = DataError, OperationalError, IntegrityError
    InternalError, ProgrammingError, NotSupportedError = InternalError, ProgrammingError, NotSupportedError

    def __init__(self, engine: Engine) -> None:
        #: The `tqp.Connection`, for `register` and the like.
        self.engine = engine
        self._is_open = True

    def cursor(self) -> Cursor:
        """A cursor. All cursors of a connection share its transaction."""
        self._check_open()
        return Cursor(self)

    def commit(self) -> None:
        """Keep what has been changed."""
        self._end("COMMIT")

    def rollback(self) -> None:
        """Take back what has been changed since the last commit."""
        self._end("ROLLBACK")

    def close(self) -> None:
        """Close it; what was not committed is gone, as all tables are."""
        self._check_open()
        self._is_open = False
        self.engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._is_open:
            if kind is None:
                self.commit()
            self.close()

    def _end(self, statement: str) -> None:
        self._check_open()
        with _errors_of_here():
            if self.engine.in_transaction:
                self.engine.sql(statement)

    def _check_open(self) -> None:
        if not self._is_open:
            raise InterfaceError("the connection is closed")

    def _run(self, statement: str, values: Parameters | None) -> Result:
        self._check_open()
        with _errors_of_here():
            if not self.engine.in_transaction:
                self.engine.sql("BEGIN")
            return self.engine._session.run(statement, values, None)

    def _run_all(self, statement: str, sets: Sequence[Parameters]) -> list[Result]:
        self._check_open()
        with _errors_of_here():
            if not self.engine.in_transaction:
                self.engine.sql("BEGIN")
            return self.engine.prepare(statement)._execute_all(sets, None)


class Cursor(WaysOut):
    """Statements in, rows out."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        #: Rows that `fetchmany` gives.
        self.arraysize = 1
        self._executed: Result | None = None
        self._count = -1
        self._is_open = True

    @property
    def description(self) -> Sequence[tuple[str, DataType, None, None, None, None, None]] | None:
        """Name and type of each column of the last answer; None behind a statement that has no rows."""
        return None if self._executed is None else self._executed.description

    @property
    def rowcount(self) -> int:
        """How many rows the last statement has given, or changed; -1 where it did neither."""
        return self._count

    def execute(self, operation: str, parameters: Parameters | None = None) -> Self:
        """Run a statement; `?` stands for the parameters."""
        self._check_open()
        self._executed, self._count = None, -1
        result = self.connection._run(operation, parameters)
        if not isinstance(result, Effect):
            self._executed, self._count = result, len(result)
        elif result.num_changed is not None:
            self._count = result.num_changed
        return self

    def executemany(self, operation: str, seq_of_parameters: Sequence[Parameters]) -> Self:
        """Run a statement for each set of parameters."""
        self._check_open()
        with _errors_of_here():
            sets = parameter_sets(seq_of_parameters)
        self._executed, self._count = None, -1
        results = self.connection._run_all(operation, sets) if sets else []
        for result in results:
            self._executed = None if isinstance(result, Effect) else result
        self._count = sum(
            (each.num_changed or 0) if isinstance(each, Effect) else len(each) for each in results
        )
        return self

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; None behind the last."""
        with _errors_of_here():
            return super().fetchone()

    def fetchmany(self, size: int | None = None) -> list[tuple[Any, ...]]:
        """The next rows, `arraysize` by default."""
        with _errors_of_here():
            return super().fetchmany(self.arraysize if size is None else size)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows that are left."""
        with _errors_of_here():
            return super().fetchall()

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        while (row := self.fetchone()) is not None:
            yield row

    def setinputsizes(self, sizes: Sequence[object]) -> None:
        """Says nothing here."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Says nothing here."""

    def close(self) -> None:
        """Forget the answer; the cursor cannot be used afterwards."""
        self._executed, self._is_open = None, False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _result(self) -> Result:
        self._check_open()
        if self._executed is None:
            raise ProgrammingError("there are no rows: no query has been executed last")
        return self._executed

    def _check_open(self) -> None:
        self.connection._check_open()
        if not self._is_open:
            raise InterfaceError("the cursor is closed")
