"""A look-up table of strings: codes into a new sorted dictionary."""

from __future__ import annotations

import torch

from tqp.data.strings import Strings
from tqp.operators.string_keys import codes as string_codes
from tqp.runtime.breakers.collect import CollectRows
from tqp.runtime.frame import Frame, FrameColumn
from tqp.runtime.pipeline import State


class BuildDictionary(CollectRows):
    """Puts the codes of the one column into the slot and the dictionary into `pool_slot`."""

    def __init__(self, slot: str, pool_slot: str, dtype: torch.dtype) -> None:
        super().__init__(slot)
        self.pool_slot, self.dtype = pool_slot, dtype

    def finish_rows(self, state: Frame, program_state: State) -> State:
        (column,) = state.columns
        assert isinstance(column.values, Strings)
        codes, dictionary = string_codes.factorize(column.values, column.validity)
        return {
            self.slot: Frame(state.num_rows, (FrameColumn(codes.to(self.dtype), column.validity),)),
            self.pool_slot: dictionary,
        }

    def describe(self) -> str:
        return f"dictionary-encode the strings: codes into {self.slot}, entries into {self.pool_slot}"
