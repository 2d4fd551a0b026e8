"""Fusion: elementwise parts of pipelines through torch.compile, where that turns out to be quicker; an opt-in.

A region is a set of connected elementwise calls that can run as one. It runs eagerly until inductor has compiled it, and
ever after if that fails, if the two do not agree bit for bit on a real batch, or if the compiled one is not quicker
there. Compiled code is kept on disk by inductor (`TORCHINDUCTOR_CACHE_DIR`), and beside it which regions are not worth it.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import operator
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tqp.operators.call_operations import operation_of
from tqp.runtime.executor import one_torch_thread
from tqp.runtime.graph import Graph, Node, function_name, nodes_in, replaced
from tqp.runtime.graph_function import compile_graph, lowered_for_torch
from tqp.runtime.pipeline import Pipeline

_LOG = logging.getLogger(__name__)

#: What `tqp.connect(fuse=...)` may be.
MODES = ("off", "on", "background")

#: Calls of a region besides casts that make it worth compiling.
_MIN_CALLS = 3
#: Rows below which a region runs eagerly: there is nothing to gain, and torch.compile treats 0 and 1 rows specially.
_MIN_ROWS = 2048
#: The compiled region must take less than this share of the eager one's time.
_MIN_GAIN = 0.9
_MEASURED_CALLS = 7
#: From this share on the disk remembers, and no other process tries again.
_CLEARLY_SLOWER = 1.2

#: The C++ wrapper lets go of the GIL; workers have one thread each. What compiled code depends on is the signature, which is
#: compared here, so that dynamo's guards need not be.
_OPTIONS: dict[str, Any] = {
    "cpp.threads": 1,
    "cpp_wrapper": True,
    "guard_filter_fn": torch.compiler.skip_all_guards_unsafe,
}


class Fuser:
    """A connection's regions. `mode` "on" compiles a region when it first meets a batch, "background" beside the queries."""

    def __init__(self, mode: str) -> None:
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None
        if mode == "background":
            self._pool = ThreadPoolExecutor(1, "tqp-fuse", initializer=one_torch_thread)

    def fuse(self, pipelines: Sequence[Pipeline]) -> None:
        """Put regions in the place of elementwise calls in what the executor runs; `record` stays as it is."""
        for pipeline in pipelines:
            graph = fused_graph(pipeline.record, lambda part: Region(part, self))
            if graph is not None:
                pipeline.function = compile_graph(graph)

    def compile(self, region: Region, signature: Any, values: Sequence[Tensor]) -> None:
        """Compile `region` for values like these, now or soon."""
        if self._pool is None:
            # One at a time: other workers meanwhile run theirs eagerly.
            if self._lock.acquire(blocking=False):
                try:
                    region.compile(signature, values)
                finally:
                    self._lock.release()
        elif region.claim():
            with contextlib.suppress(RuntimeError):  # the connection is being closed
                self._pool.submit(region.compile, signature, values)

    def close(self) -> None:
        """Give up what is not compiled yet, and wait for what is being compiled."""
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


class Region:
    """Elementwise calls as one function of tensors [n] of one length; eager or compiled, the results are the same."""

    __name__ = "fused"

    def __init__(self, graph: Graph, fuser: Fuser) -> None:
        self._graph, self._fuser = graph, fuser
        self._eager = compile_graph(graph)
        self._compiled: Callable[..., Any] | None = None
        self._signature: Any = None
        self._open = True  # not compiled yet, nor given up
        self._claims = threading.Semaphore()

    def __call__(self, *values: Any) -> Any:
        if self._compiled is None and not self._open:
            return self._eager(*values)
        signature = _signature(values)
        if signature is not None:
            if self._open:
                self._fuser.compile(self, signature, values)
            if self._compiled is not None and signature == self._signature:
                return self._compiled(*_from_start(values))
        return self._eager(*values)

    def claim(self) -> bool:
        """Is the caller the first who wants it compiled?"""
        return self._claims.acquire(blocking=False)

    def compile(self, signature: Any, values: Sequence[Tensor]) -> None:
        """Compile for values of this signature; keep the result if it is right and quicker."""
        if not self._open:
            return
        try:
            slower = self._slower_file(signature)
            if not slower.exists():
                compiled, share = _compiled(self._graph, self._eager, values)
                if share < _MIN_GAIN:
                    self._signature, self._compiled = signature, compiled
                elif share > _CLEARLY_SLOWER:
                    slower.parent.mkdir(parents=True, exist_ok=True)
                    slower.touch()
        except Exception as error:  # noqa: BLE001 - no compiler, no room on the disk, an operation that inductor lacks, ...
            _LOG.info("a region stays eager: %s", error)
        finally:
            self._open = False

    def _slower_file(self, signature: Any) -> Path:
        """The file whose being there says that this region is not worth compiling here."""
        from torch._inductor.runtime.cache_dir_utils import cache_dir

        lines = [line for _, line in self._graph.lines(function_name)]
        described = (torch.__version__, torch.backends.cpu.get_cpu_capability(), signature, lines)
        name = hashlib.sha256(repr(described).encode()).hexdigest()
        return Path(cache_dir()) / "tqp" / f"{name}.slower"


