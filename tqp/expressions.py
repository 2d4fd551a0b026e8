"""Expressions of SQL as Python objects, which methods of relations take beside texts. They are texts themselves: nothing is checked here."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

from tqp.core.arguments import check_is_text, check_name, list_elements
from tqp.core.constants import constant
from tqp.core.errors import BindError
from tqp.core.keywords import closed, in_quotes, in_quotes_joined, quoted
from tqp.sql_types import sql_type

_PLAIN_FUNCTION = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

#: The value of a branch that `then` gives.
_LATER = object()

Operator = Callable[[Any, object], "Expression"]


def _infix(form: str) -> tuple[Operator, Operator]:
    """A method for `{a}` beside `{b}`, and the one for the value on the left."""

    def operator(self: Expression, other: object) -> Expression:
        return Expression(form.format(a=self, b=operand(other)))

    def reflected(self: Expression, other: object) -> Expression:
        return Expression(form.format(a=operand(other), b=self))

    return operator, reflected


def _call(function: str, documentation: str) -> Callable[..., Expression]:
    """A method, or a function of this module, that calls a function of SQL with itself and the arguments."""

    def call(*arguments: object) -> Expression:
        return fn(function, *arguments)

    call.__doc__ = documentation
    return call


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Expression:
    """A column, a value, a call, or what operators make of these: `+ - * / // % **`, comparisons, `& | ~` and `[index or field]`.

    `str(expression)` is its SQL. Python values beside it, texts too, are constants; `col` names a column.

    >>> import tqp
    >>> from tqp import col
    >>> (col("a") + 1 > 2) & ~col("name").like("x%")
    ((("a" + 1) > 2) AND (NOT ("name" LIKE 'x%')))
    >>> rows = tqp.sql("SELECT i AS a, i % 2 AS g FROM range(5) r(i)").filter(col("a") > 0)
    >>> rows.aggregate(["g", col("a").sum().alias("total")]).order(col("total").desc()).fetchall()
    [(0, 6), (1, 4)]
    """

    _text: str
    _name: str | None = None
    _direction: str = ""
    _nulls: str = ""

    __add__, __radd__ = _infix("({a} + {b})")
    __sub__, __rsub__ = _infix("({a} - {b})")
    __mul__, __rmul__ = _infix("({a} * {b})")
    __truediv__, __rtruediv__ = _infix("({a} / {b})")
    __floordiv__, __rfloordiv__ = _infix("({a} // {b})")
    __mod__, __rmod__ = _infix("({a} % {b})")
    __pow__, __rpow__ = _infix("pow({a}, {b})")
    __and__, __rand__ = _infix("({a} AND {b})")
    __or__, __ror__ = _infix("({a} OR {b})")
    __lt__ = _infix("({a} < {b})")[0]
    __le__ = _infix("({a} <= {b})")[0]
    __gt__ = _infix("({a} > {b})")[0]
    __ge__ = _infix("({a} >= {b})")[0]
    __eq__ = _infix("({a} = {b})")[0]  # type: ignore[assignment]
    __ne__ = _infix("({a} <> {b})")[0]  # type: ignore[assignment]
    __hash__ = object.__hash__
    __iter__ = None  # which __getitem__ would else make, without an end
    __array_ufunc__ = None  # a NumPy scalar on the left leaves the operator to this class

    def __neg__(self) -> Expression:
        return Expression(f"(- {self})")

    def __invert__(self) -> Expression:
        return Expression(f"(NOT {self})")

    def __getitem__(self, key: int | str | Expression) -> Expression:
        if isinstance(key, slice):
            raise BindError(
                "an expression is indexed by a position or the name of a field, not by a slice; call list_slice with tqp.fn"
            )
        return Expression(f"({self})[{operand(key)}]")

    def __bool__(self) -> bool:
        raise BindError(
            "an expression is neither true nor false before it is computed; write & | ~ for and, or, not, with parentheses around comparisons, "
            "and between() for a < b < c"
        )

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return self.named

    @property
    def named(self) -> str:
        """Its SQL in the list of a SELECT."""
        return str(self) if self._name is None else f"{self} AS {in_quotes(self._name)}"

    @property
    def as_key(self) -> str:
        """Its SQL as a key of ORDER BY."""
        return f"{self}{self._direction}{self._nulls}"

    # names, types and order

    def alias(self, name: str) -> Expression:
        """Under this name; within a larger expression the name does not count."""
        check_name("a column", name)
        return replace(self, _name=name)

    def cast(self, data_type: object) -> Expression:
        """As a type: SQL text, a type of tqp or DuckDB, or a Python class such as `int`, which is BIGINT."""
        return Expression(f"CAST({self} AS {sql_type(data_type)})")

    def try_cast(self, data_type: object) -> Expression:
        """`cast`, NULL where a value has none."""
        return Expression(f"TRY_CAST({self} AS {sql_type(data_type)})")

    def collate(self, collation: str) -> Expression:
        """Compared and sorted by a collation, such as "nocase"."""
        check_name("a collation", collation)
        return Expression(f"({self} COLLATE {'.'.join(map(quoted, collation.split('.')))})")

    def asc(self) -> Expression:
        """As a key of an order: from the least value on."""
        return replace(self, _direction=" ASC")

    def desc(self) -> Expression:
        """As a key of an order: from the greatest value on."""
        return replace(self, _direction=" DESC")

    def nulls_first(self) -> Expression:
        """As a key of an order: rows without a value first."""
        return replace(self, _nulls=" NULLS FIRST")

    def nulls_last(self) -> Expression:
        """As a key of an order: rows without a value last."""
        return replace(self, _nulls=" NULLS LAST")

    # conditions

    def isin(self, *values: object) -> Expression:
        """Whether it is one of the values, or of those in the one list, set or array that is given.

        >>> from tqp import col
        >>> col("a").isin(1, 2), col("a").isin(["x"]), col("a").isin([])
        (("a" IN (1, 2)), ("a" IN ('x')), FALSE)
        """
        items = _items(values)
        return Expression(f"({self} IN ({', '.join(map(operand, items))}))" if items else "FALSE")

    def isnotin(self, *values: object) -> Expression:
        """Whether it is none of them."""
        return ~self.isin(*values)

    def is_null(self) -> Expression:
        """Whether there is no value; `== None` is NULL."""
        return Expression(f"({self} IS NULL)")

    def is_not_null(self) -> Expression:
        """Whether there is a value."""
        return Expression(f"({self} IS NOT NULL)")

    def isnull(self) -> Expression:
        """`is_null`."""
        return self.is_null()

    def isnotnull(self) -> Expression:
        """`is_not_null`."""
        return self.is_not_null()

    def between(self, lower: object, upper: object) -> Expression:
        """Whether it lies between both, or is one of them."""
        return Expression(f"({self} BETWEEN {operand(lower)} AND {operand(upper)})")

    def like(self, pattern: object, *, escape: str | None = None) -> Expression:
        """Whether a text matches: `%` stands for any characters, `_` for one."""
        return self._like("LIKE", pattern, escape)

    def ilike(self, pattern: object, *, escape: str | None = None) -> Expression:
        """`like`, whatever the case of letters."""
        return self._like("ILIKE", pattern, escape)

    def _like(self, word: str, pattern: object, escape: str | None) -> Expression:
        escaped = "" if escape is None else f" ESCAPE {constant(escape)}"
        return Expression(f"({self} {word} {operand(pattern)}{escaped})")

    def concat(self, *others: object) -> Expression:
        """The texts, or lists, one after the other."""
        return Expression(f"({' || '.join(map(operand, (self, *others)))})")

    # aggregates

    sum = _call("sum", "The sum.")
    avg = _call("avg", "The mean.")
    mean = _call("avg", "The mean.")
    min = _call("min", "The least value; with a number, a list of so many of the least.")
    max = _call("max", "The greatest value; with a number, a list of so many of the greatest.")
    count = _call("count", "In how many rows there is a value; `tqp.count_all()` counts rows.")
    median = _call("median", "The median.")
    mode = _call("mode", "The value that is there most often.")
    product = _call("product", "The product.")
    std = _call("stddev_samp", "The standard deviation of the sample.")
    var = _call("var_samp", "The variance of the sample.")
    skewness = _call("skewness", "The skewness.")
    kurtosis = _call("kurtosis", "The excess kurtosis of the sample.")
    entropy = _call("entropy", "The entropy in bits.")
    first = _call("first", "The value of the first row.")
    last = _call("last", "The value of the last row.")
    any_value = _call("any_value", "The first value that is not NULL.")
    quantile = _call(
        "quantile_disc", "The value below which the given share of the values lies: one of them."
    )
    quantile_cont = _call("quantile_cont", "The same between two values, where it lies between them.")
    arg_max = _call("arg_max", "The value of the row in which the argument is greatest.")
    arg_min = _call("arg_min", "The value of the row in which the argument is least.")
    bool_and = _call("bool_and", "Whether all are true.")
    bool_or = _call("bool_or", "Whether one is true.")
    bit_and = _call("bit_and", "The bits that all have.")
    bit_or = _call("bit_or", "The bits that one has.")
    bit_xor = _call("bit_xor", "The bits that an odd number of them has.")
    array_agg = _call("array_agg", "A list of the values.")
    string_agg = _call("string_agg", "The texts, one after the other, with the argument between.")

    def n_unique(self) -> Expression:
        """How many distinct values there are."""
        return Call(f"count(DISTINCT {self}")

    def where(self, condition: Expression) -> Expression:
        """An aggregate of the rows where the condition is true, in place of another condition; to be said before `over`.

        Raises BindError for anything but a call.
        """
        raise BindError(f"where() comes behind the call of an aggregate, not behind {self}")

    def ignore_nulls(self) -> Expression:
        """A window function that passes over rows without a value; to be said before `over`.

        Raises BindError for anything but a call.
        """
        raise BindError(f"ignore_nulls() comes behind the call of a window function, not behind {self}")

    def over(
        self,
        partition_by: Names = (),
        order_by: Names = (),
        *,
        rows: tuple[int | None, int | None] | None = None,
        range: tuple[object, object] | None = None,
    ) -> Expression:
        """A window function, or an aggregate over a window. Texts are names of columns.

        `rows`, `range`: the first and the last of the frame, counted from the row itself: negative before it; None without a bound.

        >>> from tqp import col
        >>> col("a").sum().over("g", col("day").desc(), rows=(-1, 0))
        sum("a") OVER (PARTITION BY "g" ORDER BY "day" DESC ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)
        """
        if rows is not None and range is not None:
            raise BindError("a frame is one of rows or of a range, not of both")
        parts = []
        if partition := _columns(partition_by):
            parts.append(f"PARTITION BY {', '.join(map(str, partition))}")
        if order := _columns(order_by):
            parts.append(f"ORDER BY {', '.join(each.as_key for each in order)}")
        for word, frame in (("ROWS", rows), ("RANGE", range)):
            if frame is not None:
                start, end = frame
                parts.append(f"{word} BETWEEN {_bound(start, 'PRECEDING')} AND {_bound(end, 'FOLLOWING')}")
        return Expression(f"{self} OVER ({' '.join(parts)})")


Names = str | Expression | Sequence[str | Expression]
#: SQL text, or an expression.
Sql = str | Expression


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Call(Expression):
    """A call of a function; its text is what stands before the closing parenthesis.

    >>> from tqp import col
    >>> col("a").first().where(col("b") > 0).ignore_nulls()
    first("a" IGNORE NULLS) FILTER (WHERE ("b" > 0))
    """

    _passing_over: str = ""
    _filter: str = ""

    def __str__(self) -> str:
        return f"{self._text}{self._passing_over}){self._filter}"

    def where(self, condition: Expression) -> Expression:
        """See `Expression.where`."""
        return replace(self, _filter=f" FILTER (WHERE {operand(condition)})")

    def ignore_nulls(self) -> Expression:
        """See `Expression.ignore_nulls`."""
        return replace(self, _passing_over=" IGNORE NULLS")


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Case(Expression):
    """CASE, to which `when` adds branches, and `otherwise` the value where no condition is true; until then that is NULL.

    Its text is that of the branches.
    """

    def __str__(self) -> str:
        return f"(CASE{self._text} END)"

    @overload
    def when(self, condition: object) -> When: ...

    @overload
    def when(self, condition: object, value: object) -> Case: ...

    def when(self, condition: object, value: object = _LATER) -> When | Case:
        """Another branch, whose value `then` gives, or the second argument."""
        branch = When(self._text, condition)
        return branch if value is _LATER else branch.then(value)

    def otherwise(self, value: object) -> Expression:
        """The value where no condition is true."""
        return Expression(f"(CASE{self._text} ELSE {operand(value)} END)")


class When:
    """A condition of CASE, whose value `then` gives."""

    def __init__(self, branches: str, condition: object) -> None:
        self._branches = f"{branches} WHEN {operand(condition)}"

    def then(self, value: object) -> Case:
        """The value where the condition is true, and none before."""
        return Case(f"{self._branches} THEN {operand(value)}")


def col(*names: str) -> Expression:
    """A column by its name, or by those of a table and a column: `col("t", "a")`."""
    if not names:
        raise BindError("col() takes the name of a column")
    for name in names:
        check_name("a column", name)
    return Expression(".".join(map(in_quotes, names)))


def lit(value: object) -> Expression:
    """A Python value: None, bool, int, float, text, bytes, Decimal, UUID, date, datetime, time, timedelta, lists and dicts of these.

    >>> import datetime, tqp
    >>> tqp.sql("SELECT 1 AS a").select(tqp.lit({"day": datetime.date(2024, 1, 1), "rate": 0.5}).alias("s")).fetchall()
    [({'day': datetime.date(2024, 1, 1), 'rate': 0.5},)]
    """
    return Expression(operand(value))


def fn(name: str | tuple[str, ...], *arguments: object, **named: object) -> Expression:
    """A call of any function of SQL: `fn("upper", col("s"))`. Texts among the arguments are values; some have names.

    >>> import tqp
    >>> tqp.fn("round", tqp.col("price") * 1.19, 2)
    round(("price" * 1.19e0), 2)
    """
    parts = (name,) if isinstance(name, str) else name
    for part in parts:
        check_name("a function", part)
    said = ".".join(part if _PLAIN_FUNCTION.fullmatch(part) else in_quotes(part) for part in parts)
    given = [*map(operand, arguments), *(f"{in_quotes(key)} := {operand(named[key])}" for key in named)]
    return Call(f"{said}({', '.join(given)}")


def when(condition: object) -> When:
    """Begins a CASE.

    >>> from tqp import col, when
    >>> when(col("a") > 9).then("many").when(col("a") > 0).then("few").otherwise(None)
    (CASE WHEN ("a" > 9) THEN 'many' WHEN ("a" > 0) THEN 'few' ELSE NULL END)
    """
    return When("", condition)


def coalesce(*values: object) -> Expression:
    """The first that is not NULL."""
    return fn("coalesce", *values)


def star(exclude: str | Iterable[str] = (), rename: Mapping[str, str] | None = None) -> Expression:
    """All columns, but for those to `exclude`, and with other names for those to `rename`.

    >>> import tqp
    >>> tqp.star(exclude="a", rename={"b": "c"})
    * EXCLUDE ("a") RENAME ("b" AS "c")
    """
    names = [exclude] if isinstance(exclude, str) else list(exclude)
    for name in (*names, *(rename or {}), *(rename or {}).values()):
        check_name("a column", name)
    left_out = f" EXCLUDE ({in_quotes_joined(names)})" if names else ""
    renamed = ", ".join(f"{in_quotes(old)} AS {in_quotes(new)}" for old, new in (rename or {}).items())
    return Expression(f"*{left_out}{f' RENAME ({renamed})' if renamed else ''}")


def sql_expr(text: str) -> Expression:
    """SQL as it is, never of a text that others gave: nothing in it is quoted."""
    check_is_text("the expression", text)
    return Expression(f"({closed(text)})")


def count_all() -> Expression:
    """How many rows there are."""
    return Call("count(*")


row_number = _call(
    "row_number",
    "The number of a row, from 1, in the order of its window: `row_number().over(order_by=...)`.",
)
rank = _call("rank", "The number of the first row that is equal to it in the order of its window.")
dense_rank = _call("dense_rank", "How many different rows there are up to it in the order of its window.")
ntile = _call("ntile", "The number of its part, where a partition is cut into so many equal ones.")
lag = _call("lag", "The value of a row before: `lag(col, offset, default)`.")
lead = _call("lead", "The value of a row behind: `lead(col, offset, default)`.")
first_value = _call("first_value", "The value of the first row of the frame.")
last_value = _call("last_value", "The value of the last row of the frame.")


def CaseExpression(condition: object, value: object) -> Case:
    """`when(condition).then(value)`, DuckDB's earlier name."""
    return when(condition).then(value)


