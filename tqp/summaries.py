"""Aggregates and window functions of rows as methods, under the names that DuckDB's relations have."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, cast

from tqp.clauses import parts
from tqp.core.arguments import check_integer, check_is_text, check_name, list_elements
from tqp.core.datatypes import DataType
from tqp.core.errors import BindError
from tqp.core.keywords import closed, in_quotes, quoted_text
from tqp.expressions import Sql

Made = TypeVar("Made")
Given = ParamSpec("Given")

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


@dataclass(frozen=True, slots=True)
class _Function(Generic[Made]):
    """A function of SQL, to be called for rows."""

    rows: Summaries[Made]
    name: str

    def call(
        self,
        expression: Sql,
        *arguments: str,
        groups: Sql = "",
        window_spec: str = "",
        projected_columns: str = "",
        ignore_nulls: bool = False,
    ) -> Made:
        """A call for each expression of the list, behind the projected columns. Raises BindError for groups of a window."""
        nulls = " IGNORE NULLS" if ignore_nulls else ""
        calls = [
            f"{self.name}({', '.join([*each, *arguments])}{nulls}) {window_spec}"
            for each in [[part] for part in parts(expression)] or [[]]
        ]
        columns = [projected_columns, *calls] if projected_columns else calls
        if not window_spec:
            return self.rows.aggregate(columns, groups)
        if str(groups):
            raise BindError(
                "groups and window_spec do not go together; PARTITION BY cuts a window into groups"
            )
        return self.rows.project(columns)


class _Method(Protocol[Given]):
    """A method of `Summaries`, by what it takes."""

    def __get__(self, rows: Summaries[Made], owner: object = None) -> Callable[Given, Made]: ...


def _calls(
    name: str, form: Callable[Concatenate[_Function[Any], Given], Any], documentation: str
) -> _Method[Given]:
    """The method that calls a function of SQL in one of the forms below."""

    @wraps(form)
    def method(self: Summaries[Any], *arguments: Given.args, **named: Given.kwargs) -> Any:
        return form(_Function(self, name), *arguments, **named)

    method.__doc__, method.__name__ = documentation, name
    return cast("_Method[Given]", method)


def _aggregate(
    function: _Function[Made],
    expression: Sql,
    groups: Sql = "",
    window_spec: str = "",
    projected_columns: str = "",
) -> Made:
    return function.call(
        expression, groups=groups, window_spec=window_spec, projected_columns=projected_columns
    )


def _grouped_first(
    function: _Function[Made],
    expression: Sql,
    groups: Sql = "",
    projected_columns: str = "",
    window_spec: str = "",
) -> Made:
    return _aggregate(function, expression, groups, window_spec, projected_columns)


def _count(
    function: _Function[Made],
    expression: Sql = "*",
    groups: Sql = "",
    window_spec: str = "",
    projected_columns: str = "",
) -> Made:
    return _aggregate(function, expression, groups, window_spec, projected_columns)


def _quantile(
    function: _Function[Made],
    expression: Sql,
    q: float | Sequence[float] = 0.5,
    groups: Sql = "",
    window_spec: str = "",
    projected_columns: str = "",
) -> Made:
    return function.call(
        expression,
        _shares(q),
        groups=groups,
        window_spec=window_spec,
        projected_columns=projected_columns,
    )


def _arg_extreme(
    function: _Function[Made],
    arg_column: Sql,
    value_column: Sql,
    groups: Sql = "",
    window_spec: str = "",
    projected_columns: str = "",
) -> Made:
    return function.call(
        arg_column,
        closed(value_column),
        groups=groups,
        window_spec=window_spec,
        projected_columns=projected_columns,
    )


def _joined_texts(
    function: _Function[Made],
    expression: Sql,
    sep: str = ",",
    groups: Sql = "",
    window_spec: str = "",
    projected_columns: str = "",
) -> Made:
    check_is_text("the separator", sep)
    return function.call(
        expression,
        quoted_text(sep),
        groups=groups,
        window_spec=window_spec,
        projected_columns=projected_columns,
    )


def _bits(
    function: _Function[Made],
    expression: Sql,
    min: int | None = None,
    max: int | None = None,
    groups: Sql = "",
    window_spec: str = "",
    projected_columns: str = "",
) -> Made:
    if (min is None) != (max is None):
        raise BindError("bitstring_agg() takes both min and max, or neither")
    given = {"min": min, "max": max}
    bounds = [str(check_integer(name, value)) for name, value in given.items() if value is not None]
    return function.call(
        expression, *bounds, groups=groups, window_spec=window_spec, projected_columns=projected_columns
    )


def _ranking(function: _Function[Made], window_spec: str, projected_columns: str = "") -> Made:
    return function.call("", window_spec=window_spec, projected_columns=projected_columns)


def _tiles(
    function: _Function[Made], window_spec: str, num_buckets: int, projected_columns: str = ""
) -> Made:
    count = str(check_integer("num_buckets", num_buckets))
    return function.call("", count, window_spec=window_spec, projected_columns=projected_columns)


def _value(
    function: _Function[Made], expression: Sql, window_spec: str = "", projected_columns: str = ""
) -> Made:
    return function.call(expression, window_spec=window_spec, projected_columns=projected_columns)


def _moved(
    function: _Function[Made],
    expression: Sql,
    window_spec: str,
    offset: int = 1,
    default_value: str = "NULL",
    ignore_nulls: bool = False,
    projected_columns: str = "",
) -> Made:
    return function.call(
        expression,
        str(check_integer("offset", offset)),
        closed(default_value),
        window_spec=window_spec,
        projected_columns=projected_columns,
        ignore_nulls=ignore_nulls,
    )


def _nth(
    function: _Function[Made],
    expression: Sql,
    window_spec: str,
    offset: int,
    ignore_nulls: bool = False,
    projected_columns: str = "",
) -> Made:
    return function.call(
        expression,
        str(check_integer("offset", offset)),
        window_spec=window_spec,
        projected_columns=projected_columns,
        ignore_nulls=ignore_nulls,
    )


def _shares(q: object) -> str:
    """A share, or a list of them, as SQL."""
    shares = list_elements(q)
    try:
        return str(float(q)) if shares is None else f"[{', '.join(str(float(each)) for each in shares)}]"  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise BindError(f"q={q!r}: give a share from 0 to 1, or a list of them") from None


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

    sum = _calls("sum", _aggregate, "The sum of an expression, such as the name of a column.")
    min = _calls("min", _aggregate, "The least value.")
    max = _calls("max", _aggregate, "The greatest value.")
    avg = _calls("avg", _aggregate, "The mean.")
    mean = _calls("avg", _aggregate, "The mean.")
    median = _calls("median", _aggregate, "The median.")
    mode = _calls("mode", _aggregate, "The value that is there most often.")
    stddev = _calls("stddev_samp", _aggregate, "The standard deviation of the sample.")
    std = _calls("stddev_samp", _aggregate, "The standard deviation of the sample.")
    stddev_samp = _calls("stddev_samp", _aggregate, "The standard deviation of the sample.")
    stddev_pop = _calls("stddev_pop", _aggregate, "The standard deviation of the population.")
    var = _calls("var_samp", _aggregate, "The variance of the sample.")
    variance = _calls("var_samp", _aggregate, "The variance of the sample.")
    var_samp = _calls("var_samp", _aggregate, "The variance of the sample.")
    var_pop = _calls("var_pop", _aggregate, "The variance of the population.")
    product = _calls("product", _aggregate, "The product.")
    geomean = _calls("geomean", _grouped_first, "The geometric mean.")
    favg = _calls("favg", _aggregate, "The mean, summed with Kahan's corrections.")
    fsum = _calls("fsum", _aggregate, "The sum of floats with Kahan's corrections.")
    first = _calls("first", _grouped_first, "The value of the first row.")
    last = _calls("last", _grouped_first, "The value of the last row.")
    any_value = _calls("any_value", _aggregate, "The first value that is not NULL.")
    bit_and = _calls("bit_and", _aggregate, "The bits that all values have.")
    bit_or = _calls("bit_or", _aggregate, "The bits that one value has.")
    bit_xor = _calls("bit_xor", _aggregate, "The bits that an odd number of values has.")
    bool_and = _calls("bool_and", _aggregate, "Whether all are true.")
    bool_or = _calls("bool_or", _aggregate, "Whether one is true.")
    histogram = _calls("histogram", _aggregate, "In how many rows each value is, as a MAP.")
    count = _calls("count", _count, "How many rows there are, or values of an expression.")
    quantile_disc = _calls(
        "quantile_disc",
        _quantile,
        "The value below which that share of the values lies: one of them; with several shares a list.",
    )
    quantile = quantile_disc
    quantile_cont = _calls(
        "quantile_cont",
        _quantile,
        "The value below which that share of the values lies, between two where it is none of them.",
    )
    arg_max = _calls("arg_max", _arg_extreme, "The one's value in the row where the other's is greatest.")
    arg_min = _calls("arg_min", _arg_extreme, "The one's value in the row where the other's is least.")
    string_agg = _calls("string_agg", _joined_texts, "The texts, one after the other.")
    bitstring_agg = _calls(
        "bitstring_agg",
        _bits,
        "A BIT with a one for each value, the first for `min` and the last for `max`, which are the least and the greatest.",
    )
    list = _calls("list", _aggregate, "A list of the values.")

    row_number = _calls("row_number", _ranking, "The number of each row, from 1, in the order of its window.")
    rank = _calls("rank", _ranking, "The number of the first row that is equal in the order of the window.")
    dense_rank = _calls(
        "dense_rank", _ranking, "How many different rows there are up to it in the order of the window."
    )
    rank_dense = _calls("dense_rank", _ranking, "`dense_rank`.")
    percent_rank = _calls("percent_rank", _ranking, "The share of the other rows that come before.")
    cume_dist = _calls("cume_dist", _ranking, "The share of the rows that come before, or are equal.")

    n_tile = _calls(
        "ntile",
        _tiles,
        "The number of each row's part, where partitions are cut into so many equal ones.",
    )
    lag = _calls("lag", _moved, "The value of the row that is so many before in the order of the window.")
    lead = _calls("lead", _moved, "The value of the row that is so many behind in the order of the window.")
    first_value = _calls("first_value", _value, "The value of the first row of the frame.")
    last_value = _calls("last_value", _value, "The value of the last row of the frame.")
    nth_value = _calls("nth_value", _nth, "The value of the frame's row of that number, from 1.")

    def value_counts(self, expression: Sql, groups: Sql = "") -> Made:
        """Each value, and in how many rows it is."""
        return self.count(expression, groups, projected_columns=str(expression))

    def unique(self, expression: Sql) -> Made:
        """Each value once."""
        return self.aggregate(expression)

    def apply(
        self,
        function_name: str,
        function_aggr: Sql,
        group_expr: Sql = "",
        function_parameter: str = "",
        projected_columns: str = "",
    ) -> Made:
        """Any aggregate, by its name, of each expression of a list; `function_parameter`: its other arguments, as SQL."""
        check_name("a function", function_name)
        arguments = [closed(function_parameter)] if function_parameter else []
        function = _Function(self, function_name)
        return function.call(
            function_aggr, *arguments, groups=group_expr, projected_columns=projected_columns
        )

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
