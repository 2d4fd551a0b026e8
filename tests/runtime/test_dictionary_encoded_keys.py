"""Group-bys of integers far apart, dictionary-encoded, and of strings: the same rows with the rule and without, and as DuckDB has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NoReturn, TypeVar

import numpy as np
import pyarrow as pa
import pytest

import tqp
import tqp.compiler as compiler_module
import tqp.queries as queries_module
from tests.oracle import assert_same_rows
from tqp.data.column import Column
from tqp.data.sources.base import Source
from tqp.planner.physical import aggregate_planning, dictionary_encoded_keys

Planned = TypeVar("Planned")

_ROWS = 6000
_RANDOM = np.random.default_rng(8)
#: 61 bytes in the mean.
_TEXTS = np.array(["", "é", *(f"text {number * 37} of {'long ' * (number % 20)}" for number in range(1200))])
_DOMAIN = _RANDOM.integers(-(2**63), 2**63 - 1, 200)


def _some(domain: np.ndarray, nulls: float = 0.0) -> pa.Array:
    return pa.array(_RANDOM.choice(domain, _ROWS), mask=_RANDOM.random(_ROWS) < nulls)


_TABLES = {
    "t": pa.table(
        {
            "k": _some(_DOMAIN),
            "kn": _some(_DOMAIN, 0.3),
            "day": _some(np.arange(0, 30_000, 700, np.int32)).cast(pa.date32()),
            "instant": _some(_DOMAIN[:50] >> 10, 0.1).cast(pa.timestamp("us")),
            "price": _some(np.arange(0, 10**8, 10**6 + 7), 0.1).cast(pa.decimal128(38, 3)),
            "huge": _some(_DOMAIN[:30].view(np.uint64), 0.1),
            "empty": pa.nulls(_ROWS, pa.int64()),
            "g": _some(np.arange(5), 0.1),
            "x": _some(np.arange(-1000, 1000), 0.1),
            "f": _RANDOM.normal(size=_ROWS).round(3),
            "text": _some(_TEXTS),
            "text_n": _some(_TEXTS, 0.3),
            "blob": _some(_TEXTS, 0.1).cast(pa.binary()),
            "short": pa.array([f"row {number % 2000}" for number in range(_ROWS)]),
            "unique": pa.array([f"row {number}" for number in range(_ROWS)]),
            "s": pa.array([f"value {number % 9}" for number in range(_ROWS)]),
        }
    ),
    "u": pa.table({"x": pa.array(range(0, 1000, 3)), "y": pa.array(range(334))}),
    "m": pa.table(
        {"mark": np.sort(_DOMAIN[:20]), "label": pa.array(_DOMAIN[:20] >> 1, mask=np.arange(20) % 5 == 0)}
    ),
    "none": pa.table({"k": pa.array([], pa.int64()), "x": pa.array([], pa.int64())}),
}
_ENCODED = (
    "SELECT k, count(*), sum(x), min(x), max(s) FROM t GROUP BY k",
    "SELECT kn, count(*), count(x), avg(x), min(f) FROM t GROUP BY kn",
    "SELECT kn, g, s, count(*), sum(x) FROM t GROUP BY ALL",
    "SELECT kn, count(DISTINCT x), count(DISTINCT s) FROM t GROUP BY kn",
    "SELECT DISTINCT kn FROM t",
    "SELECT instant, min(instant), count(*) FROM t GROUP BY instant",
    "SELECT price, sum(price), sum(x * g) FROM t GROUP BY price",
    "SELECT t.kn, count(y), sum(y) FROM t LEFT JOIN u ON t.x = u.x GROUP BY t.kn",
    "SELECT kn, g, sum(x * (1 - g) * (2 + g)), sum(x) FROM t GROUP BY kn, g",
    "SELECT mark, count(*), sum(x), max(mark) FROM m JOIN t ON t.k <= mark GROUP BY mark",
    "SELECT label, mark > 0, count(f) FROM m JOIN t ON t.kn > mark GROUP BY ALL",
    "SELECT kn, total FROM (SELECT kn, sum(x) AS total FROM t GROUP BY kn) WHERE kn > 0 OR kn IS NULL",
    # more pairs than there may be accumulators, whose codes are one word
    "SELECT kn, k, count(*) FROM t WHERE x > 0 GROUP BY ALL HAVING count(*) > 1",
    "SELECT kn, instant, x, s, count(*), sum(f), avg(g), min(text) FROM t GROUP BY ALL",
    "SELECT text, k, count(*) FROM t GROUP BY ALL",
    "SELECT DISTINCT price, x, kn FROM t",
    "SELECT k, instant, count(DISTINCT x), median(f), count(*) FROM t WHERE g IS NOT NULL GROUP BY ALL",
    "SELECT kn, g, k, x, sum(x) OVER (PARTITION BY kn) FROM (SELECT kn, k, g, x FROM t GROUP BY ALL)",
)
_OTHERS = (
    # of strings the column has a dictionary
    "SELECT text, count(*), sum(x), min(text) FROM t GROUP BY text",
    "SELECT text_n, length(text_n), count(*), sum(f > 0) FROM t WHERE x < 900 GROUP BY text_n",
    "SELECT text_n, g, min(k) FROM t GROUP BY ALL",
    "SELECT DISTINCT text_n FROM t",
    "SELECT blob, max(x) FROM t GROUP BY blob",
    "SELECT text_n, y, count(*) FROM t LEFT JOIN (SELECT x, y % 3 AS y FROM u) u ON t.x = u.x GROUP BY ALL",
    "SELECT upper(text) AS up, n FROM (SELECT text, count(*) AS n FROM t GROUP BY text) WHERE n > 4",
    "SELECT day, count(*) FROM t GROUP BY day",  # close together
    "SELECT empty, count(*) FROM t GROUP BY empty",
    "SELECT huge, count(*), sum(x) FROM t GROUP BY huge",  # more than 63 bits
    "SELECT upper(text), count(*) FROM t GROUP BY ALL",
    "SELECT short, count(*) FROM t GROUP BY short",
    'SELECT "unique", count(*) FROM t GROUP BY ALL',
    'SELECT "unique", kn, f, max(x) FROM t GROUP BY ALL',
    "SELECT k + 1, count(*) FROM t GROUP BY k + 1",
    "SELECT k, count(*) FROM t WHERE x = 3 GROUP BY k",  # few rows
    "SELECT mark, count(*) FROM (FROM m WHERE label > 0) m JOIN t ON t.k <= mark GROUP BY mark",  # not the table's rows
    "SELECT mark, count(k) FROM m LEFT JOIN t ON t.k <= mark AND t.k < label GROUP BY mark",
    "SELECT x * 1000000007, count(*) FROM t GROUP BY ALL",
    "SELECT k, count(*) FROM none GROUP BY k",
    "SELECT y, t.k, count(*) FROM u JOIN (SELECT DISTINCT k, x FROM t) t ON t.x = u.x GROUP BY ALL",
)


@pytest.mark.parametrize("query", [*_ENCODED, *_OTHERS])
@pytest.mark.parametrize("batch_rows", [None, 700])
@pytest.mark.parametrize("backend", ["host", "torch"])
def test_as_duckdb(query: str, batch_rows: int | None, backend: str) -> None:
    options: dict[str, object] = {"batch_rows": batch_rows, "backend": backend}
    for disabled in ((), (), ("dictionary_encoded_keys",)):  # dictionaries are there from the second query on
        assert_same_rows(_TABLES, f"FROM ({query}) ORDER BY ALL", disabled_rules=disabled, **options)


@pytest.mark.cpu
@pytest.mark.parametrize("query", [*_ENCODED, *_OTHERS])
def test_explain_says_which_keys_are_dictionary_encoded(query: str) -> None:
    for disabled in ((), ("dictionary_encoded_keys",)):
        with tqp.connect(disabled_rules=disabled) as connection:
            for name, table in _TABLES.items():
                connection.register(name, table.slice(0))
            assert "dictionary-encoded" not in connection.explain(query)  # which a second query asks for, too
            assert ("dictionary-encoded" in connection.explain(query)) == (query in _ENCODED and not disabled)


def test_rows_put_beside_the_table_have_no_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where several scans for the same few rows became one."""
    monkeypatch.setattr(dictionary_encoded_keys, "_TABLE_ROWS", 1e9)
    monkeypatch.setattr(aggregate_planning, "_ACCUMULATORS_PER_SORTED_ROW", 1e9)
    query = (
        "SELECT a.kn, count(*) FROM t a, u WHERE a.x = u.x AND u.y = 3"
        + " AND a.g < (SELECT max(g) FROM t b WHERE b.x = u.x) GROUP BY a.kn ORDER BY ALL"
    )
    with tqp.connect() as connection:
        for name, table in _TABLES.items():
            connection.register(name, table)
        connection.sql(query).fetchall()
        assert "dictionary-encoded" in connection.explain(query)
        assert "kn_number" not in connection.compile(query).code
    assert_same_rows(_TABLES, query)


