"""Relations with other columns or rows than another has, each by a method that is a line of SQL."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Generic, TypeVar

from tqp.clauses import grouped, selected
from tqp.core.arguments import check_choice, check_integer, check_name
from tqp.core.datatypes import DataType
from tqp.core.errors import BindError
from tqp.core.keywords import in_quotes, in_quotes_joined, lower_ascii
from tqp.expressions import Expression, Sql, col, operand, star
from tqp.ml.python_functions import type_text

Made = TypeVar("Made")

_SAMPLES = ("reservoir", "bernoulli", "system")


class Reshaping(ABC, Generic[Made]):
    """Texts are names of columns here, except those of aggregates, which are SQL; `tqp.sql_expr` makes SQL of others."""

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """Column names, in order."""

    @property
    @abstractmethod
    def alias(self) -> str:
        """The name under which `_made` knows it."""

    @abstractmethod
    def aggregate(self, expressions: Sql | Sequence[Sql], groups: Sql | Sequence[Sql] = "") -> Made:
        """Aggregates by `groups`."""

    @abstractmethod
    def _made(self, text: str) -> Made:
        """The rows of a query in which it goes by its alias."""

    @abstractmethod
    def _selected(self, **clauses: str) -> Made:
        """The rows of a SELECT of it with these clauses."""

    @abstractmethod
    def _typed(self) -> Iterable[tuple[str, DataType]]:
        """The columns by name, in order."""

    @abstractmethod
    def _types_of_names(self, names: Sequence[str]) -> Sequence[DataType]:
        """The types that SQL has by these names."""

    @property
    def _from(self) -> str:
        return f"FROM {in_quotes(self.alias)}"

    def with_columns(self, **columns: object) -> Made:
        """With further columns, or with others in place of those of the same names: expressions, values, or texts that name columns.

        >>> import tqp
        >>> from tqp import col
        >>> tqp.sql("SELECT 1 AS a, 2 AS b").with_columns(b=col("b") * 10, c=col("a") + 1).fetchall()
        [(1, 20, 2)]
        """
        _check_some("with_columns", columns)
        known = {*map(lower_ascii, self.columns)}
        given = [self._column(value).alias(name) for name, value in columns.items()]
        replaced = [each for each, name in zip(given, columns, strict=True) if lower_ascii(name) in known]
        added = [each for each, name in zip(given, columns, strict=True) if lower_ascii(name) not in known]
        every = f"* REPLACE ({selected(replaced)})" if replaced else "*"
        return self._selected(items=selected([every, *added]))

    def _column(self, value: object) -> Expression:
        if isinstance(value, Expression):
            return value
        return col(value) if isinstance(value, str) else Expression(operand(value))

    def rename(self, **columns: str) -> Made:
        """With other names of columns: `old="new"`."""
        _check_some("rename", columns)
        return self._selected(items=str(star(rename=columns)))

    def drop(self, *columns: str) -> Made:
        """Without these columns."""
        _check_some("drop", columns)
        return self._selected(items=str(star(columns)))

    def select_types(self, types: Sequence[object]) -> Made:
        """The columns of these types, given as `cast` takes them. Raises BindError where there are none."""
        if isinstance(types, str):
            types = [types]
        wanted = set(self._types_of_names([str(type_text(each)) for each in types]))
        names = [name for name, data_type in self._typed() if data_type in wanted]
        if not names:
            raise BindError(f"no column is {' or '.join(map(str, types))}; `types` has the types of all")
        return self._selected(items=in_quotes_joined(names))

    def select_dtypes(self, types: Sequence[object]) -> Made:
        """`select_types`."""
        return self.select_types(types)

    def unnest(self, *columns: str) -> Made:
        """A row for each element of these lists, beside each other."""
        _check_some("unnest", columns)
        lists = ", ".join(f"unnest({in_quotes(name)}) AS {in_quotes(name)}" for name in columns)
        return self._selected(items=f"* REPLACE ({lists})")

    def unpivot(self, *columns: str, name: str = "name", value: str = "value") -> Made:
        """A row for each of these columns that has a value there, with its name and the value in two columns.

        >>> import tqp
        >>> tqp.sql("SELECT 1 AS id, 7 AS a, 8 AS b").unpivot("a", "b").fetchall()
        [(1, 'a', 7), (1, 'b', 8)]
        """
        _check_some("unpivot", columns)
        into = f"INTO NAME {in_quotes(name)} VALUE {in_quotes(value)}"
        return self._made(f"UNPIVOT {in_quotes(self.alias)} ON {in_quotes_joined(columns)} {into}")

    def pivot(self, column: Sql, values: Iterable[object], aggregate: Sql) -> Made:
        """A column for each of the values: the aggregate of the rows that have it in `column`, by all columns that are left.

        >>> import tqp
        >>> rows = tqp.sql("FROM (VALUES ('x', 'jan', 1), ('x', 'feb', 2), ('x', 'feb', 3)) t(k, month, n)")
        >>> rows.pivot("month", ["jan", "feb"], "sum(n)").fetchall()
        [('x', 1, 5)]
        """
        wanted = [operand(value) for value in values]
        _check_some("pivot", wanted)
        on = f"{self._column(column)} IN ({', '.join(wanted)})"
        return self._made(f"PIVOT {in_quotes(self.alias)} ON {on} USING {selected(aggregate)}")

    def offset(self, count: int) -> Made:
        """The rows behind so many first ones."""
        return self._made(f"SELECT * {self._from} OFFSET {check_integer('count', count)}")

    def sample(
        self,
        n: int | None = None,
        *,
        percent: float | None = None,
        seed: int | None = None,
        method: str | None = None,
    ) -> Made:
        """Some rows: `n`, or about so many `percent`; those of the same `seed` again. `method`: "reservoir", "bernoulli", "system"."""
        if (n is None) == (percent is None):
            raise BindError("sample() takes either the number of rows, or percent=")
        size = f"{check_integer('n', n)} ROWS" if percent is None else f"{operand(percent)} PERCENT"
        if method is not None:
            check_choice("method", method, _SAMPLES)
        drawn = method or ("reservoir" if percent is None else "bernoulli")
        again = "" if seed is None else f", {check_integer('seed', seed)}"
        return self._made(f"{self._from} USING SAMPLE {size} ({drawn}{again})")

    def group_by(self, *columns: Sql) -> Grouped[Made]:
        """By the values of these columns: `r.group_by("g").agg(col("x").sum())`."""
        return Grouped(self, [self._column(each) for each in columns])


class Grouped(Generic[Made]):
    """Rows by groups, of which `agg` makes a row each."""

    def __init__(self, rows: Reshaping[Made], keys: Sequence[Expression]) -> None:
        self._rows, self._keys = rows, keys

    def agg(self, *aggregates: Sql | Sequence[Sql]) -> Made:
        """The keys of each group, and these aggregates of its rows; texts are SQL.

        >>> import tqp
        >>> from tqp import col, count_all
        >>> rows = tqp.sql("SELECT i, i % 2 AS g FROM range(5) r(i)")
        >>> rows.group_by("g").agg(col("i").sum().alias("total"), count_all().alias("n")).order("g").fetchall()
        [(0, 6, 3), (1, 4, 2)]
        """
        _check_some("agg", aggregates)
        return self._rows.aggregate([*self._keys, *_each(aggregates)], grouped(list(self._keys)))


def _each(aggregates: tuple[Any, ...]) -> list[Sql]:
    return [each for item in aggregates for each in (item if isinstance(item, (list, tuple)) else [item])]


def _check_some(method: str, given: Any) -> None:
    if not given:
        raise BindError(f"{method}() takes at least one argument")
    for name in given:
        if isinstance(name, str):
            check_name("a column", name)
