"""now() and its kin: the time at which a query, or the transaction around it, began."""

from __future__ import annotations

import datetime

import tqp


def _now(con: tqp.Connection, query: str = "SELECT now()") -> datetime.datetime:
    [[value]] = con.sql(query).fetchall()
    assert isinstance(value, datetime.datetime)
    return value


def test_it_is_the_time_at_which_the_query_is_sent() -> None:
    with tqp.connect() as con:
        before = datetime.datetime.now(datetime.UTC)
        first, second = _now(con), _now(con)
        assert before <= first < second <= datetime.datetime.now(datetime.UTC)
        assert con.sql("SELECT today()").fetchall() == [(second.date(),)] or second.hour == 23


def test_a_prepared_statement_and_other_constants_have_their_own() -> None:
    with tqp.connect() as con:
        prepared = con.prepare("SELECT max(now()) FROM range(3) t(i) WHERE i < $1")
        times = [prepared.execute([limit]).fetchall()[0][0] for limit in (1, 2, 3, 1)]
        times += [
            _now(con, f"SELECT max(now()) FROM range(3) t(i) WHERE i < {limit}") for limit in (1, 2, 3, 1)
        ]
        assert times == sorted(set(times))


def test_a_transaction_has_one_time() -> None:
    with tqp.connect() as con:
        con.sql("BEGIN")
        first = _now(con)
        con.sql("CREATE TABLE t AS SELECT now() AS made")
        assert _now(con) == first == _now(con, "SELECT made FROM t")
        con.sql("COMMIT")
        later = _now(con)
        assert later > first
        con.sql("BEGIN")
        assert _now(con) > later
        con.sql("ROLLBACK")
        assert _now(con, "SELECT made FROM t") == first


def test_a_view_and_a_default_have_the_time_of_their_query() -> None:
    with tqp.connect() as con:
        con.sql("CREATE VIEW v AS SELECT now() AS n")
        con.sql("CREATE TABLE t (i INTEGER, made TIMESTAMPTZ DEFAULT now())")
        assert _now(con, "SELECT n FROM v") < _now(con, "SELECT n FROM v")
        for _ in range(2):
            con.sql("INSERT INTO t (i) VALUES (1), (2)")
        assert con.sql("SELECT count(*), count(DISTINCT made), max(made) < now() FROM t").fetchall() == [
            (4, 2, True)
        ]
        assert con.sql("SELECT count(*) FROM v WHERE n = now()").fetchall() == [(1,)]


def test_its_time_zone_is_utc() -> None:
    (kind, is_utc) = tqp.sql(
        "SELECT typeof(current_time), current_time::TIME = now()::TIMESTAMP::TIME"
    ).fetchall()[0]
    assert kind == "TIME WITH TIME ZONE" and is_utc
