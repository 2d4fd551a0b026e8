"""Constants that are computed with, as parameters of a program that has a range for each: answers and errors are DuckDB's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest

import tqp
from tests.oracle import duckdb_database
from tests.test_templates import Known
from tqp.compiled import KnownShape
from tqp.core.datatypes import DATE, TINYINT
from tqp.planner.algebra.expressions import Literal
from tqp.planner.operands import range_of

_INTEGERS = "1 2 5 7 0 -1 -3 100 127 128 255 256 300 32767 40000 2147483647 2147483648".split()
_DECIMALS = "1.5 0.5 0.05 0.07 2.0 9.99 99.99 0.0 100.00".split()
_FLOATS = "1e0 2.5e0 0e0 -1.5e0 1e308 'inf'::DOUBLE 'nan'::DOUBLE 1e-5".split()
_DAYS = "1 30 -1 0 365 100000".split()
_DATES = "2000-02-29 1970-01-01 1969-12-31 1994-01-02 9999-12-31".split()
_LABELS = ["", "a", "é", "it''s", "a longer one than twelve bytes"]

#: A form, in which all constants are of one kind, and these.
_FORMS: dict[str, Sequence[str]] = {
    "SELECT b + {} AS v FROM t": _INTEGERS,
    "SELECT i * {} AS v, i - {} AS w FROM t": _INTEGERS,
    "SELECT {} - n AS v FROM t WHERE n < {}": _INTEGERS,
    "SELECT i // {} AS v, i % {} AS w FROM t": _INTEGERS,
    "SELECT i / {} AS v, m / {} AS w FROM t": [*_INTEGERS, *_DECIMALS],
    "SELECT m * {} AS v, m + {} AS w, m % {} AS u FROM t": _DECIMALS,
    "SELECT sum(m * (1 - {})) AS v, sum(i + {}) AS w, avg(m * {}) AS u FROM t": _DECIMALS,
    "SELECT i // {} AS k, count(*) AS c FROM t GROUP BY k": _INTEGERS,
    "SELECT x * {} AS v, x / {} AS w, x + {} AS u FROM t": _FLOATS,
    "SELECT CASE WHEN i > 5 THEN {} ELSE b END AS v FROM t": _INTEGERS,
    "SELECT sum(CASE WHEN i > 5 THEN {} ELSE 0 END) AS v, greatest(i, {}) AS w FROM t GROUP BY i": _INTEGERS,
    "SELECT i FROM t WHERE i * {} > n + {}": _INTEGERS,
    "SELECT i FROM t WHERE abs(i - {}) < {}": _INTEGERS,
    "SELECT i FROM t WHERE m > {} * (SELECT avg(m) FROM t)": _DECIMALS,
    "SELECT a.i FROM t a JOIN t b ON a.i = b.i + {} AND a.n < b.i * {}": "1 2 5 300 -1 0".split(),
    "SELECT {} AS run, i FROM t WHERE i > 1": [*_INTEGERS, *_DECIMALS, *_FLOATS],
    "SELECT i FROM t ORDER BY abs(i - {}), i LIMIT 3": _INTEGERS,
    "SELECT i, v + 1 AS w FROM (SELECT i, {} AS v FROM t) WHERE v > 3": _INTEGERS,
    "SELECT d + {} AS v, d - {} AS w FROM t": _DAYS,
    "SELECT i FROM t WHERE d + {} < DATE '1995-01-01'": _DAYS,
    "SELECT DATE '{}' - d AS v, date_diff('month', d, DATE '{}') AS w FROM t": _DATES,
    "SELECT '{}' AS label, count(*) AS c FROM t GROUP BY label": _LABELS,
    "SELECT '{}' || s AS v, replace(s, 'a', '{}') AS w FROM t": _LABELS,
    "SELECT left(s, {}) AS v, repeat(s, {}) AS w FROM t": "1 2 3 0 -1".split(),
    "SELECT round(x, {}) AS v, substring(s, {}, 2) AS w FROM t": "1 2 3 0 -1".split(),
    "SELECT trunc(x, {}) AS v, round_even(x, {}) AS w, trunc(m, {}) AS u FROM t": "1 2 3 0 -1".split(),
    "SELECT i & {} AS v, i | {} AS w, xor(i, {}) AS u FROM t": _INTEGERS,
    "SELECT b << {} AS v, i >> {} AS w FROM t": "1 2 5 0 -1 70".split(),
    "SELECT log({}, x) AS v, power(x, {}) AS w, atan2({}, x) AS u FROM t": _FLOATS,
    "SELECT coalesce(n, {}) AS v, ifnull(b, {}) AS w, sum(coalesce(n, {})) AS u FROM t GROUP BY ALL": _INTEGERS,
    "SELECT coalesce(s, '{}') AS v, concat_ws('{}', s, 'x') AS w, concat(s, '{}') AS u FROM t": _LABELS,
    "SELECT trim(s, '{}') AS v, ltrim(s, '{}') AS w, rtrim(s, '{}') AS u FROM t": _LABELS,
    "SELECT translate(s, 'a', '{}') AS v, translate(s, '{}', 'b') AS w FROM t": _LABELS,
    "SELECT lpad(s, 5, '{}') AS v, split_part(s, '{}', 1) AS w FROM t": _LABELS[1:],
    "SELECT date_diff('{}', d, DATE '2000-01-01') AS v FROM t": "day month year week quarter".split(),
}


@pytest.fixture(params=["host", "torch"])
def known(request: pytest.FixtureRequest) -> Iterator[Known]:
    with (
        duckdb_database() as oracle,
        tqp.connect(threads=1, backend=request.param, batch_rows=4) as connection,
        patch.object(KnownShape, "is_worth_parameters", lambda *_: True),
    ):
        yield Known(connection, oracle)


@pytest.mark.parametrize("form", _FORMS)
def test_other_constants(form: str, known: Known) -> None:
    constants = [*_FORMS[form], *reversed(_FORMS[form])]
    for constant in constants:
        known.check(form.replace("{}", constant))
    for first, second in zip(constants, constants[2:], strict=False):
        known.check(form.replace("{}", first, 1).replace("{}", second))


def test_a_program_serves_a_range_of_what_varies() -> None:
    values = np.arange(1000)
    with tqp.connect(threads=1) as connection:
        connection.register("t", pa.table({"k": values}))
        #: With each: the programs made until then, beside that for the first text's own constants.
        for factor, more, programs in (
            (2, 5, 0),
            (3, 5, 1),
            (10, 5, 1),
            (200, 5, 2),
            (201, 5, 2),
            (4, 6, 3),
            (9, 7, 3),
        ):
            query = f"SELECT sum(k * {factor} + {more}) AS s, sum(k * 10) AS t FROM t"
            total = int((values * factor + more).sum())
            assert connection.sql(query).fetchall() == [(total, 10 * int(values.sum()))]
            shapes = connection._queries.compiled.shapes
            assert sum(len(shape.variants) for shape in shapes) == programs
            assert len(connection._queries.compiled.programs) == 1


def test_names_of_columns_are_those_of_the_text() -> None:
    with tqp.connect(threads=1) as connection:
        connection.register("t", {"k": [1, 2, 3]})
        for factor in (2, 3, 4, 5):
            result = connection.sql(f"SELECT k * {factor} FROM t WHERE k > 2")
            assert list(result.columns) == [f"(k * {factor})"] and result.fetchall() == [(3 * factor,)]
        assert len(connection._queries.compiled.programs) == 1


def test_values_of_parameters_are_operands_too() -> None:
    with tqp.connect(threads=1) as connection:
        connection.register("t", {"k": [1, 2, 3]})
        for factor in (2, 3, 4, 5):
            assert connection.sql("SELECT sum(k * ?) AS s FROM t", [factor]).fetchall() == [(6 * factor,)]
        assert len(connection._queries.compiled.programs) == 1


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        (Literal(1, TINYINT), (1, 15)),
        (Literal(-128, TINYINT), (-128, -16)),
        (Literal(256, DATE), (256, 4095)),
        (Literal(100, TINYINT), (16, 127)),
        (Literal("a", DATE), None),
    ],
)
def test_ranges(literal: Literal, expected: tuple[int, int] | None) -> None:
    assert range_of(literal) == expected
