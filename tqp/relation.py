"""Relations: queries that have not run, made of each other by methods; each is a table to the next one."""

from __future__ import annotations

import os
import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from tqp.clauses import Side, condition_text, grouped, is_column, ordered, selected
from tqp.compiled import Parameters
from tqp.core.arguments import check_choice, check_integer, check_is_text, check_name, check_query
from tqp.core.datatypes import DataType
from tqp.core.errors import BindError
from tqp.core.keywords import closed, in_quotes, in_quotes_joined, lower_ascii
from tqp.data.results.display import MAX_ROWS
from tqp.data.sources.base import Source
from tqp.data.sources.stored_tables import StoredTable, table_of_rows
from tqp.expressions import Expression, Sql
from tqp.planner.catalog_protocol import View
from tqp.planner.parse import parse
from tqp.reshaping import Reshaping
from tqp.result import Result
from tqp.statements.execution import Effect
from tqp.statements.session import Session
from tqp.summaries import Summaries
from tqp.ways_out import WaysOut

_JOINS = (
    "inner left right outer full semi anti asof".split()  # those with a condition
    + "cross natural positional".split()
)
_WITHOUT_CONDITION = _JOINS[-3:]
Condition = Sql | Sequence[str] | Callable[[Side, Side], Expression] | None
#: What relations are called that nobody has named.
UNNAMED = "relation"


