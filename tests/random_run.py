"""`python -m tests.random_run [--count N] [--seed S]`: random queries through tqp and DuckDB, rows compared.

Query I of seed S is the same every time: `--seed S --only I` runs just that one and prints it. Settings (batch size,
threads, a rule switched off, the backend) are drawn per group of queries that share their tables.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import duckdb
import pyarrow as pa

import tqp
from tests.random_queries import RandomQuery, random_query
from tests.random_tables import random_tables
from tests.settings import fuse_everything, switchable_rules
from tqp.tpch.verify import difference

#: Queries that share tables and settings.
GROUP_SIZE = 10

#: Queries are left out whose answer is larger, or which join so much inside that DuckDB takes longer or tqp more memory:
#: one of them would take as long as a hundred others.
MAX_ROWS = 20_000
MAX_SECONDS = 0.3
MEMORY_LIMIT = "2GiB"


@dataclass
class Outcome:
    """What became of a run. `outcomes` counts: equal, both refused, DuckDB refused, unsupported, too large."""

    outcomes: Counter[str] = field(default_factory=Counter)
    unsupported: Counter[str] = field(default_factory=Counter)
    mismatches: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.outcomes.values()) + len(self.mismatches)


def run(seed: int, count: int, first: int = 0, seconds: float | None = None, fuse: str = "off") -> Outcome:
    """Runs queries `first` to `first + count` of `seed`, or as many of them as fit into `seconds`."""
    outcome = Outcome()
    deadline = None if seconds is None else time.monotonic() + seconds
    index = first
    while index < first + count and (deadline is None or time.monotonic() < deadline):
        group = index // GROUP_SIZE
        stop = min((group + 1) * GROUP_SIZE, first + count)
        with _group(seed, group, fuse) as (oracle, connection, settings):
            for number in range(index, stop):
                query = random_query(Random(f"query {seed} {number}"))
                problem = _compare(query, oracle, connection, outcome)
                if problem is not None:
                    outcome.mismatches.append(
                        f"{problem}\n{query.sql}\nwith {settings}; again: "
                        f"python -m tests.random_run --seed {seed} --only {number}"
                    )
        index = stop
    return outcome


@contextlib.contextmanager
def _group(
    seed: int, group: int, fuse: str
) -> Iterator[tuple[duckdb.DuckDBPyConnection, tqp.Connection, dict[str, Any]]]:
    """Both engines with the tables of a group, and tqp's settings."""
    random = Random(f"group {seed} {group}")
    tables = random_tables(random)
    settings = {**_settings(random), "fuse": fuse}
    with duckdb.connect() as oracle, tqp.connect(**settings) as connection:
        for name, table in tables.items():
            oracle.register(name, table)
            connection.register(name, table)
        yield oracle, connection, settings


def _settings(random: Random) -> dict[str, Any]:
    settings: dict[str, Any] = {"threads": random.choice((1, 2, 4)), "memory_limit": MEMORY_LIMIT}
    batch_rows = random.choice((None, None, 1, 3, 7))
    if batch_rows is not None:
        settings["batch_rows"] = batch_rows
    if random.random() < 0.4:
        settings["disabled_rules"] = (random.choice(switchable_rules()),)
    if random.random() < 0.4:
        settings["backend"] = "torch"
    return settings


def _compare(
    query: RandomQuery, oracle: duckdb.DuckDBPyConnection, connection: tqp.Connection, outcome: Outcome
) -> str | None:
    expected: pa.Table | duckdb.Error
    start = time.monotonic()
    try:
        expected = oracle.sql(query.sql).to_arrow_table()
    except duckdb.Error as error:
        expected = error
    is_long = isinstance(expected, pa.Table) and expected.num_rows > MAX_ROWS
    if is_long or time.monotonic() - start > MAX_SECONDS:
        outcome.outcomes["too large"] += 1
        return None
    try:
        actual = connection.sql(query.sql).to_arrow()
    except tqp.UnsupportedError as error:
        outcome.outcomes["unsupported"] += 1
        outcome.unsupported[error.message.splitlines()[0]] += 1
        return None
    except tqp.ResourceError:
        outcome.outcomes["too large"] += 1
        return None
    except tqp.Error as error:
        if isinstance(expected, duckdb.Error):
            outcome.outcomes["both refused"] += 1
            return None
        return f"tqp refuses: {type(error).__name__}: {error}"
    except Exception as error:  # noqa: BLE001 - a crash is a finding like any other, and the run goes on
        place = _innermost(error)
        return f"tqp crashes: {type(error).__name__}: {str(error)[:400]} ({place})"
    if isinstance(expected, duckdb.Error):
        # DuckDB may meet an overflow in rows that tqp has already dropped.
        outcome.outcomes["DuckDB refused"] += 1
        return None
    problem = difference(actual, expected, query.order_by)
    if problem is None:
        outcome.outcomes["equal"] += 1
        return None
    return f"answers differ: {problem}"


def _innermost(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"


def main(arguments: list[str]) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.random_run", description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=5000, help="how many queries (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=None, help="default: from the clock")
    parser.add_argument("--only", type=int, default=None, help="run one query of the seed and print it")
    parser.add_argument(
        "--fuse", action="store_true", help="with elementwise parts compiled, however small they are (slow)"
    )
    options = parser.parse_args(arguments)
    fuse = "off"
    if options.fuse:
        fuse_everything()
        fuse = "on"
    seed = int(time.time()) if options.seed is None else options.seed
    if options.only is not None:
        print(random_query(Random(f"query {seed} {options.only}")).sql)
        outcome = run(seed, 1, options.only, fuse=fuse)
    else:
        print(f"seed {seed}")
        outcome = Outcome()
        for first in range(0, options.count, 100):
            part = run(seed, min(100, options.count - first), first, fuse=fuse)
            outcome.outcomes += part.outcomes
            outcome.unsupported += part.unsupported
            outcome.mismatches += part.mismatches
            for mismatch in part.mismatches:
                print(f"\n{mismatch}", flush=True)
            if sys.stderr.isatty():
                print(f"\r{outcome.total} queries", end="", file=sys.stderr)
    print(f"\n{outcome.total} queries, {len(outcome.mismatches)} mismatches; {dict(outcome.outcomes)}")
    for message, number in outcome.unsupported.most_common():
        print(f"{number} x {message}")
    return 1 if outcome.mismatches else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
