"""Aggregates and window functions of rows as methods, under the names that DuckDB's relations have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, Generic, Protocol, TypeVar, cast

from tqp.core.arguments import check_integer, check_is_text
from tqp.core.datatypes import DataType
from tqp.core.keywords import closed, in_quotes, quoted_text
from tqp.expressions import Sql

Made = TypeVar("Made")
_Made_co = TypeVar("_Made_co", covariant=True)

#: What `describe` says of a column: of one that is no number only those without a mean.
_DESCRIBED = {
    "count": "count({})",
    "mean": "avg({})",
    "stddev": "stddev_samp({})",
    "min": "min({})",
    "max": "max({})",
    "median": "median({})",
}
_OF_ANY_TYPE = ("count", "min", "max")


class _Aggregate(Protocol[_Made_co]):
    """A method that takes an expression."""

    def __call__(
        self, expression: Sql, groups: Sql = "", window_spec: str = "", projected_columns: str = ""
    ) -> _Made_co: ...


class _Ranking(Protocol[_Made_co]):
    """A method that takes a window."""

    def __call__(self, window_spec: str, projected_columns: str = "") -> _Made_co: ...


class _AggregateOfAny(Protocol):
    def __get__(self, rows: Summaries[Made], owner: object = None) -> _Aggregate[Made]: ...


class _RankingOfAny(Protocol):
    def __get__(self, rows: Summaries[Made], owner: object = None) -> _Ranking[Made]: ...


def _aggregate(function: str, documentation: str) -> _AggregateOfAny:
    """The method that calls an aggregate of one argument."""

    def method(
        self: Summaries[Any],
        expression: Sql,
        groups: Sql = "",
        window_spec: str = "",
        projected_columns: str = "",
    ) -> Any:
        return self._of(f"{function}({closed(expression)})", groups, window_spec, projected_columns)

    method.__doc__ = documentation
    return cast(_AggregateOfAny, method)


def _ranking(function: str, documentation: str) -> _RankingOfAny:
    """The method that calls a window function without arguments."""

    def method(self: Summaries[Any], window_spec: str, projected_columns: str = "") -> Any:
        return self._of(f"{function}()", "", window_spec, projected_columns)

    method.__doc__ = documentation
    return cast(_RankingOfAny, method)


class Summaries(ABC, Generic[Made]):
    """Each gives a relation with a row for each value of `groups`, which are SQL; without them, with one row.

    With `window_spec`, such as "OVER (PARTITION BY g ORDER BY t)", each row stays. `projected_columns`, a list in SQL, stand before
    the result.

    >>> import tqp
    >>> rows = tqp.sql("SELECT i, i % 2 AS g FROM range(4) r(i)")
    >>> rows.max("i", "g", projected_columns="g").order("g").fetchall()
    [(0, 2), (1, 3)]
    >>> rows.sum("i", window_spec="OVER (ORDER BY i)", projected_columns="i").order("i").fetchall()
    [(0, 0), (1, 1), (2, 3), (3, 6)]
    """

    @abstractmethod
    def aggregate(self, expressions: Sql | Sequence[Sql], groups: Sql | Sequence[Sql] = "") -> Made:
        """Aggregates by `groups`."""

    @abstractmethod
    def project(self, *columns: Sql | Sequence[Sql]) -> Made:
        """These expressions of each row."""

    @abstractmethod
    def _typed(self) -> Iterable[tuple[str, DataType]]:
        """The columns by name, in order."""

    def _of(self, call: str, groups: Sql, window_spec: str, projected_columns: str) -> Made:
        before = f"{closed(projected_columns)}, " if projected_columns else ""
        if window_spec:
            return self.project(f"{before}{call} {closed(window_spec)}")
        return self.aggregate(before + call, groups)

    sum = _aggregate("sum", "The sum of an expression, such as the name of a column.")
    min = _aggregate("min", "The least value.")
    max = _aggregate("max", "The greatest value.")
    avg = _aggregate("avg", "The mean.")
    mean = _aggregate("avg", "The mean.")
    median = _aggregate("median", "The median.")
    mode = _aggregate("mode", "The value that is there most often.")
    stddev = _aggregate("stddev_samp", "The standard deviation of the sample.")
    std = _aggregate("stddev_samp", "The standard deviation of the sample.")
    stddev_samp = _aggregate("stddev_samp", "The standard deviation of the sample.")
    stddev_pop = _aggregate("stddev_pop", "The standard deviation of the population.")
    var = _aggregate("var_samp", "The variance of the sample.")
    variance = _aggregate("var_samp", "The variance of the sample.")
    var_samp = _aggregate("var_samp", "The variance of the sample.")
    var_pop = _aggregate("var_pop", "The variance of the population.")
    product = _aggregate("product", "The product.")
    geomean = _aggregate("geomean", "The geometric mean.")
    favg = _aggregate("favg", "The mean, summed with Kahan's corrections.")
    fsum = _aggregate("fsum", "The sum of floats with Kahan's corrections.")
    first = _aggregate("first", "The value of the first row.")
    last = _aggregate("last", "The value of the last row.")
    any_value = _aggregate("any_value", "The first value that is not NULL.")
    bit_and = _aggregate("bit_and", "The bits that all values have.")
    bit_or = _aggregate("bit_or", "The bits that one value has.")
    bit_xor = _aggregate("bit_xor", "The bits that an odd number of values has.")
    bool_and = _aggregate("bool_and", "Whether all are true.")
    bool_or = _aggregate("bool_or", "Whether one is true.")
    histogram = _aggregate("histogram", "In how many rows each value is, as a MAP.")
    list = _aggregate("list", "A list of the values.")

    row_number = _ranking("row_number", "The number of each row, from 1, in the order of its window.")
    rank = _ranking("rank", "The number of the first row that is equal in the order of the window.")
    dense_rank = _ranking(
        "dense_rank", "How many different rows there are up to it in the order of the window."
    )
    rank_dense = _ranking("dense_rank", "`dense_rank`.")
    percent_rank = _ranking("percent_rank", "The share of the other rows that come before.")
    cume_dist = _ranking("cume_dist", "The share of the rows that come before, or are equal.")

    def count(
        self, expression: Sql = "*", groups: Sql = "", window_spec: str = "", projected_columns: str = ""
    ) -> Made:
        """How many rows there are, or values of an expression."""
        return self._of(f"count({closed(expression)})", groups, window_spec, projected_columns)

    def quantile_disc(
        self,
        expression: Sql,
        q: float | Sequence[float] = 0.5,
        groups: Sql = "",
        window_spec: str = "",
        projected_columns: str = "",
    ) -> Made:
        """The value below which that share of the values lies: one of them; with several shares a list."""
        call = f"quantile_disc({closed(expression)}, {q})"
        return self._of(call, groups, window_spec, projected_columns)

    quantile = quantile_disc

    def quantile_cont(
        self,
        expression: Sql,
        q: float | Sequence[float] = 0.5,
        groups: Sql = "",
        window_spec: str = "",
        projected_columns: str = "",
    ) -> Made:
        """The value below which that share of the values lies, between two where it is none of them."""
        call = f"quantile_cont({closed(expression)}, {q})"
        return self._of(call, groups, window_spec, projected_columns)

    def arg_max(
        self,
        arg_column: Sql,
        value_column: Sql,
        groups: Sql = "",
        window_spec: str = "",
        projected_columns: str = "",
    ) -> Made:
        """The one's value in the row where the other's is greatest."""
        call = f"arg_max({closed(arg_column)}, {closed(value_column)})"
        return self._of(call, groups, window_spec, projected_columns)

    def arg_min(
        self,
        arg_column: Sql,
        value_column: Sql,
        groups: Sql = "",
        window_spec: str = "",
        projected_columns: str = "",
    ) -> Made:
        """The one's value in the row where the other's is least."""
        call = f"arg_min({closed(arg_column)}, {closed(value_column)})"
        return self._of(call, groups, window_spec, projected_columns)

    def string_agg(
        self,
        expression: Sql,
        sep: str = ",",
        groups: Sql = "",
        window_spec: str = "",
        projected_columns: str = "",
    ) -> Made:
        """The texts, one after the other."""
        check_is_text("the separator", sep)
        call = f"string_agg({closed(expression)}, {quoted_text(sep)})"
        return self._of(call, groups, window_spec, projected_columns)

    def bitstring_agg(
        self,
        expression: Sql,
        min: int | None = None,
        max: int | None = None,
        groups: Sql = "",
        window_spec: str = "",
        projected_columns: str = "",
    ) -> Made:
        """A BIT with a one for each value, the first for `min` and the last for `max`, which are the least and the greatest."""
        bounds = (
            ""
            if min is None or max is None
            else f", {check_integer('min', min)}, {check_integer('max', max)}"
        )
        return self._of(
            f"bitstring_agg({closed(expression)}{bounds})", groups, window_spec, projected_columns
        )

    def n_tile(self, window_spec: str, num_buckets: int, projected_columns: str = "") -> Made:
        """The number of each row's part, where partitions are cut into so many equal ones."""
        count = check_integer("num_buckets", num_buckets)
        return self._of(f"ntile({count})", "", window_spec, projected_columns)

    def lag(
        self,
        expression: Sql,
        window_spec: str,
        offset: int = 1,
        default_value: str = "NULL",
        ignore_nulls: bool = False,
        projected_columns: str = "",
    ) -> Made:
        """The value of the row that is so many before in the order of the window."""
        return self._moved(
            "lag", expression, window_spec, offset, default_value, ignore_nulls, projected_columns
        )

    def lead(
        self,
        expression: Sql,
        window_spec: str,
        offset: int = 1,
        default_value: str = "NULL",
        ignore_nulls: bool = False,
        projected_columns: str = "",
    ) -> Made:
        """The value of the row that is so many behind in the order of the window."""
        return self._moved(
            "lead", expression, window_spec, offset, default_value, ignore_nulls, projected_columns
        )

    def _moved(
        self,
        function: str,
        expression: Sql,
        window_spec: str,
        offset: int,
        default_value: str,
        ignore_nulls: bool,
        projected_columns: str,
    ) -> Made:
        rows, nulls = check_integer("offset", offset), " IGNORE NULLS" if ignore_nulls else ""
        call = f"{function}({closed(expression)}, {rows}, {closed(default_value)}{nulls})"
        return self._of(call, "", window_spec, projected_columns)

    def first_value(self, expression: Sql, window_spec: str = "", projected_columns: str = "") -> Made:
        """The value of the first row of the frame."""
        return self._of(f"first_value({closed(expression)})", "", window_spec, projected_columns)

    def last_value(self, expression: Sql, window_spec: str = "", projected_columns: str = "") -> Made:
        """The value of the last row of the frame."""
        return self._of(f"last_value({closed(expression)})", "", window_spec, projected_columns)

    def nth_value(
        self,
        expression: Sql,
        window_spec: str,
        offset: int,
        ignore_nulls: bool = False,
        projected_columns: str = "",
    ) -> Made:
        """The value of the frame's row of that number, from 1."""
        row, nulls = check_integer("offset", offset), " IGNORE NULLS" if ignore_nulls else ""
        return self._of(f"nth_value({closed(expression)}, {row}{nulls})", "", window_spec, projected_columns)

    def value_counts(self, expression: Sql) -> Made:
        """Each value, and in how many rows it is."""
        return self.aggregate(f"{closed(expression)}, count({closed(expression)})", expression)

    def unique(self, expression: Sql) -> Made:
        """Each value once."""
        return self.aggregate(expression, expression)

    def describe(self) -> Made:
        """The number of values, the least and the greatest of each column, and of numbers the mean, deviation and median.

        >>> import tqp
        >>> tqp.sql("SELECT * FROM (VALUES (1, 'a'), (3, 'b')) t(x, s)").describe().limit(2).fetchall()
        [('count', 2.0, '2'), ('mean', 2.0, None)]
        """
        columns = [f"unnest([{', '.join(map(quoted_text, _DESCRIBED))}]) AS aggr"]
        for name, data_type in self._typed():
            result = "DOUBLE" if data_type.is_numeric else "VARCHAR"
            values = [
                f"{call.format(in_quotes(name))}::{result}"
                if data_type.is_numeric or what in _OF_ANY_TYPE
                else "NULL"
                for what, call in _DESCRIBED.items()
            ]
            columns.append(f"unnest([{', '.join(values)}]) AS {in_quotes(name)}")
        return self.project(", ".join(columns))
