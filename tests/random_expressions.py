"""Random SQL expressions of a wanted kind over the columns in scope. Every one is valid, none depends on row order.

Left out on purpose, since engines may evaluate more or fewer rows than others before they fail: divisors that can be
zero, casts that can fail, scalar subqueries of more than one row, and products that can overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from tests.random_tables import WORDS

NUMERIC = ("int", "wide", "dec", "double")


@dataclass(frozen=True)
class Column:
    """Something that can stand where a column can: its SQL and its kind."""

    sql: str
    kind: str


@dataclass
class Scope:
    """What an expression may refer to; `outer` are the columns of the queries around this one."""

    columns: Sequence[Column]
    outer: Sequence[Column] = ()
    #: Makes a subquery correlated with this scope: wanted kind -> SQL of a query with one column, or None to make
    #: one for EXISTS. Absent where subqueries are not wanted (deep inside others, in aggregates).
    subquery: Callable[[Scope, str | None, bool], str] | None = None

    def visible(self) -> tuple[Column, ...]:
        """What a query inside this one may refer to."""
        return (*self.columns, *self.outer)


class Expressions:
    """Draws expressions from one random source."""

    def __init__(self, random: Random) -> None:
        self.random = random

    def draw(self, kind: str, scope: Scope, depth: int = 2) -> str:
        """An expression of `kind`."""
        if depth <= 0 or self.random.random() < 0.35:
            return self.leaf(kind, scope)
        if self.random.random() < 0.18:
            return self._conditional(kind, scope, depth - 1)
        makers: dict[str, Callable[[Scope, int], str]] = {
            "int": self._int,
            "wide": self._wide,
            "dec": self._dec,
            "double": self._double,
            "str": self._str,
            "date": self._date,
            "bool": self.predicate,
        }
        return makers[kind](scope, depth - 1)

    def leaf(self, kind: str, scope: Scope) -> str:
        """A column of `kind` if there is one, usually; else a literal."""
        column = self.column(kind, scope)
        return column if column is not None and self.random.random() < 0.85 else self.literal(kind)

    def column(self, kind: str, scope: Scope) -> str | None:
        """A column of `kind`, now and then one of an outer query."""
        outer = [column.sql for column in scope.outer if column.kind == kind]
        inner = [column.sql for column in scope.columns if column.kind == kind]
        if outer and (not inner or self.random.random() < 0.2):
            return self.random.choice(outer)
        return self.random.choice(inner) if inner else None

    def kind(self, scope: Scope, *kinds: str) -> str:
        """One of `kinds`, nearly always one that the scope has a column of."""
        there = {column.kind for column in scope.columns}
        present = [kind for kind in kinds if kind in there]
        return self.random.choice(present if present and self.random.random() < 0.95 else kinds)

    def literal(self, kind: str) -> str:
        """A constant, now and then NULL."""
        random = self.random
        if random.random() < 0.06:
            return f"CAST(NULL AS {_SQL_TYPES[kind]})"
        match kind:
            case "int":
                return _signed(random.randint(-2, 8))
            case "wide":
                return f"CAST({random.choice((0, 1, -2, 5, 123456789012))} AS BIGINT)"
            case "dec":
                return _signed(
                    f"{random.choice((random.randint(-4, 8) / 2, random.randint(-2000, 99999) / 100)):.2f}"
                )
            case "double":
                return f"CAST({random.randint(-12, 32) / 4} AS DOUBLE)"
            case "str":
                return "'" + random.choice(WORDS).replace("'", "''") + "'"
            case "date":
                return f"DATE '{random.randint(1993, 1997)}-{random.randint(1, 12):02}-{random.randint(1, 28):02}'"
            case _:
                return random.choice(("TRUE", "FALSE"))

    def predicate(self, scope: Scope, depth: int = 2) -> str:
        """A condition."""
        random = self.random
        if depth > 0 and random.random() < 0.4:
            left, right = self.predicate(scope, depth - 1), self.predicate(scope, depth - 1)
            form = random.choice(("({} AND {})", "({} OR {})", "({} OR {})", "(NOT {})"))
            return form.format(left, right)
        if scope.subquery is not None and random.random() < 0.3:
            return self._subquery_predicate(scope, depth)
        makers = (
            self._comparison,
            self._comparison,
            self._comparison,
            self._null_test,
            self._list,
            self._text_test,
        )
        return random.choice(makers)(scope, depth)

    def comparison(self, left: str, right: str) -> str:
        """Two expressions of comparable kinds, compared."""
        operator = self.random.choice(
            ("=", "=", "<>", "<", "<=", "<=", ">", ">=", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM")
        )
        return f"({left} {operator} {right})"

    def _comparison(self, scope: Scope, depth: int) -> str:
        kind = self.kind(scope, "int", "int", "wide", "dec", "double", "str", "date")
        other = self.random.choice(NUMERIC) if kind in NUMERIC and self.random.random() < 0.2 else kind
        if self.random.random() < 0.15:
            low, high = self.draw(kind, scope, depth), self.draw(kind, scope, depth)
            return f"({self.draw(kind, scope, depth)} {self._maybe_not()}BETWEEN {low} AND {high})"
        return self.comparison(self.draw(kind, scope, depth), self.draw(other, scope, depth))

    def _null_test(self, scope: Scope, depth: int) -> str:
        if self.random.random() < 0.3 and (column := self.column("bool", scope)) is not None:
            return self.random.choice(
                (column, f"({column} IS TRUE)", f"(NOT {column})", f"({column} IS NOT FALSE)")
            )
        kind = self.kind(scope, "int", "dec", "double", "str", "date", "bool")
        return f"({self.draw(kind, scope, depth)} IS {self._maybe_not()}NULL)"

    def _list(self, scope: Scope, depth: int) -> str:
        kind = self.kind(scope, "int", "dec", "str", "date")
        items = ", ".join(self.literal(kind) for _ in range(self.random.randint(1, 5)))
        return f"({self.draw(kind, scope, depth)} {self._maybe_not()}IN ({items}))"

    def _text_test(self, scope: Scope, depth: int) -> str:
        if not any(column.kind == "str" for column in scope.columns):
            return self._comparison(scope, depth)
        pattern = self.random.choice(("a%", "%a%", "%b", "_", "%", "", "a_b", "%a%a%", "B%", "%日%", "_%_"))
        operator = self.random.choice(("LIKE", "LIKE", "ILIKE"))
        return f"({self.draw('str', scope, depth)} {self._maybe_not()}{operator} '{pattern}')"

    def _subquery_predicate(self, scope: Scope, depth: int) -> str:
        random = self.random
        assert scope.subquery is not None
        kind = self.kind(scope, "int", "int", "wide", "dec", "str", "date")
        form = random.random()
        if form < 0.35:
            return f"({self._maybe_not()}EXISTS ({scope.subquery(scope, None, False)}))"
        left = self.draw(kind, scope, min(depth, 1))
        if form < 0.65:
            return f"({left} {self._maybe_not()}IN ({scope.subquery(scope, kind, False)}))"
        if form < 0.9:
            return self.comparison(left, f"({scope.subquery(scope, kind, True)})")
        operator = random.choice(("=", "<>", "<", "<=", ">", ">="))
        return f"({left} {operator} {random.choice(('ANY', 'ALL'))} ({scope.subquery(scope, kind, False)}))"

    def _conditional(self, kind: str, scope: Scope, depth: int) -> str:
        form = self.random.random()
        first, second = self.draw(kind, scope, depth), self.draw(kind, scope, depth)
        if form < 0.6:
            other = f" ELSE {second}" if self.random.random() < 0.8 else ""
            return f"CASE WHEN {self.predicate(scope, min(depth, 1))} THEN {first}{other} END"
        if form < 0.85:
            return f"coalesce({first}, {second})"
        return f"nullif({first}, {second})"

    def _int(self, scope: Scope, depth: int) -> str:
        first = self.draw("int", scope, depth)
        form = self.random.randint(0, 7)
        if form < 4:
            return f"({first} {self.random.choice('+-')} {self.draw('int', scope, depth)})"
        if form == 4:
            return f"({first} * {_signed(self.random.randint(-3, 5))})"
        if form == 5:
            return f"({first} {self.random.choice(('%', '//'))} {self.random.choice((2, 3, 7, '(-2)'))})"
        if form == 6:
            return self.random.choice(
                (f"abs({first})", f"(- {first})", f"length({self.draw('str', scope, depth)})")
            )
        return f"{self.random.choice(('year', 'month', 'day'))}({self.draw('date', scope, depth)})"

    def _wide(self, scope: Scope, depth: int) -> str:
        first, second = self.draw("wide", scope, depth), self.draw("int", scope, depth)
        return f"({first} {self.random.choice('+-')} {second})"

    def _dec(self, scope: Scope, depth: int) -> str:
        first = self.draw("dec", scope, depth)
        form = self.random.randint(0, 4)
        if form < 3:
            other = self.draw(self.random.choice(("dec", "dec", "int")), scope, depth)
            return f"({first} {self.random.choice('+-')} {other})"
        if form == 3:
            return f"({self.leaf('dec', scope)} * {self.leaf('dec', scope)})"
        return self.random.choice((f"abs({first})", f"(- {first})", f"round({self.leaf('dec', scope)}, 1)"))

    def _double(self, scope: Scope, depth: int) -> str:
        first = self.draw("double", scope, depth)
        other = self.draw(self.random.choice(("double", "int")), scope, depth)
        operator = self.random.choice(("+", "-", "*"))
        if operator == "*":
            return f"({first} * {self.random.choice((2, 0.5, -1))}::DOUBLE)"
        return f"({first} {operator} {other})"

    def _str(self, scope: Scope, depth: int) -> str:
        first = self.draw("str", scope, depth)
        forms = (
            f"upper({first})",
            f"lower({first})",
            f"({first} || {self.draw('str', scope, depth)})",
            f"substring({first}, {self.random.randint(-2, 3)}, {self.random.randint(0, 3)})",
            f"trim({first})",
            f"replace({first}, 'a', 'xy')",
            f"left({first}, {self.random.randint(-1, 3)})",
            f"CAST({self.draw('int', scope, depth)} AS VARCHAR)",
        )
        return self.random.choice(forms)

    def _date(self, scope: Scope, depth: int) -> str:
        return f"({self.draw('date', scope, depth)} {self.random.choice('+-')} {self.random.randint(0, 40)})"

    def _maybe_not(self) -> str:
        return "NOT " if self.random.random() < 0.35 else ""


def _signed(number: object) -> str:
    text = str(number)
    return f"({text})" if text.startswith("-") else text


_SQL_TYPES = {
    "int": "INTEGER",
    "wide": "BIGINT",
    "dec": "DECIMAL(9,2)",
    "double": "DOUBLE",
    "str": "VARCHAR",
    "date": "DATE",
    "bool": "BOOLEAN",
}
