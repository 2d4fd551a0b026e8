"""Aggregates of rows as methods, under the names that DuckDB's relations have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Generic, TypeVar

from tqp.core.arguments import check_is_text
from tqp.core.datatypes import DataType
from tqp.core.keywords import closed, in_quotes, quoted_text

Made = TypeVar("Made")

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


class Summaries(ABC, Generic[Made]):
    """Each gives a relation with a row for each value of `groups`, which are SQL; without them, with one row."""

    @abstractmethod
    def aggregate(self, expressions: str, groups: str = "") -> Made:
        """Aggregates by `groups`."""

    @abstractmethod
    def _of_all_rows(self, expressions: str) -> Made:
        """SELECT without groups."""

    @abstractmethod
    def _typed(self) -> Iterable[tuple[str, DataType]]:
        """The columns by name, in order."""

    def sum(self, expression: str, groups: str = "") -> Made:
        """The sum of an expression, such as the name of a column."""
        return self.aggregate(f"sum({closed(expression)})", groups)

    def min(self, expression: str, groups: str = "") -> Made:
        """The least value."""
        return self.aggregate(f"min({closed(expression)})", groups)

    def max(self, expression: str, groups: str = "") -> Made:
        """The greatest value."""
        return self.aggregate(f"max({closed(expression)})", groups)

    def avg(self, expression: str, groups: str = "") -> Made:
        """The mean."""
        return self.aggregate(f"avg({closed(expression)})", groups)

    def mean(self, expression: str, groups: str = "") -> Made:
        """`avg`."""
        return self.avg(expression, groups)

    def median(self, expression: str, groups: str = "") -> Made:
        """The median."""
        return self.aggregate(f"median({closed(expression)})", groups)

    def mode(self, expression: str, groups: str = "") -> Made:
        """The value that is there most often."""
        return self.aggregate(f"mode({closed(expression)})", groups)

    def quantile(self, expression: str, q: float = 0.5, groups: str = "") -> Made:
        """The value below which that share of the values lies: one of them."""
        return self.aggregate(f"quantile_disc({closed(expression)}, {q})", groups)

    def stddev(self, expression: str, groups: str = "") -> Made:
        """The standard deviation of the sample."""
        return self.aggregate(f"stddev_samp({closed(expression)})", groups)

    def std(self, expression: str, groups: str = "") -> Made:
        """`stddev`."""
        return self.stddev(expression, groups)

    def var(self, expression: str, groups: str = "") -> Made:
        """The variance of the sample."""
        return self.aggregate(f"var_samp({closed(expression)})", groups)

    def variance(self, expression: str, groups: str = "") -> Made:
        """`var`."""
        return self.var(expression, groups)

    def product(self, expression: str, groups: str = "") -> Made:
        """The product."""
        return self.aggregate(f"product({closed(expression)})", groups)

    def first(self, expression: str, groups: str = "") -> Made:
        """The value of the first row."""
        return self.aggregate(f"first({closed(expression)})", groups)

    def last(self, expression: str, groups: str = "") -> Made:
        """The value of the last row."""
        return self.aggregate(f"last({closed(expression)})", groups)

    def any_value(self, expression: str, groups: str = "") -> Made:
        """The first value that is not NULL."""
        return self.aggregate(f"any_value({closed(expression)})", groups)

    def string_agg(self, expression: str, sep: str = ",", groups: str = "") -> Made:
        """The texts, one after the other."""
        check_is_text("the separator", sep)
        return self.aggregate(f"string_agg({closed(expression)}, {quoted_text(sep)})", groups)

    def value_counts(self, expression: str) -> Made:
        """Each value, and in how many rows it is."""
        return self.aggregate(f"{closed(expression)}, count({closed(expression)})", expression)

    def unique(self, expression: str) -> Made:
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
        return self._of_all_rows(", ".join(columns))
