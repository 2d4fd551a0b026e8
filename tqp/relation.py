"""Relations: queries that have not run, made of each other by methods; each is a table to the next one."""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from tqp.clauses import Select, Side, condition_text, grouped, ordered, selected
from tqp.compiled import Parameters
from tqp.core.arguments import (
    check_integer,
    check_name,
    check_query,
    unique_names,
)
from tqp.core.datatypes import DataType
from tqp.core.errors import BindError
from tqp.core.keywords import in_quotes, lower_ascii
from tqp.data.column import Table
from tqp.data.results.display import MAX_ROWS
from tqp.data.sources.base import Source
from tqp.data.sources.make_source import make_source
from tqp.data.sources.stored_tables import StoredTable, table_of_rows
from tqp.expressions import Sql
from tqp.joins import Condition, joined, kind_of_join, share_a_name, with_suffix
from tqp.planner.catalog_protocol import View
from tqp.planner.parse import parse
from tqp.reshaping import Reshaping
from tqp.result import Result
from tqp.sql_types import sql_type
from tqp.statements.execution import Effect
from tqp.statements.session import Session
from tqp.summaries import Summaries
from tqp.ways_out import WaysOut
from tqp.writing.ways_to_files import WaysToFiles

if TYPE_CHECKING:
    import pandas

#: What relations are called that nobody has named.
UNNAMED = "relation"


#: What names in a query stand for; None where the catalog knows.
Inputs = Mapping[str, "Relational | None"]
#: SQL of FROM, and the names in it.
Tables = tuple[str, Inputs]


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
        query = parse(f"FROM {in_quotes(alias)}").reading({alias: self._input()})
        return Relation(self._session, View(alias, query))

    def _closed(self) -> Tables:
        """What stands for it in FROM under its own name."""
        return in_quotes(self.alias), {self.alias: self}

    def _in_join(self) -> Tables:
        """What stands for it in the FROM of a join, which sees through one in it."""
        return self._closed()

    def _to_fill(self) -> tuple[Select, Inputs]:
        """A SELECT to which clauses may be added, and what the names in its FROM stand for."""
        tables, inputs = self._closed()
        return Select(tables), inputs

    def _selected(self, **clauses: str) -> Relation:
        select, inputs = self._to_fill()
        filled = select.filled(**clauses)
        if filled is None:
            tables, inputs = self._closed()
            filled = Select(tables).filled(**clauses)
        assert filled is not None
        return Selected(self._session, filled, inputs, self.alias)

    def _made(self, text: str, inputs: Inputs | None = None, alias: str | None = None) -> Relation:
        view = _view(text, {self.alias: self} if inputs is None else inputs, alias or self.alias)
        return Relation(self._session, view)

    def __contains__(self, name: object) -> bool:
        """Whether there is a column of that name."""
        return isinstance(name, str) and lower_ascii(name) in map(lower_ascii, self.columns)

    def filter(self, condition: Sql) -> Relation:
        """The rows where the condition is true.

        >>> import tqp
        >>> tqp.sql("SELECT i FROM range(5) r(i)").filter("i > 2").order("i DESC").fetchall()
        [(4,), (3,)]
        """
        return self._selected(where=f"({condition_text(condition)})")

    def project(self, *columns: Sql | Sequence[Sql]) -> Relation:
        """These expressions of each row."""
        return self._selected(items=selected(list(columns)))

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
        return self._selected(items=selected(expressions), group=f"GROUP BY {grouped(groups) or 'ALL'}")

    def order(self, keys: Sql | Sequence[Sql]) -> Relation:
        """In this order, such as "a DESC, b"."""
        return self._selected(order=f"ORDER BY {ordered(keys)}")

    def sort(self, *keys: Sql | Sequence[Sql]) -> Relation:
        """In the order of these keys."""
        return self._selected(order=f"ORDER BY {ordered(list(keys))}")

    def limit(self, count: int, offset: int = 0) -> Relation:
        """The first rows, behind `offset` others."""
        first, behind = check_integer("count", count), check_integer("offset", offset)
        return self._selected(limit=f"LIMIT {first} OFFSET {behind}")

    def head(self, count: int = 5) -> Relation:
        """The first rows."""
        return self.limit(count)

    def distinct(self, on: Sql | Sequence[Sql] | None = None) -> Relation:
        """Each row once, or a row for each value of `on`."""
        if on is None:
            return self._selected(distinct="DISTINCT")
        return self._made(f"SELECT DISTINCT ON ({grouped(on)}) * {self._from}")

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

    def join(
        self, other: Relational, condition: Condition = None, how: str = "inner", suffix: str | None = None
    ) -> Relation:
        """Both beside each other: `condition` is SQL, an expression, or the names of columns that both have, also as a list.

        It may be a function of both, too, which have their columns as attributes: `lambda a, b: a.id == b.parent`.

        `how`: "inner", "left", "right", "outer", "semi", "anti" or "asof", and, without a condition, "cross", "natural" or
        "positional". In a condition each goes by its `alias`; of two that nobody has named, one is "left_relation" and the other
        "right_relation". They still do in methods that filter what the join gives, and in the one behind these; another join may
        be on them, too. Columns of the other whose names this one has, too, get the `suffix` behind their names, if one is given.

        >>> import tqp
        >>> words = tqp.sql("SELECT 2 AS i, 'two' AS word")
        >>> tqp.sql("SELECT i FROM range(3) r(i)").join(words, "i").fetchall()
        [(2, 'two')]
        """
        kind = kind_of_join(how)
        suffix = None if kind in ("semi", "anti") else suffix
        left, right = _in_one_from(self, self._beside(other), suffix is not None or callable(condition))
        if callable(condition):
            condition = condition(*(Side(name) for _, inputs in (left, right) for name in inputs))
        tables = joined(left[0], right[0], condition, kind)
        made = Selected(self._session, Select(tables), {**left[1], **right[1]})
        if suffix is None:
            return made
        names, others = unique_names(self.columns), unique_names(other.columns)
        (name,) = right[1]
        return made._selected(items=with_suffix(suffix, names, name, others, condition, kind))

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
        view = View(name, parse(self._from).reading({self.alias: self._input()}))
        self._session.define(view, replace)
        return Relation(self._session, view)

    def map(
        self, function: Callable[[pandas.DataFrame], object], schema: Mapping[str, object] | None = None
    ) -> Relation:
        """The rows of what a function makes of them, as a pandas frame: runs the query. `schema`: its columns with their types, as
        `sql_type` takes them.

        >>> import tqp
        >>> tqp.sql("SELECT 1 AS a").map(lambda frame: frame + 1).fetchall()
        [(2,)]
        """
        made = make_source("mapped", function(self._answer().to_pandas()), self._session.device)
        items = (
            "*"
            if schema is None
            else ", ".join(
                f"CAST({in_quotes(name)} AS {sql_type(kind)}) AS {in_quotes(name)}"
                for name, kind in schema.items()
            )
        )
        query = parse(f'SELECT {items} FROM "mapped"').reading({"mapped": made})
        return Relation(self._session, View(UNNAMED, query))

    def close(self) -> None:
        """Nothing: a relation goes with its last reference."""

    def materialize(self) -> QueryResult:
        """Run it: a relation of the rows that it has now."""
        answer = self._answer()
        rows = Result(unique_names(answer.columns), answer.types, answer._table)
        return QueryResult(self._session, rows, f"FROM {in_quotes(self.alias)}", None)

    def _types_of_names(self, names: Sequence[str]) -> tuple[DataType, ...]:
        session = self._session
        return session.queries.types_of_names(names, session.catalog.state)

    @abstractmethod
    def _answer(self) -> Result:
        """The answer."""


