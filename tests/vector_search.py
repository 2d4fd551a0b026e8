"""`python -m tests.vector_search [--rows N]`: exact search among vectors of 384 floats, against DuckDB.

For each measure the ten nearest rows: warm medians of runs that take turns, both engines with as many threads and their
data in memory, answers compared.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa

import tqp

SIZE = 384
MEASURES = {"array_cosine_similarity": "DESC", "array_inner_product": "DESC", "array_distance": "ASC"}

#: What a query gives: ids and their measures.
Rows = list[tuple[Any, ...]]


def main() -> int:
    """Prints a line for each measure; exit status 1 if an answer differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="vectors (default: %(default)s)")
    parser.add_argument("--runs", type=int, default=5, help="of each query (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="of each engine (default: %(default)s)")
    options = parser.parse_args()
    random = np.random.default_rng(0)
    vectors = random.standard_normal((options.rows, SIZE), dtype=np.float32)
    asked = random.standard_normal(SIZE, dtype=np.float32)
    with (
        tqp.connect(threads=options.threads) as con,
        duckdb.connect(config={"threads": options.threads}) as duck,
    ):
        con.register("items", {"id": np.arange(options.rows), "e": vectors})
        given = pa.FixedSizeListArray.from_arrays(pa.array(vectors.reshape(-1)), SIZE)
        duck.register("given", pa.table({"id": np.arange(options.rows), "e": given}))
        duck.execute("CREATE TABLE items AS FROM given")
        equal = [_compare(measure, con, duck, asked, options.runs) for measure in MEASURES]
    return 0 if all(equal) else 1


def _compare(
    measure: str, con: tqp.Connection, duck: duckdb.DuckDBPyConnection, asked: np.ndarray[Any, Any], runs: int
) -> bool:
    """Prints times and their ratio; True if the answers are equal."""
    sql = "SELECT id, {0}(e, $q{1}) AS near FROM items ORDER BY near {2} LIMIT 10"
    ours, theirs = (sql.format(measure, cast, MEASURES[measure]) for cast in ("", f"::FLOAT[{SIZE}]"))
    literal = asked.tolist()
    (found, wanted), (milliseconds, duckdbs) = _measured(
        lambda: con.sql(ours, params={"q": asked}).fetchall(),
        lambda: duck.execute(theirs, {"q": literal}).fetchall(),
        runs,
    )
    is_equal = [row[0] for row in found] == [row[0] for row in wanted] and np.allclose(
        [row[1] for row in found], [row[1] for row in wanted], rtol=1e-5
    )
    answer = "equal" if is_equal else f"different: {found} and {wanted}"
    ratio = duckdbs / milliseconds
    print(
        f"{measure}: {milliseconds:,.0f} ms, DuckDB {duckdbs:,.0f} ms, ratio {ratio:.2f}, answers {answer}",
        flush=True,
    )
    return is_equal


def _measured(
    ours: Callable[[], Rows], theirs: Callable[[], Rows], runs: int
) -> tuple[tuple[Rows, Rows], tuple[float, float]]:
    """The answers of first runs, and the median milliseconds of the others."""
    answers, times = (ours(), theirs()), ([], [])  # type: tuple[Rows, Rows], tuple[list[float], list[float]]
    for _ in range(runs):
        for run, measured in zip((ours, theirs), times, strict=True):
            start = time.perf_counter()
            run()
            measured.append((time.perf_counter() - start) * 1000)
    return answers, (statistics.median(times[0]), statistics.median(times[1]))


if __name__ == "__main__":
    sys.exit(main())
