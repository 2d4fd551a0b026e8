"""What a connection keeps of its tables."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import tqp


def test_what_queries_made_of_columns_is_listed_with_its_bytes() -> None:
    rows = 50_000
    with tqp.connect(threads=1) as connection:
        assert connection.memory().fetchall() == []
        assert [str(each) for each in connection.memory().types] == [
            "VARCHAR",
            "VARCHAR",
            "VARCHAR",
            "BIGINT",
        ]
        table = pa.table({"k": np.arange(rows, dtype=np.int32), "s": ["é"] * rows, "x": np.zeros(rows)})
        connection.register("T", table).register("other", {"y": [1]})
        assert connection.memory().fetchall() == []
        connection.sql("SELECT sum(x) FROM t WHERE k > 5").fetchall()
        assert connection.memory().fetchall() == [
            ("T", "k", "values", 4 * rows),
            ("T", "x", "values", 8 * rows),
        ]
        connection.sql("SELECT a.s FROM t a JOIN t b USING (k)").fetchall()
        kept = connection.memory().to_arrow().to_pylist()
        assert {(row["column_name"], row["kept"]) for row in kept} >= {("k", "values"), ("s", "values")}
        assert sum(row["bytes"] for row in kept) == connection._snapshot().lookup("t").memory_bytes  # type: ignore[union-attr]
        connection.unregister("T")
        assert connection.memory().fetchall() == []
    with pytest.raises(tqp.BindError, match="closed"):
        connection.memory()


def test_dictionaries_and_indexes_are_listed_too() -> None:
    with tqp.connect(threads=1) as connection:
        keys = np.repeat(np.arange(20_000), 3)
        connection.register("t", pa.table({"k": keys, "g": np.arange(60_000) * 10**9 % 7 * 10**12}))
        for _ in range(2):  # dictionaries are made for a second query
            connection.sql("SELECT g, count(*) FROM t GROUP BY g").fetchall()
        connection.sql("SELECT count(*) FROM t a JOIN t b USING (k) WHERE a.g > 0").fetchall()
        kept = {(column, what) for _, column, what, size in connection.memory().fetchall() if size > 0}
        assert {("k", "values"), ("g", "values")} < kept
        assert {what for _, what in kept} - {"values"} <= {"dictionary", "index", "runs"}
