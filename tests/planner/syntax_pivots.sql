PIVOT t ON a
PIVOT t ON a, b + 1 IN (2), c IN (1, 'x' AS y, z) USING sum(x) AS s, max(y) GROUP BY d, e ORDER BY 1 LIMIT 2
PIVOT t USING sum(x) GROUP BY (d, e)
PIVOT t JOIN u ON a = b ON c IN (SELECT d FROM e) GROUP BY f UNION ALL PIVOT_WIDER g ON h
UNPIVOT t ON COLUMNS(* EXCLUDE a) INTO NAME n VALUE v
UNPIVOT t ON (a, b) AS x, (c, d) y INTO NAME 'n' VALUES (v, w)
PIVOT_LONGER t ON a, b,
FROM t PIVOT (sum(x) AS s, FOR a IN (1, 2 AS two) (b, c) IN ((3, 4)) GROUP BY c,) AS p JOIN u USING (d)
FROM a JOIN b PIVOT (count(*) FOR c IN d) e ON f, g UNPIVOT INCLUDE NULLS ((v, w) FOR n IN ((a, b), *)) AS q (r) UNPIVOT (x FOR y IN (z))
FROM (PIVOT t ON a)
SELECT (PIVOT t ON x)
WITH p AS (UNPIVOT t ON a) PIVOT p ON b NOT IN (1)
PIVOT t ON a IN () USING sum(x)
PIVOT t ON CASE WHEN a THEN b END IN (1), (a, b), NOT c, d::INTEGER IN (2), -e
