"""What the judge of random queries takes for DuckDB's own faults, and for differences that docs/semantics.md explains."""

from __future__ import annotations

from itertools import permutations

import pytest

from tests.random.differences import difference
from tests.random.engines import Rows
from tests.random.queries import RandomQuery
from tests.random.reduction import judge
from tests.random.variants import with_random_ties
from tests.test_random_queries import TABLE


@pytest.mark.parametrize(
    ("sql", "outcome"),
    [
        ("SELECT TRY_CAST(k AS TIME) IS DISTINCT FROM NULL FROM t0", "DuckDB's own fault"),
        ("SELECT count(*) FROM t0 GROUP BY round(nullif(k::DECIMAL(4, 1), 1), -5)", "DuckDB's own fault"),
        ("SELECT round_even(TRY_CAST(k AS DECIMAL(4, 4)), -1) FROM t0", "DuckDB's own fault"),
        ("SELECT median(999999999999999999::DECIMAL(18, 0)) FROM t0 WHERE k < 3", "intended"),
        ("SELECT concat(max(z), 'a') FROM VALUES (-0e0) r(z)", "equal"),
        ("SELECT concat('a', sqrt(-x), log10(-x), sin(x / 0), -sin(x / 0)) FROM VALUES (1e0) r(x)", "equal"),
        (
            "SELECT k, median(if(k < 3, 'infinity', '2000-01-01')::TIMESTAMP) m FROM t0, range(2) GROUP BY k ORDER BY m LIMIT 1",
            "intended",
        ),
        (
            "SELECT k FROM t0, (SELECT median(x) m FROM (VALUES ('7.1'::DECIMAL(38, 37)), ('6.1')) v(x)) WHERE m = 6.6",
            "intended",
        ),
        ("FROM (SELECT median(DATE '-infinity') AS m FROM range(2)) GROUP BY m", "intended"),
        ("SELECT m::TIME FROM (SELECT median(DATE 'infinity') AS m FROM range(2))", "intended"),
        ("SELECT year(m) FROM (SELECT median(DATE 'infinity') AS m FROM range(2))", "intended"),
        ("SELECT m::TIMESTAMP_NS FROM (SELECT median(DATE 'infinity') AS m FROM range(2))", "intended"),
        ("SELECT median(DATE 'infinity') + INTERVAL 1 DAY FROM range(2)", "intended"),
        ("SELECT extract(quarter FROM TRY_CAST(strftime(DATE '1971-12-01', '%A') AS DATE))", "intended"),
        (
            "SELECT '日本' AS o1, lag(1, extract(doy FROM TRY_CAST('日本' AS DATE))) OVER () GROUP BY o1",
            "intended",
        ),
        (
            "SELECT extract(minute FROM list_transform([DATE '1970-11-01'], lambda k: MAP {k: k})[1][NULL])",
            "intended",
        ),
        (
            "SELECT TIME '07:59:01.5' AS o0, [o0, printf('%5s|%d', repeat(['é'], 2)[0])]",
            "intended",
        ),
        ("SELECT json_extract_path(CAST(1 AS VARCHAR), nfc_normalize('\\')) FROM t0 WHERE false", "intended"),
        ("SELECT extract(minute FROM [DATE '1970-11-01', NULL][2])", "equal"),
        ("SELECT extract(isoyear FROM TRY_CAST(concat(NULL) AS DATE))", "intended"),
        ("DESCRIBE (SELECT extract(hour FROM flatten([[DATE '1970-01-28']])[0]))", "intended"),
        (
            "SELECT column_name, column_type, min FROM (SUMMARIZE SELECT extract(year FROM flatten([[DATE '1970-01-28']])[0]))",
            "intended",
        ),
        ("SELECT NULL FROM t0 GROUP BY 'ab' HAVING 1 || TRY_CAST('ab' AS ENUM('only')) < 1", "intended"),
        (
            "SELECT extract(hour FROM CASE WHEN starts_with('a', 'b') THEN TIMESTAMP '2001-01-01' END)",
            "intended",
        ),
        (
            "SELECT k | extract(doy FROM TRY_CAST(strftime(DATE '2000-01-01', '%A') AS TIMESTAMP_S)) FROM t0",
            "intended",
        ),
        (
            "SELECT MAP {1: CAST('08:00:00-01' AS TIME WITH TIME ZONE)} > MAP {1: CAST('09:00:00+00' AS TIME WITH TIME ZONE)} FROM t0",
            "equal",
        ),
        (
            "SELECT (SELECT v.x) FROM (SELECT TIMETZ '00:30:01+05' AS x) v GROUP BY (SELECT v.x)",
            "DuckDB's own fault",
        ),
        (
            "FROM (SELECT TIMETZ '07:30:00+05' AS c) WHERE MAP {1: timezone(INTERVAL 1 HOUR, c)} <= MAP {1: c}",
            "equal",
        ),
        ("SELECT (SELECT v.x) FROM (SELECT '0010'::BIT AS x) v GROUP BY (SELECT v.x)", "DuckDB's own fault"),
        ("SELECT MAP {1: x} < MAP {1: y} FROM (SELECT '0'::BIT AS x, '00'::BIT AS y FROM t0)", "equal"),
        (
            """SELECT json_transform(to_json(TRY_CAST(CAST(array_value(1, NULL) AS VARCHAR) AS INTERVAL)), '"DOUBLE"')""",
            "intended",
        ),
        (
            "SELECT '0' AS UBIGINT FROM (SELECT TIMETZ '07:59:59-00:30' AS x) WHERE '23:30:59-15:59:59' < ALL (SELECT x)",
            "DuckDB's own fault",
        ),
        (
            "SELECT [union_value(k := TIMETZ '07:30:00+15:59:59')] >= [union_value(k := TIMETZ '07:00:01')] FROM t0",
            "equal",
        ),
        (
            "SELECT union_value(k := '010'::BIT) BETWEEN union_value(k := '01'::BIT) AND union_value(k := '0100'::BIT) FROM t0",
            "equal",
        ),
        (
            "SELECT union_value(k := union_value(l := TIMETZ '08:00:00-01')) > union_value(k := union_value(l := TIMETZ '09:00:00+00')) FROM t0",
            "equal",
        ),
        ("SELECT 7::UHUGEINT - ~(k::UHUGEINT) FROM t0", "intended"),
        ("SELECT 300::UHUGEINT + ~(k::UHUGEINT) FROM t0", "both refuse"),
        ("SELECT k, c0, k AS z FROM t0 GROUP BY 1, ROLLUP (z, 2)", "equal"),
        (
            "SELECT CAST(NULL AS USMALLINT) AS o0, grouping(CAST(o0 AS USMALLINT)) FROM t0 GROUP BY 1",
            "intended",
        ),
        ("SELECT (SELECT k) AS k, c0 AS x FROM t0 GROUP BY k, c0", "intended"),
        ("SELECT list_has_all([INTERVAL '30 days'], [to_months(k // k)]) FROM t0", "intended"),
        ("SELECT [to_months(k // k), NULL] && [INTERVAL '30 days'] FROM t0", "intended"),
        ("SELECT list_intersect([INTERVAL '30 days'], [to_months(k // k), NULL]) FROM t0", "intended"),
        ("SELECT list_has_any([1, NULL], [k]) FROM t0", "equal"),
        ("SELECT list_distinct([k, 7, k + 1, 5])[2] FROM t0", "intended"),
        ("SELECT k FROM t0 ORDER BY 2 LIMIT (SELECT 4)", "intended"),
        ("SELECT k FROM t0 ORDER BY 2 LIMIT 4", "both refuse"),
        (
            "SELECT '', k, list_transform([bit_length('')], lambda e: {'e': e})[0].e FROM t0 GROUP BY 1, 2",
            "intended",
        ),
        (
            "SELECT NULL, 5, k, k FROM t0 GROUP BY 3, GROUPING SETS (4, 1) UNION SELECT 2, 5, k, k FROM t0 WHERE (NULL, 1) GROUP BY 4 HAVING NULL",
            "equal",
        ),
        ("FROM (SELECT NULL o) WHERE parse_filename(o) IN array_value(bar(1, 1, 1, -2))", "not judged"),
        (
            "SELECT regexp_full_match(format('{}|{}', k, make_date(2024, 2, - 1)), NULL) FROM t0",
            "both refuse",
        ),
        ("SELECT (SELECT k) AS k, c0 AS x FROM t0 GROUP BY c0", "both refuse"),
        ("SELECT k + 1, k + 1 FROM t0 GROUP BY GROUPING SETS ((1), (k + 1))", "equal"),
        ("SELECT k, c0 FROM t0 GROUP BY GROUPING SETS ((1), (2))", "equal"),
        (
            "FROM (VALUES ('apple')) v(s) WHERE s > ANY (SELECT x::ENUM('b', 'a') FROM (VALUES ('b'), ('a')) w(x))",
            "DuckDB's own fault",
        ),
        ("FROM VALUES (TRUE) r(v) GROUP BY CUBE (v, 1) HAVING v", "equal"),
        ("FROM t0 r(j) GROUP BY CUBE (j, c0, 2, 1)", "equal"),
        ("SELECT a.k, a.k, b.k FROM t0 a LEFT JOIN t0 b ON a.k < b.k GROUP BY CUBE (2, 1, 3)", "equal"),
        ("SELECT a.k, k, c0 FROM t0 a GROUP BY CUBE (2, 1, 3)", "equal"),
        ("SELECT 'q', c0 FROM t0 GROUP BY GROUPING SETS ((c0), (- - 2))", "equal"),
        ("SELECT r.a AS o2, r.b AS o3 FROM (SELECT 1 a, 2 b) r GROUP BY a, b, CUBE (o3)", "equal"),
        (
            "FROM (VALUES (-0.75e0), (-0.25), (6), (6), (-0.25), (-0.25), (6), (-0.75), (-0.25)) v(x) WHERE list_grade_up([x, x, 1])[1] = 1",
            "intended",
        ),
        ("SELECT k, fsum('inf'::DOUBLE) FROM t0, range(3) GROUP BY k", "intended"),
        (
            "SELECT date_part(CASE WHEN lower('A') <> 'a' THEN 'year' ELSE 'week' END, DATE '2024-01-01')",
            "unsupported",
        ),
        (
            "SELECT make_time(5, 1, 1) o, list_transform([CASE WHEN o <> o THEN 1 END], lambda e: {'e': e})[3].e",
            "unsupported",
        ),
        (
            "WITH RECURSIVE w AS (SELECT 0 o UNION ALL SELECT o + 1 FROM w, (FROM (VALUES (1)) a(x) FULL JOIN (VALUES (2), (3)) b(y) ON x = y LIMIT 2) z WHERE o < 2) FROM w",
            "DuckDB's own fault",
        ),
        ("SELECT rank() OVER (PARTITION BY (SELECT (SELECT 1 FROM t0 LIMIT 1))) FROM t0", "intended"),
        ("SELECT mode(3 ORDER BY k), mode(DATE '2000-01-01' ORDER BY k DESC) FROM t0", "intended"),
        ("SELECT mode('a' ORDER BY k) IS NULL FROM t0 WHERE k > 99", "intended"),
        ("SELECT x ILIKE 'a' ESCAPE 'ab' FROM (VALUES (NULL::VARCHAR)) v(x)", "intended"),
        ("SELECT not_ilike_escape(x, '', 'ab') FROM (VALUES (NULL::VARCHAR)) v(x)", "intended"),
        ("SELECT count(regexp_extract('a', 'a', NULL::INTEGER)) FROM t0", "intended"),
        (
            "SELECT k FROM t0 WHERE ('' < regexp_extract('a', 'a', NULL::INTEGER)) = TIMESTAMP '2000-01-01'",
            "intended",
        ),
        (
            "SELECT to_years(decade(x)) FROM (VALUES (TIMESTAMPTZ '0099-01-01 (BC) 00:00:00+00')) v(x)",
            "intended",
        ),
        (
            "SELECT date_trunc('decade', x) FROM (VALUES (TIMESTAMPTZ '0099-01-01 (BC) 00:00:00+00')) v(x)",
            "intended",
        ),
        ("SELECT age(x) FROM (VALUES (TIMESTAMPTZ 'infinity')) v(x)", "intended"),
        (
            "SELECT TRY_CAST(x AS TIME) IS DISTINCT FROM NULL FROM (SELECT CAST(chr(98 - k % 2) AS ENUM('a', 'b')) x FROM t0) ANTI JOIN (SELECT k o, - CAST(k % 9 AS UTINYINT) FROM t0) ON o < 0",
            "intended",
        ),
        (
            "SELECT quantile_disc(DISTINCT age(x), 0.5) FROM (VALUES (TIMESTAMPTZ 'infinity')) v(x)",
            "intended",
        ),
        (
            "SELECT date_diff('decade', '0001-01-01', x) FROM (VALUES (TIMESTAMPTZ '0044-03-15 (BC) 00:00:00+00')) v(x)",
            "intended",
        ),
        ("SELECT 1 FROM (VALUES ('a' LIKE 'a' ESCAPE 'é')) v(x)", "fails in one"),
        ("SELECT substring('a', 4294967296), left('a', 9223372036854775807) FROM t0", "intended"),
        ("SELECT CASE WHEN k > 0 THEN -(-170141183460469231731687303715884105728) END FROM t0", "intended"),
        ("SELECT time_bucket(INTERVAL 2147483647 MONTH, TIME '01:00:00')", "intended"),
        ("SELECT date_trunc('day', make_timestamp(-9223372036854775808))", "intended"),
        (
            "SELECT mad(x) FROM (VALUES ('294247-01-10 04:00:54'::TIMESTAMP_S), ('294247-01-10 04:00:54')) v(x)",
            "intended",
        ),
        ("SELECT mad(CAST('-999999999999999.999' AS DECIMAL(18, 3))) FROM range(2)", "intended"),
        ("SELECT quantile_cont(epoch_ms(9007199254740993), 0.5) FROM range(2)", "intended"),
        ("SELECT favg(1e308 ORDER BY k DESC) FROM t0, range(9)", "intended"),
        (
            "SELECT date_diff('isoyear', TIMESTAMPTZ '1972-04-15 00:59:59+00', TIMESTAMPTZ '290309-12-22 (BC) 00:00:00+00') FROM t0",
            "intended",
        ),
        ("SELECT strftime(TIMESTAMPTZ '2000-01-01 00:00:00+00', '%Z')", "equal"),
        ("SELECT [NULL], histogram(TIMESTAMPTZ '2000-01-01 00:00:00+00')", "equal"),
    ],
)
def test_what_duckdb_answers_otherwise(sql: str, outcome: str) -> None:
    assert judge({"t0": TABLE}, RandomQuery(sql), {}, False).outcome == outcome