def DefaultExpression() -> Expression:
    """The default of a column, where a row of it is changed or inserted."""
    return Expression("DEFAULT")


def LambdaExpression(parameters: str | Sequence[str], body: object) -> Expression:
    """A function, for `list_transform` and the like: `LambdaExpression("x", col("x") + 1)`.

    >>> import tqp
    >>> doubled = tqp.fn("list_transform", [1, 2], tqp.LambdaExpression("x", tqp.col("x") * 2))
    >>> tqp.sql("SELECT 1 AS a").select(doubled).fetchall()
    [([2, 4],)]
    """
    names = [parameters] if isinstance(parameters, str) else parameters
    return Expression(f"lambda {in_quotes_joined(names)}: {operand(body)}")


ColumnExpression, ConstantExpression, FunctionExpression = col, lit, fn
CoalesceOperator, StarExpression, SQLExpression = coalesce, star, sql_expr


def operand(value: object) -> str:
    """The SQL of an expression, or of a value as a constant."""
    return str(value) if isinstance(value, Expression) else constant(value)


def _columns(names: Names) -> list[Expression]:
    items = [names] if isinstance(names, (str, Expression)) else names
    return [col(item) if isinstance(item, str) else item for item in items]


def _items(values: tuple[object, ...]) -> Sequence[object]:
    """The values, or, of one alone, those that it holds."""
    if len(values) != 1:
        return values
    [value] = values
    if isinstance(value, (set, frozenset)):
        return list(value)
    elements = None if isinstance(value, Expression) else list_elements(value)
    return values if elements is None else elements


def _bound(offset: Any, outwards: str) -> str:
    """The bound of a frame."""
    if offset is None:
        return f"UNBOUNDED {outwards}"
    if not offset:
        return "CURRENT ROW"
    return f"{constant(abs(offset))} {'FOLLOWING' if offset == abs(offset) else 'PRECEDING'}"
