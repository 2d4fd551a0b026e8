"""Statement: a query that is parsed once and executed with other values each time."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from tqp.catalog.snapshot import Meanings
from tqp.catalog.variables import Variables
from tqp.compiled import Parameters
from tqp.compiler import EXPLAINED
from tqp.core.datatypes import DataType
from tqp.core.errors import UnsupportedError
from tqp.planner.describe import Description, describe
from tqp.planner.parse import Command, ParsedStatement
from tqp.result import Result
from tqp.statements.execution import counted
from tqp.statements.many_rows import are_inserted
from tqp.statements.session import Session


class Statement:
    """A prepared query; `Connection.prepare` makes one. Safe to use from several threads.

    Only its text is parsed beforehand. Each `execute` looks up the tables and models that it names, as they are then, and
    keeps what it compiles with the connection, as `Connection.sql` does: queries that differ in the constants that columns are
    compared with share a program. Nothing of a result is kept. With the connection closed it raises BindError.
    """

    def __init__(self, parsed: ParsedStatement | Command, session: Session) -> None:
        self._parsed, self._session = parsed, session
        self._described: tuple[Description, Meanings] | None = None

    @property
    def sql(self) -> str:
        """The text that was prepared."""
        return self._parsed.text

    @property
    def parameters(self) -> tuple[int | str, ...]:
        """What it takes, each once, as they first stand in the text: 1, 2, ... for `?` and `$1`, names for `$name`."""
        return tuple(dict.fromkeys(self._parsed.parameter_keys.values()))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its output columns, in order, with the tables as they are now; raises as `types` does."""
        return self._description().names

    @property
    def types(self) -> tuple[DataType | None, ...]:
        """The types of its output columns, in order, with the tables as they are now; `str(type)` is the SQL name.

        None for a column whose type the values of parameters decide, such as `$x + 1`, which is an INTEGER for 1 and a DOUBLE
        for 1.5: `Result.types` tells it, and `CAST($x AS INTEGER) + 1` settles it. Raises BindError and the like for what no
        value can mend, such as a table that is missing.
        """
        return self._description().types

    def execute(self, params: Parameters | None = None) -> Result:
        """Run it. `params`: values for `?` and `$1` (a sequence) or `$name` (a mapping), as many as it takes.

        >>> import tqp
        >>> with tqp.connect() as con:
        ...     add = con.prepare("SELECT $x + 1 AS y")
        ...     [add.execute({"x": x}).fetchone() for x in (1, 41)]
        [(2,), (42,)]

        Raises BindError for values that are missing or too many, and what `Connection.sql` raises.
        """
        return self._execute(params, self._session.variables(sys._getframe(1)))

    def _execute(self, params: Parameters | None, variables: Variables | None) -> Result:
        return self._session.execute(self._parsed, params, variables)

    def _execute_all(self, sets: Sequence[Parameters], variables: Variables | None) -> list[Result]:
        if are_inserted(self._session, self._parsed, sets):
            return [counted(1) for _ in sets]
        return [self._execute(values, variables) for values in sets]

    def explain(self, analyze: bool = False, params: Parameters | None = None) -> str:
        """The plans for these values as text, with estimates; with `analyze` also what a run took."""
        if not isinstance(self._parsed, ParsedStatement):
            raise UnsupportedError(
                f"EXPLAIN of {self._parsed.word} is not supported; explain the query in it"
            )
        variables = self._session.variables(sys._getframe(1))
        return self._session.queries.explain(self._parsed, analyze, params, variables)

    def _description(self) -> Description:
        if not isinstance(self._parsed, ParsedStatement):
            raise UnsupportedError(
                f"the columns that {self._parsed.word} answers are not known before it is executed"
            )
        snapshot = self._session.catalog.snapshot()
        if self._parsed.explain is not None:
            return EXPLAINED
        if self._described is None or not snapshot.agrees(self._described[1]):
            self._described = describe(self._parsed, snapshot), snapshot.read
        return self._described[0]

    def __repr__(self) -> str:
        takes = f", parameters={list(self.parameters)}" if self.parameters else ""
        return f"Statement({self.sql!r}{takes})"
