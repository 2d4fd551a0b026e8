"""`python -m tests.tpch_matrix [--sf N]`: the 22 queries under every setting at one scale factor, answers checked.

The settings are those of `test_tpch.py`: 1, 2 and 4 threads, small batches, each rule off in turn. For scale factors too
large for the test suite. Exit status 1 if an answer differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

import tqp
from tests.test_tpch import SETTINGS
from tqp.data.sources.make_source import make_source
from tqp.measuring.compare import DuckDBRun, run_duckdb
from tqp.measuring.verify import difference
from tqp.tpch.data import DATA
from tqp.tpch.query import QUERY_NUMBERS, Query, load_query


def main() -> int:
    """Run the matrix; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sf", type=float, default=1.0, help="scale factor (default: %(default)s)")
    parser.add_argument("--data", type=Path, help="a folder with the tables (default: generated, and kept)")
    parser.add_argument("--only", help="settings whose name contains this")
    options = parser.parse_args()
    data = DATA.check(options.data) if options.data else DATA.ensure(options.sf, Console())
    queries = [load_query(number, options.sf) for number in QUERY_NUMBERS]
    with tempfile.TemporaryDirectory(prefix="tqp-matrix-") as answers:
        tables = DATA.paths(data)
        expected = run_duckdb(tables, queries, Path(answers), threads=2)
        return _run(data, queries, expected, options.only or "")


def _run(data: Path, queries: list[Query], expected: DuckDBRun, only: str) -> int:
    with tqp.connect() as connection:
        # one set of encoded columns for all settings
        sources = {
            name: make_source(name, str(path), connection.device) for name, path in DATA.paths(data).items()
        }
    failures = 0
    for name, setting in SETTINGS.items():
        if only not in name:
            continue
        begin, problems = time.perf_counter(), []
        with tqp.connect(**setting) as connection:
            for table, source in sources.items():
                connection.register(table, source)
            for query in queries:
                try:
                    answer = connection.sql(query.text).to_arrow()
                    problem = difference(answer, expected.answer(query.number), query.order_by, query.limit)
                except tqp.Error as error:
                    problem = f"{type(error).__name__}: {error}"
                if problem is not None:
                    problems.append(f"  query {query.number}: {problem}")
        failures += len(problems)
        seconds = time.perf_counter() - begin
        print(f"{name}: {len(queries) - len(problems)} of {len(queries)} equal, {seconds:.1f} s", flush=True)
        print(*problems, sep="\n" if problems else "", end="\n" if problems else "", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
