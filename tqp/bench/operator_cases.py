"""The cases of `tqp bench operators`: one query for one thing that an operator must do well.

Where an answer would be large it is reduced by an aggregate, so that operators are measured and not the way out; sorts
keep their rows, which are what they are for. Their last key has no ties, so that the answer is one.
"""

from __future__ import annotations

from collections.abc import Iterator

from tqp.bench import operator_data as data
from tqp.bench.case import Case, Suites
from tqp.bench.nested_cases import json, nested


def _joins() -> Iterator[Case]:
    total = "SELECT count(*) AS n, sum(facts.value + other.weight) AS total FROM facts"
    outer = "SELECT count(*) AS n, count(other.weight) AS matched, sum(facts.value + coalesce(other.weight, 7)) AS total FROM facts"
    probe = "SELECT count(*) AS n, sum(value) AS total FROM facts WHERE"
    keys = {
        "dense key": ("facts.id = other.id", "facts.some_id = other.id"),
        "sparse key": ("facts.code = other.code", "facts.some_code = other.code"),
        "two keys": (
            "facts.first = other.first AND facts.second = other.second",
            "facts.some_first = other.first AND facts.some_second = other.second",
        ),
        "string key": ("facts.name = other.name", "facts.some_name = other.name"),
    }
    for name, (all_match, some_match) in keys.items():
        exists = f"EXISTS (SELECT * FROM dims AS other WHERE {some_match})"
        yield _join(f"{name}, inner", f"{total} JOIN dims AS other ON {all_match}")
        yield _join(f"{name}, left, 30% misses", f"{outer} LEFT JOIN dims AS other ON {some_match}")
        yield _join(f"{name}, semi, 30% misses", f"{probe} {exists}")
        yield _join(f"{name}, anti, 30% misses", f"{probe} NOT {exists}")
    yield _join("dense key, 30% misses", f"{total} JOIN dims AS other ON facts.some_id = other.id")
    yield _join("sparse key, 30% misses", f"{total} JOIN dims AS other ON facts.some_code = other.code")
    yield _join("dense key, 1:1", f"{total} JOIN twins AS other ON facts.serial = other.serial")
    yield _join("dense key, skewed", f"{total} JOIN dims AS other ON facts.skewed_id = other.id")
    yield _join("dense key, 1:n", f"{total} JOIN details AS other ON facts.id = other.id")
    yield _join("sparse key, 1:n", f"{total} JOIN details AS other ON facts.code = other.code")


def _join(name: str, text: str) -> Case:
    return Case(f"join: {name}", "facts", text)


_POINTS = "SELECT count(*) AS n, sum(p.value) AS total FROM points AS p"
_INSIDE = "p.x BETWEEN i.low AND i.high"


