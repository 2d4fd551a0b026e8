"""Gradients through SQL: a program whose float outputs carry gradients to parameters of models and to columns.

`con.compile(query, differentiable=True)` gives a program that autograd can go back through. The plan is made without the
special ways to group, lowered as ever, and then followed through its graphs: from columns that are tensors with
`requires_grad` and from models with such parameters, node by node and breaker by breaker, to the outputs. On the way a kernel
that works on memory gets replaced by one that autograd knows (`gradient` in `tqp.operators.operation`: `torch.where` for a
choice by bits, `index_add` for the accumulators of a sum), and whatever has no gradient, be it rounding, a comparison, a key
or an order, is refused with its place in the query. What no gradient passes through, such as join keys and fixed
conditions, is computed as in any other program. It runs on the calling thread, each pipeline in one batch, so that a step of
training goes forward and back once; `program()` gives tensors by name, and registered modules are its own submodules.
"""

from __future__ import annotations

import operator
import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from tqp.core.errors import BindError, UnsupportedError
from tqp.data.backend import computing_with
from tqp.data.results.to_tensors import tensors_by_name
from tqp.ml.scorer import Scorer
from tqp.operators.call_operations import operation_of
from tqp.operators.groups.gradients import REDUCTIONS
from tqp.operators.memory.allocation import one_by_one
from tqp.runtime.breakers.collect import BuildJoin, CollectRows, SortRows
from tqp.runtime.breakers.collect_groups import CollectGroups
from tqp.runtime.breakers.makers import Concatenate
from tqp.runtime.breakers.scatter_build import ScatterBuild
from tqp.runtime.executor import Item, Result, Workers, run_at_once
from tqp.runtime.frame import Frame, FrameColumn
from tqp.runtime.graph import Node
from tqp.runtime.lowering.expressions.predictions import is_head, is_score
from tqp.runtime.lowering.graph_builder import NamedKernel
from tqp.runtime.lowering.stream import InputKind
from tqp.runtime.pipeline import Pipeline
from tqp.runtime.program import TensorProgram

#: Rules of the optimizer that choose other ways to group, or to join, than the general one, which alone has a differentiable form.
SPECIAL_ALGORITHMS = frozenset(("direct_aggregate", "hash_aggregate", "clustered_aggregate", "range_join"))
_COLUMNS = (InputKind.VALUES, InputKind.ALL_VALUES)

#: Reductions that read which values are NULL, not the values.
_COUNTS = ("count", "count_star", "present")
#: How SQL calls a reduction that has no gradient, where that is not its own name.
_NAMES = {"second_moment": "variances and standard deviations"}

#: Which columns have a gradient, by the slot of their frame.
_Columns = defaultdict[str, set[int]]


class DifferentiableProgram(TensorProgram):
    """A query as a function of models and tensors. `program()` gives tensors by name, as `Result.to_torch` does.

    Parameters of models are parameters of the program. Tables are read when it runs: changes of a registered tensor count.
    """

    def __init__(self, *parts: Any) -> None:
        """Raises UnsupportedError for a part of the query through which there is no gradient, BindError if none has one."""
        super().__init__(*parts)
        for name, data_type in zip(self.names, self.types, strict=True):
            if data_type.is_string or data_type.is_enum:
                raise UnsupportedError(
                    f'the output "{name}" is {data_type}, which has no tensor form; leave it out of the query'
                )
        self._columns = _followed(self)
        if not any(column.index in self._columns[column.slot] for column in self.result_columns):
            raise BindError(
                "no output has a gradient: none depends on a float tensor with requires_grad, or on a torch module with "
                "such parameters"
            )

    def forward(self) -> dict[str, Tensor]:  # type: ignore[override]
        """Run on the calling thread."""
        state = self.initial_state()
        for slot, table in self.tables.items():
            values: list[FrameColumn] = list(state[slot].columns)
            for index in self._columns[slot]:
                tensor = table.source.with_gradient(table.columns[index])
                if tensor is not None:  # it may have stopped to require a gradient
                    values[index] = FrameColumn(tensor, values[index].validity)
            state[slot] = Frame(state[slot].num_rows, tuple(values))
        alone = _CallingThread(self._executor, threading.Event())
        with self._executor.memory.query(), computing_with(self._executor.backend):
            result = self._run(partial(run_at_once, workers=alone), state)
            return tensors_by_name(self.names, result.columns)


class _CallingThread(Workers):
    """Autograd follows what the calling thread computes."""

    def map(self, function: Callable[[Item], Result], items: Sequence[Item]) -> list[Result]:
        return one_by_one(function, items)


# following gradients


