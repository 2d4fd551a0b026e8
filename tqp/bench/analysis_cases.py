"""The cases of `tqp bench analyses`: what people ask of sensors, a shop, clicks and markets, each a whole query.

Operators one by one say how fast a kernel is; these say whether the planner finds the kernel. Answers are one: ties are broken.
"""

from __future__ import annotations

from collections.abc import Iterator

from tqp.bench import analysis_data as data
from tqp.bench.case import Case, Suites

_SENSORS = {
    "last value of each": "SELECT sensor, arg_max(temp, ts) AS last FROM readings GROUP BY sensor",
    "last row of each": "SELECT sensor, ts, temp FROM readings QUALIFY row_number() OVER (PARTITION BY sensor ORDER BY ts DESC) = 1",
    "last row by DISTINCT ON": "SELECT DISTINCT ON (sensor) sensor, ts, temp FROM readings ORDER BY sensor, ts DESC",
    "a day": "SELECT count(*) AS n, max(temp) AS top FROM readings WHERE ts::DATE = '2024-01-15'",
    "a week": "SELECT min(temp) AS low, max(pressure) AS top FROM readings WHERE ts >= '2024-02-01' AND ts < '2024-02-08'",
    "a month": "SELECT count(*) AS n, max(temp) AS top FROM readings WHERE date_trunc('month', ts) = '2024-02-01'",
    "months of a year": "SELECT month(ts) AS m, avg(temp) AS mean FROM readings WHERE year(ts) = 2024 GROUP BY m ORDER BY m",
    "five minutes of a week": "SELECT time_bucket(INTERVAL '5 minutes', ts) AS b, sensor, avg(temp) AS mean, max(pressure) AS top FROM readings WHERE ts >= '2024-02-01' AND ts < '2024-02-08' GROUP BY ALL",
    "days of plants": "SELECT date_trunc('day', ts) AS d, plant, avg(temp) AS mean, quantile_cont(pressure, 0.95) AS q FROM readings JOIN sensors ON sensor = id GROUP BY ALL",
    "extremes of days": "SELECT ts::DATE AS d, min(temp) AS low, max(temp) AS top, stddev(temp) AS s FROM readings GROUP BY d ORDER BY d",
    "hours of the day": "SELECT hour(ts) AS h, avg(temp) AS mean FROM readings GROUP BY h ORDER BY h",
    "changes": "SELECT sensor, ts, temp - lag(temp) OVER (PARTITION BY sensor ORDER BY ts) AS delta FROM readings QUALIFY delta > 5.5",
    "moving average of rows": "SELECT count(*) AS n FROM (SELECT avg(temp) OVER (PARTITION BY sensor ORDER BY ts ROWS 9 PRECEDING) AS m, temp FROM readings) WHERE temp > m + 0.9",
    "moving average of hours": "SELECT count(*) AS n FROM (SELECT avg(temp) OVER (PARTITION BY sensor ORDER BY ts RANGE INTERVAL '5 hours' PRECEDING) AS m, temp FROM readings) WHERE temp > m + 1",
    "shares of alarms": "SELECT sensor, count(*) FILTER (alarm) AS a, count(*) AS n, round(100.0 * a / n, 2) AS share FROM readings GROUP BY sensor ORDER BY share DESC, sensor LIMIT 20",
    "alarms of a plant": "SELECT s.tag, r.* FROM readings r JOIN sensors s ON r.sensor = s.id WHERE s.plant = 'plant-3' AND alarm ORDER BY ts DESC LIMIT 100",
    "missing or in range": "SELECT count(*) AS n, count(pressure) AS known FROM readings WHERE pressure IS NULL OR temp BETWEEN 22 AND 23",
    "correlation": "SELECT round(corr(temp, temp + pressure), 8) AS c, round(regr_slope(temp, temp + pressure), 8) AS slope FROM readings",
    "bins": "SELECT floor(temp * 2) / 2 AS b, count(*) AS n FROM readings GROUP BY b ORDER BY b",
}
_SHOP = {
    "countries": "SELECT country, count(*) AS n, sum(amount) AS total FROM orders JOIN users ON user_id = users.id GROUP BY country",
    "cohorts": "SELECT date_trunc('month', signup) AS cohort, date_diff('month', signup, placed) AS m, count(DISTINCT user_id) AS n FROM orders JOIN users u ON user_id = u.id WHERE placed >= signup GROUP BY ALL",
    "best of each category": "SELECT category, name, revenue FROM (SELECT p.category, p.name, p.id, sum(qty * price) AS revenue FROM items JOIN products p ON product = p.id GROUP BY ALL) QUALIFY row_number() OVER (PARTITION BY category ORDER BY revenue DESC, id) <= 3",
    "bought together": "SELECT a.product AS x, b.product AS y, count(*) AS n FROM items a JOIN items b ON a.order_id = b.order_id AND a.product < b.product GROUP BY ALL ORDER BY n DESC, x, y LIMIT 20",
    "domains of addresses": "SELECT split_part(email, '@', 2) AS domain, count(*) AS n FROM users GROUP BY domain",
    "rollup": "SELECT channel, status, count(*) AS n, avg(amount) AS mean, median(amount) AS middle FROM orders GROUP BY ROLLUP (channel, status)",
    "months with running totals": "SELECT strftime(placed, '%Y-%m') AS m, sum(amount) AS s, sum(sum(amount)) OVER (ORDER BY strftime(placed, '%Y-%m')) AS so_far FROM orders GROUP BY m",
    "days with a moving average": "WITH daily AS (SELECT placed::DATE AS d, sum(amount) AS s FROM orders GROUP BY d) SELECT d, s, avg(s) OVER (ORDER BY d ROWS 6 PRECEDING) AS mean FROM daily ORDER BY d",
    "every day": "SELECT d, count(o.id) AS n FROM (SELECT unnest(generate_series(DATE '2023-01-01', DATE '2023-12-31', INTERVAL 1 DAY))::DATE AS d) LEFT JOIN orders o ON o.placed::DATE = d GROUP BY d",
    "users without returns": "SELECT count(*) AS n FROM users u WHERE NOT EXISTS (SELECT 1 FROM orders o WHERE o.user_id = u.id AND o.status = 'returned')",
    "users without orders": "SELECT u.id, u.email FROM users u LEFT JOIN orders o ON o.user_id = u.id WHERE o.id IS NULL",
    "above the own average": "SELECT count(*) AS n FROM orders o WHERE amount > (SELECT avg(amount) FROM orders x WHERE x.user_id = o.user_id)",
    "three tables": "SELECT o.status, p.size, sum(i.qty * i.price) AS total FROM orders o JOIN items i ON i.order_id = o.id JOIN products p ON p.id = i.product WHERE o.placed >= '2023-06-01' AND p.category IN ('cat1', 'cat7') GROUP BY ALL",
    "ages": "SELECT CASE WHEN age < 25 THEN 'young' WHEN age < 60 THEN 'mid' ELSE 'old' END AS g, country, count(*) AS n, avg(amount) AS mean FROM users JOIN orders ON users.id = user_id GROUP BY ALL",
    "known or other": "SELECT CASE WHEN amount > 100 THEN status ELSE 'small' END AS t, coalesce(country, 'nowhere') AS c, count(*) AS n FROM orders JOIN users ON user_id = users.id GROUP BY ALL",
    "pivot": "PIVOT orders ON status USING sum(amount) GROUP BY channel",
    "tagged union": "SELECT tag, c, count(*) AS n FROM (SELECT 'order' AS tag, channel AS c FROM orders UNION ALL SELECT 'product', size FROM products) GROUP BY ALL",
    "lists": "SELECT user_id, list(id ORDER BY placed, id) AS ids FROM orders WHERE user_id < 2000 GROUP BY user_id",
    "joined text": "SELECT user_id, string_agg(DISTINCT status, ',' ORDER BY status) AS all_of_them FROM orders GROUP BY user_id",
    "top orders": "SELECT * FROM orders ORDER BY amount DESC, id LIMIT 10 OFFSET 100",
    "orders of dear items": "SELECT * FROM orders WHERE id IN (SELECT order_id FROM items WHERE price > 99.5) ORDER BY id LIMIT 50",
    "frequent users": "SELECT u.country, f.n FROM (SELECT user_id, count(*) AS n FROM orders GROUP BY user_id HAVING n > 60) f JOIN users u ON u.id = f.user_id ORDER BY n DESC, u.id LIMIT 10",
    "pairs of returns": "SELECT count(*) AS n FROM orders a JOIN orders b ON a.user_id = b.user_id AND a.id < b.id WHERE a.status = 'returned' AND b.status = 'returned'",
    "words of names": "SELECT word, count(*) AS n FROM (SELECT unnest(string_split(lower(name), ' ')) AS word FROM products) GROUP BY word",
}
_CLICKS = {
    "sessions": "SELECT count(*) AS n, max(session) AS most FROM (SELECT sum(starts) OVER (PARTITION BY user_id ORDER BY ts) AS session FROM (SELECT *, (ts - lag(ts) OVER (PARTITION BY user_id ORDER BY ts) > INTERVAL '30 minutes')::INT AS starts FROM events))",
    "funnel": "SELECT count(DISTINCT user_id) FILTER (kind = 'view') AS v, count(DISTINCT user_id) FILTER (kind = 'cart') AS c, count(DISTINCT user_id) FILTER (kind = 'buy') AS b FROM events",
    "bought within minutes": "SELECT v.user_id, min(v.ts) AS put, min(b.ts) AS paid FROM events v JOIN events b ON v.user_id = b.user_id AND b.ts > v.ts AND b.ts < v.ts + INTERVAL '10 minutes' WHERE v.kind = 'cart' AND b.kind = 'buy' GROUP BY v.user_id",
    "pages by a pattern": "SELECT regexp_extract(url, '^/p/(\\d+)', 1) AS p, count(*) AS n FROM events GROUP BY p",
    "latency of referrers": "SELECT split_part(url, '=', 2) AS ref, kind, count(*) AS n, quantile_cont(ms, [0.5, 0.9, 0.99]) AS q FROM events GROUP BY ALL",
    "users of days": "SELECT ts::DATE AS d, count(DISTINCT user_id) AS n FROM events GROUP BY d",
    "slowest page of each kind": "SELECT kind, max(ms) AS top, min(url) AS low FROM events GROUP BY kind",
    "pages of an ad": "SELECT url, count(*) AS n FROM events WHERE url LIKE '%ref=ad' GROUP BY url ORDER BY n DESC, url LIMIT 10",
    "labels made": "SELECT lower(kind) || '-' || (ms // 100)::VARCHAR AS k, count(*) AS n FROM events GROUP BY k",
    "pages that contain": "SELECT count(*) AS n FROM events WHERE contains(url, '12') AND ms > 500",
    "addresses replaced": "SELECT replace(url, 'ref', 'src') AS u, count(*) AS n FROM events GROUP BY u ORDER BY n DESC, u LIMIT 5",
    "a user": "SELECT min(ts) AS first, max(ts) AS last, count(*) AS n FROM events WHERE user_id = 4242",
    "histograms": "SELECT kind, histogram(ms // 100) AS h FROM events GROUP BY kind",
    "all but purchases": "SELECT count(*) AS n FROM (SELECT user_id, kind, ts FROM events EXCEPT SELECT user_id, kind, ts FROM events WHERE kind = 'buy')",
    "as JSON": "SELECT to_json({'u': user_id, 'k': kind}) AS j, count(*) AS n FROM events GROUP BY j ORDER BY n DESC, j LIMIT 5",
}
_MARKET = {
    "minutes": "SELECT sym, time_bucket(INTERVAL '1 minute', ts) AS m, arg_min(price, ts) AS o, max(price) AS h, min(price) AS l, arg_max(price, ts) AS c, sum(size) AS v FROM ticks GROUP BY ALL",
    "minutes by first and last": "SELECT sym, time_bucket(INTERVAL '1 minute', ts) AS m, first(price ORDER BY ts) AS o, last(price ORDER BY ts) AS c FROM ticks GROUP BY ALL",
    "weighted price of an hour": "SELECT sym, sum(price * size) / sum(size) AS vwap FROM ticks WHERE ts::TIME BETWEEN '10:00:00' AND '11:00:00' GROUP BY sym",
    "last quote before": "SELECT count(*) AS n, avg(t.price - q.bid) AS mean FROM ticks t ASOF JOIN quotes q ON t.sym = q.sym AND t.ts >= q.ts",
    "moving deviation": "SELECT count(*) AS n FROM (SELECT stddev(price) OVER (PARTITION BY sym ORDER BY ts ROWS 99 PRECEDING) AS s FROM ticks) WHERE s > 0.34",
    "top prices": "SELECT sym, ts, price FROM ticks WHERE sym = 'NVDA' ORDER BY price DESC, ts LIMIT 10",
    "spans of ten minutes": "SELECT sym, max(price) - min(price) AS span FROM ticks WHERE ts BETWEEN '2024-06-03 12:00:00' AND '2024-06-03 12:10:00' GROUP BY sym",
    "times up": "SELECT sym, count(*) AS n FROM (SELECT sym, price > lag(price) OVER (PARTITION BY sym ORDER BY ts) AS up FROM ticks) WHERE up GROUP BY sym",
}


def _cases(subject: str, table: str, texts: dict[str, str]) -> Iterator[Case]:
    return (Case(f"{subject}: {name}", table, text) for name, text in texts.items())


SUITES: Suites = (
    (data.sensor_tables, tuple(_cases("sensors", "readings", _SENSORS))),
    (data.shop_tables, tuple(_cases("shop", "orders", _SHOP))),
    (data.click_tables, tuple(_cases("clicks", "events", _CLICKS))),
    (data.market_tables, tuple(_cases("market", "ticks", _MARKET))),
)
