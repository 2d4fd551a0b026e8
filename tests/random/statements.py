"""`python -m tests.random.statements [--count N] [--seed S]`: random scripts of statements, step by step through tqp and DuckDB.

After each statement all tables are compared. Script I of seed S is the same every time.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any

import duckdb

import tqp
from tests.oracle import duckdb_database

#: Statements of a script.
LENGTH = 25

_VALUES: Mapping[str, tuple[str, ...]] = {
    "INTEGER": ("-5", "0", "1", "2", "9", "'3'"),
    "BIGINT": ("0", "1", "2", "1000000000000", "-3"),
    "VARCHAR": ("'a'", "'b'", "'é'", "''", "'12'", "'x y'"),
    "DOUBLE": ("1.5", "0.0", "-2.25", "'nan'::DOUBLE", "1e10"),
    "DECIMAL(9,2)": ("1.25", "0", "-7.5", "12345.67", "99999999"),
    "DATE": ("DATE '2024-01-31'", "'2024-02-01'", "DATE '1969-12-31'"),
    "BOOLEAN": ("true", "false"),
    "UTINYINT": ("0", "255", "7", "300"),
    "TIMESTAMP": ("TIMESTAMP '2024-01-31 12:00:00'", "'2024-02-01'", "DATE '2024-01-01'"),
}
_TABLES = ("t", "u", "v", "T")
_SYSTEM = (
    "SHOW TABLES",
    "SHOW ALL TABLES",
    "DESCRIBE",
    "SELECT table_name, column_name, data_type, is_nullable FROM information_schema.columns WHERE table_schema = 'main' ORDER BY ALL",
    "SELECT table_name, column_count FROM duckdb_tables() ORDER BY ALL",
    "PRAGMA show_tables",
    "CHECKPOINT",
    "VACUUM ANALYZE t",
    "ANALYZE u(c0)",
    "CALL range(3)",
    "SELECT index_name, lower(table_name), is_unique FROM duckdb_indexes() ORDER BY ALL",
    "SELECT sequence_name, start_value, last_value FROM duckdb_sequences() ORDER BY ALL",
    "SELECT * EXCLUDE dflt_value FROM pragma_table_info('t')",
    'SELECT name, "notnull", pk FROM pragma_table_info(u)',
)

#: Names and types of the columns of a table.
Columns = list[tuple[str, str]]


@dataclass
class Script:
    """Draws statements about the tables that there are."""

    random: Random
    tables: dict[str, Columns] = field(default_factory=dict)
    #: Tables and columns with a key of its own, and its type.
    keys: list[tuple[str, str, str]] = field(default_factory=list)
    #: Whether there is a sequence; None before the first statement.
    draws_numbers: bool | None = None

    def statement(self) -> str:
        """The next one; most of them can be run."""
        random, name = self.random, self.random.choice(_TABLES)
        if self.draws_numbers is None:
            self.draws_numbers = random.random() < 0.3
            if self.draws_numbers:
                return f"CREATE SEQUENCE q START {random.randint(-3, 3)} MINVALUE -9 MAXVALUE 999 INCREMENT {random.choice((1, 2, -1))}"
        columns = self.tables.get(name.lower())
        if not self.tables or columns is None or random.random() < 0.1:
            return self._create(name)
        kinds: tuple[tuple[int, Callable[[str, Columns], str]], ...] = (
            (5, self._create_as),
            (30, self._insert),
            (7, self._insert_query),
            (13, self._update),
            (8, self._delete),
            (10, self._merge),
            (3, self._index),
            (12, self._alter),
            (4, lambda *_: random.choice(("BEGIN", "COMMIT", "ROLLBACK", "ABORT"))),
            (3, self._drop),
            (4, lambda *_: random.choice(_SYSTEM)),
        )
        weights, makers = zip(*kinds, strict=True)
        return str(random.choices(makers, weights)[0](name, columns))

    def _value(self, data_type: str) -> str:
        return "NULL" if self.random.random() < 0.15 else self.random.choice(_VALUES[data_type])

    def _new_value(self, data_type: str) -> str:
        """A value of a row that is inserted, which may be drawn from the sequence."""
        if self.draws_numbers and data_type in ("INTEGER", "BIGINT", "DOUBLE") and self.random.random() < 0.4:
            return "nextval('q')"
        return self._value(data_type)

    def _condition(self, columns: Columns) -> str:
        name, data_type = self.random.choice(columns)
        if self.random.random() < 0.25:
            return f"{name} IS {self.random.choice(('', 'NOT '))}NULL"
        return f"{name} {self.random.choice(('=', '<', '>=', '<>'))} {self._value(data_type)}"

    def _where(self, columns: Columns) -> str:
        return f" WHERE {self._condition(columns)}" if self.random.random() < 0.75 else ""

    def _returning(self) -> str:
        return self.random.choice(("", "", " RETURNING *", " RETURNING c0"))

    def _create(self, name: str) -> str:
        random, definitions = self.random, list[str]()
        how = random.choice(("TABLE", "TABLE IF NOT EXISTS", "OR REPLACE TABLE"))
        for place in range(random.randint(1, 4)):
            data_type = random.choice(list(_VALUES))
            text = f"c{place} {data_type}"
            if random.random() < 0.15:
                text += " NOT NULL"
            if random.random() < 0.2:
                text += f" DEFAULT {self._new_value(data_type)}"
            if random.random() < 0.1:
                text += f" CHECK (c{place} {random.choice('<>')} {self._value(data_type)})"
            if random.random() < 0.2:
                text += random.choice((" UNIQUE", " UNIQUE", " PRIMARY KEY" if not place else ""))
            # DuckDB also looks for the keys that a table refers to if it is there already
            if "IF NOT EXISTS" not in how and random.random() < 0.3:
                text += self._references(name, data_type)
            definitions.append(text)
        return f"CREATE {how} {name} ({', '.join(definitions)})"

    def _references(self, name: str, data_type: str) -> str:
        """The part of a column's definition that makes it a foreign key, most often one that can be."""
        same = [
            (table, column)
            for table, column, known in self.keys
            if known == data_type and table != name.lower()
        ]
        if not same or self.random.random() < 0.1:
            return "" if self.random.random() < 0.9 else f" REFERENCES {self.random.choice(_TABLES)}(c0)"
        table, column = self.random.choice(same)
        return f" REFERENCES {table}({column})"

    def _create_as(self, name: str, columns: Columns) -> str:
        source, of_source = self.random.choice(list(self.tables.items()))
        items = self.random.choice(("*", "count(*) AS n", "*, 1 AS extra"))
        if self.draws_numbers and self.random.random() < 0.3:
            items = "nextval('q') AS q, *"
        return f"CREATE OR REPLACE TABLE {name} AS SELECT {items} FROM {source}{self._where(of_source)}"

    def _insert(self, name: str, columns: Columns) -> str:
        random = self.random
        some = columns if random.random() < 0.5 else random.sample(columns, random.randint(1, len(columns)))
        listed = "" if some is columns else f" ({', '.join(column for column, _ in some)})"

        def value(data_type: str) -> str:
            return (
                (self._new_value if some is columns else self._value)(data_type)
                if random.random() < 0.93
                else random.choice(("DEFAULT", "'oops'", "1+1"))
            )

        rows = [f"({', '.join(value(each) for _, each in some)})" for _ in range(random.randint(1, 4))]
        conflict = random.choice(("", "", "", " ON CONFLICT DO NOTHING")) if len(rows) == 1 else ""
        return f"INSERT INTO {name}{listed} VALUES {', '.join(rows)}{conflict}{self._returning()}"

    def _insert_query(self, name: str, columns: Columns) -> str:
        by_name = self.random.choice(("", "BY NAME "))
        items = self.random.choice(("*", "c0", "c0, c0", "nextval('q')" if self.draws_numbers else "c0"))
        return f"INSERT INTO {name} {by_name}SELECT {items} FROM {self.random.choice(list(self.tables))}"

    def _update(self, name: str, columns: Columns) -> str:
        random, (column, data_type) = self.random, self.random.choice(columns)
        values = [
            self._value(data_type),
            f"CASE WHEN {self._condition(columns)} THEN {column} ELSE {self._value(data_type)} END",
            "DEFAULT",
            f"(SELECT max({column}) FROM {name})",
        ]
        if data_type in ("INTEGER", "BIGINT", "DOUBLE", "UTINYINT"):
            values += [f"{column} + 1", f"{column} * 2"]
        value = random.choice(values)
        return f"UPDATE {name} SET {column} = {value}{self._where(columns)}{self._returning()}"

    def _delete(self, name: str, columns: Columns) -> str:
        if self.random.random() < 0.1:
            return f"TRUNCATE {name}"
        return f"DELETE FROM {name}{self._where(columns)}{self._returning()}"

    def _merge(self, name: str, columns: Columns) -> str:
        random = self.random
        source, of_source = random.choice(list(self.tables.items()))
        column, data_type = random.choice(columns)
        same = [other for other, known in of_source if known == data_type]
        partners = f"m.{column} = o.{random.choice(same)}" if same else random.choice(("true", "false"))
        branches = [self._branch(columns, of_source) for _ in range(random.randint(1, 4))]
        text = f"MERGE INTO {name} AS m USING {source} AS o ON {partners} {' '.join(branches)}"
        return text + random.choice(("", "", " RETURNING merge_action, *"))

    def _branch(self, columns: Columns, of_source: Columns) -> str:
        """WHEN of MERGE."""
        random = self.random
        match = random.choice(("MATCHED", "NOT MATCHED", "NOT MATCHED BY SOURCE"))
        side, known = ("o", of_source) if match == "NOT MATCHED" else ("m", columns)
        condition = f" AND {side}.{self._condition(known)}" if random.random() < 0.5 else ""
        (column, data_type), (other, _) = random.choice(columns), random.choice(known)
        value = random.choice((f"{side}.{other}", self._value(data_type), "DEFAULT"))
        inserts = (f"INSERT ({column}) VALUES ({value})", "INSERT", "INSERT BY NAME", "INSERT DEFAULT VALUES")
        updates = (f"UPDATE SET {column} = {value}", "UPDATE", "UPDATE BY NAME", "DELETE")
        others = ("DO NOTHING", "DO NOTHING", "ERROR")
        actions = inserts + others if match == "NOT MATCHED" else updates * 2 + inserts + others
        return f"WHEN {match}{condition} THEN {random.choice(actions)}"

    def _alter(self, name: str, columns: Columns) -> str:
        random, (column, data_type) = self.random, self.random.choice(self.tables[name.lower()])
        number = random.randint(0, 99)
        changes = (
            f"ADD COLUMN n{number} {random.choice(list(_VALUES))}",
            f"ADD COLUMN n{number} INTEGER DEFAULT 7",
            f"ADD COLUMN IF NOT EXISTS {column} INTEGER",
            "DROP COLUMN IF EXISTS zz",
            f"RENAME COLUMN {column} TO r{number}",
            f"RENAME {column} TO r{number}",
            f"ALTER {column} SET DEFAULT {self._value(data_type)}",
            f"ALTER {column} DROP DEFAULT",
            f"ALTER {column} SET NOT NULL",
            f"ALTER {column} DROP NOT NULL",
            f"ALTER {column} TYPE VARCHAR",
            f"RENAME TO {random.choice(('t', 'u', 'w'))}",
        )
        return f"ALTER TABLE {name} {random.choice(changes)}"

    def _index(self, name: str, columns: Columns) -> str:
        random, index = self.random, f"i{self.random.randint(0, 3)}"
        if random.random() < 0.3:
            return f"DROP INDEX {random.choice(('', 'IF EXISTS '))}{index}"
        unique = random.choice(("", "", "UNIQUE "))
        return f"CREATE {unique}INDEX {index} ON {name} ({random.choice(columns)[0]})"

    def _drop(self, name: str, columns: Columns) -> str:
        return f"DROP TABLE {self.random.choice(('', 'IF EXISTS '))}{name}"