def _ranges() -> Iterator[Case]:
    """Joins by inequalities, and comparisons with all or any rows of a subquery."""
    weighted = "SELECT count(*) AS n, sum(p.value + i.weight) AS total FROM points AS p"
    yield _range("points in intervals", f"{weighted} JOIN intervals AS i ON {_INSIDE}")
    yield _range("points in intervals, some long", f"{weighted} JOIN long_intervals AS i ON {_INSIDE}")
    yield _range(
        "points in intervals, left",
        f"SELECT count(*) AS n, sum(p.value + coalesce(i.weight, 0)) AS total FROM points AS p LEFT JOIN intervals AS i ON {_INSIDE}",
    )
    yield _range(
        "overlapping intervals",
        "SELECT count(*) AS n, sum(a.weight * b.weight) AS total FROM intervals AS a JOIN intervals AS b ON a.low <= b.high AND b.low <= a.high",
    )
    yield _range(
        "window after each event",
        "SELECT count(*) AS n, sum(b.value) AS total FROM events AS a JOIN events AS b "
        "ON b.moment > a.moment AND b.moment <= a.moment + INTERVAL 1 minute",
    )
    yield _range(
        "two on one table",
        f"{weighted} JOIN shelves AS s ON p.x >= s.low AND p.x <= s.high JOIN intervals AS i ON p.x >= i.low AND p.x <= i.high",
    )
    yield _range(
        "points by shelf",
        "SELECT s.shelf, count(*) AS n, sum(p.value) AS total FROM shelves AS s JOIN points AS p "
        "ON p.x >= s.low AND p.x <= s.high GROUP BY s.shelf ORDER BY shelf",
    )
    yield _range(
        "one-sided, events before marks",
        "SELECT m.mark, count(*) AS n, sum(e.value) AS total FROM marks AS m JOIN events AS e "
        "ON e.moment <= m.mark GROUP BY m.mark ORDER BY mark",
    )
    for name, condition in (
        ("> ALL", "p.x > ALL (SELECT bound FROM limits WHERE bound % 2 = 0)"),
        ("= ANY", "p.x = ANY (SELECT bound FROM limits)"),
        ("<> ALL", "p.x <> ALL (SELECT bound FROM limits)"),
    ):
        yield Case(f"quantified: {name}", "points", f"{_POINTS} WHERE {condition}")


def _asof() -> Iterator[Case]:
    """The last of some events before each event, of all or of those with one key of 50."""
    for name, key, keys in (("no key", "", ""), ("50 keys", "value % 50 AS k, ", "e.k = q.k AND ")):
        events = f"(SELECT {key}moment FROM events) AS e"
        quotes = (
            f"(SELECT {key}moment, max(value) AS price FROM events WHERE value % 3 = 0 GROUP BY ALL) AS q"
        )
        text = f"SELECT count(*) AS n, sum(q.price) AS total FROM {events} ASOF JOIN {quotes} ON {keys}e.moment >= q.moment"
        yield Case(f"asof join: {name}", "events", text)


def _range(name: str, text: str) -> Case:
    return Case(f"range join: {name}", "points", text)


def _groups() -> Iterator[Case]:
    aggregates = "count(*) AS n, sum(amount) AS s, avg(amount) AS m, min(amount) AS a, max(amount) AS z"
    reduced = "count(*) AS n, sum(n) AS rows, sum(s) AS s, sum(m) AS m, sum(a) AS a, sum(z) AS z"
    keys = {
        "6 groups": "k6",
        "1 thousand": "k1000",
        "100 thousand": "k100000",
        "100 thousand, sparse key": "sparse100000",
        "2.5 million": "k2500000",
        "three keys, 1 thousand": "u, v, w",
        "three keys, 100 thousand": "u, v, k1000",
        "strings, 6 groups": "s6",
        "strings, 1 thousand": "s1000",
        "strings, 100 thousand": "s100000",
        "strings, 2.5 million": "s2500000",
    }
    for name, key in keys.items():
        text = f"SELECT {reduced} FROM (SELECT {key}, {aggregates} FROM events GROUP BY {key})"
        yield Case(f"group by: {name}", "events", text)
    sets = {
        "rollup of 3": "ROLLUP (u, v, w)",
        "rollup of 3, 2 million groups": "ROLLUP (u, k1000, k100000)",
        "cube of 3": "CUBE (u, v, k1000)",
        "cube of 4": "CUBE (u, v, w, k6)",
        "one key each": "GROUPING SETS (k1000, k100000, s1000)",
        "strings": "ROLLUP (s6, s1000)",
    }
    for name, key in sets.items():
        inner = f"SELECT grouping() AS g, {aggregates} FROM events GROUP BY {key}"
        yield Case(
            f"grouping sets: {name}", "events", f"SELECT g, {reduced} FROM ({inner}) GROUP BY g ORDER BY g"
        )
    inner = "SELECT k1000, u, count(DISTINCT item) AS d FROM events GROUP BY ROLLUP (u, k1000)"
    yield Case("grouping sets: count distinct", "events", f"SELECT count(*) AS n, sum(d) AS d FROM ({inner})")
    floats = (
        "SELECT k1000, sum(weight) AS s, avg(weight) AS m, min(weight) AS a, max(weight) AS z FROM events"
    )
    yield Case("group by: 1 thousand, doubles", "events", f"{floats} GROUP BY k1000 ORDER BY k1000")
    for name, key in {"6 groups": "k6", "1 thousand": "k1000", "100 thousand": "k100000"}.items():
        inner = f"SELECT {key}, count(DISTINCT item) AS d FROM events GROUP BY {key}"
        yield Case(f"count distinct: {name}", "events", f"SELECT count(*) AS n, sum(d) AS d FROM ({inner})")
    yield Case(
        "count distinct: no groups",
        "events",
        "SELECT count(DISTINCT k2500000) AS a, count(DISTINCT s1000) AS b FROM events",
    )
    distinct = {
        "1 thousand": "k1000",
        "2.5 million": "k2500000",
        "strings, 100 thousand": "s100000",
        "three columns": "u, v, k1000",
    }
    for name, key in distinct.items():
        text = f"SELECT count(*) AS n FROM (SELECT DISTINCT {key} FROM events)"
        yield Case(f"distinct: {name}", "events", text)


