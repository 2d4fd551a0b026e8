"""Fusion: answers stay what they are, what is not quicker or not possible stays eager, and sizes may change."""

from __future__ import annotations

import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tqp
from tests.conftest import TPCH_SCALE_FACTOR
from tests.settings import fuse_everything
from tqp.measuring.compare import DuckDBRun
from tqp.measuring.verify import difference
from tqp.operators.numbers import elementwise
from tqp.runtime import fuse
from tqp.runtime.fuse import Fuser, Region, fused_graph
from tqp.runtime.graph_function import compile_graph
from tqp.runtime.lowering.graph_builder import GraphBuilder
from tqp.tpch.data import DATA
from tqp.tpch.query import load_query

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="inductor needs a C++ compiler")


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    # One for all tests here: what one has compiled another need not compile again.
    folder = tmp_path_factory.getbasetemp() / "inductor"
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(folder))


@pytest.fixture
def eager_to_fuse(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Region]]:
    """Regions of two calls, of few rows, kept however slow they are; gives those that were compiled."""
    for name in ("_MIN_CALLS", "_MIN_ROWS", "_MEASURED_CALLS", "_MIN_GAIN"):
        monkeypatch.setattr(fuse, name, getattr(fuse, name))  # to have it back afterwards
    fuse_everything()
    compiled: list[Region] = []
    compile_region = Region.compile

    def remember(region: Region, *arguments: Any) -> None:
        compile_region(region, *arguments)
        if region._compiled is not None:
            compiled.append(region)

    monkeypatch.setattr(Region, "compile", remember)
    torch.compiler.reset()
    torch._dynamo.utils.counters.clear()
    yield compiled
    torch.compiler.reset()


def _random_graph(seed: int) -> Any:
    """Elementwise calls with others among them, in such ways that a region could wait for itself."""
    choice = random.Random(seed)
    builder = GraphBuilder()
    values = [builder.input(f"x{i}") for i in range(3)]
    for number in range(30):
        a, b = choice.choice(values), choice.choice(values)
        kind = choice.random()
        if kind < 0.2:
            values.append(builder.call(torch.flip, a, [0], name=f"v{number}"))
        elif kind < 0.5:
            condition = builder.call(elementwise.less, a, b)
            values.append(builder.call(elementwise.choose, condition, a, b, torch.int64, name=f"v{number}"))
        else:
            function = choice.choice([elementwise.add, elementwise.subtract, elementwise.multiply])
            values.append(builder.call(function, a, choice.choice([b, 3]), name=f"v{number}"))
    return builder.graph(tuple(choice.sample(values, 5)))[0]


@pytest.mark.parametrize("seed", range(40))
def test_regions_never_wait_for_themselves(seed: int) -> None:
    graph = _random_graph(seed)
    regions = []

    def make_region(part: Any) -> Any:
        regions.append(part)
        function = compile_graph(part)
        function.__name__ = "region"
        return function

    fused = fused_graph(graph, make_region)
    values = [torch.randint(-9, 9, (50,)) for _ in graph.inputs]
    expected = compile_graph(graph)(*values)
    if fused is not None:
        order = {node.name: number for number, node in enumerate(graph.inputs)}
        actual = compile_graph(fused)(*(values[order[node.name]] for node in fused.inputs))
        assert all(map(torch.equal, actual, expected))
        assert all(len(part.nodes) >= 3 for part in regions)


def test_modes_are_checked() -> None:
    with pytest.raises(tqp.BindError, match="off, on, background"):
        tqp.connect(fuse="sometimes")


def _data(rows: int) -> dict[str, Any]:
    random = np.random.default_rng(rows)
    return {
        "x": random.standard_normal(rows),
        "y": random.standard_normal(rows),
        "n": random.integers(-(10**6), 10**6, rows),
        "k": random.integers(0, 5, rows),
    }


QUERY = """
SELECT k, sum((x + 1.5) * (y - 2) * x) AS a, max(CASE WHEN n > 7 AND n < 500000 THEN x * y + n ELSE y END) AS b,
  count(*) FILTER (WHERE n * 3 + k < 100 OR n * k > 5) AS c, min(x / (y * y + 1)) AS d
FROM t GROUP BY k ORDER BY k"""