@dataclass(frozen=True)
class Difference:
    """The statements up to the one that tells the engines apart, and the two answers."""

    statements: tuple[str, ...]
    duckdb: Any
    tqp: Any

    def __str__(self) -> str:
        steps = "".join(f"{each};\n" for each in self.statements)
        return f"{steps}-- DuckDB: {str(self.duckdb)[:400]}\n-- tqp:    {str(self.tqp)[:400]}"


def first_difference(seed: int, number: int) -> Difference | None:
    """Runs one script; None if the engines agree to its end, or to where DuckDB has an internal error."""
    script = Script(Random(f"{seed} {number}"))
    steps: list[str] = []
    with duckdb_database() as oracle, tqp.connect(threads=1) as connection:
        for _ in range(LENGTH):
            steps.append(script.statement())
            expected, actual = _answer(oracle.execute, steps[-1]), _answer(connection.sql, steps[-1])
            if isinstance(expected, duckdb.InternalException):
                return None
            if _is_refused_by_both_in_principle(actual) or _is_refused_by_duckdb(steps[-1], expected):
                return None
            if not _agree(expected, actual):
                return Difference(tuple(steps), expected, actual)
            if script.draws_numbers and (isinstance(expected, Exception) or "MERGE" in steps[-1]):
                return None  # how many numbers were drawn for nothing is open
            script.tables = dict(_tables(oracle))
            script.keys = list(_keys(oracle, script.tables))
            for table in script.tables:
                query = f"FROM {table}"
                expected, actual = _answer(oracle.execute, query), _answer(connection.sql, query)
                if not _agree(expected, actual):
                    return Difference((*steps, query), expected, actual)
    return None


