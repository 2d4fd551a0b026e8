"""The place of a row in its partition or frame: row_number, rank and their kin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import torch
from torch import Tensor

from tqp.core.errors import ExecutionError
from tqp.operators.numbers.logic import any_true
from tqp.operators.windows.partitions import Partitions


class Places(Protocol):
    """Of each row, int64 [n], how many rows of its partition, or of its frame, come before it or its peers."""

    @property
    def before(self) -> Tensor: ...
    @property
    def before_peers(self) -> Tensor: ...
    @property
    def through_peers(self) -> Tensor: ...  # peers included
    @property
    def sizes(self) -> Tensor: ...  # all of them


def row_number(rows: Places) -> Tensor:
    """int64 [n], from 1 on."""
    return rows.before + 1


def rank(rows: Places) -> Tensor:
    """int64 [n]: the number of the first peer."""
    return rows.before_peers + 1


def dense_rank(rows: Partitions) -> Tensor:
    """int64 [n]: how many groups of peers there are up to that of the row."""
    return rows.peers.numbers - rows.partitions.spread(rows.first_peers) + 1


def percent_rank(rows: Places) -> Tensor:
    """float64 [n]: the share of the other rows that come before the row and its peers; 0 where there is one row."""
    others = rows.sizes - 1
    return torch.where(others > 0, rows.before_peers.to(torch.float64) / others.clamp(min=1), 0.0)


def cume_dist(rows: Places) -> Tensor:
    """float64 [n]: the share of rows up to the last peer; 0 of no rows."""
    return rows.through_peers.to(torch.float64) / rows.sizes.clamp(min=1)


def ntile(rows: Places, tiles: Tensor, validity: Tensor | None) -> Tensor:
    """int64 [n]: the tile of the row if the rows are cut into `tiles` (integers [n]), the larger ones first.

    Anything where `tiles` is NULL, or there are no rows. Raises ExecutionError if a number of tiles is not positive.
    """
    is_wrong = tiles <= 0
    if any_true(is_wrong if validity is None else is_wrong & validity):
        raise ExecutionError("the argument of ntile() must be greater than zero")
    size = rows.sizes.clamp(min=1)
    tiles = torch.minimum(tiles.to(torch.int64).clamp(min=1), size)
    small = torch.div(size, tiles, rounding_mode="floor")
    in_large = (size - tiles * small) * (small + 1)  # rows of the tiles that have one more
    place = torch.minimum(rows.before, size - 1)  # behind all rows of a frame it is in the last tile
    of_large = torch.div(place, small + 1, rounding_mode="floor")
    of_small = size - tiles * small + torch.div(place - in_large, small, rounding_mode="floor")
    return torch.where(place < in_large, of_large, of_small) + 1


#: By name, of `Places`, dense_rank of whole partitions only; ntile has an argument.
RANKINGS: dict[str, Callable[[Any], Tensor]] = {
    "row_number": row_number,
    "rank": rank,
    "dense_rank": dense_rank,
    "percent_rank": percent_rank,
    "cume_dist": cume_dist,
}
