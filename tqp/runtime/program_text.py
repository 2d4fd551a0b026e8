"""A program as Python that a person can read: one function a pipeline, each part under the SQL it comes from.

The text of a program for torch runs by itself: it begins by importing what its functions call.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tqp.core.datatypes import DataType
from tqp.runtime.graph import function_name, unique_name
from tqp.runtime.lowering.graph_builder import NamedKernel
from tqp.runtime.lowering.stream import BATCH_KINDS
from tqp.runtime.pipeline import Pipeline


def program_text(pipelines: Sequence[Pipeline], tables: Mapping[str, str], *, with_imports: bool) -> str:
    """The text; `tables`: the names of the tables that pipelines read, by slot."""
    names = _Names(pipelines) if with_imports else None
    parts = [
        _pipeline_text(number, each, tables, names.of if names else function_name)
        for number, each in enumerate(pipelines, 1)
    ]
    return "\n\n".join([*([names.imports()] if names else []), *parts])


def _pipeline_text(
    number: int, pipeline: Pipeline, tables: Mapping[str, str], name_of: Callable[[Any], str]
) -> str:
    names = pipeline.record.parameters()
    source = pipeline.source_slot
    if source in tables:
        source = f"each batch of {tables[source]}"
    lines = [f"# pipeline {number}: {pipeline.title}; over {source}"]
    lines.append(f"def pipeline_{number}({', '.join(names)}):")
    whole = [name for name, item in zip(names, pipeline.inputs, strict=True) if item.kind not in BATCH_KINDS]
    if whole:
        lines.append(f"    # not cut into batches: {', '.join(whole)}")
    before: str | None = None
    for node, line in pipeline.record.lines(name_of):
        if node.fragment and node.fragment != before:
            lines.append(f"    # {node.fragment}")
        before = node.fragment
        lines.append(f"    {line}")
    lines.append(f"    {pipeline.record.result()}")
    lines.append(f"# then {pipeline.breaker.describe()}")
    return "\n".join(lines)


class _Names:
    """The names of the functions that pipelines call, in a text of all of them, and what makes the functions known there."""

    def __init__(self, pipelines: Sequence[Pipeline]) -> None:
        self._names: dict[Any, str] = {}
        self._lines: list[str] = []
        self._has_types = False
        graphs = [pipeline.record for pipeline in pipelines]
        taken = {"torch", "inf", "nan", *(f"pipeline_{number}" for number in range(1, len(graphs) + 1))}
        for graph in graphs:
            taken.update(graph.parameters(), (node.name for node in graph.nodes))
        self._taken, self._called = taken, set[str]()

    def of(self, function: Any) -> str:
        """The name of a function, what makes a type, or what `function_name` says of what is neither."""
        if isinstance(function, DataType):
            self._has_types = True
            return _text(function)
        if not callable(function):
            return function_name(function)
        if function not in self._names:
            name = function_name(function)
            if not name.startswith("torch."):
                # no variable of a pipeline has the name of a function that it calls, but it may have that of another's
                name = unique_name(name, self._taken) if name in self._called else name
                self._called.add(name)
                self._taken.add(name)
                self._lines.append(_definition(name, function))
            self._names[function] = name
        return self._names[function]

    def imports(self) -> str:
        """The lines that the text begins with."""
        lines = sorted(line for line in self._lines if line.startswith("from "))
        lines += [line for line in self._lines if not line.startswith("from ")]
        if any(isinstance(each, NamedKernel) and each.origin for each in self._names):
            lines.insert(0, "from tqp.operators.numbers.casts import resolve_cast")
            lines.insert(0, "from tqp.operators.scalar_kernels import resolve")
            lines.insert(0, "from tqp.operators.varying_constants import for_each_value")
            lines.insert(0, "from functools import partial")
            self._has_types = True
        if self._has_types:
            lines.insert(0, "from tqp.core.datatypes import DataType, TypeKind, enum")
        return "\n".join(["from math import inf, nan", "import torch", *lines])


def _definition(name: str, function: Any) -> str:
    """The line that gives a function its name."""
    if isinstance(function, NamedKernel):
        if function.origin is not None:
            arguments = ", ".join(map(_text, function.origin.args))
            form = ".function.device" if function.of_device else ".function"
            return f"{name} = {function.origin.func.__name__}({arguments}){form}"
        function = function.function
    known = function.__qualname__
    return f"from {function.__module__} import {known if known == name else f'{known} as {name}'}"


def _text(item: Any) -> str:
    if isinstance(item, DataType):
        if item.is_enum:
            return f"enum({tuple(item.categories)!r})"
        numbers = re.sub(r"(, 0)+$", "", f", {item.precision}, {item.scale}, {item.size}")
        parts = [(name, getattr(item, name)) for name in ("children", "names", "alias")]
        named = "".join(f", {name}={_text(part)}" for name, part in parts if part)
        return f"DataType(TypeKind.{item.kind.name}{numbers}{named})"
    if isinstance(item, partial):
        return f"partial({', '.join((item.func.__name__, *map(_text, item.args)))})"
    if isinstance(item, tuple):
        return f"({''.join(_text(each) + ', ' for each in item)})"
    return repr(item)
