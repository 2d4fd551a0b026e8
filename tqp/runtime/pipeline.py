"""One pipeline of a tensor program: a graph that runs on each batch of a source, and the breaker that it feeds."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

from torch import fx

from tqp.data.batches import Streamed
from tqp.operators.memory.arrays import as_array
from tqp.runtime.frame import cut_values
from tqp.runtime.graph import Graph, Node
from tqp.runtime.graph_function import GraphFunction, interpret
from tqp.runtime.lowering.stream import Input, InputKind
from tqp.runtime.zone_filters import ZoneFilter, spans_to_read
from tqp.runtime.zone_order import ZoneOrder

#: Everything the pipelines of one run share, by slot: frames, join builds, pools, constants, the device; the workers.
State = dict[str, Any]


#: Seconds that a row of text is expected to take.
_TEXT_ROW_SECONDS = 5e-8


@dataclass(slots=True)
class Cost:
    """Processor time that a pipeline took when it last ran, by which the next run is divided among workers."""

    row_seconds: float = 2.5e-9  # as expected until it has run once
    merge_seconds: float = 0.0  # of the states of several workers or batches

    def worth_sharing(self, num_rows: int) -> float:
        """Seconds of work on so many rows, without what sharing them costs."""
        return num_rows * self.row_seconds - self.merge_seconds


class Breaker(ABC):
    """The end of a pipeline. A state belongs to the worker that folds batches into it until `merge`."""

    #: True: every batch has a state of its own and `merge` gets them in batch order; False: one state per worker,
    #: in any order, for folds that do not depend on order.
    ordered = False
    #: True: where a batch ends changes the result (sums of floats), so that it must not depend on the number of workers.
    fixed_batches = False
    #: True: tensors that were computed as arrays come as such.
    takes_arrays = False
    #: Pipelines that run, perhaps many times, before it finishes.
    body: Sequence[Pipeline] = ()

    @property
    def reads(self) -> Sequence[str]:
        """Slots of the program's state that `initial` and `finish` read, apart from the workers."""
        return ()

    def initial(self, program_state: State) -> Any:
        """What each worker starts to fold into, once per run; None, or something that the workers share."""
        return None

    @abstractmethod
    def partial(self, outputs: Sequence[Any], state: Any) -> Any:
        """Fold one batch's graph outputs into `state`, at first the `initial` one (where `ordered`, always)."""

    @abstractmethod
    def merge(self, states: list[Any]) -> Any:
        """One state of several; there is always at least one batch, if an empty one."""

    @abstractmethod
    def finish(self, state: Any, program_state: State) -> State:
        """What goes into the program's state."""

    @abstractmethod
    def describe(self) -> str:
        """One line for `program.code`."""


class Maker(Breaker):
    """A breaker that reads no batches: what it leaves in `slot` is made when the pipeline ends."""

    slot: str

    def partial(self, outputs: Sequence[Any], state: Any) -> Any:
        return None

    def merge(self, states: list[Any]) -> Any:
        return None