class Relational(Summaries["Relation"], Reshaping["Relation"]):
    """What can be made of rows by methods. Texts are SQL, which may name other tables of the connection, too; `tqp.col` and
    the like make expressions that may stand in their place.

    Nothing runs before an answer is asked for.
    """

    _session: Session

    @abstractmethod
    def _input(self) -> View | Source:
        """What stands for the rows in FROM."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Column names, in order."""

    @property
    @abstractmethod
    def types(self) -> tuple[DataType, ...]:
        """Column types, in order; `str(type)` is the SQL name."""

    @property
    def alias(self) -> str:
        """The name under which conditions of joins know it."""
        return UNNAMED

    def set_alias(self, alias: str) -> Relation:
        """The same under another name."""
        check_name("a relation", alias)
        return Relation(
            self._session,
            View(alias, parse(f"FROM {in_quotes(alias)}"), inputs={lower_ascii(alias): self._input()}),
        )

    def _made(
        self, text: str, inputs: Mapping[str, Relational] | None = None, alias: str | None = None
    ) -> Relation:
        check_query(text)
        named = {self.alias: self} if inputs is None else inputs
        view = View(
            alias or self.alias,
            parse(text),
            inputs={lower_ascii(name): each._input() for name, each in named.items()},
            is_relation=True,
        )
        return Relation(self._session, view)

    def filter(self, condition: Sql) -> Relation:
        """The rows where the condition is true.

        >>> import tqp
        >>> tqp.sql("SELECT i FROM range(5) r(i)").filter("i > 2").order("i DESC").fetchall()
        [(4,), (3,)]
        """
        return self._made(f"SELECT * {self._from} WHERE ({condition_text(condition)})")

    def project(self, *columns: Sql | Sequence[Sql]) -> Relation:
        """These expressions of each row."""
        return self._made(f"SELECT {selected(list(columns))} {self._from}")

    def select(self, *columns: Sql | Sequence[Sql]) -> Relation:
        """`project`."""
        return self.project(*columns)

    def __getitem__(self, columns: str | list[str]) -> Relation:
        names = [columns] if isinstance(columns, str) else columns
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise BindError(f"a relation has columns by their names, or lists of them, not by {columns!r}")
        return self.project(*map(in_quotes, names))

    def __getattr__(self, name: str) -> Relation:
        """`r.a`, where there is nothing else of that name: the column "a"."""
        # Names with an underscore in front are what Python and other libraries ask for.
        if not name.startswith("_") and lower_ascii(name) in map(lower_ascii, self.columns):
            return self[name]
        raise AttributeError(f"a {type(self).__name__} has no attribute, and its rows no column, {name!r}")

    def _typed(self) -> Iterable[tuple[str, DataType]]:
        return zip(self.columns, self.types, strict=True)

    def aggregate(self, expressions: Sql | Sequence[Sql], groups: Sql | Sequence[Sql] = "") -> Relation:
        """Aggregates by `groups`, by default by all expressions that hold none."""
        return self._made(f"SELECT {selected(expressions)} {self._from} GROUP BY {grouped(groups) or 'ALL'}")

    def order(self, keys: Sql | Sequence[Sql]) -> Relation:
        """In this order, such as "a DESC, b"."""
        return self._made(f"SELECT * {self._from} ORDER BY {ordered(keys)}")

    def sort(self, *keys: Sql | Sequence[Sql]) -> Relation:
        """In the order of these keys."""
        return self._made(f"SELECT * {self._from} ORDER BY {ordered(list(keys))}")

    def limit(self, count: int, offset: int = 0) -> Relation:
        """The first rows, behind `offset` others."""
        first, behind = check_integer("count", count), check_integer("offset", offset)
        return self._made(f"SELECT * {self._from} LIMIT {first} OFFSET {behind}")

    def head(self, count: int = 5) -> Relation:
        """The first rows."""
        return self.limit(count)

    def distinct(self, on: Sql | Sequence[Sql] | None = None) -> Relation:
        """Each row once, or a row for each value of `on`."""
        of = "" if on is None else f" ON ({grouped(on)})"
        return self._made(f"SELECT DISTINCT{of} * {self._from}")

    def union(self, other: Relational) -> Relation:
        """The rows of both, as UNION ALL has them."""
        return self._combined(other, "UNION ALL")

    def union_by_name(self, other: Relational, *, all: bool = True) -> Relation:
        """The rows of both, columns by their names, NULL where one has none; without `all` each row once."""
        return self._combined(other, f"UNION {'ALL ' if all else ''}BY NAME")

    def intersect(self, other: Relational) -> Relation:
        """The rows that are in both, as INTERSECT ALL has them."""
        return self._combined(other, "INTERSECT ALL")

    def except_(self, other: Relational) -> Relation:
        """The rows that are not in the other, as EXCEPT ALL has them."""
        return self._combined(other, "EXCEPT ALL")

    def _combined(self, other: Relational, word: str) -> Relation:
        inputs = {"left": self, "right": self._beside(other)}
        return self._made(f'FROM "left" {word} FROM "right"', inputs, self.alias)

    def _beside(self, other: object) -> Relational:
        """The other. Raises BindError for anything but a relation, and for one of another connection."""
        if not isinstance(other, Relational):
            raise BindError(
                f"a relation goes together with another, not with a {type(other).__name__}; from_df() makes one of a frame"
            )
        if isinstance(other, Relation):
            other.__tqp_view__(self._session.catalog)
        return other

    def join(self, other: Relational, condition: Condition = None, how: str = "inner") -> Relation:
        """Both beside each other: `condition` is SQL, an expression, or the names of columns that both have, also as a list.

        It may be a function of both, too, which have their columns as attributes: `lambda a, b: a.id == b.parent`.

        `how`: "inner", "left", "right", "outer", "semi", "anti" or "asof", and, without a condition, "cross", "natural" or
        "positional". In a condition each goes by its `alias`; of two that nobody has named, one is "left_relation" and the other
        "right_relation".

        >>> import tqp
        >>> words = tqp.sql("SELECT 2 AS i, 'two' AS word")
        >>> tqp.sql("SELECT i FROM range(3) r(i)").join(words, "i").fetchall()
        [(2, 'two')]
        """
        how = how.lower() if isinstance(how, str) else how
        check_choice("how", how, _JOINS)
        left, right = self._names_in_join(self._beside(other))
        if callable(condition):
            condition = condition(Side(left), Side(right))
        on = _join_condition(condition, how)
        word = "FULL" if how == "outer" else how.upper()
        text = f"SELECT * FROM {in_quotes(left)} {word} JOIN {in_quotes(right)} {on}"
        return self._made(text, {left: self, right: other}, UNNAMED)

    def _names_in_join(self, other: Relational) -> tuple[str, str]:
        """What they go by. Raises BindError where both have the same name, and somebody gave it."""
        if lower_ascii(self.alias) != lower_ascii(other.alias):
            return self.alias, other.alias
        if self.alias == UNNAMED:
            return "left_relation", "right_relation"
        raise BindError(f'both relations are called "{self.alias}"; give one another name with set_alias()')

    def cross(self, other: Relational) -> Relation:
        """Each row beside each of the other."""
        return self.join(other, how="cross")

    def query(self, name: str, query: str) -> Relation:
        """A whole query, in which the relation goes by `name`."""
        check_name("a relation", name)
        return self._made(query, {name: self}, self.alias)

    def create(self, name: str) -> None:
        """Make a table of the rows; see CREATE TABLE."""
        self._session.store(name, self._answer())

    def to_table(self, name: str) -> None:
        """`create`."""
        self.create(name)

    def insert_into(self, name: str, *, by_name: bool = False) -> None:
        """Insert the rows into a table: by their places, or `by_name`."""
        check_name("a table", name)
        self._session.insert(name, self._input(), by_name)

    def to_view(self, name: str, replace: bool = True) -> Relation:
        """`create_view`."""
        return self.create_view(name, replace)

    def create_view(self, name: str, replace: bool = True) -> Relation:
        """Make a view, in place of another of its name."""
        check_name("a view", name)
        view = View(name, parse(self._from), inputs={lower_ascii(self.alias): self._input()})
        self._session.define(view, replace)
        return Relation(self._session, view)

    def materialize(self) -> QueryResult:
        """Run it: a relation of the rows that it has now."""
        return QueryResult(self._session, self._answer(), f"FROM {in_quotes(self.alias)}", None)

    def _types_of_names(self, names: Sequence[str]) -> tuple[DataType, ...]:
        session = self._session
        return session.queries.types_of_names(names, session.catalog.state)

    @abstractmethod
    def _answer(self) -> Result:
        """The answer."""


