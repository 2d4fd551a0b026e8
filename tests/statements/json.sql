-- Columns of type JSON: what goes in is checked, and comes out as it was written.
CREATE TABLE j (i INTEGER, v JSON, PRIMARY KEY (i));
INSERT INTO j VALUES (1, '{"a": 1}'), (2, NULL);
INSERT INTO j VALUES (3, '{"a": 1');
INSERT INTO j SELECT 4, '[1, 2]'::VARCHAR;
SELECT * FROM j ORDER BY i;
UPDATE j SET v = '[]' WHERE i = 2;
UPDATE j SET v = 'x' WHERE i = 2;
DELETE FROM j WHERE v = '[1, 2]';
SELECT i, v, typeof(v) FROM j ORDER BY v;
CREATE TABLE k AS SELECT v, [v] AS l, {'v': v} AS s FROM j;
SELECT v, l, s, typeof(l), typeof(s) FROM k ORDER BY v;
DESCRIBE k;
ALTER TABLE k ALTER v TYPE VARCHAR;
SELECT typeof(v) FROM k LIMIT 1;
