"""What users pass to connect, register and sql: every argument of the wrong kind is a clear error; so is a closed connection."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tqp
from tqp import BindError, UnsupportedError
from tqp.core.arguments import parse_size

TABLE = {"x": [1, 2]}

WRONG: dict[str, tuple[Callable[[Any], object], str]] = {
    "threads of text": (lambda _: tqp.connect(threads="two"), "threads='two': give an integer, not a str"),
    "threads of a float": (lambda _: tqp.connect(threads=1.5), "threads=1.5: give an integer"),
    "threads of a bool": (lambda _: tqp.connect(threads=True), "threads=True: give an integer"),
    "no threads": (lambda _: tqp.connect(threads=0), "at least one thread"),
    "too many threads": (lambda _: tqp.connect(threads=10**9), "at most 4096"),
    "no rows": (lambda _: tqp.connect(batch_rows=-1), "at least one row"),
    "rows of text": (lambda _: tqp.connect(batch_rows="10"), "batch_rows='10': give an integer"),
    "no memory": (lambda _: tqp.connect(memory_limit=0), "positive number of bytes"),
    "negative memory": (lambda _: tqp.connect(memory_limit="-1GB"), "positive number of bytes"),
    "infinite memory": (lambda _: tqp.connect(memory_limit=float("inf")), "give a number of bytes"),
    "memory of text": (lambda _: tqp.connect(memory_limit="much"), "give a number of bytes"),
    "memory of a list": (lambda _: tqp.connect(memory_limit=[1]), "give a number of bytes"),
    "fuse": (lambda _: tqp.connect(fuse="maybe"), "fuse='maybe': choose one of"),
    "fuse of a bool": (lambda _: tqp.connect(fuse=True), "fuse=True: choose one of"),
    "precision": (lambda _: tqp.connect(ml_precision=16), "ml_precision=16: choose one of"),
    "backend": (lambda _: tqp.connect(backend="numpy"), "backend='numpy': choose one of auto, host, torch"),
    "backend of a number": (lambda _: tqp.connect(backend=1), "backend=1: choose one of"),
    "arrays elsewhere": (
        lambda _: tqp.connect("meta", backend="host"),
        "computes on the CPU only, not on meta",
    ),
    "device": (lambda _: tqp.connect(device="tpu9"), "device 'tpu9' cannot be used"),
    "device without doubles": (lambda _: tqp.connect("mps"), "Metal has no 64-bit floats"),
    "device of a list": (lambda _: tqp.connect(device=[1]), "cannot be used"),
    "rules of text": (lambda _: tqp.connect(disabled_rules="topk"), "a list of rules' names"),
    "rules of a number": (lambda _: tqp.connect(disabled_rules=3), "a list of rules' names"),
    "unknown rule": (lambda _: tqp.connect(disabled_rules=[None]), 'no optimizer rule "None"'),
    "name of a number": (lambda c: c.register(3, TABLE), "the name of a table is text, not a int"),
    "empty name": (lambda c: c.register("", TABLE), "cannot be empty"),
    "name that is no Unicode": (lambda c: c.register("\ud800", TABLE), "half of a character"),
    "nothing registered": (lambda c: c.register("t", None), "cannot read a builtins.NoneType"),
    "forget a number": (lambda c: c.unregister(3), "the name of a table is text"),
    "forget a model of a number": (lambda c: c.unregister_model(None), "the name of a model is text"),
    "model of a number": (
        lambda c: c.register_model(3, torch.nn.Linear(1, 1)),
        "the name of a model is text",
    ),
    "query of a number": (lambda c: c.sql(3), "the query is text, not a int"),
    "query of bytes": (lambda c: c.sql(b"SELECT 1"), "the query is text, not a bytes"),
    "query that is no Unicode": (lambda c: c.sql("SELECT '\udcff'"), "half of a character"),
    "compile a number": (lambda c: c.compile(3), "the query is text"),
    "explain a number": (lambda c: c.explain(3), "the query is text"),
    "params of a number": (lambda c: c.sql("SELECT ?", 3), "params is a int"),
    "params of text": (lambda c: c.sql("SELECT ?", "a"), "params is a str"),
    "params of a set": (lambda c: c.sql("SELECT ?", {1}), "params is a set"),
    "params by number": (lambda c: c.sql("SELECT $x", {1: 2}), "name of a parameter is text"),
    "param that is no Unicode": (lambda c: c.sql("SELECT ?", ["\ud800"]), "half of a character"),
    "name of a param that is no Unicode": (
        lambda c: c.sql("SELECT $a", {"a\ud800": 1}),
        "half of a character",
    ),
    "tables of a list": (lambda _: tqp.sql("SELECT 1", [1]), "tables is a list"),
    "models of a list": (lambda _: tqp.sql("SELECT 1", {}, models=[1]), "models is a list"),
    "keywords of a list": (lambda _: tqp.sql("SELECT 1", {}, models={"m": (1, [2])}), "a dict of keywords"),
    "database that is only read": (lambda _: tqp.connect(read_only=True), "leave it out"),
    "database of a number": (lambda _: tqp.connect(database=3), "the name is text, not a int"),
    "config of a list": (lambda _: tqp.connect(config=[1]), "config is a list; give a dict"),
    "config by number": (lambda _: tqp.connect(config={1: 2}), "the name of a setting is text"),
    "setting of a list": (lambda _: tqp.connect(config={"threads": [1]}), r'config\["threads"\]=\[1\]'),
    "unknown setting": (lambda _: tqp.connect(config={"nope": 1}), 'no setting "nope"'),
    "setting of text": (lambda _: tqp.connect(config={"threads": "many"}), "threads='many': give an integer"),
    "rows shown of text": (lambda c: c.sql("SELECT 1").show("x"), "max_rows='x': give an integer"),
    "no rows shown": (lambda c: c.sql("SELECT 1").show(max_rows=0), "at least one row is shown"),
    "width of text": (lambda c: c.sql("SELECT 1").show(max_width="x"), "max_width='x': give an integer"),
    "decimals": (lambda c: c.sql("SELECT 1.5").to_torch(decimals=3), 'choose "float" or "scaled"'),
}


@pytest.fixture(scope="module")
def connection() -> Any:
    with tqp.connect(threads=1) as opened:
        yield opened


@pytest.mark.parametrize(("call", "message"), WRONG.values(), ids=WRONG.keys())
def test_wrong_arguments_are_named(connection: Any, call: Callable[[Any], object], message: str) -> None:
    with pytest.raises(BindError, match=message):
        call(connection)


def test_names_of_duckdb_for_databases_and_settings() -> None:
    asked = "SELECT current_setting('threads'), current_setting('memory_limit'), current_setting('enable_progress_bar')"
    for config in (
        {"threads": "3", "MAX_MEMORY": "1GiB", "enable_progress_bar": True},
        {"worker_threads": 3, "memory_limit": 2**30, "enable_progress_bar": "on"},
    ):
        with tqp.connect(
            database=":memory:", config=config, memory_limit="2GB", read_only=False
        ) as connection:
            assert connection.sql(asked).fetchall() == [(3, "1.0 GiB", True)]
    with tqp.connect("") as connection:
        assert connection.device.type == "cpu"
    for name in ("sales.db", "./sales", "a/b.duckdb", Path("sales.db")):
        with pytest.raises(UnsupportedError, match="databases in files are not supported"):
            tqp.connect(database=name)
    with pytest.raises(UnsupportedError, match="databases in files are not supported"):
        tqp.connect("sales.duckdb")


def test_sizes() -> None:
    assert parse_size(None) is None
    assert parse_size(1.5e9) == parse_size("1.5GB") == parse_size(np.int64(1_500_000_000)) == 1_500_000_000
    assert parse_size(" 2 GiB ") == 2 << 30
    with tqp.connect(threads=np.int64(1), memory_limit=1e9) as connection:
        assert connection.sql("SELECT 1").fetchall() == [(1,)]


CALLS: dict[str, Callable[[Any], object]] = {
    "sql": lambda c: c.sql("SELECT 1"),
    "compile": lambda c: c.compile("SELECT 1"),
    "gradients": lambda c: c.compile("SELECT 1", differentiable=True),
    "explain": lambda c: c.explain("SELECT 1"),
    "EXPLAIN": lambda c: c.sql("EXPLAIN SELECT 1"),
    "register": lambda c: c.register("t", TABLE),
    "unregister": lambda c: c.unregister("t"),
    "register_model": lambda c: c.register_model("m", torch.nn.Linear(1, 1), inputs=["x"]),
    "unregister_model": lambda c: c.unregister_model("m"),
    "trace": lambda c: c.trace(),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_a_closed_connection_answers_nothing(call: Callable[[Any], object]) -> None:
    connection = tqp.connect(threads=1)
    connection.register("t", TABLE)
    connection.close()
    connection.close()
    with pytest.raises(BindError, match="the connection is closed"):
        call(connection)
    assert connection.table_names() == connection.model_names() == []
