"""Random queries over `random_tables`: joins, grouping, subqueries, set operations, CTEs. Valid in DuckDB's dialect.

The rows of every query are determined: LIMIT only ever follows an ORDER BY over all columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tests.random_expressions import Column, Expressions, Scope
from tests.random_tables import KINDS, SCHEMAS, columns

_OTHER_JOINS = ("RIGHT JOIN", "FULL JOIN", "CROSS JOIN")


@dataclass(frozen=True)
class RandomQuery:
    """A query, and the output columns that it is ordered by."""

    sql: str
    order_by: tuple[str, ...]


def random_query(random: Random) -> RandomQuery:
    """One query; the same for the same state of `random`."""
    return _Generator(random).query()


@dataclass(frozen=True)
class _Select:
    sql: str
    kinds: tuple[str, ...]


class _Generator:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.expressions = Expressions(random)
        self.next_alias = 0
        #: CTEs in scope: name and the kinds of its columns c0, c1, ...
        self.ctes: list[tuple[str, tuple[str, ...]]] = []

    def query(self) -> RandomQuery:
        random = self.random
        prefix = ""
        if random.random() < 0.2:
            body = self.select(depth=1)
            self.ctes.append(("cte", body.kinds))
            prefix = f"WITH cte AS {random.choice(('', '', 'MATERIALIZED '))}({body.sql})\n"
        select = self.select(depth=2)
        sql = prefix + select.sql
        if random.random() < 0.15 and "average" not in select.kinds:
            other = self.select(depth=1, kinds=select.kinds)
            operator = random.choice(("UNION ALL", "UNION", "UNION", "EXCEPT", "INTERSECT"))
            sql = f"{prefix}({select.sql})\n{operator}\n({other.sql})"
        if random.random() < 0.4:
            order, names = self.order(len(select.kinds))
            limit = random.choice(("", f"\nLIMIT {random.randint(0, 12)}"))
            offset = f" OFFSET {random.randint(0, 5)}" if limit and random.random() < 0.3 else ""
            return RandomQuery(f"{sql}\nORDER BY {order}{limit}{offset}", names)
        return RandomQuery(sql, ())

    def order(self, num_columns: int) -> tuple[str, tuple[str, ...]]:
        """An order on all columns."""
        positions = self.random.sample(range(num_columns), num_columns)
        directions = ("", " DESC", " NULLS FIRST", " DESC NULLS LAST", " ASC NULLS LAST", " DESC NULLS FIRST")
        keys = ", ".join(f"c{position}{self.random.choice(directions)}" for position in positions)
        return keys, tuple(f"c{position}" for position in positions)

    def select(self, depth: int, kinds: Sequence[str] | None = None, outer: Sequence[Column] = ()) -> _Select:
        """SELECT ... AS c0, ... AS c1 with columns of `kinds`; `depth` bounds what is nested in it."""
        random = self.random
        relations, scope = self.from_clause(depth, outer)
        where = (
            f"\nWHERE {self.expressions.predicate(scope, random.choice((1, 2)))}"
            if random.random() < 0.6
            else ""
        )
        if random.random() < 0.4:
            return self.grouped(relations + where, scope, kinds)
        if kinds is None:
            kinds = tuple(self.expressions.kind(scope, *KINDS) for _ in range(random.randint(1, 4)))
        items = [self.expressions.draw(kind, scope, 2) for kind in kinds]
        distinct = "DISTINCT " if random.random() < 0.15 else ""
        return _Select(f"SELECT {distinct}{_named(items)}{relations}{where}", tuple(kinds))

    def grouped(self, rest: str, scope: Scope, kinds: Sequence[str] | None) -> _Select:
        """A query with aggregates: over groups, or over everything."""
        random = self.random
        simple = Scope(scope.columns, scope.outer)
        inner = Scope(scope.columns)
        keys = []
        for _ in range(random.choice((0, 1, 1, 1, 2, 3))):
            kind = self.expressions.kind(inner, "int", "int", "wide", "dec", "str", "date", "bool", "double")
            plain = self.expressions.column(kind, inner)
            if plain is not None and random.random() < 0.7:
                keys.append(Column(plain, kind))
            elif scope.columns:
                keys.append(Column(self.expressions.draw(kind, inner, 1), kind))
        # A constant as a key would be read as the position of a column.
        keys = [key for key in keys if any(column.sql in key.sql for column in scope.columns)]
        aggregates = [self.aggregate(simple) for _ in range(random.randint(1, 3))]
        after = Scope((*keys, *aggregates), scope.outer if random.random() < 0.3 else ())
        if kinds is None:
            shown = [*keys, *aggregates]
            items = [column.sql for column in shown]
            kinds = tuple(column.kind for column in shown)
            if random.random() < 0.3:
                extra = random.choice(("int", "str", "bool"))
                items.append(self.expressions.draw(extra, after, 1))
                kinds = (*kinds, extra)
            if random.random() < 0.2:
                items.append(self.average(simple))
                kinds = (*kinds, "average")
        else:
            items = [self.expressions.draw(kind, after, 1) for kind in kinds]
        group = f"\nGROUP BY {', '.join(key.sql for key in keys)}" if keys else ""
        having = f"\nHAVING {self.expressions.predicate(after, 1)}" if random.random() < 0.3 else ""
        return _Select(f"SELECT {_named(items)}{rest}{group}{having}", tuple(kinds))

    def aggregate(self, scope: Scope) -> Column:
        """An aggregate whose value does not depend on the order of rows."""
        random = self.random
        kind = self.expressions.kind(scope, "int", "int", "wide", "dec", "double", "str", "date")
        argument = self.expressions.draw(kind, Scope(scope.columns), 1)
        condition = ""
        if random.random() < 0.15:
            condition = f" FILTER (WHERE {self.expressions.predicate(Scope(scope.columns), 1)})"
        form = random.randint(0, 6)
        if form == 0:
            return Column(f"count(*){condition}", "int")
        if form == 1:
            return Column(f"count({argument}){condition}", "int")
        if form == 2:
            return Column(f"count(DISTINCT {argument}){condition}", "int")
        if form in (3, 4) and kind in ("int", "dec", "double"):
            distinct = "DISTINCT " if random.random() < 0.1 else ""
            # A sum of integers is a HUGEINT, which adds and compares like `wide`.
            return Column(f"sum({distinct}{argument}){condition}", {"int": "wide"}.get(kind, kind))
        return Column(f"{random.choice(('min', 'max'))}({argument}){condition}", kind)

    def average(self, scope: Scope) -> str:
        """Shown only, never compared with anything: its last bit is the engine's own."""
        kind = self.expressions.kind(scope, "int", "dec", "double")
        return f"avg({self.expressions.draw(kind, Scope(scope.columns), 1)})"

    def from_clause(self, depth: int, outer: Sequence[Column]) -> tuple[str, Scope]:
        """`\\nFROM ...` and what it brings into scope."""
        random = self.random
        text, scope_columns = self.relation(depth)
        text = f"\nFROM {text}"
        # Commas bind less than JOIN, so the two are not mixed.
        commas = random.random() < 0.15
        for _ in range(random.choice((0, 0, 1, 1, 2)) if depth > 0 else random.choice((0, 0, 0, 1))):
            relation, more = self.relation(depth)
            kind = "," if commas else random.choice((*("JOIN",) * 4, *("LEFT JOIN",) * 2, *_OTHER_JOINS))
            if kind == ",":
                text += f", {relation}"
            elif kind == "CROSS JOIN":
                text += f"\n{kind} {relation}"
            else:
                condition = self.join_condition(scope_columns, more)
                text += f"\n{kind} {relation} ON {condition}"
            scope_columns = [*scope_columns, *more]
        return text, Scope(scope_columns, outer, self.subquery if depth > 0 else None)

    def relation(self, depth: int) -> tuple[str, list[Column]]:
        """A table, a CTE or a subquery, with an alias of its own."""
        random = self.random
        alias = f"r{self.next_alias}"
        self.next_alias += 1
        if self.ctes and random.random() < 0.35:
            name, kinds = random.choice(self.ctes)
            return f"{name} AS {alias}", _columns(alias, kinds)
        if depth > 0 and random.random() < 0.2:
            select = self.select(depth - 1)
            return f"({select.sql}) AS {alias}", _columns(alias, select.kinds)
        table = random.choice(list(SCHEMAS))
        return f"{table} AS {alias}", [
            Column(f"{alias}.{column.name}", column.kind) for column in columns(table)
        ]

    def join_condition(self, left: Sequence[Column], right: Sequence[Column]) -> str:
        """Mostly an equality of two columns, at times with more to it, at times without."""
        random = self.random
        pairs = [
            (one, other) for one in left for other in right if one.kind == other.kind and one.kind in KINDS
        ]
        conditions = []
        if pairs and random.random() < 0.9:
            for _ in range(random.choice((1, 1, 1, 2))):
                one, other = random.choice(pairs)
                operator = "=" if random.random() < 0.9 else "IS NOT DISTINCT FROM"
                conditions.append(f"{one.sql} {operator} {other.sql}")
        if not conditions or random.random() < 0.2:
            conditions.append(self.expressions.predicate(Scope((*left, *right)), 1))
        return " AND ".join(conditions)

    def subquery(self, scope: Scope, kind: str | None, is_scalar: bool) -> str:
        """A query inside an expression of `scope`, correlated with it more often than not."""
        random = self.random
        outer = scope.visible() if random.random() < 0.7 else ()
        relations, inner = self.from_clause(0, outer)
        conditions = []
        pairs = [
            (one, other)
            for one in inner.columns
            for other in outer
            if one.kind == other.kind and one.kind in KINDS
        ]
        if pairs and random.random() < 0.9:
            one, other = random.choice(pairs)
            conditions.append(f"{one.sql} = {other.sql}")
            if random.random() < 0.25:
                one, other = random.choice(pairs)
                conditions.append(self.expressions.comparison(one.sql, other.sql))
        if random.random() < 0.4:
            # One level deeper: a subquery of this subquery, which may refer to both queries around it.
            deeper = Scope(inner.columns, inner.outer, self.subquery if random.random() < 0.2 else None)
            conditions.append(self.expressions.predicate(deeper, 1))
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        if is_scalar:
            assert kind is not None
            argument = self.expressions.draw(kind, Scope(inner.columns), 1)
            function = random.choice(("min", "max", "sum" if kind in ("int", "dec") else "max", "count"))
            if function == "count" and kind not in ("int", "wide", "dec"):
                function = "min"
            return _one_line(f"SELECT {function}({argument}){relations}{where}")
        if kind is None:
            return _one_line(f"SELECT {random.choice(('1', '*'))}{relations}{where}")
        return _one_line(f"SELECT {self.expressions.draw(kind, Scope(inner.columns), 1)}{relations}{where}")


def _columns(alias: str, kinds: Sequence[str]) -> list[Column]:
    return [Column(f"{alias}.c{index}", kind) for index, kind in enumerate(kinds)]


def _named(items: Sequence[str]) -> str:
    return ", ".join(f"{item} AS c{index}" for index, item in enumerate(items))


def _one_line(sql: str) -> str:
    return sql.replace("\n", " ")