def _collected() -> Iterator[Case]:
    """Aggregates that need all rows of a group, of 1 thousand groups, of 100 thousand, and of all rows."""
    calls = {
        "quantiles": "quantile_cont(weight, 0.1) + quantile_cont(weight, 0.9)",
        "quantile_disc": "quantile_disc(amount, 0.75)",
        "mode": "mode(item) * 0",
        "mad": "mad(weight)",
        "arg_min": "arg_min(item, k2500000)",
        "arg_max of strings": "strlen(arg_max(s1000, k2500000))",
        "first in order": "first(item ORDER BY k2500000)",
        "string_agg": "strlen(string_agg(s6, ','))",
        "string_agg in order": "strlen(string_agg(s1000, ',' ORDER BY k2500000))",
        "entropy": "entropy(item)",
        "corr": "corr(weight, item)",
        "regression": "regr_slope(weight, item) + regr_intercept(weight, item) + regr_r2(weight, item)",
        "skewness and kurtosis": "skewness(weight) + kurtosis(weight)",
        "bit_xor and bit_or": "bit_xor(item) + bit_or(item)",
    }
    for name, call in calls.items():
        for groups, key in (("1 thousand", "k1000"), ("100 thousand", "k100000")):
            # of few values, digits of their powers cancel out
            having = " HAVING count(*) > 15" if "kurtosis" in call else ""
            inner = f"SELECT {key}, {call} AS v FROM events GROUP BY {key}{having}"
            text = f"SELECT count(v) AS n, sum(v)::DOUBLE AS total FROM ({inner})"
            yield Case(f"aggregate: {name}, {groups}", "events", text)
        yield Case(f"aggregate: {name}, no groups", "events", f"SELECT {call} AS v FROM events")