def fused_graph(graph: Graph, make_region: Callable[[Graph], Any]) -> Graph | None:
    """The same computation with a call of a region in place of its calls, or None if there is nothing to fuse."""
    level, found = _components(graph)
    components = [
        nodes for nodes in found if sum(not isinstance(node.target, str) for node in nodes) >= _MIN_CALLS
    ]
    if not components:
        return None
    component_of = {node: number for number, nodes in enumerate(components) for node in nodes}
    used_outside = set(nodes_in(graph.outputs))
    for node in graph.nodes:
        used_outside.update(
            used for used in node.uses() if component_of.get(used) != component_of.get(node, -1)
        )
    made: dict[Node, Node] = {node: Node(None, (), {}, node.name) for node in graph.inputs}
    units = [*components, *([node] for node in graph.nodes if node not in component_of)]
    # calls of one level read components of that level, and these only what is on lower ones; single calls keep their order
    for unit in sorted(units, key=lambda unit: level[unit[0]]):
        if unit[0] not in component_of:
            made[unit[0]] = _copy(unit[0], made)
            continue
        members = set(unit)
        inputs = list(dict.fromkeys(used for node in unit for used in node.uses() if used not in members))
        outputs = [node for node in unit if node in used_outside]
        inside = {node: Node(None, (), {}, node.name) for node in inputs}
        parameters = list(inside.values())
        for node in unit:
            inside[node] = _copy(node, inside)
        body = Graph(parameters, tuple(inside[node] for node in outputs))
        arguments = tuple(made[node] for node in inputs)
        order = {node: number for number, node in enumerate(parameters)}
        arguments = tuple(arguments[order[node]] for node in body.inputs)
        call = Node(make_region(body), arguments, {}, "fused", unit[0].fragment, unit[0].operator)
        for position, node in enumerate(outputs):
            made[node] = Node(operator.getitem, (call, position), {}, node.name, node.fragment, node.operator)
    return Graph([made[node] for node in graph.inputs], replaced(graph.outputs, made))


def _components(graph: Graph) -> tuple[dict[Node, int], list[list[Node]]]:
    """The level of each node; and connected fusible calls, without such that wait for a result of theirs that took another way.

    A call's level is the largest number of changes from other calls to fusible ones on a way to it. What leaves a
    component and comes back to a fusible call arrives on a higher level, so components of one level depend on none of
    themselves through others.
    """
    level: dict[Node, int] = dict.fromkeys(graph.inputs, 0)
    parent: dict[Node, Node] = {}

    def root(node: Node) -> Node:
        while parent[node] is not node:
            node = parent[node]
        return node

    for node in graph.nodes:
        fusible = _is_fusible(node)
        uses = list(node.uses())
        level[node] = max(
            (level[used] + (fusible and used not in parent and used.target is not None) for used in uses),
            default=0,
        )
        if fusible:
            parent[node] = node
            for used in uses:
                if used in parent and level[used] == level[node]:
                    parent[root(used)] = root(node)
    components: dict[Node, list[Node]] = defaultdict(list)
    for node in graph.nodes:
        if node in parent:
            components[root(node)].append(node)
    return level, list(components.values())


def _is_fusible(node: Node) -> bool:
    if node.keywords:
        return False
    if node.target == "to":
        return isinstance(node.arguments[1], torch.dtype)
    if not operation_of(node.target).can_fuse:
        return False
    # Adding 0 is left out by the compiler, which may leave the zero's sign another.
    return not any(isinstance(item, float) and item == 0 for item in node.arguments)


def _copy(node: Node, made: dict[Node, Node]) -> Node:
    arguments, keywords = replaced(node.arguments, made), node.keywords
    keywords = {name: replaced(item, made) for name, item in keywords.items()}
    return Node(node.target, arguments, keywords, node.name, node.fragment, node.operator)


def _signature(values: Sequence[Any]) -> Any:
    """What compiled code depends on; None for values that are not enough columns of one length."""
    dtypes = []
    for value in values:
        if not isinstance(value, Tensor) or value.dim() != 1 or value.stride(0) != 1:
            return None
        dtypes.append(value.dtype)
    num_rows = values[0].shape[0]
    if num_rows < _MIN_ROWS or any(value.shape[0] != num_rows for value in values):
        return None
    return tuple(dtypes)


def _compiled(
    graph: Graph, eager: Callable[..., Any], values: Sequence[Tensor]
) -> tuple[Callable[..., Any], float]:
    """The compiled graph, and which share of the eager one's time it takes for `values`; inf if it is not right."""
    values = _from_start(values)
    with torch.no_grad():
        compiled = torch.compile(
            lowered_for_torch(graph).module(), dynamic=True, fullgraph=True, options=_OPTIONS
        )
        if not all(_same_bits(a, b) for a, b in zip(eager(*values), compiled(*values), strict=True)):
            return compiled, float("inf")
        eager_seconds = compiled_seconds = float("inf")
        for _ in range(_MEASURED_CALLS):  # in turns, so that a busy moment meets both
            eager_seconds = min(eager_seconds, _seconds(eager, values))
            compiled_seconds = min(compiled_seconds, _seconds(compiled, values))
    return compiled, compiled_seconds / eager_seconds


def _from_start(values: Sequence[Tensor]) -> list[Tensor]:
    """The same tensors at offset 0 of a memory that begins where they do."""
    # dynamo guards on offsets, which differ from batch to batch; numpy arrays do not know what they are parts of.
    return [torch.from_numpy(value.numpy()) if value.is_cpu else value for value in values]


def _seconds(function: Callable[..., Any], values: Sequence[Tensor]) -> float:
    begin = time.perf_counter()
    function(*values)
    return time.perf_counter() - begin


def _same_bits(a: Tensor, b: Tensor) -> bool:
    return a.dtype == b.dtype and torch.equal(a.view(torch.uint8), b.view(torch.uint8))
