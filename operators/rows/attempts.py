"""TRY(): a computation of rows, some of which raise."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tqp.core.errors import ExecutionError
from tqp.data.nested import Vector
from tqp.data.strings import Strings
from tqp.operators.groups.group_ids import group_ids_of_columns
from tqp.operators.nested.layout import concatenate_vectors, take_padded_vector
from tqp.operators.rows.selection import take
from tqp.operators.string_keys.codes import group_codes


def attempted(
    compute: Callable[[Tensor], Vector],
    rows: Tensor,
    num_rows: int,
    columns: Sequence[Vector],
    most_calls: int | None = None,
) -> Vector | None:
    """`compute(rows)` in the places of the rows (int64, ascending) among `num_rows`, NULL where it raises ExecutionError and elsewhere.

    If it raises for some, then it is called for one row of each combination of the columns that it reads; those that raise are
    found by halves, so that each costs some calls. None if all of them do. After `most_calls`, those left count as if they raised.
    """
    try:
        return _in_places(compute(rows), rows, num_rows)
    except ExecutionError:
        chosen, of_rows = _one_of_each(rows, columns)
    computed: list[tuple[Tensor, Vector]] = []
    left = list(_halves(chosen)) if chosen.shape[0] == rows.shape[0] else [chosen]
    calls = 1
    while left and calls != most_calls:
        some = left.pop()
        calls += 1
        try:
            computed.append((some, compute(some)))
        except ExecutionError:
            left += _halves(some)
    if not computed:
        return None
    found = torch.cat([each for each, _ in computed])
    places = torch.full((num_rows,), -1, dtype=torch.int64, device=rows.device)
    places[found] = torch.arange(found.shape[0], device=rows.device)
    places[rows] = take(places, of_rows)
    return Vector(*take_padded_vector(concatenate_vectors([vector for _, vector in computed]), places))


def _in_places(vector: Vector, rows: Tensor, num_rows: int) -> Vector:
    if rows.shape[0] == num_rows:
        return vector
    places = torch.full((num_rows,), -1, dtype=torch.int64, device=rows.device)
    places[rows] = torch.arange(rows.shape[0], device=rows.device)
    return Vector(*take_padded_vector(vector, places))


def _halves(rows: Tensor) -> Sequence[Tensor]:
    """The second half first, as the last of a stack is next; none of a single row."""
    half = rows.shape[0] // 2
    return (rows[half:], rows[:half]) if half else ()


def _one_of_each(rows: Tensor, columns: Sequence[Vector]) -> tuple[Tensor, Tensor]:
    """The first of the rows with each combination of values, ascending, and for each row the one that is chosen for it, int64."""
    words: list[Tensor] = [torch.zeros_like(rows)]
    for values, validity in columns:
        if validity is not None:
            words.append(take(validity, rows).to(torch.int8))
        if isinstance(values, Strings):
            words.append(take(group_codes(values, validity), rows))
        elif isinstance(values, Tensor):
            words += _bits(take(values, rows))
        else:  # nested values: each row by itself
            return rows, rows
    ids, first, _ = group_ids_of_columns(words)
    of_rows = take(take(rows, first), ids)
    return take(rows, first).sort().values, of_rows


def _bits(values: Tensor) -> Sequence[Tensor]:
    """Integers that are equal where the values are the same: 0.0 and -0.0 are two."""
    if values.is_floating_point():
        values = values.view(torch.int64 if values.dtype is torch.float64 else torch.int32)
    if values.dtype is torch.bool:
        values = values.to(torch.int8)
    return [values] if values.dim() == 1 else values.unbind(1)