@dataclass(eq=False)
class Pipeline:
    """`function`, made of `record`, runs on each batch of the frame in `source_slot`; its outputs go to `breaker`."""

    record: Graph
    inputs: Sequence[Input]
    source_slot: str
    breaker: Breaker
    row_limit: int | None = None
    needs: Collection[str] = ()  # see Stream
    zone_filters: Sequence[ZoneFilter] = ()  # see Stream
    zone_order: ZoneOrder | None = None  # see Stream
    marks: Sequence[tuple[int, Node | None]] = ()  # see Stream.mark
    operator: int | None = None  # id of the physical node that the breaker belongs to
    title: str = ""
    row_bytes: int = 0  # what a row's values take at once while the function runs; 0: not known
    in_order: bool = False  # of the rows: one worker computes its batches
    makes_text: bool = False  # bytes of text for each row, or values of them
    on_arrays: bool = False
    calls_modules: bool = False  # torch modules of models, which may be anybody's
    #: Nodes whose values have a gradient, in a program that carries any.
    differentiable: set[Node] = field(default_factory=set)

    def __post_init__(self) -> None:
        #: What the executor calls with the inputs.
        self.function: Callable[..., Any] = GraphFunction(
            self.record, on_arrays=self.on_arrays, array_outputs=self.breaker.takes_arrays
        )
        self.cost = Cost(_TEXT_ROW_SECONDS) if self.makes_text else Cost()
        self._readers = [_reader(item) for item in self.inputs]
        self._cut = _positions(self.inputs, InputKind.VALUES, InputKind.VALIDITY)
        self._counts = _positions(self.inputs, InputKind.NUM_ROWS)
        self._firsts = _positions(self.inputs, InputKind.FIRST_ROW)

    @property
    def reads(self) -> set[str]:
        """The slots of the program's state that a run reads."""
        slots = {self.source_slot, *(item.slot for item in self.inputs if item.slot)}
        filters = (slot for each in self.zone_filters for slot in each.reads)
        order = () if self.zone_order is None else (self.zone_order.zones,)
        return slots.union(self.needs, self.breaker.reads, filters, order)

    def num_rows(self, state: State) -> int:
        """How many rows of the source a run has to read: none where a join's build side has no row to match."""
        if any(state[slot].num_rows == 0 for slot in self.needs):
            return 0
        return int(state[self.source_slot].num_rows)

    def spans(self, state: State) -> list[tuple[int, int]]:
        """Which rows of the source a run has to read, as ascending spans [start, stop): none, or some."""
        return spans_to_read(self.zone_filters, state, self.num_rows(state))

    def ends(self, state: State) -> Sequence[int]:
        """Rows of the source, ascending, before which a batch is to end, as those that follow are read apart; mostly none."""
        values = (column.values for column in state[self.source_slot].columns)
        return next((each.column.ends for each in values if isinstance(each, Streamed)), ())

    def watched(self, measure: Callable[..., Any]) -> Pipeline:
        """A copy for somebody who measures: for each call of the function (`what` is the pipeline then), of a node in it, and of
        a step of the breaker (its name), `measure(what, run, *arguments)` is to give what `run(*arguments)` does. What the copy
        learns of costs stays with it.
        """
        watched, breaker = copy(self), copy(self.breaker)
        watched.breaker, watched.cost = breaker, replace(self.cost)

        def run(*arguments: Any) -> Any:
            return interpret(self.record, arguments, measure)

        watched.function = partial(measure, self, run)
        for name in ("partial", "merge", "finish"):
            setattr(breaker, name, partial(measure, name, getattr(self.breaker, name)))
        return watched

    @cached_property
    def graph(self) -> fx.GraphModule:
        """The same computation as torch.fx: for compilers, profilers and exporters. Made when somebody asks."""
        return self.record.module()

    def arguments(self, state: State, array_inputs: Sequence[int] = ()) -> Callable[[int, int], list[Any]]:
        """A function that gives the graph's arguments for rows [start, stop) of the source.

        `array_inputs`: the tensors that are to be arrays, of which batches are cut without the interpreter lock.
        """
        source = state[self.source_slot]
        num_rows = source.num_rows
        values: list[Any] = [None if read is None else read(state) for read in self._readers]
        for position in array_inputs:
            item = values[position]
            values[position] = item.arrays() if isinstance(item, Streamed) else as_array(item)
        are_streamed = any(isinstance(item, Streamed) for item in values)

        def for_batch(start: int, stop: int) -> list[Any]:
            arguments = values.copy()
            if start or stop != num_rows or are_streamed:
                for position in self._cut:
                    arguments[position] = cut_values(values[position], start, stop)
            for position in self._counts:
                arguments[position] = stop - start
            for position in self._firsts:
                arguments[position] = start
            return arguments

        return for_batch


def _reader(item: Input) -> Callable[[State], Any] | None:
    """How an input is found in the program's state, for all rows; None for what only the batch says."""
    slot, column = item.slot, item.column
    match item.kind:
        case InputKind.VALUES | InputKind.ALL_VALUES:
            return lambda state: state[slot].columns[column].values
        case InputKind.VALIDITY | InputKind.ALL_VALIDITY:
            return lambda state: state[slot].columns[column].validity
        case InputKind.OBJECT:
            return operator.itemgetter(slot)
        case InputKind.FRAME_ROWS:
            return lambda state: state[slot].num_rows
        case InputKind.NUM_ROWS | InputKind.FIRST_ROW:
            return None


def _positions(inputs: Sequence[Input], *kinds: InputKind) -> list[int]:
    return [position for position, item in enumerate(inputs) if item.kind in kinds]
