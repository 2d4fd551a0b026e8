"""A bounded run of random queries against DuckDB; `make random` runs as many as one likes."""

from __future__ import annotations

import re
import time
from random import Random

import pytest

import tqp
from tests.random import comparison, engines
from tests.random.comparison import Engines, Verdict
from tests.random.engines import Rows
from tests.random.mutations import mutated
from tests.random.queries import RandomQuery, random_query
from tests.random.reduction import Case, judge, reduced
from tests.random.run import run
from tests.random.tables import RandomTable, TableColumn, random_tables
from tests.random.tokens import order_of, shape_of, text_of, tokens_of
from tests.random.trees import parsed, text_of_tree
from tests.random.values import FAMILIES

pytestmark = pytest.mark.filterwarnings("ignore:Arrow output")


@pytest.mark.parametrize("backend", ["host", "torch"])
@pytest.mark.parametrize("seed", [1, 2])
def test_random_queries(seed: int, backend: str) -> None:
    outcome = run(seed, range(6), fixed={"backend": backend}, reduce_seconds=0)
    assert outcome.total == 120
    assert outcome.outcomes["equal"] >= 0.3 * outcome.total, outcome.outcomes
    assert outcome.outcomes["unsupported"] <= 0.1 * outcome.total, outcome.unsupported
    assert not outcome.findings, "\n\n".join(each.text for each in outcome.findings)


TABLE = RandomTable(
    "t0",
    (TableColumn("k", "INTEGER", True), TableColumn("c0", "VARCHAR", True)),
    (("1", "a"), ("2", None), ("300", "it's")),
)


def test_a_difference_is_reduced_to_what_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def pretend(
        tables: dict[str, RandomTable], query: RandomQuery, settings: dict[str, object], is_mutated: bool
    ) -> Verdict:
        rows = tables["t0"].rows if "t0" in tables else ()
        bad = "abs" in query.sql and " t0" in query.sql and any(row[0] == "300" for row in rows)
        return Verdict("wrong", "values") if bad else Verdict("equal")

    monkeypatch.setattr("tests.random.reduction.judge", pretend)
    monkeypatch.setattr(
        "tests.random.reduction.Engines.compare",
        lambda engines, query, is_mutated: pretend(engines.tables, query, {}, is_mutated),
    )
    query = RandomQuery("SELECT k, abs(k + 1) AS o0 FROM t0 WHERE c0 IS NULL OR k > 0 ORDER BY o0")
    case = reduced(Case({"t0": TABLE}, query, {"threads": 4}, False, Verdict("wrong", "values")), 5)
    assert len(tokens_of(case.query.sql)) <= 5
    assert [row[0] for row in case.tables["t0"].rows] == ["300"]
    assert not case.settings


@pytest.mark.parametrize(
    ("sql", "outcome"),
    [
        ("SELECT k FROM t0 ORDER BY k", "equal"),
        ("SELECT k FROM", "both refuse"),
        ("SELECT bitstring_agg(k) FROM t0", "unsupported"),
        ("SELECT c0::INTEGER FROM t0", "both refuse"),
        ("SELECT concat(log2(-k)) FROM t0", "equal"),
        ("SELECT sum(x) FROM (SELECT c0::INTEGER AS x, k FROM t0 LIMIT 0)", "equal"),
        (
            "SELECT 'low'::ENUM('low') < ANY (SELECT x::ENUM('mid', 'low') FROM VALUES ('mid'), ('low') v(x)) FROM t0",
            "DuckDB's own fault",
        ),
    ],
)
def test_verdicts(sql: str, outcome: str) -> None:
    assert judge({"t0": TABLE}, RandomQuery(sql), {}, False).outcome == outcome


_EMPTY = RandomTable("t1", TABLE.columns, ())