@pytest.mark.cpu
def test_numbers_count_as_memory_of_the_table_and_are_made_of_wide_keys_only() -> None:
    with tqp.connect() as connection:
        table = _TABLES["t"].select(["k", "g", "x"])
        connection.register("t", table)
        query = "SELECT k, g, sum(x) FROM t GROUP BY k, g"
        connection.sql("SELECT sum(k), sum(g), sum(x) FROM t").fetchall()
        before = connection._snapshot().lookup("t").memory_bytes
        connection.sql(query).fetchall()
        assert connection._snapshot().lookup("t").memory_bytes == before
        connection.sql(query).fetchall()
        assert connection._snapshot().lookup("t").memory_bytes - before == 200 * 8 + _ROWS * 2


@pytest.mark.cpu
def test_planning_reads_no_values(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns are encoded before the plan is optimized, dictionaries made between two plannings."""
    steps: list[str] = []

    column = Source.column

    def reads(self: Source, name: str) -> Column:
        assert self.is_encoded(name), "a column is read"
        return column(self, name)

    def makes(self: Source, *_: object) -> NoReturn:
        raise AssertionError("a dictionary is made")

    def reading_nothing(plan: Callable[..., Planned]) -> Callable[..., Planned]:
        def planned(*arguments: object, **named: object) -> Planned:
            with monkeypatch.context() as patch:
                patch.setattr(Source, "column", reads)
                patch.setattr(Source, "value_dictionary", makes)
                steps.append(plan.__name__)
                return plan(*arguments, **named)

        return planned

    for module, step in (
        (queries_module, queries_module.bind),
        (compiler_module, compiler_module.optimize),
        (compiler_module, compiler_module.plan_physical),
    ):
        monkeypatch.setattr(module, step.__name__, reading_nothing(step))
    for query in _ENCODED:
        with tqp.connect() as connection:
            for name, table in _TABLES.items():
                connection.register(name, table.slice(0))
            connection.explain(query)
            assert steps[-2:] == ["optimize", "plan_physical"]
            assert "dictionary-encoded" in connection.explain(query)
            assert steps[-2:] == ["plan_physical"] * 2
            connection.explain(query)
            assert steps[-2:] == ["optimize", "plan_physical"]


@pytest.mark.cpu
def test_a_program_that_lacks_dictionaries_serves_once() -> None:
    query = "SELECT kn, k, sum(x) FROM t WHERE x > {} GROUP BY kn, k"
    with tqp.connect() as connection:
        connection.register("t", _TABLES["t"].slice(0))
        kept = connection._queries.compiled
        answers = []
        for number in range(4):
            answers.append(sorted(connection.sql(query.format(7)).fetchall(), key=str))
            assert len(kept.programs) == min(number, 1)
        assert answers == answers[:1] * 4