def _windows() -> Iterator[Case]:
    """Over partitions of about 20 rows at 2 million, or of 2,000."""
    ordered = "PARTITION BY k100000 ORDER BY amount"
    calls = {
        "rank": f"rank() OVER ({ordered})",
        "running sum": f"sum(amount) OVER ({ordered})",
        "sum of 21 rows": f"sum(amount) OVER ({ordered}, k2500000 ROWS BETWEEN 10 PRECEDING AND 10 FOLLOWING)",
        "share of the partition": "amount - avg(amount) OVER (PARTITION BY k1000)",
        "share of 100 thousand partitions": "amount - avg(amount) OVER (PARTITION BY k100000)",
        "share of all rows": "amount - avg(amount) OVER ()",
    }
    for name, call in calls.items():
        text = f"SELECT count(w) AS n, sum(w)::BIGINT AS total FROM (SELECT {call} AS w FROM events)"
        yield Case(f"window: {name}", "events", text)
    places = "ORDER BY amount, k2500000, weight"  # rows of two million have pairs of the same two
    running = f"PARTITION BY k1000 {places}"
    near = f"PARTITION BY k1000 {places} ROWS BETWEEN 10 PRECEDING AND 10 FOLLOWING"
    framed = {
        "running deviation": f"stddev(weight) OVER ({running})",
        "deviation of 21 rows": f"stddev(weight) OVER ({near})",
        "running correlation": f"corr(weight, item) OVER ({running})",
        "running median": f"median(weight) OVER ({running})",
        "median of 21 rows": f"median(weight) OVER ({near})",
        "median of 21 rows, one partition": f"median(weight) OVER ({places} ROWS 20 PRECEDING)",
        "running arg_max": f"arg_max(item, weight) OVER ({running})",
        "bit_or of 21 rows": f"bit_or(item) OVER ({near})",
        "distinct items of 21 rows": f"count(DISTINCT item) OVER ({near})",
        "list of 21 rows": f"list_sum(list(item) OVER ({near}))",
        "running text": f"length(string_agg(item, ',') OVER (PARTITION BY k100000 {places}))",
    }
    for name, call in framed.items():
        text = f"SELECT count(w) AS n, sum(w)::DOUBLE AS total FROM (SELECT {call} AS w FROM events)"
        yield Case(f"window: {name}", "events", text)
    for function, key in (("row_number", "k1000"), ("row_number", "k100000"), ("rank", "k1000")):
        text = f"""SELECT count(*) AS n, sum(amount) AS total FROM
 (SELECT amount FROM events QUALIFY {function}() OVER (PARTITION BY {key} ORDER BY amount) <= 3)"""
        yield Case(f"window: {function} up to 3 by {key}", "events", text)


def _sorts() -> Iterator[Case]:
    keys = {"integers": "i", "doubles": "x", "strings": "s", "three mixed keys": "a DESC, c, i"}
    for name, key in keys.items():
        columns = key.replace(" DESC", "")
        text = f"SELECT {columns}, serial FROM records ORDER BY {key}"
        yield Case(f"sort: {name}", "records", text)
        yield Case(f"top 100: {name}", "records", f"{text}\nLIMIT 100")


def _likes() -> Iterator[Case]:
    first, second = data.WORDS[7], data.WORDS[42]
    patterns = {
        "prefix": f"LIKE '{first}%'",
        "suffix": f"LIKE '%{first}'",
        "infix": f"LIKE '%{first}%'",
        "two words": f"LIKE '%{first}%{second}%'",
        "not two words": f"NOT LIKE '%{first}%{second}%'",
    }
    for name, pattern in patterns.items():
        text = f"SELECT count(*) AS n, sum(serial) AS total FROM texts WHERE text {pattern}"
        yield Case(f"like: {name}", "texts", text)


