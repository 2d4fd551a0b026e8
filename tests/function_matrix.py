"""`python -m tests.function_matrix [--only NAME] [--share I/N]`: scalar functions, operators and casts at the edges of types.

Each combination of values is evaluated as constants, as columns of one row, and as one of many rows of a table, with
either backend; of several arguments also some as constants beside a column. Answers are values, types, and whether it
raises, held against DuckDB's. Aggregates: `tests.aggregate_matrix`.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random

import duckdb
import pyarrow as pa

import tqp
from tests.function_cases import Case, cases
from tests.matrix_answers import CRASH, OWN_FAULT, Answer, Row, is_before_infinity, is_same
from tests.operator_cases import operator_cases
from tests.oracle import arrow_of
from tests.random.engines import _plain

#: Items of a query over constants.
_ITEMS = 60
#: Rows of the table of many.
_MANY = 3_000
#: Combinations that raise in DuckDB are tried one by one; so many of a case.
_FAILING = 16
_MAX_SHOWN = 4
#: Constants beside a column: so many of all that there are, and all of so many that may be names of parts or of formats.
_CONSTANTS = 6
_MOST_WORDS = 24
#: DuckDB gives Arrow these in another type, or cannot; they come as text and are cast back.
AS_TEXT = ("HUGEINT", "UHUGEINT", "INTERVAL", "UUID", "TIME WITH TIME ZONE", "BIT", "JSON")


class Unsupported(Exception):
    """tqp does not have it."""


@dataclass
class Report:
    """What was tried and found; the differences as a signature and examples."""

    tried: int = 0
    unsupported: Counter[str] = field(default_factory=Counter)
    contradictory: int = 0
    differences: dict[str, list[str]] = field(default_factory=dict)

    def add(self, key: str, text: str) -> None:
        """One more difference."""
        self.differences.setdefault(key, []).append(text)


def literal(value: str | None, sql_type: str) -> str:
    """A value as SQL."""
    if value is None:
        return f"CAST(NULL AS {sql_type})"
    if sql_type.startswith("FLOAT["):
        parts = (f"CAST('{each}' AS FLOAT)" for each in value[1:-1].split(", "))
        return f"array_value({', '.join(parts)})"
    text = value.replace("'", "''")
    if "\x00" in text:
        return "(" + " || chr(0) || ".join(f"'{each}'" for each in text.split("\x00")) + ")"
    return f"CAST('{text}' AS {sql_type})"


class DuckDB:
    """The oracle."""

    def __init__(self) -> None:
        self.connection = duckdb.connect(config={"threads": 1, "memory_limit": "2GiB"})
        self.connection.execute("SET TimeZone = 'UTC'")

    def ask(self, sql: str) -> list[list[Answer]] | str:
        """Columns of answers, or an error."""
        try:
            self.connection.execute(sql)
            types = [str(each[1]) for each in self.connection.description or ()]
            table = self.connection.to_arrow_table()
            return answers(table, types)
        except (duckdb.InternalException, duckdb.FatalException) as error:
            self.__init__()  # type: ignore[misc]
            return f"{OWN_FAULT}{error}"
        except (duckdb.Error, RuntimeError, UnicodeError, ValueError) as error:
            return f"{type(error).__name__}: {str(error).splitlines()[0]}"


class Tqp:
    """tqp with a backend."""

    def __init__(self, backend: str) -> None:
        self.name = backend
        self.connection = tqp.connect(threads=1, backend=backend, batch_rows=1_000)

    def ask(self, sql: str) -> list[list[Answer]] | str:
        """Columns of answers, or an error. Raises Unsupported."""
        try:
            result = self.connection.sql(sql)
            return answers(result.to_arrow(), [str(each) for each in result.types])
        except tqp.UnsupportedError as error:
            raise Unsupported(error.message.splitlines()[0]) from error
        except tqp.Error as error:
            return f"{type(error).__name__}: {error.message.splitlines()[0]}"
        except Exception as error:  # noqa: BLE001 - a crash is what it answers
            return f"{CRASH}{type(error).__name__}: {str(error)[:200]}"


def answers(table: pa.Table, types: Sequence[str]) -> list[list[Answer]]:
    """The columns of a table as answers."""
    columns = zip(table.columns, types, strict=True)
    return [[Answer(value, name) for value in _plain(column)] for column, name in columns]


def each_of(
    ask: Callable[[str], list[list[Answer]] | str],
    query: Callable[[Sequence[int]], str],
    places: Sequence[int],
    across: bool,
) -> dict[int, Answer]:
    """The answer for each place: of all at once, or of halves where this raises.

    `across`: the query has a column for each place, else a row.
    """
    found: dict[int, Answer] = {}
    pending = [list(places)]
    while pending:
        some = pending.pop()
        if not some:
            continue
        try:
            columns = ask(query(some))
        except Unsupported:
            if len(some) > 1:
                pending += [some[len(some) // 2 :], some[: len(some) // 2]]
            continue
        if isinstance(columns, str):
            if len(some) == 1:
                found[some[0]] = Answer(error=columns)
            else:
                pending += [some[len(some) // 2 :], some[: len(some) // 2]]
            continue
        flat = [column[0] for column in columns] if across else columns[0]
        assert len(flat) == len(some), (len(flat), len(some))
        found.update(zip(some, flat, strict=True))
    return found


class Trial:
    """A case in both engines."""

    def __init__(self, case: Case, oracle: DuckDB, report: Report) -> None:
        self.case, self.oracle, self.report = case, oracle, report
        shown = oracle.ask(
            f"SELECT typeof({case.template.format(*(literal(None, each) for each in case.types))})"
        )
        as_text = not isinstance(shown, str) and shown[0][0].value in ("INTERVAL", "UHUGEINT")
        self.template = f"CAST({case.template} AS VARCHAR)" if as_text else case.template
        self.names = [chr(ord("a") + place) for place in range(len(case.types))]
        self._make_table()
        self.expected = self._expected()

    # ---- texts of queries ----

    def of_constants(self, row: Row) -> str:
        """The expression of constants."""
        return self.template.format(*map(literal, row, self.case.types))

    def constants(self, places: Sequence[int]) -> str:
        """A query of constants."""
        items = (f"{self.of_constants(self.case.rows[place])} AS c{place}" for place in places)
        return f"SELECT {', '.join(items)}"

    def one_row(self, places: Sequence[int]) -> str:
        """A query over one row with columns for each place."""
        items, values, names = [], [], []
        for place in places:
            own = [f"{name}{place}" for name in self.names]
            items.append(f"{self.template.format(*own)} AS c{place}")
            values += map(literal, self.case.rows[place], self.case.types)
            names += own
        return f"SELECT {', '.join(items)} FROM (VALUES ({', '.join(values)})) t({', '.join(names)})"

    def _make_table(self) -> None:
        names, types = self.names, self.case.types
        columns = ", ".join(f"{name} {each}" for name, each in zip(names, types, strict=True))
        rows = (
            f"({place}, {', '.join(map(literal, row, types))})" for place, row in enumerate(self.case.rows)
        )
        self.oracle.connection.execute(f"CREATE OR REPLACE TABLE t (id BIGINT, {columns})")
        self.oracle.connection.execute(f"INSERT INTO t VALUES {', '.join(rows)}")
        stored = (
            f"CAST({n} AS VARCHAR) AS {n}" if e in AS_TEXT else n for n, e in zip(names, types, strict=True)
        )
        self.arrow = arrow_of(
            self.oracle.connection.sql(f"SELECT id, {', '.join(stored)} FROM t ORDER BY id")
        )

    def _expected(self) -> dict[int, Answer]:
        expression = self.template.format(*self.names)
        places = list(range(len(self.case.rows)))
        safe = self.oracle.ask(f"SELECT TRY({expression}) FROM t ORDER BY id")
        self.takes_columns = not isinstance(safe, str)
        if isinstance(safe, str):
            return each_of(self.oracle.ask, self.constants, places, across=True)
        found = dict(enumerate(safe[0]))
        unclear = [place for place in places if found[place].value is None]

        def of_rows(some: Sequence[int]) -> str:
            return f"SELECT {expression} FROM t WHERE id IN ({', '.join(map(str, some))}) ORDER BY id"

        return {**found, **each_of(self.oracle.ask, of_rows, unclear, across=False)}

    # ---- tqp ----

    def run(self, engines: Collection[Tqp]) -> None:
        """Every way to evaluate it."""
        self.report.tried += len(self.case.rows)
        fails = {
            place: each.error is not None or is_before_infinity(each) for place, each in self.expected.items()
        }
        good = [place for place, failed in fails.items() if not failed]
        bad = [place for place, failed in fails.items() if failed]
        random = Random(str(self.case))
        bad = random.sample(bad, _FAILING) if len(bad) > _FAILING else bad
        for number, engine in enumerate(engines):
            # constants are folded before there is a backend: each form and row has one
            for form, share in ((self.constants, number), (self.one_row, 1 - number)):
                some = good[share :: len(engines)]
                for start in range(0, len(some), _ITEMS):
                    part = some[start : start + _ITEMS]
                    self._compare(engine, each_of(engine.ask, form, part, across=True), form)
                for place in bad[share :: len(engines)]:
                    self._compare(engine, each_of(engine.ask, form, [place], across=True), form)
            steps = [partial(self._many, engine, good, random)]
            if len(self.case.types) > 1:
                for fixed in (range(1, len(self.case.types)), [0]):
                    steps.append(partial(self._with_constants, engine, good, fixed, number))
            for step in steps:
                try:
                    step()
                except Unsupported as error:
                    self.report.unsupported[f"{self.case}: {error}"] += 1

    def _compare(
        self,
        engine: Tqp,
        found: dict[int, Answer],
        form: Callable[[Sequence[int]], str] | None,
        how: str = "",
    ) -> None:
        for place, mine in found.items():
            if self._is_same(mine, place):
                continue
            sql = form([place]) if form else ""
            if form:
                again = self.oracle.ask(sql)
                theirs = Answer(error=again) if isinstance(again, str) else again[0][0]
                if is_same(mine, theirs, self.case.name, self.case.rows[place]):
                    self.report.contradictory += 1
                    continue
            how = how or (form.__name__ if form else "")
            row = self.case.rows[place]
            self._found(engine, how, f"{row}: {mine} not {self.expected[place]}", mine, self.expected[place])

    def _is_same(self, mine: Answer, place: int) -> bool:
        return is_same(mine, self.expected[place], self.case.name, self.case.rows[place])

    def _found(self, engine: Tqp, how: str, text: str, mine: Answer, theirs: Answer) -> None:
        kind = "value"
        if mine.error and (mine.error.startswith(CRASH) or not theirs.error):
            kind = "crash" if mine.error.startswith(CRASH) else "raised"
        elif theirs.error and not mine.error:
            kind = "accepted"
        elif mine.sql_type != theirs.sql_type:
            kind = "type"
        self.report.add(f"{self.case} | {kind}", f"{engine.name} {how} {text}")

    def _source(self) -> str:
        casts = (
            f"CAST({name} AS {each}) AS {name}" if each in AS_TEXT else name
            for name, each in zip(self.names, self.case.types, strict=True)
        )
        return f"(SELECT id, {', '.join(casts)} FROM t) q" if set(self.case.types) & set(AS_TEXT) else "t"

    def _table_of(self, engine: Tqp, places: Sequence[int]) -> None:
        engine.connection.register("t", self.arrow.take(pa.array(places, pa.int64())))

    def _many(self, engine: Tqp, good: Sequence[int], random: Random) -> None:
        if not good or not self.takes_columns:
            return
        if engine.name == "host":  # the narrowest columns there are, and no NULL
            without = [place for place in good if None not in self.case.rows[place]]
            self._rows(engine, without, self.template.format(*self.names), "rows without NULL")
        places = random.choices(good, k=_MANY)
        self._rows(engine, places, self.template.format(*self.names), "many rows")

    def _rows(self, engine: Tqp, places: Sequence[int], expression: str, how: str) -> None:
        """`expression` over rows of the table, as whole as possible."""
        if not places:
            return
        self._table_of(engine, places)
        columns = engine.ask(f"SELECT {expression} AS c FROM {self._source()}")
        if not isinstance(columns, str):
            mine = dict(zip(places, columns[0], strict=True))
            self._compare(engine, mine, None, how)
            return
        text, some = columns, list(dict.fromkeys(places))
        while len(some) > 1:  # a row that raises, or the fewest together
            for half in (some[: len(some) // 2], some[len(some) // 2 :]):
                self._table_of(engine, half)
                columns = engine.ask(f"SELECT {expression} AS c FROM {self._source()}")
                if isinstance(columns, str):
                    text, some = columns, half
                    break
            else:
                break
        rows = [self.case.rows[place] for place in some[:3]]
        self._found(engine, how, f"{rows} {expression}: {text}", Answer(error=text), Answer())

    def _with_constants(self, engine: Tqp, good: Iterable[int], fixed: Sequence[int], share: int) -> None:
        """Some arguments as constants, the others as columns."""
        groups: dict[Row, list[int]] = {}
        for place in good:
            groups.setdefault(tuple(self.case.rows[place][each] for each in fixed), []).append(place)
        # Each is a query to plan, which takes most of the time. Every constant where it is a word of a few, else some.
        are_words = any(self.case.types[each] == "VARCHAR" for each in fixed) and len(groups) <= _MOST_WORDS
        own = list(groups.items())
        if not are_words and len(own) > _CONSTANTS:
            own = Random(f"{self.case} {fixed}").sample(own, _CONSTANTS)
        for constants, places in own[share::2]:
            arguments = list(self.names)
            for place, value in zip(fixed, constants, strict=True):
                arguments[place] = literal(value, self.case.types[place])
            expression = self.template.format(*arguments)
            sql = f"SELECT {expression} FROM t WHERE id IN ({', '.join(map(str, places))}) ORDER BY id"
            theirs = self.oracle.ask(sql)
            if isinstance(theirs, str):
                continue
            kept = dict(self.expected)
            self.expected.update(zip(places, theirs[0], strict=True))
            try:
                self._rows(
                    engine, places * (1 if len(places) > 30 else 2), expression, f"constants at {[*fixed]}"
                )
            finally:
                self.expected = kept


def main(arguments: list[str]) -> int:
    """Runs the cases and prints what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="cases of this name")
    parser.add_argument("--share", default="0/1", help="I/N: every Nth case, from the Ith on")
    options = parser.parse_args(arguments)
    index, of = map(int, options.share.split("/"))
    chosen = [each for each in every_case() if options.only in (None, each.name)][index::of]
    report = run(chosen)
    print(summary(report))
    return 1 if report.differences else 0


def every_case() -> Iterator[Case]:
    """Of functions, and of operators and casts."""
    yield from cases()
    yield from operator_cases()


def run(chosen: Sequence[Case]) -> Report:
    """Runs the cases."""
    report, oracle = Report(), DuckDB()
    engines = [Tqp("host"), Tqp("torch")]
    began = time.monotonic()
    for count, case in enumerate(chosen):
        before = len(report.differences)
        Trial(case, oracle, report).run(engines)
        for key in list(report.differences)[before:]:
            found = report.differences[key]
            print(f"[{time.monotonic() - began:.0f}s {count}/{len(chosen)}] {key} ({len(found)})", flush=True)
            for text in found[:_MAX_SHOWN]:
                print("    " + text[:500], flush=True)
    return report


def summary(report: Report) -> str:
    """The numbers."""
    found = sum(map(len, report.differences.values()))
    return (
        f"{report.tried} combinations, {found} differences in {len(report.differences)} classes, "
        f"{report.contradictory} where DuckDB contradicts itself, {len(report.unsupported)} cases unsupported"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
