"""Random FROM clauses: tables, derived tables, VALUES, LATERAL, CTEs, and every way to join them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from tests.random.expressions import Column, Expressions, Scope
from tests.random.tables import RandomTable
from tests.random.values import FAMILIES

#: Makes a SELECT with depth, outer columns and wanted families: its SQL and the families of its columns o0, o1, ...
SelectMaker = Callable[[int, Sequence[Column], Sequence[str] | None], tuple[str, tuple[str, ...]]]

#: Tables with more rows stand once in a FROM clause and are joined on equal values only.
_MANY_ROWS = 1000

_JOINS = (
    "JOIN",
    "JOIN",
    "JOIN",
    "INNER JOIN",
    "LEFT JOIN",
    "LEFT JOIN",
    "LEFT JOIN",
    "RIGHT JOIN",
    "FULL JOIN",
)


#: What gives every row, or none.
_WHOLE_SAMPLES = (
    *(" TABLESAMPLE RESERVOIR (400000 ROWS) REPEATABLE (7)", " TABLESAMPLE BERNOULLI (100%) REPEATABLE (1)"),
    *(" TABLESAMPLE SYSTEM (0%)", " TABLESAMPLE 100%", " TABLESAMPLE 0 ROWS"),
)
#: Functions whose results differ only where they differ under the collation.
_FOLDED = (
    *(("lower({})", "NOCASE"), ("lower({})", "NOCASE"), ("strip_accents({})", "NOACCENT")),
    ("lower(strip_accents({}))", "NOCASE.NOACCENT"),
)
_JSON_VALUES = ("1", "-2.5", "'é'", "NULL", "true", "[1, NULL]", "[]", "MAP {'x': [0]}", "['a', 'b']")


class Relations:
    """Draws FROM clauses from one random source."""

    def __init__(
        self, random: Random, tables: Mapping[str, RandomTable], expressions: Expressions, select: SelectMaker
    ) -> None:
        self.random = random
        self.tables = tables
        self.expressions = expressions
        self.select = select
        self.next_alias = 0
        #: CTEs in scope: name and the families of its columns o0, o1, ...
        self.ctes: list[tuple[str, tuple[str, ...]]] = []

    def from_clause(self, depth: int, outer: Sequence[Column]) -> tuple[str, Scope]:
        """FROM with one to four relations, and what can be referred to above it."""
        random = self.random
        num_relations = random.choice((1, 1, 1, 2, 2, 3, 4)) if depth > 0 else random.choice((1, 1, 1, 2))
        sql, columns = self._relation(depth, outer)
        has_many = any(
            table.num_rows > _MANY_ROWS and table.name in sql.split() for table in self.tables.values()
        )
        for _ in range(num_relations - 1):
            lateral = depth > 0 and random.random() < 0.07
            if lateral:
                other, others = self._lateral(depth, (*columns, *outer))
            else:
                other, others = self._relation(depth, outer, has_many)
            left_keys = [column for column in columns if column.sql.endswith(".k") or column.sql == "k"]
            has_key = _has_key(others)
            form = random.random()
            if form < 0.12 and not has_many:
                sql += f", {other}"
            elif form < 0.2 and not has_many:
                sql += f" CROSS JOIN {other}"
            elif form < 0.34 and len(left_keys) == 1 and has_key and not lateral:
                sql += f" {random.choice(_JOINS)} {other} USING (k)"
                # From here on the key is one column, which both tables' names may no longer tell apart.
                columns = [column for column in columns if column is not left_keys[0]]
                columns.append(Column("k", left_keys[0].family, left_keys[0].is_small))
                others = [column for column in others if not column.sql.endswith(".k")]
            elif form < 0.4 and not lateral:
                condition = self._condition(columns, others, outer, has_many)
                sql += f" {random.choice(('SEMI', 'ANTI'))} JOIN {other} ON {condition}"
                continue
            elif form < 0.45 and not lateral and not has_many:
                joined, others = self._asof(columns, depth)
                sql += f" ASOF {joined}"
            else:
                join = random.choice(("JOIN", "LEFT JOIN")) if lateral else random.choice(_JOINS)
                sql += f" {join} {other} ON {self._condition(columns, others, outer, has_many)}"
            if _has_key(others):
                columns = [column for column in columns if column.sql != "k"]  # no longer one column alone
            columns = [*columns, *others]
        return f" FROM {sql}", Scope(columns, outer, depth)

    def _relation(
        self, depth: int, outer: Sequence[Column], has_many: bool = False
    ) -> tuple[str, list[Column]]:
        random = self.random
        alias = f"r{self.next_alias}"
        self.next_alias += 1
        form = random.random()
        if self.ctes and form < 0.3:
            name, families = random.choice(self.ctes)
            return f"{name} {alias}", _columns(alias, families)
        if depth > 0 and form < 0.42:
            sql, families = self.select(depth - 1, (), None)
            if random.random() < 0.25:
                names = [f"x{index}" for index in range(len(families))]
                columns = [
                    Column(f"{alias}.{name}", family) for name, family in zip(names, families, strict=True)
                ]
                return f"({sql}) {alias}({', '.join(names)})", columns
            return f"({sql}) {alias}", _columns(alias, families)
        if form < 0.5:
            return self._values(alias)
        if form < 0.52:
            return self._json_rows(alias)
        if form < 0.54:
            return self._bins(alias)
        if form < 0.57:
            return self._collated(alias)
        if form < 0.59:
            return self._nested(alias)
        names = [name for name, table in self.tables.items() if not has_many or table.num_rows <= _MANY_ROWS]
        table = self.tables[random.choice(names)]
        columns = [Column(f"{alias}.{each.name}", each.family, each.is_small) for each in table.columns]
        sample = random.choice(_WHOLE_SAMPLES) if random.random() < 0.03 else ""
        return f"{table.name} {random.choice(('', 'AS '))}{alias}{sample}", columns

    def _nested(self, alias: str) -> tuple[str, list[Column]]:
        """A query with a list, a struct and a map of columns, of which parts are read; now and then grouped by them."""
        random = self.random
        table = random.choice(list(self.tables.values()))
        one, other = random.choice(table.columns), random.choice(table.columns)
        values = (
            f"[[{one.name}], NULL, [NULL, {one.name}, {one.name}]] AS l, {{'a': {one.name}, 'b': [{other.name}]}} AS st, "
            f"MAP {{'x': {one.name}, 'y': NULL}} AS m, {other.name} AS v"
        )
        sql = f"SELECT {values} FROM {table.name}"
        if random.random() < 0.5:
            keys = random.choice(("l", "st", "m", "l, m", "st, l"))
            nested = ("l", "st", "m")
            items = (each if each in keys.split(", ") else f"max({each}) AS {each}" for each in nested)
            sql = f"SELECT {', '.join(items)}, max(v) AS v FROM ({sql}) GROUP BY {keys}"
        parts = {
            f"{alias}.l[1][1]": one.family,
            f"len({alias}.l)": "int",
            f"list_transform(list_filter({alias}.l, lambda e: e IS NOT NULL), lambda e: e[1])[1]": one.family,
            f"{alias}.st.a": one.family,
            f"{alias}.st.b[1]": other.family,
            f"{alias}.m['x']": one.family,
            f"{alias}.m.y": one.family,
            f"map_keys({alias}.m)[1]": "str",
            f"{alias}.v": other.family,
        }
        return f"({sql}) {alias}", [Column(part, family) for part, family in parts.items()]

    def _asof(self, left: Sequence[Column], depth: int) -> tuple[str, list[Column]]:
        """The rest of an ASOF join: of the other table one row has each key and value, so that it is known which is the nearest."""
        random = self.random
        value = random.choice(left)
        keys = random.sample(left, min(len(left), random.choice((0, 1, 1, 2))))
        alias = f"r{self.next_alias}"
        self.next_alias += 1
        families = (value.family, *(key.family for key in keys), random.choice(("int", "str", "date")))
        sql, _ = self.select(0, (), families)
        places = range(len(families) - 1)
        by = ", ".join(f"o{place}" for place in places)
        sql = f"SELECT {by}, max(o{len(places)}) AS o{len(places)} FROM ({sql}) GROUP BY {by}"
        conditions = [f"{value.sql} {random.choice(('>=', '>=', '>', '<', '<='))} {alias}.o0"]
        conditions += [f"{key.sql} = {alias}.o{place + 1}" for place, key in enumerate(keys)]
        join = random.choice(("JOIN", "LEFT JOIN"))
        condition = " AND ".join(random.sample(conditions, len(conditions)))
        return f"{join} ({sql}) {alias} ON {condition}", _columns(alias, families)

    def _collated(self, alias: str) -> tuple[str, list[Column]]:
        """A table with a column under a collation, which takes apart whatever values of it differ, but not those of others."""
        table = self.tables[self.random.choice(list(self.tables))]
        columns = [Column(f"{alias}.{each.name}", each.family, each.is_small) for each in table.columns]
        texts = [each.name for each in table.columns if each.family == "str"]
        if not texts:
            return f"{table.name} {alias}", columns
        function, collation = self.random.choice(_FOLDED)
        text = f"{function.format(self.random.choice(texts))} COLLATE {collation} AS folded"
        return f"(SELECT *, {text} FROM {table.name}) {alias}", [*columns, Column(f"{alias}.folded", "str")]

    def _bins(self, alias: str) -> tuple[str, list[Column]]:
        """How many values of a table lie in each bin."""
        values = [
            (table.name, each)
            for table in self.tables.values()
            for each in table.columns
            if each.family in ("int", "date")
        ]
        table, value = self.random.choice(values)
        technique = self.random.choice(("auto", "equi-width", "equi-height", "equi-width-nice"))
        options = f"bin_count := {self.random.randint(1, 12)}, technique := '{technique}'"
        call = f"histogram_values({table}, {value.name}, {options})"
        return f"{call} {alias}", [Column(f"{alias}.bin", value.family), Column(f"{alias}.count", "int")]

    def _json_rows(self, alias: str) -> tuple[str, list[Column]]:
        """The parts of a constant document."""
        values = (
            f"'k{index}', {self.random.choice(_JSON_VALUES)}" for index in range(self.random.randint(0, 4))
        )
        document = f"json_object({', '.join(values)})"
        function = self.random.choice(("json_each", "json_tree"))
        families = {"key": "str", "type": "str", "id": "int", "parent": "int", "fullkey": "str"}
        columns = [Column(f"{alias}.{name}", family) for name, family in families.items()]
        numbers = ""
        if self.random.random() < 0.3:
            numbers = "WITH ORDINALITY "
            columns.append(Column(f"{alias}.ordinality", "int"))
        return f"{function}({document}) {numbers}{alias}", columns

    def _values(self, alias: str) -> tuple[str, list[Column]]:
        families = [self.random.choice(("int", "int", "dec", "float", "str", "date", "bool", *FAMILIES))]
        families += self.random.choices(tuple(FAMILIES), k=self.random.randint(0, 2))
        rows = [
            f"({', '.join(self.expressions.literal(family, is_typed=True) for family in families)})"
            for _ in range(self.random.randint(1, 4))
        ]
        names = [f"v{index}" for index in range(len(families))]
        columns = [Column(f"{alias}.{name}", family) for name, family in zip(names, families, strict=True)]
        if self.random.random() < 0.2:
            rows = [rows[0][1:-1], f"num_rows := {self.random.choice((0, 1, 2, 3))}"]
            numbers = ""
            if self.random.random() < 0.3:
                numbers, names = "WITH ORDINALITY ", [*names, "counted"]
                columns.append(Column(f"{alias}.counted", "int"))
            return f"repeat_row({', '.join(rows)}) {numbers}{alias}({', '.join(names)})", columns
        return f"(VALUES {', '.join(rows)}) {alias}({', '.join(names)})", columns

    def _lateral(self, depth: int, outer: Sequence[Column]) -> tuple[str, list[Column]]:
        alias = f"r{self.next_alias}"
        self.next_alias += 1
        form = self.random.random()
        if form < 0.35:  # grouped, distinct, or with windows as any query
            sql, any_families = self.select(depth - 1, outer, None)
            return f"LATERAL ({sql}) {alias}", _columns(alias, any_families)
        if form < 0.5:
            family = self.expressions.family(Scope(outer))
            elements = ", ".join(self.expressions.draw(family, Scope(outer), 1) for _ in range(3))
            lists = (
                f"[{elements}]",
                f"list_distinct([{elements}])",
                f"map_values(MAP {{1: {elements.partition(', ')[0]}}})",
            )
            return f"unnest({self.random.choice(lists)}) {alias}(o0)", [Column(f"{alias}.o0", family)]
        column = self.expressions.column(self.expressions.family(Scope(outer)), Scope(outer))
        first = column.sql if column is not None else "1"
        relations, scope = self.from_clause(depth - 1, outer)
        families = (column.family if column is not None else "int", self.expressions.family(scope))
        where = f" WHERE {self.expressions.predicate(scope, 1)}" if self.random.random() < 0.5 else ""
        sql = f"SELECT {first} AS o0, {self.expressions.draw(families[1], scope, 1)} AS o1{relations}{where}"
        return f"LATERAL ({sql}) {alias}", _columns(alias, families)

    def _condition(
        self, left: Sequence[Column], right: Sequence[Column], outer: Sequence[Column], equal_only: bool
    ) -> str:
        """A join condition: equal values of one family mostly, also ranges, constants and anything else."""
        random = self.random
        numbers = ("int", "dec", "float")
        pairs = [
            (one.sql, other.sql)
            for one in left
            for other in right
            if one.family == other.family or (one.family in numbers and other.family in numbers)
        ]
        form = random.random()
        if pairs and (form < 0.6 or equal_only):
            one, other = random.choice(pairs)
            condition = f"{one} = {other}" if form < 0.55 else f"{one} IS NOT DISTINCT FROM {other}"
        elif pairs and form < 0.75:
            (one, other), (_, high) = random.choice(pairs), random.choice(pairs)
            operator = random.choice(("<", "<=", ">", ">="))
            bounds = [pair for pair in pairs if pair[0] == one]
            high = random.choice(bounds)[1]
            condition = f"{one} {operator} {other}" if form < 0.68 else f"{one} BETWEEN {other} AND {high}"
        elif form < 0.82:
            condition = random.choice(("TRUE", "TRUE", "NULL", "FALSE", "1 = 1"))
        else:
            condition = self.expressions.predicate(Scope((*left, *right), outer), 1)
        if random.random() < 0.25:
            condition += f" AND {self.expressions.predicate(Scope((*left, *right), outer), 1)}"
        return condition


def _has_key(columns: Sequence[Column]) -> bool:
    return any(column.sql.endswith(".k") for column in columns)


def _columns(alias: str, families: Sequence[str]) -> list[Column]:
    return [Column(f"{alias}.o{index}", family) for index, family in enumerate(families)]
