"""The place of a row in its partition: row_number, rank and their kin."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from tqp.core.errors import ExecutionError
from tqp.operators.numbers.logic import any_true
from tqp.operators.windows.partitions import Partitions


def row_number(rows: Partitions) -> Tensor:
    """int64 [n], from 1 on."""
    return rows.rows - rows.begins + 1


def rank(rows: Partitions) -> Tensor:
    """int64 [n]: the number of the first peer."""
    partitions, peers = rows.partitions, rows.peers
    if peers.count == rows.num_rows:
        return row_number(rows)
    first_rows = peers.bounds[:-1]
    begins = (
        first_rows if partitions.count == rows.num_rows else torch.index_select(rows.begins, 0, first_rows)
    )
    return peers.spread(first_rows - begins + 1)


def dense_rank(rows: Partitions) -> Tensor:
    """int64 [n]: how many groups of peers there are up to that of the row."""
    return rows.peers.numbers - rows.partitions.spread(rows.first_peers) + 1


def percent_rank(rows: Partitions) -> Tensor:
    """float64 [n]: the share of the other rows that come before the row and its peers; 0 of a row alone."""
    others = (rows.ends - rows.begins - 1).clamp(min=1)
    return (rank(rows) - 1).to(torch.float64) / others


def cume_dist(rows: Partitions) -> Tensor:
    """float64 [n]: the share of rows up to the last peer."""
    return (rows.peers.ends - rows.begins).to(torch.float64) / (rows.ends - rows.begins)


def ntile(rows: Partitions, tiles: Tensor, validity: Tensor | None) -> Tensor:
    """int64 [n]: the tile of the row if its partition is cut into `tiles` (integers [n]), the larger ones first.

    Anything where `tiles` is NULL. Raises ExecutionError if a number of tiles is not positive.
    """
    is_wrong = tiles <= 0
    if any_true(is_wrong if validity is None else is_wrong & validity):
        raise ExecutionError("the argument of ntile() must be greater than zero")
    size = rows.ends - rows.begins
    tiles = torch.minimum(tiles.to(torch.int64).clamp(min=1), size)
    small = torch.div(size, tiles, rounding_mode="floor")
    in_large = (size - tiles * small) * (small + 1)  # rows of the tiles that have one more
    place = rows.rows - rows.begins
    of_large = torch.div(place, small + 1, rounding_mode="floor")
    of_small = size - tiles * small + torch.div(place - in_large, small, rounding_mode="floor")
    return torch.where(place < in_large, of_large, of_small) + 1


#: By name; ntile has an argument.
RANKINGS: dict[str, Callable[[Partitions], Tensor]] = {
    "row_number": row_number,
    "rank": rank,
    "dense_rank": dense_rank,
    "percent_rank": percent_rank,
    "cume_dist": cume_dist,
}