def _answer(execute: Callable[[str], Any], statement: str) -> list[str] | Exception:
    try:
        return sorted(map(repr, execute(statement).fetchall()))
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the answer
        return error


def _agree(expected: list[str] | Exception, actual: list[str] | Exception) -> bool:
    if isinstance(expected, Exception) or isinstance(actual, Exception):
        return isinstance(expected, duckdb.Error) and isinstance(actual, tqp.Error)
    return expected == actual


def _is_refused_by_both_in_principle(actual: list[str] | Exception) -> bool:
    """A column that is part of a constraint is not changed: DuckDB refuses some of these, and none reliably."""
    return isinstance(actual, tqp.UnsupportedError) and "constraint" in str(actual)


def _is_refused_by_duckdb(statement: str, expected: list[str] | Exception) -> bool:
    """DuckDB computes the values of a branch of MERGE for rows of other branches, too, and fails where these cannot be cast.

    It alters no table that another refers to, and checks foreign keys row by row, though what a statement leaves may keep them.
    """
    if statement.startswith("MERGE") and isinstance(expected, duckdb.ConversionException):
        return True
    if statement.startswith("ALTER"):
        return isinstance(expected, duckdb.DependencyException | duckdb.CatalogException) and "depend" in str(
            expected
        )
    return isinstance(expected, duckdb.ConstraintException) and "foreign key" in str(expected)