@pytest.mark.parametrize(
    ("sql", "outcome"),
    [
        ("FROM t0 FULL JOIN t1 ON t0.c0 = t1.k", "equal"),
        ("FROM t0 RIGHT JOIN t1 ON t0.c0 = t1.k", "equal"),
        (
            "SELECT make_date(9999, 0, 0) FROM VALUES (1) r(v) WHERE v IN (v) INTERSECT SELECT c0 FROM t1",
            "equal",
        ),
        (
            "FROM (SELECT NULL WHERE NULL) CROSS JOIN t0 JOIN (FROM t0 WHERE k > 2) r ON t0.c0 = r.k",
            "equal",
        ),
        ("FROM t1 WHERE (FROM VALUES (1) WHERE t1.k > 1 AND 'x')", "equal"),
        ("SELECT arg_min(k, c0::INTEGER) FROM t0 WHERE k = 1 AND c0 IS NULL", "equal"),
        ("SELECT []::FLOAT[2] FROM t1", "intended"),
        ("SELECT strftime('%d', DATE '2000-01-01') FROM t0 GROUP BY ('%d', k)", "intended"),
        (
            "SELECT date_sub('day', TIMESTAMP '1969-09-15', '294247-01-10 04:00:54'::TIMESTAMP_S) FROM t0",
            "intended",
        ),
        ("SELECT NULL FROM (SELECT sum(DISTINCT c0::INTEGER) FROM t0)", "fails in one"),
        ("FROM t0 a JOIN t1 b ON NULL AND 1 = a.c0::INTEGER", "equal"),
        (
            (
                "WITH w AS (SELECT max(o) AS m FROM (SELECT NULL::INTEGER AS o FROM t0) GROUP BY o HAVING max(o) <> 'x')"
                " SELECT sum(c.k), b.m FROM w a, w b RIGHT JOIN t0 c ON c.c0 NOT IN (SELECT NULL) ANTI JOIN w d ON c.k = d.m GROUP BY b.m"
            ),
            "fails in one",
        ),
        (
            "SELECT coalesce(max(o) < 'x', TRUE) FROM (SELECT NULL::INTEGER AS o FROM t0) GROUP BY o",
            "fails in one",
        ),
        (
            "FROM t0 a JOIN (SELECT NULL::INTEGER AS o) b ON length(a.c0) // 0 IS NOT DISTINCT FROM o",
            "both refuse",
        ),
        ("FROM (t0 a JOIN t1 b ON 'x' > CASE WHEN a.k < 0 THEN 1 END)", "fails in one"),
        ("SELECT k FROM t0 WHERE c0::INTEGER = 1", "both refuse"),
        ("SELECT NULL FROM (SELECT k // 0 FROM t0 UNION ALL SELECT NULL)", "fails in one"),
        ("SELECT k FROM t0 WHERE (SELECT 0.5::DECIMAL(38, 38)) NOT IN (2, NULL)", "fails in one"),
        ("SELECT k FROM t0 WHERE 1 IN ('x', 1)", "fails in one"),
        ("SELECT (SELECT k FROM t0) FROM t1", "both refuse"),
        ("SELECT o IS NULL FROM (SELECT k + 9223372036854775807 AS o FROM t0)", "fails in one"),
        ("FROM t0 WHERE (NULL, 0) IN ((k // 0, NULL))", "fails in one"),
        ("FROM t0 WHERE k > 0 AND NOT (NULL, k) NOT IN ((5, -k << 1))", "fails in one"),
        ("SELECT NULL FROM VALUES (3834), (0.5::DECIMAL(38, 38))", "fails in one"),
        ("SELECT k FROM t0 WHERE (NULL, k // 0) = (1, 0)", "fails in one"),
        ("FROM t0 WHERE ('only', -k::UINTEGER) IN ((1, 1))", "fails in one"),
        ("SELECT (FALSE, - -(6::USMALLINT)) = (NULL, 0) FROM t0", "fails in one"),
        ("FROM t1 JOIN t0 b ON (NULL, b.k) IN ((b.k // 0, 0), NULL)", "fails in one"),
        (
            "FROM t1 WHERE (FROM (SELECT b.k FROM t0 a JOIN t0 b ON a.c0 = b.k::VARCHAR) WHERE t1.k AND k = (SELECT 'x'))",
            "equal",
        ),
        ("FROM t0 LEFT JOIN t1 ON 1 // 0 <> ANY (SELECT NULL)", "fails in one"),
        (
            "FROM (SELECT 'x' AS o) WHERE o IN (SELECT 'a' FROM (VALUES ('b')) r(v) WHERE v = o AND v IN (SELECT NULL WHERE o))",
            "equal",
        ),
        ("FROM t0 SEMI JOIN t1 ON t0.k << 99 <> ALL (SELECT t0.k)", "fails in one"),
        (
            "FROM t0 WHERE (NULL, 0) IN ((1 // 0, NULL)) AND (SELECT dayofyear(INTERVAL 1 DAY)) > 0",
            "not in DuckDB",
        ),
        ("SELECT coalesce(k BETWEEN NULL AND k // (k - k), FALSE) FROM t0", "both refuse"),
        ("SELECT coalesce(5, (SELECT - v FROM VALUES (5::UBIGINT) r(v)))", "fails in one"),
        ("FROM t0 WHERE k // 0 IN (SELECT 1 FROM (FROM t0 WHERE k < 0) r WHERE r.c0 = t0.c0)", "equal"),
        ("FROM t0 WHERE k // (k - k) IN (SELECT 1 FROM t0 r WHERE r.c0 || 'x' = t0.c0)", "equal"),
        ("FROM t0 a JOIN (FROM t0 JOIN t1 ON (SELECT a.k << 99)) ON a.k > 1", "equal"),
        ("SELECT CASE nullif(k, k) WHEN k // 0 THEN 1 END FROM t0", "fails in one"),
        ("FROM t1 LEFT JOIN t0 ON t0.k // (t0.k - t0.k) > (SELECT t0.k)", "equal"),
        ("SELECT (SELECT NULL FROM t0 WHERE c0::INTEGER IS NOT DISTINCT FROM b.k) FROM t1 b", "equal"),
        ("WITH w AS (SELECT c0::INTEGER FROM t0) SELECT NULL FROM t1, t0 JOIN w ON t1.k > 1", "fails in one"),
        ("SELECT max(make_date(9999, -2, -2)) FILTER (NULL) FROM t0", "fails in one"),
        (
            "FROM (SELECT (SELECT bool_and(v = 0.5::DECIMAL(38, 38)) FILTER (NULL) FROM VALUES (7.0) r(v)) AS b FROM t1) WHERE b",
            "fails in one",
        ),
        (
            (
                "FROM t0 a JOIN (SELECT b.k FROM t0 b JOIN (SELECT NULL AS o, 'x'::BLOB AS p FROM t0) ON repeat('a', 3) = o"
                " WHERE a.c0 || 'é' = p) ON TRUE"
            ),
            "fails in one",
        ),
        (
            "FROM t0 a, (FROM t1 WHERE (FROM VALUES (4.0), (0.5::DECIMAL(38, 37)) r(v) WHERE v < a.k))",
            "equal",
        ),
        (
            "SELECT sum(v::DECIMAL(38, 38)) FROM t0, VALUES ('-0.99999999999999999999999999999999999999'), ('0.9') r(v)",
            "intended",
        ),
        (
            (
                "FROM t0 a JOIN t0 b ON NULL, (SELECT bool_and(k > 0) FROM t0 HAVING (1 <> ALL (SELECT 2)) < 'x')"
                " RIGHT JOIN t1 ON b.k = t1.k"
            ),
            "equal",
        ),
        (
            "WITH w AS (SELECT DISTINCT o, c0 AS s FROM (SELECT length('a') AS o) JOIN t0 ON o = k + 5) FROM w WHERE s::INTEGER = o",
            "equal",
        ),
        (
            "SELECT CASE WHEN NULL THEN (VALUES ('1582-10-15'::TIMESTAMP_S), ('1970-01-01'::TIMESTAMP_NS)) ELSE o END FROM (SELECT c0 AS j, NULL AS o FROM t0 WHERE k = length(c0) + 1) JOIN t0 ON j = c0",
            "fails in one",
        ),
        (
            "FROM (SELECT NULL AS n FROM t0 WHERE k = length(c0) + 1) a ANTI JOIN VALUES ('x') b(s) ON coalesce(s, n)",
            "fails in one",
        ),
        (
            "FROM (SELECT k FROM t0 WHERE k = length(c0) + 1) a LEFT JOIN VALUES ('x') b(s) ON coalesce(s, k::VARCHAR)::INTEGER = 2",
            "fails in one",
        ),
        (
            "SELECT NULL FROM t1 LEFT JOIN (SELECT 1 AS o) ON NULL WHERE 5 // coalesce(o, 0) HAVING NULL IN (SELECT NULL)",
            "fails in one",
        ),
    ],
)
def test_what_raises_in_one_engine(sql: str, outcome: str) -> None:
    assert judge({"t0": TABLE, "t1": _EMPTY}, RandomQuery(sql), {}, False).outcome == outcome


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT o FROM (SELECT c0::INTEGER AS o FROM t0)", [(None,), (None,), (None,)]),
        ("SELECT o FROM (SELECT c0::TIME AS o FROM t0)", [(None,), (None,), (None,)]),
        ("SELECT k FROM t0 WHERE c0::INTEGER = 1", []),
        ("SELECT k FROM t0 WHERE c0::INTEGER + 1 > 1000000", []),
        ("SELECT k FROM t0 WHERE k > (SELECT k FROM t0)", [(300,)]),
        ("SELECT k FROM t0 WHERE c0::INTEGER = (SELECT 5)", []),
        ("SELECT k FROM t0 WHERE (SELECT 0.5::DECIMAL(38, 38)) IN (2, 3)", []),
        ("SELECT k FROM t0 WHERE k > 2 AND c0::INTEGER IS NOT NULL", []),
        ("SELECT k FROM t0 WHERE c0::INTEGER IS DISTINCT FROM 1", [(1,), (2,), (300,)]),
        ("SELECT sum(o) FROM (SELECT c0::INTEGER AS o FROM t0)", [(None,)]),
        ("SELECT k * k * k * k * k = 1 FROM t0", [(False,), (False,), (False,)]),
        ("SELECT k FROM t0 WHERE c0::INTEGER = 1 OR NOT c0::INTEGER = 2", [(1,), (300,)]),
        ("SELECT k FROM t0 WHERE c0::INTEGER = ANY (SELECT 1234)", []),
        ("SELECT k FROM t0 WHERE c0::INTEGER NOT IN (SELECT 1234)", [(1,), (300,)]),
        ("SELECT k FROM t0 WHERE 'x' < ALL (SELECT 1234)", []),
        ("SELECT k FROM t0 WHERE (1, c0::INTEGER) = (1, 1234)", []),
        ("SELECT k FROM t0 WHERE CASE WHEN k > 0 THEN c0::INTEGER ELSE 5 END = 1234", []),
        ("SELECT k FROM t0 WHERE coalesce(c0::INTEGER = 1234, FALSE)", []),
        ("SELECT a.k FROM t0 a LEFT JOIN t0 b ON a.c0::INTEGER = b.k", [(1,), (2,), (300,)]),
        ("SELECT 1 FROM t0 HAVING max(c0)::INTEGER = 5", []),
        ("SELECT max(c0)::INTEGER FROM t0", [(None,)]),
        ("SELECT k FROM t0 WHERE k > (SELECT max(c0) FROM t0)::INTEGER", []),
    ],
)
def test_an_error_of_what_is_read_is_missed(
    sql: str, rows: list[tuple[int | None]], monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = "HUGEINT" if "sum" in sql else "BOOLEAN" if "* k" in sql else "INTEGER"
    answer = Rows((sql.split()[1],), (kind,), rows)
    monkeypatch.setattr("tests.random.comparison.in_tqp", lambda *_: answer)
    assert judge({"t0": TABLE}, RandomQuery(sql), {}, False).outcome == "unnoticed"


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT k FROM t0 WHERE k > 1000 AND c0::INTEGER = 1",
        "SELECT k FROM t0 WHERE k = k OR c0::INTEGER = 1",
        "SELECT CASE WHEN k > 0 THEN 1 ELSE c0::INTEGER END FROM t0",
    ],
)
def test_an_error_of_what_is_shielded_is_wrong(sql: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "tests.random.comparison.in_tqp", lambda *_: tqp.ExecutionError("Could not convert string")
    )
    assert judge({"t0": TABLE, "t1": _EMPTY}, RandomQuery(sql), {}, False).outcome == "raised"


