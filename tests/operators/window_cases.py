"""Sorted rows with partitions and peers, and frames of them, as Python lists and as window kernels have them."""

from __future__ import annotations

import random
from typing import Any, NamedTuple

import torch

from tqp.operators.windows import frames, value_bounds
from tqp.operators.windows.frames import Range
from tqp.operators.windows.partitions import Partitions, segments

CPU = torch.device("cpu")
EXCLUSIONS = ("NO OTHERS", "CURRENT ROW", "GROUP", "TIES")


class Case(NamedTuple):
    """Sorted rows as Python lists: the partition and the order key of each; and as the kernels have them."""

    partitions: list[int]
    keys: list[int]
    rows: Partitions

    @property
    def size(self) -> int:
        return len(self.keys)

    def of_partition(self, row: int) -> list[int]:
        return [other for other in range(self.size) if self.partitions[other] == self.partitions[row]]

    def peers(self, row: int) -> list[int]:
        return [other for other in self.of_partition(row) if self.keys[other] == self.keys[row]]


def case(seed: int, size: int = 60, num_partitions: int = 4, num_keys: int = 5) -> Case:
    generator = random.Random(seed)
    drawn = sorted((generator.randrange(num_partitions), generator.randrange(num_keys)) for _ in range(size))
    partitions, keys = [row[0] for row in drawn], [row[1] for row in drawn]
    whole = segments([torch.tensor(partitions, dtype=torch.int64)], size, CPU)
    peers = segments([torch.tensor(keys, dtype=torch.int64)], size, CPU, whole)
    return Case(partitions, keys, Partitions(whole, peers))


CASES = [
    case(1),
    case(2, 100, 1, 3),
    case(3, 50, 50, 2),
    case(4, 40, 2, 1),
    case(5, 30, 3, 100),
    case(6, 1),
    case(7, 0),
]


def excluded(at: Case, row: int, exclusion: str) -> set[int]:
    return {
        "NO OTHERS": set(),
        "CURRENT ROW": {row},
        "GROUP": set(at.peers(row)),
        "TIES": set(at.peers(row)) - {row},
    }[exclusion]


def listed(ranges: Any, row: int) -> list[int]:
    return [each for part in ranges for each in range(int(part.begins[row]), int(part.ends[row]))]


def find_rows(at: Case, start: int, end: int) -> Range:
    return frames.frame(
        frames.rows_from(at.rows, torch.full((at.size,), start), False), frames.rows_from(at.rows, end, True)
    )


def find_groups(at: Case, start: int, end: int) -> Range:
    return frames.frame(
        frames.groups_from(at.rows, torch.full((at.size,), start), False),
        frames.groups_from(at.rows, end, True),
    )


def find_values(at: Case, start: int, end: int) -> Range:
    keys = torch.tensor(at.keys, dtype=torch.int64)
    key = value_bounds.order_key(keys, None, False, False)
    first = value_bounds.values_from(at.rows, key, keys + start, None, start < 0, False)
    return frames.frame(first, value_bounds.values_from(at.rows, key, keys + end, None, end < 0, True))


def draw_validity(size: int, share: float) -> torch.Tensor:
    generator = random.Random(size)
    return torch.tensor([generator.random() < share for _ in range(size)], dtype=torch.bool)