def _tables(oracle: duckdb.DuckDBPyConnection) -> Iterator[tuple[str, Columns]]:
    try:
        names = [name for (name,) in oracle.execute("SELECT table_name FROM duckdb_tables()").fetchall()]
    except duckdb.Error:  # in a transaction that failed
        return
    for name in names:
        described = oracle.execute(f"DESCRIBE {name}").fetchall()
        yield name.lower(), [(row[0], row[1] if row[1] in _VALUES else "INTEGER") for row in described]


def _keys(oracle: duckdb.DuckDBPyConnection, tables: Mapping[str, Columns]) -> Iterator[tuple[str, str, str]]:
    query = """SELECT lower(table_name), constraint_column_names FROM duckdb_constraints()
        WHERE constraint_type IN ('UNIQUE', 'PRIMARY KEY') ORDER BY ALL"""
    if tables:
        for table, columns in oracle.execute(query).fetchall():
            types = dict(tables[table])
            if len(columns) == 1 and columns[0] in types:
                yield table, columns[0], types[columns[0]]


def main(arguments: list[str]) -> int:
    """Prints the differences; the exit status says whether there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.random.statements", description=__doc__)
    parser.add_argument("--count", type=int, default=500, help="scripts to run (default: 500)")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="default: from the clock")
    options = parser.parse_args(arguments)
    found = 0
    for number in range(options.count):
        difference = first_difference(options.seed, number)
        if difference is not None:
            found += 1
            print(f"{difference}\n-- script {number} of seed {options.seed}\n")
    print(f"seed {options.seed}: {options.count} scripts, {found} differences")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