@pytest.mark.parametrize(
    ("sql", "sql_type", "answers"),
    [
        ("SELECT signbit(acos(v)) FROM VALUES (5.5) r(v)", "BOOLEAN", {False: "", True: ""}),
        (
            "SELECT 16777217::DOUBLE % round(array_distance([v, 1]::FLOAT[2], [0.5, 2]::FLOAT[2]), 3) FROM VALUES (16777218) r(v)",
            "DOUBLE",
            {1.0: "", 16777217.0: "", 5.0: "wrong"},
        ),
        (
            "SELECT sum(v) = 0.6e0 FROM VALUES (0.3e0), (0.2e0), (0.1e0) r(v)",
            "BOOLEAN",
            {False: "", True: ""},
        ),
    ],
)
def test_what_hinges_on_the_last_digit_or_the_sign_of_nan(
    sql: str, sql_type: str, answers: dict[object, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = []
    for value in answers:
        answer = Rows(("x",), (sql_type,), [(value,)])
        monkeypatch.setattr("tests.random.comparison.in_tqp", lambda *_, answer=answer: answer)
        outcomes.append(judge({}, RandomQuery(sql), {}, False).outcome)
    # which of them DuckDB gives depends on the machine
    assert sorted(outcomes) == sorted(["equal", "intended", *filter(None, answers.values())])


@pytest.mark.parametrize(
    ("text", "outcome"),
    [("3151863169384621.0", "equal"), ("3151863169394620.0", "wrong"), ("3151863169384620", "wrong")],
)
def test_the_last_digits_of_a_sum_that_is_text(
    text: str, outcome: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Rows(("x",), ("VARCHAR",), [(f"[{text}, 0.5]",)])
    monkeypatch.setattr("tests.random.comparison.in_tqp", lambda *_: rows)
    query = RandomQuery("SELECT [sum(v), 0.5]::VARCHAR AS x FROM VALUES (3151863169384620e0) r(v)")
    assert judge({}, query, {}, False).outcome == outcome


@pytest.mark.parametrize("answer", [False, True])
def test_a_sum_of_integers_hinges_on_nothing(answer: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows(("x",), ("BOOLEAN",), [(answer,)])
    monkeypatch.setattr("tests.random.comparison.in_tqp", lambda *_: rows)
    query = RandomQuery("SELECT sum(v) > 3 FROM VALUES (1), (2) r(v)")
    assert judge({}, query, {}, False).outcome == ("wrong" if answer else "equal")


@pytest.mark.parametrize(("keys", "outcome"), [("c0 IS NULL", "intended"), ("c0 IS NULL, k", "wrong")])
def test_windows_over_rows_that_tie(keys: str, outcome: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows(("k", "before"), ("INTEGER", "INTEGER"), [(1, 300), (300, None), (2, 1)])
    monkeypatch.setattr("tests.random.comparison.in_tqp", lambda *_: rows)
    query = RandomQuery(f"SELECT k, lag(k) OVER (ORDER BY {keys}) AS before FROM t0")
    assert judge({"t0": TABLE}, query, {}, False).outcome == outcome


def test_a_limit_takes_the_wrong_rows_of_medians(monkeypatch: pytest.MonkeyPatch) -> None:
    in_tqp = comparison.in_tqp

    def answer(connection: tqp.Connection, sql: str, parameters: object) -> Rows | BaseException:
        return in_tqp(connection, sql.replace("LIMIT 1", "LIMIT 1 OFFSET 1"), parameters)

    monkeypatch.setattr("tests.random.comparison.in_tqp", answer)
    query = RandomQuery("SELECT median(k) AS m FROM t0 GROUP BY k ORDER BY m LIMIT 1")
    assert judge({"t0": TABLE}, query, {}, False).outcome == "wrong"


@pytest.mark.parametrize(("limit", "is_slow"), [("SLOW_SECONDS", False), ("HANG_SECONDS", True)])
def test_slow_is_what_takes_the_processor_or_never_answers(
    limit: str, is_slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Waiting:
        def sql(self, text: str) -> object:
            time.sleep(0.5)
            return connection.sql(text)

    class Busy:
        def sql(self, text: str) -> object:
            while True:
                pass

    with tqp.connect() as connection:
        connection.sql("SELECT 1").to_arrow()
        monkeypatch.setattr(engines, limit, 0.2)
        assert isinstance(engines.in_tqp(Waiting(), "SELECT 1", None), engines.SlowError) is is_slow  # type: ignore[arg-type]
        assert isinstance(engines.in_tqp(Busy(), "SELECT 1", None), engines.SlowError)  # type: ignore[arg-type]


def test_a_constant_as_a_group_key_is_a_column_in_duckdb() -> None:
    keys = "SELECT extract(year FROM {0}) AS a FROM (VALUES (1)) v(x) GROUP BY {0}"
    with Engines(random_tables(Random("tables"))) as both:
        for key in ("TRY_CAST('10' AS DATE)", "(TRY_CAST('10' AS DATE))"):
            assert both.compare(RandomQuery(keys.format(key), {}, "?")).outcome == "intended"


def test_variants_keep_what_calls_say_of_nulls() -> None:
    sql = "SELECT LAG(x, 1 IGNORE NULLS) OVER (ORDER BY y), FIRST_VALUE(x RESPECT NULLS) OVER (ORDER BY y) FROM t"
    tree = parsed(sql)
    assert tree is not None and text_of_tree(tree) == sql


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT l[0], l[1:2], l[:], l[a][-1] FROM t",
        "SELECT COALESCE(*COLUMNS(*)), CONCAT_WS('-', *COLUMNS('a.*')) FROM t",
        "SELECT * FROM t UNPIVOT INCLUDE NULLS ((v, w) FOR n IN ((a, b), (c, d))) AS u JOIN z ON TRUE",
        "PIVOT (SELECT * FROM t) ON a, b IN (1, 2) USING SUM(x) AS y, COUNT(*) GROUP BY c, d",
        "SELECT * FROM t PIVOT (SUM(a) AS x, COUNT(*) FOR b IN (1, 2) c IN ('a', 'b') GROUP BY d, e) AS p",
    ],
)
def test_variants_keep_what_sqlglot_would_write_otherwise(sql: str) -> None:
    tree = parsed(sql)
    assert tree is not None and text_of_tree(tree) == sql


def test_a_parameter_is_no_group_key_though_it_has_the_value_of_one() -> None:
    sql = "SELECT encode($p0) AS o FROM t0 GROUP BY ROLLUP (encode('only'))"
    assert judge({"t0": TABLE}, RandomQuery(sql, {"p0": "only"}), {}, False).outcome == "equal"


def test_parameters_are_written_in_every_style() -> None:
    values = {"p0": 1, "p1": "a"}
    sql = "SELECT $p1 || $p0, $p1"
    assert RandomQuery(sql, values, "$name").rendered() == (sql, {"p1": "a", "p0": 1})
    assert RandomQuery(sql, values, "?").rendered() == ("SELECT ? || ?, ?", ["a", 1, "a"])
    assert RandomQuery(sql, values, "$1").rendered() == ("SELECT $1 || $2, $1", ["a", 1])


@pytest.mark.parametrize(
    "construct",
    [
        r"(LEFT|FULL|RIGHT) JOIN .* WHERE .*(coalesce|ifnull)\(\(.* (OR|AND) ",
        r"CASE WHEN .* THEN .* WHEN .* THEN .* WHEN ",
        *(
            rf"THEN CAST\(r\d+\.\w+ AS {each}\b"
            for each in ("UTINYINT", "UBIGINT", "HUGEINT", "DECIMAL", "DATE")
        ),
        *(
            rf"THEN CAST\(r\d+\.\w+ AS {each}\b"
            for each in ("TIME", "TIMESTAMP", "INTERVAL", "BOOLEAN", "DOUBLE")
        ),
        r"SELECT DISTINCT r\d+\.k\b",
        r"GROUP BY r\d+\.k\b",
        r"TRY_CAST\(r\d+\.s AS (HUGEINT|DECIMAL\((19|28|38))",
        r"LATERAL \(",
        r"FROM \w+ (AS )?r\d+, [^()]* JOIN ",
        r"FROM \(SELECT [^()]*\(SELECT ",
        r"WITH [^()]* AS \(SELECT [^()]*\$p0",
        r"lag\([^()]*\) OVER \(",
        r"OVER \([^()]* ROWS BETWEEN ",
        r"OVER win\b.* WINDOW win AS \(",
        r"SELECT (q\.)?\* (EXCLUDE|REPLACE) \(",
        r"NATURAL (LEFT |FULL )?JOIN",
        r"UNION (ALL )?BY NAME",
        r"OVER \([^()]* RANGE BETWEEN INTERVAL ",
    ],
)
def test_every_construct_is_made(construct: str, queries: list[str]) -> None:
    assert any(re.search(construct, each) for each in queries)


@pytest.fixture(scope="module")
def queries() -> list[str]:
    tables = [random_tables(Random(f"tables {index}")) for index in range(50)]
    return [random_query(Random(f"query {index}"), tables[index % 50]).sql for index in range(20_000)]


def test_every_kind_of_table_is_made() -> None:
    tables = [table for index in range(600) for table in random_tables(Random(f"tables {index}")).values()]
    assert {0, 1, 100, 20_000} <= {table.num_rows for table in tables}
    for few in (0, 1):
        types = {column.sql_type for table in tables if table.num_rows == few for column in table.columns}
        assert types >= {each for family in FAMILIES.values() for each in family}
    sequences = [
        [int(row[index]) for row in table.rows]
        for table in tables
        for index, column in enumerate(table.columns)
        if column.layout == "sequence" and column.sql_type == "BIGINT" and len(table.rows) > 10
    ]
    assert any(each == sorted(each) and len(set(each)) < len(each) and each[-1] > 2**16 for each in sequences)


def test_generation_depends_on_the_seed_alone() -> None:
    def texts() -> list[str]:
        tables = random_tables(Random("tables"))
        queries = [random_query(Random(f"query {index}"), tables).sql for index in range(20)]
        return [mutated(Random("mutation"), query, queries[0]) for query in queries]

    assert texts() == texts()


def test_tokens() -> None:
    sql = "SELECT a.b, 'it''s' || $p0 FROM t WHERE x >= 1.5e-3::DOUBLE"
    assert text_of(tokens_of(sql)) == sql
    assert order_of("SELECT (SELECT a ORDER BY b) FROM t ORDER BY o1 DESC NULLS LAST, o0 LIMIT 3") == (
        "o1",
        "o0",
    )
    assert order_of("SELECT 1") is None
    assert shape_of("column r1.c0 of t2 has 'x' and 17\nLINE 1: ...") == "column x of x has '..' and 0"
