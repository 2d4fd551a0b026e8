"""What kernels ask of the memory budget before they take it, and how much one holds that asks for nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tqp.core.backends import Backend
from tqp.core.process.memory_budget import charged_to
from tqp.data.backend import use_backend
from tqp.operators.groups.group_ids import group_ids_of_columns
from tqp.operators.rows.hash_table import table_of_rows
from tqp.operators.sorting.sort import SortColumn, sort_rows
from tqp.operators.string_keys.pack import differing_bits, pack
from tqp.operators.strings.layout import from_list
from tqp.runtime.breakers.collect_groups import CollectGroups
from tqp.runtime.frame import Frame, FrameColumn

_ROWS = 100_000


class _Counted:
    """A budget without a limit that notes what is asked of it."""

    def __init__(self) -> None:
        self.asked = 0

    def reserve(self, size: int) -> None:
        self.asked += size

    def left(self) -> int | None:
        return None


class _Largest(TorchDispatchMode):
    """Notes how many elements the largest tensor has that an operation makes."""

    elements = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        made = function(*args, **(kwargs or {}))
        if isinstance(made, Tensor):
            self.elements = max(self.elements, made.numel())
        return made


@pytest.fixture
def on_torch() -> Any:
    use_backend(Backend.TORCH)
    yield
    use_backend(Backend.HOST)


def _asked(function: Callable[[], object]) -> int:
    budget = _Counted()
    with charged_to(budget):
        function()
    return budget.asked


def _keys() -> Tensor:
    return torch.randint(-(2**62), 2**62, (_ROWS * 12,), generator=torch.Generator().manual_seed(0))


@pytest.mark.parametrize("num_rows", [1, 2, 4095, 4097, 100_001])
def test_the_bits_in_which_words_differ_take_no_number_for_each_bit_of_a_row(
    num_rows: int, on_torch: None
) -> None:
    words = torch.zeros(num_rows, dtype=torch.int64)
    words[num_rows // 2], words[-1] = 5 << 40, 5 << 40 | -(2**63)
    expected = (5 << 40 | 1 << 63) if num_rows > 2 else int(words[-1]) & (2**64 - 1)
    if num_rows == 2:
        expected = int(words[0] | words[1]) & (2**64 - 1)
    with _Largest() as largest:
        found = differing_bits(words, 0)
    assert found == expected
    assert largest.elements <= max(num_rows, 64 * 4096)


def test_packing_all_rows_at_once_is_asked_for(on_torch: None) -> None:
    strings = from_list([f"text {number}" for number in range(_ROWS)])
    assert _asked(lambda: pack(strings)) >= 8 * _ROWS * 10


def test_sorting_and_looking_up_are_asked_for() -> None:
    keys = _keys()
    assert _asked(lambda: sort_rows([SortColumn(keys)])) >= 32 * keys.shape[0]
    table = table_of_rows(keys[:_ROWS])
    assert table is not None
    assert _asked(lambda: table.find(keys)) >= 40 * keys.shape[0]


@pytest.mark.parametrize("bound", [1000, 2**62])
def test_groups_of_rows_are_asked_for(bound: int) -> None:
    keys = _keys() % bound
    assert _asked(lambda: group_ids_of_columns([keys])) >= 32 * keys.shape[0]


def test_rows_distributed_over_partitions_are_asked_for() -> None:
    keys = _keys()
    collect = object.__new__(CollectGroups)
    collect.num_keys, collect.bits, collect.size = 1, 4, None
    frame = Frame(keys.shape[0], (FrameColumn(keys, None), FrameColumn(keys, None)))
    assert _asked(lambda: collect._distributed(frame, False)) >= 8 * keys.shape[0] * 5