def _in_one_from(left: Relational, right: Relational, are_closed: bool) -> tuple[Tables, Tables]:
    """Both as FROM has them beside each other, where a name stands for one thing only. Raises BindError where both have one.

    Joins among them are open to the names of their sides, unless that is the name of another, or `are_closed`.
    """
    closed_left, closed_right = left._closed(), right._closed()
    open_left, open_right = (closed_left, closed_right) if are_closed else (left._in_join(), right._in_join())
    for one, other in (open_left, open_right), (open_left, closed_right), (closed_left, closed_right):
        if not share_a_name(one[1], other[1]):
            return one, other
    if left.alias != UNNAMED:
        raise BindError(f'both relations are called "{left.alias}"; give one another name with set_alias()')
    return ('"left_relation"', {"left_relation": left}), ('"right_relation"', {"right_relation": right})


class Relation(Relational, WaysOut, WaysToFiles):
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

    def _to_write(self) -> Table:
        return self.execute()._table

    def show(self, max_rows: int = MAX_ROWS, max_width: int | None = None, **options: Any) -> None:
        """See `Result.show`."""
        self.execute().show(max_rows, max_width, **options)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.execute().__arrow_c_stream__(requested_schema)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.execute().__array__(dtype, copy)

    def __repr__(self) -> str:
        return repr(self.execute())

    def _repr_html_(self) -> str:
        return self.execute()._repr_html_()


class Selected(Relation):
    """A SELECT, to which further methods add clauses as long as these are computed later: behind a join they may name its sides."""

    def __init__(self, session: Session, select: Select, inputs: Inputs, alias: str = UNNAMED) -> None:
        self._select, self._inputs = select, inputs
        super().__init__(session, _view(str(select), inputs, alias))

    def _to_fill(self) -> tuple[Select, Inputs]:
        return self._select, self._inputs

    def _in_join(self) -> Tables:
        return (f"({self._select.tables})", self._inputs) if self._select.is_bare else self._closed()


def _view(text: str, inputs: Inputs, alias: str) -> View:
    """A query of relations, by their names in it."""
    check_query(text)
    query = parse(text).reading({name: each._input() for name, each in inputs.items() if each is not None})
    return View(alias, query, is_relation=True)


class QueryResult(Result, Relational):
    """The answer of a query, of which its methods make further queries."""

    def __init__(
        self, session: Session, result: Result, query: str, params: Parameters | None, alias: str = ""
    ) -> None:
        super().__init__(result.columns, result.types, result._table)
        if alias:
            check_name("a relation", alias)
        self._alias = alias or UNNAMED
        self._session, self._query, self._params = session, query, params
        self._num_changed = result.num_changed if isinstance(result, Effect) else None
        self._stored: StoredTable | None = None

    @property
    def rowcount(self) -> int:
        """How many rows the statement has changed; -1 where it is one that changes none."""
        return -1 if self._num_changed is None else self._num_changed

    @property
    def alias(self) -> str:
        """The name under which conditions of joins know it."""
        return self._alias

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
