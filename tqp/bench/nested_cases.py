"""The cases of `tqp bench operators` about lists, structs, maps, arrays and JSON."""

from __future__ import annotations

from collections.abc import Iterator

from tqp.bench.case import Case

_FUNCTIONS = {
    "len": "len(items)",
    "list_sum": "list_sum(items)",
    "list_max of doubles": "list_max(prices)",
    "list_avg of doubles": "list_avg(prices)",
    "contains a number": "list_contains(items, 7)::INTEGER",
    "contains a word": "list_contains(words, 'baba')::INTEGER",
    "position": "list_position(items, 7)",
    "has any": "list_has_any(items, [7, 77, 777])::INTEGER",
    "first": "items[1]",
    "last": "items[-1]",
    "word at": "length(words[2])",
    "slice": "len(items[2:4])",
    "transform": "list_sum(list_transform(items, lambda x: x * 2 + 1))",
    "transform with a column": "list_sum(list_transform(items, lambda x: x + k6))",
    "transform words": "len(list_distinct(list_transform(words, lambda w: upper(w))))",
    "filter": "len(list_filter(items, lambda x: x % 2 = 0))",
    "comprehension": "list_sum([x + 1 FOR x IN items IF x > 500])",
    "reduce": "list_reduce(items, lambda a, x: a + x, 0)",
    "sort": "list_sort(items)[1]",
    "sort words": "length(list_sort(words)[1])",
    "distinct": "len(list_distinct(items))",
    "unique words": "list_unique(words)",
    "concatenate": "len(list_concat(items, items))",
    "append": "list_append(items, k6)[-1]",
    "reverse": "list_reverse(items)[1]",
    "zip": "len(list_zip(items, words))",
    "flatten": "len(flatten([items, items]))",
    "joined text": "length(array_to_string(words, ','))",
    "split": "len(string_split(line, ' '))",
    "split and look": "length(string_split(line, ' ')[1])",
    "fields of structs": "list_sum(list_transform(lines, lambda s: s.item))",
}
_OTHERS = {
    "struct: field": "point.x",
    "struct: made": "{'a': k6, 'b': point.y}.a",
    "map: look up": "colors['green']",
    "map: keys": "len(map_keys(colors))",
    "array: element": "vector[3]",
    "array: distance": "array_distance(vector, vector)",
    "array: cosine with a constant": f"(array_cosine_similarity(vector, {[1.0, 0.5] * 8}::FLOAT[16]) > 0.9)::INTEGER",
}
_QUERIES = {
    "list: unnest": "SELECT count(*) AS n, sum(item) AS total FROM (SELECT unnest(items) AS item FROM carts)",
    "list: unnest beside columns": "SELECT k6, count(*) AS n, sum(item) AS total FROM (SELECT k6, unnest(items) AS item FROM carts) GROUP BY k6 ORDER BY k6",
    "list: unnest in FROM": "SELECT count(*) AS n, sum(item + k6) AS total FROM carts, unnest(items) AS u(item)",
    "list: unnest words": "SELECT item, count(*) AS n FROM (SELECT unnest(words) AS item FROM carts) GROUP BY item ORDER BY item",
    "list: unnest structs": "SELECT sum(s.item) AS items, sum(s.price) AS prices FROM (SELECT unnest(lines) AS s FROM carts)",
    "list: equal": "SELECT count(*) AS n FROM carts WHERE items = [7, 77] OR len(items) = 3",
    "list: as a key": "SELECT count(*) AS n FROM (SELECT items[1:1] AS key, count(*) FROM carts GROUP BY key)",
    "list: ordered": "SELECT items, serial FROM carts ORDER BY items, serial LIMIT 100",
    "list: of 1 thousand groups": "SELECT count(*) AS n, sum(list_sum(l)) AS total FROM (SELECT list(serial) AS l FROM carts GROUP BY k1000)",
    "list: of 100 thousand groups": "SELECT count(*) AS n, sum(list_sum(l)) AS total FROM (SELECT list(serial) AS l FROM carts GROUP BY k100000)",
    "list: of words by group": "SELECT count(*) AS n, sum(len(l)) AS total FROM (SELECT list(word ORDER BY serial) AS l FROM carts GROUP BY k1000)",
    "struct: as a key": "SELECT point.x AS x, count(*) AS n FROM (SELECT {'x': point.x, 'k': k6} AS point FROM carts) GROUP BY point ORDER BY x, n",
    "map: made of groups": "SELECT count(*) AS n, sum(cardinality(m)) AS total FROM (SELECT histogram(k6) AS m FROM carts GROUP BY k1000)",
}


def nested() -> Iterator[Case]:
    """What each of these functions makes of every row, and queries that take nested values apart or make them."""
    reduced = "SELECT count(made) AS n, sum(made)::DOUBLE AS total FROM (SELECT {} AS made FROM carts)"
    functions = {**{f"list: {name}": made for name, made in _FUNCTIONS.items()}, **_OTHERS}
    for name, expression in functions.items():
        yield Case(name, "carts", reduced.format(expression))
    for name, text in _QUERIES.items():
        yield Case(name, "carts", text)


def json() -> Iterator[Case]:
    """Parts of documents, and whether they are any."""
    for name, column in (
        ("short", "short"),
        ("of 90 bytes", "long"),
        ("of 90 bytes, a thousand of them", "few"),
    ):
        text = f"SELECT count(b) AS n, sum(b) AS total FROM (SELECT ({column} ->> '$.a.b')::BIGINT AS b FROM documents)"
        yield Case(f"json: a number in documents {name}", "documents", text)
    yield Case("json: valid", "documents", "SELECT count(*) AS n FROM documents WHERE json_valid(long)")
    yield Case(
        "json: length of an array",
        "documents",
        "SELECT sum(json_array_length(long, '$.tags')) AS n FROM documents",
    )