def _join_condition(condition: Sql | Sequence[str] | None, how: str) -> str:
    """USING or ON. Raises BindError where there is none and is to be one, or the other way round."""
    is_given = isinstance(condition, Expression) or bool(condition)
    if how in _WITHOUT_CONDITION:
        if is_given:
            raise BindError(f"a {how} join has no condition; leave it out, or choose another kind of join")
        return ""
    if condition is None or not is_given:
        raise BindError(f'how="{how}": this join needs a condition, or the names of columns that both have')
    if isinstance(condition, Expression):
        return f"USING ({condition})" if is_column(condition) else f"ON {condition}"
    if not isinstance(condition, str):
        for name in condition:
            check_name("a column", name)
        return f"USING ({in_quotes_joined(condition)})"
    check_is_text("the condition of a join", condition)
    names = [name.strip() for name in condition.split(",")]
    if all(name.isidentifier() for name in names):
        return f"USING ({', '.join(names)})"
    return f"ON ({closed(condition)})"


class Relation(Relational, WaysOut):
    """A query that has not run; each way out runs it, with the tables as they are then."""

    def __init__(self, session: Session, view: View) -> None:
        self._session, self._view = session, view
        self._open: Result | None = None

    def _input(self) -> View | Source:
        return self._view

    def __tqp_view__(self, catalog: object) -> View:
        """What a query that names a variable which is a relation reads. Raises BindError for another connection's, of other tables."""
        if catalog is not self._session.catalog:
            raise BindError(
                f'the relation "{self.alias}" is of another connection; from_df(relation.execute()) makes one of its rows'
            )
        return self._view

    @property
    def alias(self) -> str:
        """The name under which conditions of joins know it."""
        return self._view.name

    def execute(self) -> Result:
        """Run it."""
        return self._session.run_view(self._view)

    def _answer(self) -> Result:
        return self.execute()

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names, in order."""
        return self._session.describe_view(self._view).names

    @property
    def types(self) -> tuple[DataType, ...]:
        """Column types, in order; `str(type)` is the SQL name."""
        return self._session.describe_view(self._view).types

    def __len__(self) -> int:
        return len(self.execute())

    def _result(self) -> Result:
        return self.execute()

    @property
    def dtypes(self) -> tuple[DataType, ...]:
        """`types`."""
        return self.types

    @property
    def shape(self) -> tuple[int, int]:
        """(rows, columns); runs the query."""
        return self.execute().shape

    @property
    def description(self) -> list[tuple[str, DataType, None, None, None, None, None]]:
        """Name and type of each column, as PEP 249 has it."""
        described = self._session.describe_view(self._view)
        return [(name, kind, None, None, None, None, None) for name, kind in zip(*described, strict=True)]

    def explain(self, analyze: bool = False) -> str:
        """The plans as text; see `Connection.explain`."""
        return self._session.explain_view(self._view, analyze)

    def fetchall(self) -> list[tuple[Any, ...]]:
        """All rows; behind `fetchone` or `fetchmany` those that are left."""
        return (self._open or self.execute()).fetchall()

    def fetchone(self) -> tuple[Any, ...] | None:
        """The next row; the first call runs the query."""
        return self._opened().fetchone()

    def fetchmany(self, size: int = 1) -> list[tuple[Any, ...]]:
        """The next rows; the first call runs the query."""
        return self._opened().fetchmany(size)

    def _opened(self) -> Result:
        if self._open is None:
            self._open = self.execute()
        return self._open

    def write_parquet(self, path: str | os.PathLike[str], *, compression: str = "snappy") -> None:
        """See `Result.write_parquet`."""
        self.execute().write_parquet(path, compression=compression)

    def write_csv(self, path: str | os.PathLike[str], *, sep: str = ",", header: bool = True) -> None:
        """See `Result.write_csv`."""
        self.execute().write_csv(path, sep=sep, header=header)

    def to_parquet(self, path: str | os.PathLike[str], *, compression: str = "snappy") -> None:
        """See `Result.write_parquet`."""
        self.execute().write_parquet(path, compression=compression)

    def to_csv(self, path: str | os.PathLike[str], *, sep: str = ",", header: bool = True) -> None:
        """See `Result.write_csv`."""
        self.execute().write_csv(path, sep=sep, header=header)

    def write_json(self, path: str | os.PathLike[str], *, array: bool = False) -> None:
        """See `Result.write_json`."""
        self.execute().write_json(path, array=array)

    def show(self, max_rows: int = MAX_ROWS, max_width: int | None = None) -> None:
        """See `Result.show`."""
        self.execute().show(max_rows, max_width)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.execute().__arrow_c_stream__(requested_schema)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.execute().__array__(dtype, copy)

    def __repr__(self) -> str:
        return repr(self.execute())

    def _repr_html_(self) -> str:
        return self.execute()._repr_html_()


class QueryResult(Result, Relational):
    """The answer of a query, of which its methods make further queries."""

    def __init__(self, session: Session, result: Result, query: str, params: Parameters | None) -> None:
        super().__init__(result.columns, result.types, result._table)
        self._session, self._query, self._params = session, query, params
        self._num_changed = result.num_changed if isinstance(result, Effect) else None
        self._stored: StoredTable | None = None

    @property
    def rowcount(self) -> int:
        """How many rows the statement has changed; -1 where it is one that changes none."""
        return -1 if self._num_changed is None else self._num_changed

    def _input(self) -> View | Source:
        if self._stored is None:
            device = self._session.device
            self._stored = table_of_rows("result", self.columns, self.types, self._table, device)
        return self._stored

    def _answer(self) -> Result:
        return self

    def explain(self, analyze: bool = False) -> str:
        """The plans of the query as text; see `Connection.explain`. Variables that it names are looked up again, by the caller."""
        variables = self._session.variables(sys._getframe(1))
        return self._session.queries.explain(self._query, analyze, self._params, variables)
