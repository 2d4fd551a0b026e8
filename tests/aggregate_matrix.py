"""`python -m tests.aggregate_matrix [--only NAME] [--share I/N]`: every aggregate of edges of its types, held against DuckDB.

Groups of one, two, three and many values, with NULLs and of nothing else, are aggregated by group and each alone, plain, DISTINCT and
with FILTER.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from itertools import combinations_with_replacement
from random import Random

import pyarrow as pa

from tests.function_cases import ALL_TYPES, values_of
from tests.function_matrix import (
    AS_TEXT,
    DuckDB,
    Report,
    Tqp,
    Unsupported,
    each_of,
    literal,
    summary,
)
from tests.matrix_answers import Answer, is_same
from tests.oracle import arrow_of
from tests.random.medians import medians_through_doubles
from tqp.core.datatypes import DataType, TypeKind
from tqp.planner.functions import registry
from tqp.planner.functions.overloads import ANY

_MAX_PAIRS = 150
_ALONE = 50
_FORMS = ("{0}({1})", "{0}(DISTINCT {1})", "{0}({1}) FILTER (WHERE f)")
#: How those are called that take more than the value `v`; `w` is a number beside it, which is NULL in some rows.
_ARGUMENTS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("quantile_cont", "quantile_disc"), ("v, 0.3", "v, -0.9", "v, 0", "v, 0.5")),
    "string_agg": ("v::VARCHAR, '→' ORDER BY v::VARCHAR", "v::VARCHAR ORDER BY w, v::VARCHAR DESC"),
    **dict.fromkeys(("first", "last"), ("v", "w ORDER BY v, w", "v ORDER BY w DESC NULLS LAST, v")),
}
_OF_PAIRS = ("v, w", "w, v")
#: Approximate ones, whose values are not DuckDB's.
_APPROXIMATE = frozenset(("approx_count_distinct", "approx_quantile"))

Group = tuple[str | None, ...]


def groups_of(sql_type: str) -> list[Group]:
    """Values that are aggregated together."""
    values = (*values_of(sql_type), None)
    random = Random(sql_type)
    pairs: list[Group] = list(combinations_with_replacement(values, 2))
    triples: list[Group] = [(a, b, a) for a, b in pairs] + [(a, b, None) for a, b in pairs]
    some = [random.sample(each, min(len(each), _MAX_PAIRS)) for each in (pairs, triples)]
    large = [tuple(random.choices(values[:most], k=200)) for most in (2, 4, 6, len(values))]
    finite = [each for each in values if each is not None and "inf" not in each and "nan" not in each]
    large += [tuple(random.choices(finite[-most:], k=300)) for most in (1, 2, 3, len(finite))]
    return [*((each,) for each in values), *some[0], *some[1], *large]


def calls() -> Iterator[tuple[str, str]]:
    """Aggregates with types of their argument."""
    for name in registry.aggregate_names():
        if registry.main_spelling(name) != name:
            continue
        if name in _APPROXIMATE:
            continue
        for overload in registry.aggregate_overloads(name) or ():
            if not overload.parameters or (name == "string_agg" and len(overload.parameters) > 1):
                continue
            parameter = overload.parameters[0]
            if parameter == ANY:
                yield from ((name, each) for each in ALL_TYPES)
            elif isinstance(parameter, DataType) and parameter.kind is TypeKind.DECIMAL:
                yield from ((name, each) for each in ALL_TYPES if each.startswith("DECIMAL"))
            else:
                yield name, str(parameter)


#: Numbers beside the values.
_NUMBERS = ("NULL", "0", "1.5", "-2", "1000000.25")


def _has_one_mode(group: Group) -> bool:
    """Whether one value is more frequent than any other, so that it is the mode whatever the order."""
    counts = sorted(Counter(value for value in group if value is not None).values())
    return len(counts) < 2 or counts[-1] > counts[-2]


class Trial:
    """An aggregate of one type in both engines."""

    def __init__(self, name: str, sql_type: str, oracle: DuckDB, report: Report) -> None:
        self.name, self.sql_type, self.oracle, self.report = name, sql_type, oracle, report
        self.groups = groups_of(sql_type)
        if name == "mode":
            self.groups = [group for group in self.groups if _has_one_mode(group)]
        numbers = Random(name)
        rows = (
            f"({place}, {literal(value, sql_type)}, {position % 2 == 0}, {numbers.choice(_NUMBERS)})"
            for place, group in enumerate(self.groups)
            for position, value in enumerate(group)
        )
        oracle.connection.execute(f"CREATE OR REPLACE TABLE t (g BIGINT, v {sql_type}, f BOOLEAN, w DOUBLE)")
        oracle.connection.execute(f"INSERT INTO t VALUES {', '.join(rows)}")
        stored = "CAST(v AS VARCHAR) AS v" if sql_type in AS_TEXT else "v"
        self.arrow = arrow_of(oracle.connection.sql(f"SELECT g, {stored}, f, w FROM t"))
        self.source = f"(SELECT g, CAST(v AS {sql_type}) AS v, f, w FROM t) q" if sql_type in AS_TEXT else "t"

    def run(self, engines: Sequence[Tqp]) -> None:
        """All forms."""
        pairs = len((registry.aggregate_overloads(self.name) or ())[0].parameters) > 1
        arguments = _ARGUMENTS.get(self.name, _OF_PAIRS if pairs else ("v",))
        forms = (form.format(self.name, each) for form in _FORMS for each in arguments)
        for call in forms:
            if self.name == "mode" and "DISTINCT" in call or "DISTINCT" in call and "ORDER BY w" in call:
                continue
            shown = self.oracle.ask(f"SELECT typeof({call}) FROM t WHERE g < 0")
            is_interval = not isinstance(shown, str) and shown[0][0].value == "INTERVAL"
            item = f"CAST({call} AS VARCHAR)" if is_interval else call

            def by_group(places: Sequence[int], item: str = item, source: str = "t") -> str:
                return f"SELECT {item} AS c, g FROM {source} WHERE g IN ({', '.join(map(str, places))}) GROUP BY g ORDER BY g"

            def ours(places: Sequence[int], item: str = item) -> str:
                return by_group(places, item, self.source)

            def alone(places: Sequence[int], item: str = item) -> str:
                return f"SELECT {item} AS c FROM {self.source} WHERE g = {places[0]}"

            every = range(len(self.groups))
            expected = each_of(self.oracle.ask, by_group, every, across=False)
            good = [place for place in every if expected[place].error is None]
            bad = [place for place in every if expected[place].error is not None][:20]
            self.report.tried += len(self.groups)
            sample = Random(self.name).sample(good, min(_ALONE, len(good)))
            for engine in engines:
                engine.connection.register("t", self.arrow)
                try:
                    self._compare(
                        engine, f"{call} by group", each_of(engine.ask, ours, good, False), expected
                    )
                    self._compare(
                        engine, f"{call} by group", each_of(engine.ask, ours, bad[:6], False), expected
                    )
                    for place in (*sample, *bad):
                        found = each_of(engine.ask, alone, [place], False)
                        self._compare(engine, f"{call} alone", found, expected)
                    for place in (*sample[:20], *bad[:6]):  # a table of its own: narrow columns, known ranges
                        engine.connection.register(
                            "t", self.arrow.filter(pa.compute.equal(self.arrow["g"], place))
                        )
                        found = each_of(engine.ask, alone, [place], False)
                        self._compare(engine, f"{call} of a table", found, expected)
                    engine.connection.register("t", self.arrow)
                except Unsupported as error:
                    self.report.unsupported[f"{call} of {self.sql_type}: {error}"] += 1

    def _compare(self, engine: Tqp, how: str, found: dict[int, Answer], expected: dict[int, Answer]) -> None:
        for place, mine in found.items():
            if not is_same(mine, expected[place], self.name):
                group = self.groups[place]
                text = f"{engine.name} {how} {group[:6]}{len(group)}: {mine} not {expected[place]}"
                self.report.add(f"{self.name} {self.sql_type}", text)


def main(arguments: list[str]) -> int:
    """Runs the cases and prints what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", help="aggregates of this name")
    parser.add_argument("--share", default="0/1", help="I/N: every Nth call, from the Ith on")
    options = parser.parse_args(arguments)
    index, of = map(int, options.share.split("/"))
    chosen = [each for each in calls() if options.only in (None, each[0])][index::of]
    report, oracle = Report(), DuckDB()
    engines = [Tqp("host"), Tqp("torch")]
    for name, sql_type in chosen:
        # DuckDB's medians are not exact, but for DOUBLEs
        as_duckdb = name in ("median", "quantile_cont") and sql_type != "DOUBLE"
        with medians_through_doubles() if as_duckdb else nullcontext():
            Trial(name, sql_type, oracle, report).run(engines)
        found = report.differences.get(f"{name} {sql_type}", [])
        if found:
            print(f"{name} {sql_type} ({len(found)})", flush=True)
            for text in found[:4]:
                print("    " + text[:500], flush=True)
    print(summary(report))
    return 1 if report.differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
