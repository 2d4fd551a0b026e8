"""Random tables of 0 to 300,000 rows with columns of every type, as SQL statements that make them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

from tests.random.values import FAMILIES, FAMILY_OF, INTEGERS, random_value

#: Rows of a table that is not large; most of them few, since what goes wrong goes wrong in few.
_NUM_ROWS = (0, 1, 1, 2, 3, 7, 10, 20, 20, 30, 40)
_LARGE = 20_000
_VERY_LARGE = 300_000


@dataclass(frozen=True)
class TableColumn:
    """A column; `is_small` where arithmetic on its values hardly overflows, and sums of floats are exact.

    `pool`, `null_percent` and `layout` say what a large table holds, which is made by a query over range().
    """

    name: str
    sql_type: str
    is_small: bool
    pool: tuple[str, ...] = ()
    null_percent: int = 0
    layout: str = "mixed"

    @property
    def family(self) -> str:
        """The family of its type, as in `FAMILIES`."""
        return FAMILY_OF[self.sql_type]


@dataclass(frozen=True)
class RandomTable:
    """A table: its rows as texts (None is NULL), or for a large one just their number."""

    name: str
    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[str | None, ...], ...] = ()
    num_large_rows: int = 0

    @property
    def num_rows(self) -> int:
        """How many rows it has."""
        return self.num_large_rows or len(self.rows)

    def statements(self) -> list[str]:
        """CREATE TABLE and INSERT."""
        columns = ", ".join(f"{column.name} {column.sql_type}" for column in self.columns)
        create = f"CREATE TABLE {self.name} ({columns});"
        if self.num_large_rows:
            items = ", ".join(_formula(column, self.num_large_rows) for column in self.columns)
            return [create, f"INSERT INTO {self.name} SELECT {items} FROM range({self.num_large_rows}) r(i);"]
        if not self.rows:
            return [create]
        rows = ", ".join(f"({', '.join(map(_quoted, row))})" for row in self.rows)
        return [create, f"INSERT INTO {self.name} VALUES {rows};"]

    def without_column(self, index: int) -> RandomTable:
        """The same table less one column."""
        columns = (*self.columns[:index], *self.columns[index + 1 :])
        rows = tuple((*row[:index], *row[index + 1 :]) for row in self.rows)
        return replace(self, columns=columns, rows=rows)


def random_tables(random: Random) -> dict[str, RandomTable]:
    """Tables t0 to t3. At most one has more than 40 rows, so that a cross join of three stays small."""
    sizes = [random.choice(_NUM_ROWS) for _ in range(4)]
    share = random.random()
    if share < 0.5:
        sizes[random.randrange(4)] = 100
    if share < 0.04:
        sizes[random.randrange(4)] = _VERY_LARGE if share < 0.006 else _LARGE
    return {f"t{index}": _table(random, f"t{index}", size) for index, size in enumerate(sizes)}


def _table(random: Random, name: str, num_rows: int) -> RandomTable:
    key_type = random.choice((*FAMILIES["int"], "INTEGER", "BIGINT", "BIGINT", "DOUBLE", "DECIMAL(9,2)"))
    types = [("k", key_type)]
    if random.random() < 0.7:
        types.append(("s", "VARCHAR"))
    families = random.sample(tuple(FAMILIES), random.randint(2, 6))
    families.append(random.choice(("int", "int", "dec", "float", "date", "ts")))
    types += [(f"c{index}", random.choice(FAMILIES[family])) for index, family in enumerate(families)]
    columns, values = [], []
    for column_name, sql_type in types:
        column = _column(random, column_name, sql_type)
        columns.append(column)
        if num_rows < _LARGE:
            values.append(_values(random, column, num_rows))
    if num_rows >= _LARGE:
        return RandomTable(name, tuple(columns), num_large_rows=num_rows)
    rows = tuple(zip(*values, strict=True)) if num_rows else ()
    return RandomTable(name, tuple(columns), rows)


def _column(random: Random, name: str, sql_type: str) -> TableColumn:
    profile = random.choice(("small", "small", "small", "small", "ends", "spread"))
    size = random.choice((1, 3, 8, 8, 40))
    pool = tuple(random_value(random, sql_type, profile) for _ in range(size))
    nulls = random.choice((0, 0, 0, 10, 10, 40, 95)) if random.random() < 0.97 else 100
    layout = random.choice(("mixed", "mixed", "mixed", "skewed", "sorted", "sequence", "unique"))
    return TableColumn(name, sql_type, profile == "small", pool, nulls, layout)


def _values(random: Random, column: TableColumn, num_rows: int) -> list[str | None]:
    """Values in the column's layout; a sequence of integers ascends, with duplicates and wide steps."""
    if column.layout == "sequence" and column.sql_type in ("BIGINT", "INTEGER", "UBIGINT", "UINTEGER"):
        step = random.choice((1, 7, 100, 40_000))
        numbers = sorted(random.randrange(0, 1 + num_rows // 2) * step + 29_297 for _ in range(num_rows))
        return [str(number) for number in numbers]
    if column.layout == "unique" and column.family == "int":
        low, high = INTEGERS[column.sql_type]
        numbers = random.sample(range(max(low, -5), min(high, 120)), num_rows)
        return [None if random.randrange(100) < column.null_percent else str(number) for number in numbers]
    pool = column.pool[:1] * 20 + column.pool if column.layout == "skewed" else column.pool
    values = [random.choice(pool) for _ in range(num_rows)]
    if column.layout == "sorted":
        values.sort(key=lambda value: column.pool.index(value))
        if column.family == "int":
            values.sort(key=int)
    return [None if random.randrange(100) < column.null_percent else value for value in values]


def _formula(column: TableColumn, num_rows: int) -> str:
    """SQL over `i` that makes the column of a large table."""
    draw = f"hash(i, '{column.name}')"
    if column.layout == "sequence" and column.sql_type in ("BIGINT", "INTEGER"):
        return f"(i // 3) * 4007 - {num_rows}"
    count = len(column.pool)
    index = {
        "skewed": f"CASE WHEN {draw} % 20 < 19 THEN 1 ELSE 1 + ({draw} >> 7) % {count} END",
        "sorted": f"1 + i * {count} // {num_rows}",
    }.get(column.layout, f"1 + ({draw} >> 7) % {count}")
    values = f"[{', '.join(map(_quoted, column.pool))}][CAST({index} AS BIGINT)]"
    if column.null_percent:
        values = f"CASE WHEN {draw} % 100 >= {column.null_percent} THEN {values} END"
    return f"CAST({values} AS {column.sql_type})"


def _quoted(value: str | None) -> str:
    return "NULL" if value is None else "'" + value.replace("'", "''") + "'"
