"""`python -m tests.random.shapes [--pairs N] [--seed S]`: queries of one shape, by a program that they share and by their own.

The constants of a random query are drawn several times; each text is sent to a connection on which every shape has a program
with parameters, and to one on which every text is planned for itself. Both give the same rows, and those are DuckDB's.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any
from unittest.mock import patch

import tqp
from tests.random.comparison import Engines
from tests.random.differences import difference
from tests.random.engines import MEMORY_LIMIT, Rows, in_tqp
from tests.random.queries import Queries as RandomQueries
from tests.random.queries import RandomQuery
from tests.random.run import GROUP_SIZE
from tests.random.tables import RandomTable, random_tables
from tests.random.values import INTEGERS, random_value
from tqp.compiled import KnownShape
from tqp.core.errors import ExecutionError
from tqp.planner.templates import split
from tqp.queries import Queries
from tqp.runtime.program import TensorProgram

#: Texts of one shape.
_TEXTS = 6
#: Share of the shapes whose texts take some rows.
_LIMITED = 0.3
#: Rows of two tables that are joined, at most, where one of them may be any.
_MOST_PAIRS = 100_000
_OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
#: Expressions of a column that raise for no value, and the type of each.
_SIDES: dict[str, tuple[str, str]] = {
    "VARCHAR": ("lower({})", "VARCHAR"),
    "DATE": ("year({})", "BIGINT"),
    "DOUBLE": ("abs({})", "DOUBLE"),
    **{sql_type: ("{} % 7", sql_type) for sql_type in INTEGERS},
}

#: What an expression computes with a constant of its type.
_COMPUTED: dict[str, tuple[str, ...]] = {
    "VARCHAR": ("concat({0}, {1})", "replace({0}, {1}, 'x')", "{1} || {0}"),
    "DOUBLE": ("{0} * {1}", "{1} - {0}", "{0} / {1}", "greatest({0}, {1})"),
    **dict.fromkeys(
        INTEGERS,
        ("{0} + {1}", "{0} * {1}", "{1} - {0}", "{0} % {1}", "{0} // {1}", "{0} / {1}", "least({0}, {1})"),
    ),
}

_PATTERNS = (
    *(
        f"{{}} {negation}LIKE '{pattern}'"
        for pattern in ("{}%", "%{}", "%{}%", "{}%{}", "%{}%{}%", "{}", "_{}%")
        for negation in ("", "NOT ")
    ),
    "{} ILIKE '%{}%'",
    "starts_with({}, '{}')",
    "suffix({}, '{}')",
    "contains({}, '{}')",
)
_WORDS = ("", "a", "b", "A", "é", "ß", " ", "1", "ab", "x0")

#: A text, but for its constants, which it draws.
Template = Callable[[Random], str]


def random_shape(random: Random, tables: Mapping[str, RandomTable]) -> Template:
    """A query whose texts differ by the constants that columns are compared with."""
    first, second = random.choice(list(tables.values())), random.choice(list(tables.values()))
    if first.num_rows * second.num_rows > _MOST_PAIRS:
        second = min(tables.values(), key=lambda table: table.num_rows)
    a, b = _columns("a", first), _columns("b", second)
    where = _condition(random, a, 2)
    key = next(((x, y) for x in a for y in b if x[1] == y[1]), None)
    joined = f"{key[0][0]} = {key[1][0]}" if key is not None else "TRUE"
    both = _condition(random, [*a, *b], 2)
    other = _condition(random, b, 1)
    names = ", ".join(name for name, _ in a[:3])
    value, group = _computed(random, *random.choice(a)), _computed(random, *random.choice(a))
    name, _ = random.choice(a)
    count = _constant(random, "BIGINT", "small")
    negation = random.choice(("", "NOT"))
    shapes: tuple[Template, ...] = (
        lambda draw: f"SELECT {names}, {value(draw)} AS v FROM {first.name} a WHERE {where(draw)}",
        lambda draw: (
            f"SELECT {group(draw)} AS g, count(*), count({value(draw)}), min({value(draw)}) AS v "
            f"FROM {first.name} a GROUP BY g"
        ),
        lambda draw: (
            f"SELECT {names}, CASE WHEN {where(draw)} THEN {value(draw)} END AS v FROM {first.name} a"
        ),
        lambda draw: f"SELECT {names} FROM {first.name} a WHERE {value(draw)} >= {value(draw)}",
        lambda draw: (
            f"SELECT {names}, {value(draw)} FROM {first.name} a JOIN {second.name} b ON {joined} AND {both(draw)}"
        ),
        lambda draw: f"SELECT {names} FROM {first.name} a WHERE {where(draw)}",
        lambda draw: f"SELECT count(*), min({name}), count({name}) FROM {first.name} a WHERE {where(draw)}",
        lambda draw: (
            f"SELECT {name}, count(*) FROM {first.name} a WHERE {where(draw)} GROUP BY {name} "
            f"HAVING count(*) >= {count(draw)}"
        ),
        lambda draw: (
            f"SELECT {names} FROM {first.name} a JOIN {second.name} b ON {joined} WHERE {both(draw)}"
        ),
        lambda draw: (
            f"SELECT {names}, {b[0][0]} FROM {first.name} a LEFT JOIN {second.name} b ON {joined} AND {both(draw)}"
        ),
        lambda draw: (
            f"SELECT {names} FROM {first.name} a WHERE {where(draw)} AND {negation} EXISTS "
            f"(SELECT 1 FROM {second.name} b WHERE {joined} AND {other(draw)})"
        ),
        lambda draw: (
            f"SELECT {names} FROM (SELECT * FROM {first.name} a WHERE {where(draw)}) a "
            f"WHERE CASE WHEN {where(draw)} THEN {where(draw)} ELSE {name} IS NULL END"
        ),
        lambda draw: (
            f"SELECT {names} FROM {first.name} a WHERE {where(draw)} UNION ALL "
            f"SELECT {names} FROM {first.name} a WHERE {where(draw)}"
        ),
        lambda draw: (
            f"WITH a AS (SELECT * FROM {first.name} a WHERE {where(draw)}) SELECT {names} FROM a "
            f"WHERE {name} IN (SELECT {name} FROM a WHERE {where(draw)})"
        ),
    )
    shape = random.choice(shapes)
    if random.random() > _LIMITED:
        return shape
    return lambda draw: (
        f"{shape(draw)} ORDER BY ALL LIMIT {draw.choice((0, 1, 5, 63, 70, 999))} OFFSET {draw.randrange(9)}"
    )


def any_query(random: Random, tables: Mapping[str, RandomTable]) -> Template:
    """Any query, with other numbers and texts in the places of its own: some fail, and some are no queries."""
    text = split(RandomQueries(random, tables).query())
    constants = [constant for constant in text.constants.values() if isinstance(constant, str)]
    share = random.choice((0.2, 0.5, 1.0))

    def varied(draw: Random) -> str:
        others = [_another(draw, each, constants) if draw.random() < share else each for each in constants]
        return "".join(f"{word}{constant}" for word, constant in zip(text.words, (*others, ""), strict=True))

    return varied


def _another(draw: Random, constant: str, constants: Sequence[str]) -> str:
    """In place of a number or a text: one with other digits, or another of the query."""
    kind = constant[0] == "'"
    if draw.random() < 0.3:
        return draw.choice([each for each in constants if (each[0] == "'") == kind] or [constant])
    digits = [place for place, letter in enumerate(constant) if letter.isdecimal()]
    if digits:
        place = draw.choice(digits)
        return constant[:place] + draw.choice("0123456789") + constant[place + 1 :]
    return draw.choice(("''", "'a'", "'A%'", "'é'", "'%b%'", "'1'", "'2020-02-29'")) if kind else constant


def _columns(alias: str, table: RandomTable) -> list[tuple[str, str]]:
    return [(f"{alias}.{column.name}", column.sql_type) for column in table.columns]


def _condition(random: Random, columns: list[tuple[str, str]], depth: int) -> Template:
    kind = random.random()
    if depth == 0 or kind < 0.35:
        return _comparison(random, *random.choice(columns))
    if kind < 0.45:
        inner = _condition(random, columns, depth - 1)
        return lambda draw: f"NOT ({inner(draw)})"
    parts = [_condition(random, columns, depth - 1) for _ in range(random.choice((2, 2, 3)))]
    connective = random.choice((" AND ", " OR "))
    return lambda draw: "(" + connective.join(part(draw) for part in parts) + ")"


def _comparison(random: Random, name: str, sql_type: str) -> Template:
    side = name
    if sql_type in _SIDES and random.random() < 0.25:
        form, sql_type = _SIDES[sql_type]
        side = form.format(name)
    constant = _constant(random, sql_type, random.choice(("small", "small", "ends", "spread")))
    kind = random.random()
    if kind < 0.2:
        negation, length = random.choice(("", "NOT ")), random.choice((1, 2, 3, 8))
        return lambda draw: f"{side} {negation}IN ({', '.join(constant(draw) for _ in range(length))})"
    if kind < 0.5 and sql_type == "VARCHAR":
        form = random.choice(_PATTERNS)
        return lambda draw: form.format(side, draw.choice(_WORDS), draw.choice(_WORDS))
    operator = random.choice(_OPERATORS)
    if random.random() < 0.3:
        return lambda draw: f"{constant(draw)} {operator} {side}"
    return lambda draw: f"{side} {operator} {constant(draw)}"


def _computed(random: Random, name: str, sql_type: str) -> Template:
    """What is computed of the column and a constant; itself where nothing is."""
    forms = _COMPUTED.get(sql_type)
    if forms is None:
        return lambda draw: name
    form, constant = (
        random.choice(forms),
        _constant(random, sql_type, random.choice(("small", "small", "ends"))),
    )
    return lambda draw: form.format(name, constant(draw))


def _constant(random: Random, sql_type: str, profile: str) -> Template:
    is_bare = sql_type in INTEGERS and random.random() < 0.6

    def constant(draw: Random) -> str:
        text = random_value(draw, sql_type, profile)
        return text if is_bare else "CAST('" + text.replace("'", "''") + f"' AS {sql_type})"

    return constant


class Pairs:
    """What became of the texts: how many were answered by a program with parameters, and those whose answers differ.

    `known_by_words`: how many of them were neither parsed nor bound.
    """

    def __init__(self) -> None:
        self.known_by_words = 0
        self.outcomes: Counter[str] = Counter()
        self.differences: list[str] = []
        self._shared_runs = 0

    @property
    def num_compared(self) -> int:
        """Texts that a shared program has answered, and that were compared."""
        return self.outcomes.total() - self.outcomes["no parameters"] - self.outcomes["not compared"]

    def run(self, seed: int, group: int) -> None:
        """The queries of one group, which share tables and settings."""
        random = Random(f"shapes {seed} {group}")
        tables = random_tables(random)
        settings: dict[str, Any] = {
            "threads": 1,
            "memory_limit": MEMORY_LIMIT,
            "backend": random.choice(("host", "torch")),
        }
        with (
            Engines(tables, settings) as engines,
            tqp.connect(**settings) as own,
            patch.object(KnownShape, "is_worth_parameters", lambda *_: True),
            patch.object(own._queries, "_program_of_shape", lambda *_: None),
            patch.object(TensorProgram, "with_parameters", self._counted(TensorProgram.with_parameters)),
            patch.object(Queries, "_program_of_words", self._noted(Queries._program_of_words)),
        ):
            for name, table in engines.arrow.items():
                own.register(name, table)
            for _ in range(GROUP_SIZE):
                kind = random.choice((random_shape, random_shape, any_query))
                template = kind(random, tables)
                for _ in range(_TEXTS):
                    self._compare(engines, own, template(random), f"{seed} {group}", kind is any_query)

    def _noted(self, program_of_words):  # type: ignore[no-untyped-def]
        def noted(queries, *arguments):  # type: ignore[no-untyped-def]
            program = program_of_words(queries, *arguments)
            self.known_by_words += program is not None
            return program

        return noted

    def _counted(self, with_parameters):  # type: ignore[no-untyped-def]
        def counted(program, values, names):  # type: ignore[no-untyped-def]
            self._shared_runs += bool(program.placeholders) or values.rows is not None
            return with_parameters(program, values, names)

        return counted

    def _compare(
        self, engines: Engines, own: tqp.Connection, text: str, where: str, is_mutated: bool
    ) -> None:
        before = self._shared_runs
        verdict = engines.compare(RandomQuery(text), is_mutated)
        if self._shared_runs == before:
            self.outcomes["no parameters"] += 1
            return
        if verdict.is_difference:
            self.differences.append(
                f"{where}: {verdict.outcome} {verdict.signature} {verdict.detail}: {text}"
            )
        answer, expected = verdict.tqp, in_tqp(own, text, None)
        if answer is None:  # DuckDB cannot be asked
            self.outcomes["not compared"] += 1
        elif isinstance(answer, Rows) and isinstance(expected, Rows):
            problem = difference(text, expected, answer, False)
            self.outcomes["equal" if problem is None else "different"] += 1
            if problem is not None:
                self.differences.append(f"{where}: {problem}: {text}")
        elif type(answer) is type(expected):
            self.outcomes["fails"] += 1
        elif isinstance(expected, ExecutionError):  # what is computed first may be another thing
            self.outcomes["fails in one"] += 1
        else:
            self.outcomes["different"] += 1
            self.differences.append(f"{where}: {answer!r} for {expected!r}: {text}")


def main(arguments: list[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.random.shapes", description=(__doc__ or "").splitlines()[0]
    )
    parser.add_argument(
        "--pairs", type=int, default=20_000, help="texts with parameters (default: %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    pairs, group = Pairs(), 0
    while pairs.num_compared < options.pairs:
        pairs.run(options.seed, group)
        group += 1
        if sys.stderr.isatty():
            print(f"\r{dict(pairs.outcomes)}", end="", file=sys.stderr)
    print(
        f"{dict(pairs.outcomes)}, {pairs.known_by_words} known by their words", *pairs.differences, sep="\n"
    )
    return 1 if pairs.differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