def _followed(program: TensorProgram) -> _Columns:
    """The columns that have a gradient; kernels on the way are replaced. Raises UnsupportedError where there is none."""
    columns: _Columns = defaultdict(set)
    for slot, table in program.tables.items():
        columns[slot] = {
            index for index, name in enumerate(table.columns) if table.source.with_gradient(name) is not None
        }
    modules = {name: item for name, item in program.constants.objects.items() if isinstance(item, nn.Module)}
    for pipeline in program.steps():
        _follow_graph(pipeline, columns, modules)
        _follow_breaker(pipeline, columns)
    return columns


def _follow_graph(pipeline: Pipeline, columns: _Columns, modules: dict[str, nn.Module]) -> None:
    """Which nodes have a gradient is noted in `pipeline.differentiable`."""
    found = pipeline.differentiable
    slots: dict[Node, str] = {}
    for node, item in zip(pipeline.record.inputs, pipeline.inputs, strict=True):
        if item.kind in _COLUMNS and item.column in columns[item.slot]:
            found.add(node)
        elif item.kind is InputKind.OBJECT:
            slots[node] = item.slot
    for node in pipeline.record.nodes:
        given = [each for each in node.uses() if each in found]
        if is_score(node.target):
            scorer = modules[slots[node.arguments[0]]]
            assert isinstance(scorer, Scorer)
            if given and not scorer.is_differentiable:
                raise _no_gradient(node, "a converted model")
            if given or _has_gradient(scorer):
                found.add(node)
        elif given and not (node.target is operator.getitem and node.arguments[1]):  # of a pair, the validity
            node.target = _replaced(node)
            found.add(node)


def _has_gradient(scorer: Scorer) -> bool:
    """May what a model computes depend on something that requires a gradient? Functions may use any tensor."""
    parameters = list(scorer.parameters())
    return scorer.is_differentiable and (not parameters or any(each.requires_grad for each in parameters))


def _replaced(node: Node) -> Any:
    """The node's function in a form that autograd follows."""
    target = node.target
    if is_head(target):
        return target
    if target == "to":
        dtype = node.arguments[1]
        if isinstance(dtype, torch.dtype) and dtype.is_floating_point:
            return target
        raise _no_gradient(node, "a cast to whole numbers")
    gradient = operation_of(target).gradient
    if gradient is None:
        raise _no_gradient(node, str(getattr(target, "__name__", target)))
    return target.calling(gradient) if isinstance(target, NamedKernel) else gradient


def _no_gradient(node: Node, what: str) -> UnsupportedError:
    """`what`: the function, clause or aggregate that is to blame; the node says from which part of the query."""
    place = f" ({node.fragment or node.name})"
    span = node.target.span if isinstance(node.target, NamedKernel) else None
    return UnsupportedError(
        f"no gradient passes through {what}{place}; compute it from values that require none", span
    )


def _outputs(pipeline: Pipeline) -> set[int]:
    """The columns of a pipeline's outputs that have a gradient."""
    values = pipeline.record.outputs[1::2]
    return {place for place, node in enumerate(values) if node in pipeline.differentiable}


def _follow_breaker(pipeline: Pipeline, columns: _Columns) -> None:
    """Which columns of the breaker's frame have a gradient."""
    outputs = _outputs(pipeline)
    breaker = pipeline.breaker
    num_keys, what = 0, ""
    match breaker:
        case SortRows():
            num_keys, what = len(breaker.directions), "ORDER BY"
        case BuildJoin():
            num_keys, what = int(breaker.build is not None), "a key of a join"
        case CollectGroups():
            num_keys, what = breaker.num_keys, "GROUP BY"
        case ScatterBuild():
            num_keys, what = 1, "a key of a join"
        case Concatenate():
            for source in breaker.sources:
                columns[breaker.slot] |= columns[source]
            return
        case CollectRows():
            pass
        case _:
            num_keys, what = len(pipeline.record.outputs), breaker.describe()
    for place in outputs:
        if place < num_keys:
            raise _no_gradient(pipeline.record.outputs[1 + 2 * place], what)
    if isinstance(breaker, CollectGroups):
        columns[breaker.slot] |= _follow_reductions(breaker, outputs, pipeline)
    elif isinstance(breaker, ScatterBuild):
        columns[breaker.payload_slot] |= {place - num_keys for place in outputs}
    elif isinstance(breaker, CollectRows):
        columns[breaker.slot] |= {place - num_keys for place in outputs}


def _follow_reductions(breaker: CollectGroups, outputs: set[int], pipeline: Pipeline) -> set[int]:
    found = set()
    for place, reduction in enumerate(breaker.reductions, breaker.num_keys):
        if reduction.column not in outputs or (reduction.kind in _COUNTS and not reduction.distinct):
            continue
        node = pipeline.record.outputs[1 + 2 * reduction.column]
        if reduction.distinct:
            raise _no_gradient(node, "DISTINCT")
        if reduction.kind not in REDUCTIONS:
            raise _no_gradient(node, _NAMES.get(reduction.kind, reduction.kind))
        found.add(place)
    return found