@pytest.mark.slow
@needs_compiler
def test_batches_of_other_sizes_need_no_other_code(eager_to_fuse: list[Region]) -> None:
    # In the second batch, offset and size are the same number; the last one has a single row.
    settings: dict[str, Any] = {"threads": 1, "batch_rows": 2500}
    data = {rows: _data(rows) for rows in (10_001, 2000, 3)}
    with tqp.connect(**settings) as plain, tqp.connect(**settings, fuse="on") as connection:
        for rows, columns in data.items():
            connection.register(f"t{rows}", columns)
            plain.register(f"t{rows}", columns)
        program = connection.compile(QUERY.replace("FROM t", "FROM t10001"))
        program()
        assert eager_to_fuse
        count = torch._dynamo.utils.counters["stats"]["unique_graphs"]
        program()
        assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == count
        for rows in data:
            query = QUERY.replace("FROM t", f"FROM t{rows}")
            assert connection.sql(query).fetchall() == plain.sql(query).fetchall()


@needs_compiler
@pytest.mark.slow
def test_compiled_code_runs_on_any_batch(eager_to_fuse: list[Region]) -> None:
    region, values = _region()
    eager = compile_graph(region._graph)
    pieces = [
        slice(2500, 5000),
        slice(0, 2500),
        slice(7, 20),
        slice(0, 2),
        slice(4998, 5000),
        slice(4, 5),
        slice(0, 0),
    ]
    counts = []
    for piece in pieces:
        part = [value[piece] for value in values]
        with torch.no_grad():  # as in a worker
            assert torch.equal(region(*part)[0], eager(*part)[0])
        counts.append(torch._dynamo.utils.counters["stats"]["unique_graphs"])
    assert eager_to_fuse == [region]
    assert counts == [counts[0]] * len(pieces)


@needs_compiler
def test_background(eager_to_fuse: list[Region]) -> None:
    with tqp.connect(threads=2, batch_rows=2500, fuse="background") as connection:
        connection.register("t", _data(10_000))
        query = "SELECT k, sum((x + 1.5) * (y - 2) * x) AS a FROM t GROUP BY k ORDER BY k"
        expected = connection.sql(query).fetchall()
        deadline = time.monotonic() + 120
        while not eager_to_fuse and time.monotonic() < deadline:
            time.sleep(0.1)
        assert eager_to_fuse
        assert connection.sql(query).fetchall() == expected


def _region() -> tuple[Region, list[torch.Tensor]]:
    builder = GraphBuilder()
    x, y = builder.input("x"), builder.input("y")
    total = builder.call(elementwise.add, builder.call(elementwise.multiply, x, y), 1)
    graph, _ = builder.graph((builder.call(elementwise.less, total, 10),))
    return Region(graph, Fuser("on")), [torch.arange(5000), torch.arange(5000) % 3]


@pytest.mark.parametrize("share", [1.0, 5.0, float("inf")])
def test_what_is_not_quicker_stays_eager(share: float, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def compiled(graph: Any, eager: Any, values: Any) -> Any:
        calls.append(values)
        return (lambda *values: pytest.fail("must not be called")), share

    monkeypatch.setattr(fuse, "_compiled", compiled)
    region, values = _region()
    expected = compile_graph(region._graph)(*values)
    for _ in range(2):
        assert torch.equal(region(*values)[0], expected[0])
    _region()[0](*values)
    # What is clearly slower is remembered on the disk.
    assert len(calls) == (2 if share == 1.0 else 1 if share == 5.0 else 0)


def test_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*arguments: Any) -> Any:
        raise RuntimeError("no C++ compiler")

    monkeypatch.setattr(fuse, "_compiled", fails)
    monkeypatch.setattr(Region, "_slower_file", lambda region, signature: Path("/no/such/file"))
    region, values = _region()
    assert region(*values)[0].sum() == region(*values)[0].sum()
    assert region._compiled is None and not region._open


@needs_compiler
@pytest.mark.parametrize("number", [6, pytest.param(12, marks=pytest.mark.slow)])
def test_tpch(number: int, tpch_data: Path, tpch_answers: DuckDBRun, eager_to_fuse: list[Region]) -> None:
    query = load_query(number, TPCH_SCALE_FACTOR)
    with tqp.connect(threads=2, fuse="on") as connection:
        for table, path in DATA.paths(tpch_data).items():
            connection.register(table, str(path))
        for _ in range(2):
            answer = connection.sql(query.text).to_arrow()
            assert difference(answer, tpch_answers.answer(number), query.order_by, query.limit) is None