def _scalars() -> Iterator[Case]:
    filters = {
        "0.1%": "n < 1000",
        "10%": "n < 100000",
        "90%": "n < 900000",
        "10% of doubles": "x < 0.1",
        "three conditions": "n < 500000 AND x < 0.5 AND day < DATE '2019-01-01'",
    }
    for name, condition in filters.items():
        text = f"SELECT count(*) AS n, sum(price) AS p, sum(quantity) AS q, max(y) AS y FROM measures WHERE {condition}"
        yield Case(f"filter: {name}", "measures", text)
    yield Case(
        "arithmetic: decimals",
        "measures",
        """SELECT sum(price * (1 - discount)) AS a, sum(price * (1 - discount) * (1 + tax)) AS b,
 sum(price * quantity) AS c, sum((price + cost) * quantity) AS d, max(price - cost) AS e, min(price * discount) AS f
FROM measures""",
    )
    yield Case(
        "arithmetic: doubles",
        "measures",
        """SELECT sum(x * y) AS a, sum(x * x + y * y) AS b, sum(x / (1 + y)) AS c, sum(sqrt(x)) AS d,
 max(abs(x - y)) AS e, min((x + 1) * (y + 2) * 3) AS f, sum(exp(-x)) AS g
FROM measures""",
    )
    yield Case(
        "arithmetic: integers",
        "measures",
        """SELECT sum(n * quantity) AS a, sum(n % 97) AS b, max(n + quantity * 3) AS c, min(n - quantity) AS d,
 sum(n // 10) AS e
FROM measures""",
    )
    chain = "CASE WHEN n < 50000 THEN {} WHEN n < 200000 THEN {} WHEN n < 450000 THEN {} WHEN quantity < 25 THEN {} ELSE {} END"
    yield Case(
        "case: integers",
        "measures",
        "SELECT sum({}) AS a FROM measures".format(chain.format(1, "quantity", "quantity * 2", "n", 0)),
    )
    yield Case(
        "case: doubles",
        "measures",
        "SELECT sum({}) AS a FROM measures".format(
            chain.format("x", "y", "x + y", "x * 0.5::DOUBLE", "1 + y")
        ),
    )
    labels = chain.format("'lowest'", "'low'", "'middle'", "'high'", "'highest'")
    yield Case(
        "case: strings as groups",
        "measures",
        f"SELECT {labels} AS band, count(*) AS n FROM measures GROUP BY band ORDER BY band",
    )
    groups = {
        "year": "year(day)",
        "month and weekday": "month(day) * 10 + dayofweek(day)",
        "date_trunc month": "date_trunc('month', day)",
        "hour of timestamps": "hour(instant)",
        "date_trunc day of timestamps": "date_trunc('day', instant)",
    }
    for name, key in groups.items():
        text = f"SELECT {key} AS part, count(*) AS n FROM measures GROUP BY part ORDER BY part"
        yield Case(f"dates: {name}", "measures", text)
    yield Case(
        "dates: differences",
        "measures",
        "SELECT sum(date_diff('day', day, DATE '2024-06-30')) AS d, sum(date_diff('month', day, DATE '2024-06-30')) AS m"
        " FROM measures",
    )
    yield Case(
        "dates: adding intervals",
        "measures",
        "SELECT count(*) AS n FROM measures WHERE day + INTERVAL 1 MONTH < instant",
    )


