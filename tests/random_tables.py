"""Small random tables for the query generator: duplicates, NULLs, empty tables, values that compare and add exactly."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa

WORDS = ("", "a", "ab", "abc", "B", "banana", "Zebra", "äö", "日本", "50%", "a_b", " x ", "apple pie", "🦆")

#: The kinds of value that the generator tells apart. `int` stays small, so that products of a few do not overflow;
#: `wide` is for keys and sums; `double` holds multiples of 1/4, whose sums are exact in any order.
KINDS = ("int", "wide", "dec", "double", "str", "date", "bool")

_NUM_ROWS = (0, 1, 3, 7, 10, 20, 20, 30, 30, 40)


@dataclass(frozen=True)
class TableColumn:
    """A column of a table as the generator sees it."""

    name: str
    kind: str


#: What each table is made of: name, kind and Arrow type of its columns. `k` is unique.
SCHEMAS: dict[str, tuple[tuple[str, str, pa.DataType], ...]] = {
    "t0": (
        ("a", "int", pa.int32()),
        ("b", "int", pa.int64()),
        ("d", "dec", pa.decimal128(9, 2)),
        ("s", "str", pa.string()),
        ("y", "date", pa.date32()),
    ),
    "t1": (
        ("a", "int", pa.int32()),
        ("w", "wide", pa.int64()),
        ("x", "double", pa.float64()),
        ("s", "str", pa.string()),
        ("f", "bool", pa.bool_()),
    ),
    "t2": (
        ("k", "int", pa.int32()),
        ("e", "dec", pa.decimal128(15, 4)),
        ("y", "date", pa.date32()),
        ("n", "int", pa.int16()),
        ("s", "str", pa.string()),
    ),
    "t3": (("w", "wide", pa.int64()), ("u", "int", pa.int16()), ("x", "double", pa.float64())),
}


def columns(table: str) -> list[TableColumn]:
    """The columns of `table`."""
    return [TableColumn(name, kind) for name, kind, _ in SCHEMAS[table]]


def random_tables(random: Random) -> dict[str, pa.Table]:
    """All four tables; at most one of them has 100 rows, so that a cross join of three stays small."""
    sizes = {name: random.choice(_NUM_ROWS) for name in SCHEMAS}
    if random.random() < 0.5:
        sizes[random.choice(list(SCHEMAS))] = 100
    tables = {}
    for name, schema in SCHEMAS.items():
        arrays = [_values(random, column, kind, sizes[name]) for column, kind, _ in schema]
        fields = [pa.field(column, data_type) for column, _, data_type in schema]
        typed = [pa.array(values, field.type) for values, field in zip(arrays, fields, strict=True)]
        tables[name] = pa.table(typed, schema=pa.schema(fields))
    return tables


def _values(random: Random, column: str, kind: str, num_rows: int) -> list[Any]:
    if column == "k":
        keys: list[int | None] = random.sample(range(-5, 300), num_rows)
        if keys and random.random() < 0.3:
            keys[0] = None
        return keys
    draw = _DRAW[kind]
    null_share = random.choice((0, 0, 0, 0.1, 0.1, 0.4)) if random.random() < 0.97 else 1
    pool = [draw(random) for _ in range(random.choice((1, 3, 8, 8, 40)))]
    values = [None if random.random() < null_share else random.choice(pool) for _ in range(num_rows)]
    if random.random() < 0.2 and None not in values:
        values.sort()
    return values


_DRAW: dict[str, Callable[[Random], Any]] = {
    "int": lambda random: random.randint(-2, 8),
    "wide": lambda random: random.choice(
        (random.randint(-3, 8), random.randint(-3, 8), random.randint(-(10**12), 10**12))
    ),
    "dec": lambda random: Decimal(
        random.choice((random.randint(-4, 8) * 50, random.randint(-2000, 99999)))
    ).scaleb(-2),
    "double": lambda random: random.randint(-12, 32) / 4,
    "str": lambda random: random.choice(WORDS),
    "date": lambda random: (
        datetime.date(1995, 1, 1) + datetime.timedelta(days=random.choice((0, 31, random.randint(-700, 700))))
    ),
    "bool": lambda random: random.random() < 0.5,
}
