"""TensorProgram: a compiled query as a torch.nn.Module, its code as PyTorch that a person can read, and one run of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn

from tqp.core.backends import Backend
from tqp.core.datatypes import DataType
from tqp.core.errors import UnsupportedError
from tqp.core.process.progress import Steps
from tqp.data.column import Column, Table, column_of
from tqp.planner.algebra.expressions import Constant, Literal, Parameter, Value
from tqp.planner.shapes import ShapeConstants, TakenRows
from tqp.runtime.executor import Executor, Workers
from tqp.runtime.frame import Frame, FrameColumn
from tqp.runtime.lowering.layouts import Form
from tqp.runtime.lowering.program_builder import DomainFrame, ProgramBuilder, TableInput
from tqp.runtime.lowering.stream import StoredColumn
from tqp.runtime.pipeline import Pipeline, State
from tqp.runtime.program_text import program_text


class Constants(nn.Module):
    """Literals and small tables of a program by slot: `objects`. Their tensors are buffers, and models modules of its own."""

    def __init__(self, objects: dict[str, Any]) -> None:
        super().__init__()
        self.objects = objects
        for slot, item in objects.items():
            if isinstance(item, nn.Module):
                self.add_module(slot, item)
            for number, tensor in enumerate(_tensors(item)):
                self.register_buffer(f"{slot}_{number}", tensor)


def _tensors(item: Any) -> Iterator[Tensor]:
    """Those of a tensor, Strings or a frame."""
    if isinstance(item, Tensor):
        yield item
    for part in item.columns if isinstance(item, Frame) else item if isinstance(item, tuple) else ():
        yield from _tensors(part)


class TensorProgram(nn.Module):
    """A query as pipelines of tensor operations. `program()` runs it and gives a Table; `program.code` prints it.

    `is_lasting`: is it worth to be kept for when the query is sent again?
    """

    is_lasting = True

    def __init__(
        self,
        builder: ProgramBuilder,
        columns: Sequence[StoredColumn],
        slot: str,
        names: Sequence[str],
        types: Sequence[DataType],
        executor: Executor,
    ) -> None:
        super().__init__()
        self._steps = builder.pipelines
        self.constants = Constants(builder.constants)
        self.tables: dict[str, TableInput] = builder.tables
        self.placeholders, self._given = builder.placeholders, dict[str, Any]()
        self._rows: TakenRows | None = None  # that are taken of those that it makes
        self.pools, self.derived = builder.pools, builder.derived
        self.result_slot, self.result_columns = slot, tuple(columns)
        self.names, self.types = tuple(names), tuple(types)
        self._executor = executor

    def with_parameters(self, given: ShapeConstants, names: tuple[str, ...]) -> TensorProgram:
        """The same program for these values of its parameters, and with these rows and names of columns."""
        program = copy(self)
        program.names = names
        program._given = {
            slot: convert(*(_value_of(constant, given.values) for constant in constants))
            for slot, (constants, convert) in self.placeholders.items()
        }
        program._rows = given.rows
        return program

    @property
    def has_parameters(self) -> bool:
        """Does it serve other constants, too?"""
        return bool(self.placeholders) or self._rows is not None

    def forward(self) -> Table:
        """Run on the connection's workers."""
        return self._executor.call(self.run)

    def run(self, workers: Workers, watched: Callable[[Pipeline, State], Pipeline] | None = None) -> Table:
        """Run on the calling worker. `watched`: what runs in a pipeline's place, while somebody measures it."""

        def run(pipeline: Pipeline, state: State) -> State:
            return self._executor.run(watched(pipeline, state) if watched else pipeline, state, workers)

        return self._run(run, self.initial_state())

    def _run(self, run: Callable[[Pipeline, State], State], state: State) -> Table:
        """`run` gives what a pipeline adds to the program's state."""
        progress = Steps("", sum(rows or 0 for rows in self._table_rows))
        with progress:
            for pipeline, wanted, rows in zip(self._steps, self._wanted_after, self._table_rows, strict=True):
                # a source that is a domain is made when it is needed: its dictionary may be made by the program itself
                source = state[pipeline.source_slot]
                if isinstance(source, DomainFrame):
                    state[pipeline.source_slot] = source.frame(state, self._executor.device)
                progress.title = pipeline.title
                if rows is None:
                    rows = pipeline.num_rows(state)
                    progress.total += rows
                progress.begin(rows)
                state.update(run(pipeline, state))
                for slot in [slot for slot in state if slot not in wanted]:
                    del state[slot]
        return self._result(state)

    @cached_property
    def _table_rows(self) -> list[int | None]:
        """For each pipeline, the rows of the table that it reads; None where it reads what others make."""
        return [
            self.tables[step.source_slot].source.num_rows if step.source_slot in self.tables else None
            for step in self._steps
        ]

    @cached_property
    def _wanted_after(self) -> list[frozenset[str]]:
        """For each pipeline, the slots that must be kept when it has run: what it and others made for later ones goes with
        its last reader, what the program holds itself stays."""
        constants = self.constants.objects
        wanted = {"device", "workers", self.result_slot, *self._stored, *constants, *self.placeholders}
        for column in self.result_columns:
            wanted.add(column.slot)
            if column.layout.pool is not None:
                wanted.add(column.layout.pool.slot)
        found = []
        for pipeline in reversed(self._steps):
            found.append(frozenset(wanted))
            wanted.update(pipeline.reads)
            source = constants.get(pipeline.source_slot)
            if isinstance(source, DomainFrame) and source.domain.pool is not None:
                wanted.add(source.domain.pool.slot)
        return found[::-1]

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """What `.to`, `.cuda`, `.half` and the like do to every tensor: refused where it is not what a tensor is already.

        The columns of tables, and what a run makes of them, belong to the connection that compiled the program.
        """
        device = self._executor.device
        probe = torch.empty(0, dtype=torch.float64, device=device)
        moved = fn(probe)
        if moved.device != device or moved.dtype != probe.dtype:
            tables = ", ".join(f'"{table.source.name}"' for table in self.tables.values())
            wanted = f"to {moved.device}" if moved.device != device else f"to {moved.dtype}"
            raise UnsupportedError(
                f"a program cannot be moved {wanted}: the columns{f' of {tables}' if tables else ''} and the states of its "
                f"pipelines stay on {device}, in the types that the query gives them; compile the query on "
                "tqp.connect(device=...)"
            )
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]

    def steps(self) -> list[Pipeline]:
        """All pipelines, in the order in which they run first."""
        return [each for step in self._steps for each in (*step.breaker.body, step)]

    def initial_state(self) -> State:
        """Tables, their string pools, constants and the device, by slot."""
        return {"device": self._executor.device, **self._stored, **self.constants.objects, **self._given}

    @cached_property
    def _stored(self) -> State:
        """Tables, their pools and what else is kept with them by slot: the same in every run."""
        stored: State = {}
        for slot, table in self.tables.items():
            columns = tuple(FrameColumn(*table.source.stored(name)) for name in table.columns)
            stored[slot] = Frame(table.source.num_rows, columns)
        for slot, (source, name) in self.pools.items():
            stored[slot] = source.column(name).pool
        for slot, make in self.derived.items():
            stored[slot] = make(self._executor.map)
        return stored

    def _result(self, state: State) -> Table:
        if self._rows is not None:
            state = self._taken(state, *self._rows)
        num_rows = state[self.result_slot].num_rows
        columns = []
        for data_type, stored in zip(self.types, self.result_columns, strict=True):
            values, validity = state[stored.slot].columns[stored.index]
            if stored.layout.form is not Form.CODES:
                columns.append(column_of(data_type, num_rows, values, validity))
            else:
                pool = stored.layout.pool
                assert pool is not None
                entries = state[pool.slot]
                known = pool.is_dictionary, pool.is_sorted
                columns.append(Column(data_type, num_rows, values, validity, entries, *known))
        return Table(self.names, tuple(columns), num_rows)

    def _taken(self, state: State, limit: int, offset: int) -> State:
        """The state with some rows of those that the program made in the frames of its result."""
        stop = min(state[self.result_slot].num_rows, offset + limit)
        start = min(offset, stop)
        numbers = torch.arange(start, stop, dtype=torch.int32, device=self._executor.device)
        taken = {}
        for slot in {self.result_slot, *(column.slot for column in self.result_columns)}:
            frame = state[slot].cut(start, stop)
            columns = [
                each if each.values is not None else each._replace(values=numbers) for each in frame.columns
            ]
            taken[slot] = Frame(frame.num_rows, tuple(columns))
        return state | taken

    @property
    def code(self) -> str:
        """The program as Python: one function a pipeline, each part under the SQL it comes from.

        For torch, it runs by itself: it imports what its functions call.
        """
        tables = {slot: table.source.name for slot, table in self.tables.items()}
        return program_text(self.steps(), tables, with_imports=self._executor.backend is Backend.TORCH)


def _value_of(constant: Constant, given: Sequence[Value]) -> Value:
    if isinstance(constant, Parameter):
        return given[constant.index]
    assert isinstance(constant, Literal)
    return constant.value