def test_floats_that_lie_close_are_matched_with_those_that_are_equal_first() -> None:
    close = [(1.0 + step * 8e-10,) for step in range(5)]
    expected, *others = (Rows(("x",), ("DOUBLE",), [*rows]) for rows in permutations(close))
    assert all(difference("SELECT x FROM t", expected, actual, False) is None for actual in others)
    assert difference("SELECT x FROM t", expected, Rows(("x",), ("DOUBLE",), [(2.0,), *close[1:]]), False)


def test_texts_of_rows_without_an_order_are_tried_in_a_random_one() -> None:
    variant = with_random_ties(
        "SELECT string_agg(s, ' '), string_agg(s ORDER BY s), row_number() OVER (ORDER BY k) FROM t"
    )
    assert variant.lower().count("any_order(") == 2


def test_rows_whose_keys_are_nearly_equal_may_come_in_any_order() -> None:
    sql = "SELECT corr(x, x) AS o0, sum(y) AS o1 FROM t GROUP BY z ORDER BY o0, o1"
    expected = Rows(("o0", "o1"), ("DOUBLE", "BIGINT"), [(0.9999999999999997, "180"), (1.0, "120")])
    actual = Rows(("o0", "o1"), ("DOUBLE", "BIGINT"), [(1.0, "120"), (1.0000000000000002, "180")])
    assert difference(sql, expected, actual, False) is None
    other = Rows(("o0", "o1"), ("DOUBLE", "BIGINT"), [(1.0, "180"), (1.0, "120")])
    assert (
        difference(sql, Rows(("o0", "o1"), ("DOUBLE", "BIGINT"), [(1.0, "120"), (1.0, "180")]), other, False)
        is not None
    )
