"""A user's script under `mypy --strict`: what the public names give has types."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import os
from typing import Any

import numpy as np
import tqp
from tqp import col, dbapi


def totals(folder: str) -> list[tuple[Any, ...]]:
    con = tqp.connect(threads=1)
    con.register("sales", {"region": ["n", "s", "n"], "amount": np.array([1, 2, 3])})
    con.execute("SELECT * FROM sales WHERE amount > ?", [1])
    first: tuple[Any, ...] | None = con.fetchone()
    assert first is not None and con.description is not None
    relation = con.table("sales").filter("amount > 0").aggregate("region, sum(amount) AS total").order("region")
    relation.to_parquet(os.path.join(folder, "t.parquet"))
    again = con.read_parquet(os.path.join(folder, "t.parquet")).project("region", "total + 1 AS more")
    assert again.types[0] == "VARCHAR" and again.columns == ("region", "more")
    by_region = con.table("sales").group_by("region").agg(col("amount").sum().alias("total"), tqp.count_all().alias("n"))
    kinds = tqp.when((col("total") > 2) & (col("n") == 2)).then("large").otherwise("small").alias("kind")
    named = by_region.select("region", kinds, 10 - col("n")).sort(col("region").desc(), "kind")
    assert named.rename(region="r").drop("kind").fetchall() == [("s", 9), ("n", 8)]
    largest: tqp.Relation = con.table("sales").arg_max("region", "amount").union_by_name(con.table("sales").max("amount"))
    assert largest.row_number("OVER ()", projected_columns="*").shape == (2, 3)
    dicts: list[dict[str, Any]] = con.table("sales").filter(col("amount").isin([3])).to_dicts()
    assert dicts == [{"region": "n", "amount": 3}]
    con.create_function("twice", lambda x: x * 2, ["BIGINT"], "BIGINT", type="native")
    asked = con.sql("SELECT twice(sum(amount)::BIGINT) AS t FROM sales")
    assert int(np.asarray(asked)[0]) == 12 and asked.filter("t > 0").shape == (1, 1)
    rows = tqp.sql("SELECT 1 AS one").filter("one = 1").fetchall()
    assert tqp.sql("SELECT x FROM t", {"t": {"x": [1]}}).fetchall() == rows == tqp.values(1).fetchall()
    with dbapi.connect(threads=1) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        assert cursor.fetchall() == [(1,)]
    try:
        con.sql("SELEC")
    except tqp.ParseError as error:
        assert error.message
    return again.fetchall()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def test_the_script_runs(script: Path) -> None:
    totals = runpy.run_path(str(script))["totals"]
    assert totals(str(script.parent)) == [("n", 5), ("s", 3)]


@pytest.mark.slow
def test_the_script_has_types(script: Path) -> None:
    root = Path(__file__).parent.parent
    options = [
        "--strict",
        "--follow-imports=silent",
        f"--cache-dir={script.parent}",
        "--config-file=pyproject.toml",
    ]
    command = [sys.executable, "-m", "mypy", *options, str(script)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
