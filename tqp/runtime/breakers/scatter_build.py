"""Builds of unique keys over a dense range, filled by all workers at once: no rows are collected or copied."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tqp.operators.join_lookup import (
    LookupBuild,
    MembershipBuild,
    empty_membership,
    empty_positions,
    mark_membership,
    scatter_positions,
)
from tqp.runtime.frame import frame_of_outputs
from tqp.runtime.pipeline import State


class ScatterBuild:
    """The first column is the packed key, below `size`; the second, unless only existence is asked, a row number.

    The row numbers are those of the pipeline's source, whose columns the probe side then reads where they are.
    """

    ordered = False

    def __init__(self, slot: str, size: int, existence_only: bool, device: torch.device, name: str) -> None:
        self.slot, self.size, self.existence_only = slot, size, existence_only
        self.device, self.name = device, name

    def initial(self, program_state: State) -> Tensor:
        """One table for all workers: each key is written by one row, or always with the same value."""
        make = empty_membership if self.existence_only else empty_positions
        return make(self.size, self.device)

    def partial(self, outputs: Sequence[Any], state: Tensor) -> Tensor:
        frame = frame_of_outputs(outputs)
        keys, validity = frame.columns[0]
        assert isinstance(keys, Tensor)
        if self.existence_only:
            mark_membership(state, keys, validity)
        else:
            rows = frame.columns[1].values
            assert isinstance(rows, Tensor)
            scatter_positions(state, keys, rows, validity)
        return state

    def merge(self, states: list[Tensor]) -> Tensor:
        return states[0]

    def finish(self, state: Tensor, program_state: State) -> State:
        return {self.slot: MembershipBuild(state) if self.existence_only else LookupBuild(state)}

    def describe(self) -> str:
        what = "enter the keys" if self.existence_only else "enter key and row number"
        return f"{what} into {self.slot} for the {self.name}"