_MADE = {
    "reverse": "reverse(word)",
    "reverse, other letters": "reverse(greek)",
    "lpad": "lpad(word, 20, '*')",
    "lpad, other letters": "lpad(greek, 24, '-+')",
    "rpad": "rpad(word, 20, '-+')",
    "translate": "translate(word, 'aeiou', '43')",
    "translate, other letters": "translate(greek, 'αεe', 'aε')",
    "trim": "trim(padded)",
    "trim of a set": "trim(padded, ' abcd')",
    "ltrim": "ltrim(padded)",
    "repeat": "repeat(word, 3)",
    "replace": "replace(word, 'ba', '--')",
    "replace, most rows": "replace(path, '/', ' > ')",
    "||": "word || '-' || label",
    "concat": "concat(word, ' of ', path, n)",
    "concat_ws": "concat_ws(', ', word, label, path)",
    "upper": "upper(word)",
    "upper, other letters": "upper(greek)",
    "lower, other letters": "lower(greek)",
    "left, other letters": "left(greek, 6)",
    "right": "right(word, 5)",
    "substring": "substring(word, 2, 7)",
    "substring, other letters": "substring(greek, 2, 7)",
    "split_part": "split_part(path, '/', 2)",
    "regexp_replace": "regexp_replace(path, '[0-9]+', '#')",
    "regexp_extract": "regexp_extract(path, '([a-z]+)/([0-9]+)', 2)",
    "chr": "chr((65 + n % 1000)::INTEGER)",
    "nested": "lpad(reverse(trim(padded)), 16, '.') || upper(left(word, 4))",
    "CASE": "CASE WHEN n < 500000 THEN word || '!' WHEN flag THEN label ELSE lpad(path, 8, ' ') END",
}
_PRINTED = {
    "day": "strftime(day, '%Y-%m-%d')",
    "day in words": "strftime(day, '%A, %d %B %Y')",
    "hour": "strftime(instant, '%Y-%m-%d %H')",
    "instant": "strftime(instant, '%d/%m/%y %H:%M:%S.%f')",
    "week": "strftime(instant, '%G-W%V-%u %j %p')",
    "dayname": "dayname(day) || monthname(day)",
}
_TO_TEXT = {
    "integers": "n::VARCHAR",
    "integers of 64 bits": "far::VARCHAR",
    "integers of 128 bits": "(far::HUGEINT * 1000000007)::VARCHAR",
    "decimals": "money::VARCHAR",
    "doubles": "x::VARCHAR",
    "doubles of two digits": "hundredths::VARCHAR",
    "floats": "f::VARCHAR",
    "booleans": "flag::VARCHAR",
    "days": "day::VARCHAR",
    "instants": "instant::VARCHAR",
    "times": "clock::VARCHAR",
    "intervals": "(instant - TIMESTAMP '2020-01-01')::VARCHAR",
}
_FROM_TEXT = {
    "integers": "far_text::BIGINT % 1000",
    "integers of 128 bits": "far_text::HUGEINT",
    "decimals": "money_text::DECIMAL(12, 2)",
    "doubles": "x_text::DOUBLE",
    "floats": "money_text::FLOAT",
    "booleans": "flag_text::BOOLEAN::INTEGER",
    "days": "day(day_text::DATE)",
    "instants": "epoch(instant_text::TIMESTAMP)",
    "instants by strptime": "epoch(strptime(instant_text, '%Y-%m-%d %H:%M:%S'))",
    "times": "epoch(clock_text::TIME)",
    "integers or not": "TRY_CAST(mixed_text AS INTEGER)",
    "intervals": "day((n::VARCHAR || ' days')::INTERVAL)",
}


def _texts() -> Iterator[Case]:
    """Strings made of each row, and casts from and to text."""
    made = "SELECT count(made) AS n, sum(strlen(made)) AS bytes, max(made) AS last FROM (SELECT {} AS made FROM written{})"
    few = " WHERE n % 50 = 7"
    read = "SELECT count(value) AS n, sum(value) AS total FROM (SELECT {} AS value FROM written)"
    for group, expressions in (("text", _MADE), ("print", _PRINTED), ("to text", _TO_TEXT)):
        for name, expression in expressions.items():
            yield Case(f"{group}: {name}", "written", made.format(expression, ""))
    for name, expression in (
        ("reverse", "reverse(word)"),
        ("label", "lpad(label, 20, '*')"),
        ("hour", _PRINTED["hour"]),
        ("doubles", _TO_TEXT["doubles"]),
    ):
        yield Case(f"text of 2% of the rows: {name}", "written", made.format(expression, few))
    yield Case("text: of 1 thousand labels", "written", made.format("lpad(reverse(label), 20, '*')", ""))
    for name, expression in _FROM_TEXT.items():
        yield Case(f"from text: {name}", "written", read.format(expression))


SUITES: Suites = (
    (data.join_tables, tuple(_joins())),
    (data.range_tables, (*_ranges(), *_asof())),
    (data.group_tables, (*_groups(), *_collected(), *_windows())),
    (data.sort_tables, tuple(_sorts())),
    (data.text_tables, tuple(_likes())),
    (data.scalar_tables, tuple(_scalars())),
    (data.written_tables, tuple(_texts())),
    (data.nested_tables, tuple(nested())),
    (data.json_tables, tuple(json())),
)
