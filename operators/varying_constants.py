"""Arguments that are constants to a kernel and differ from row to row: the kernel runs once for each of their values.

A pattern is compiled, a format is parsed for its rows together. Few values are the common case: patterns of a small table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.errors import ExecutionError, UnsupportedError
from tqp.data.nested import count_of, take
from tqp.data.strings import Strings
from tqp.operators.groups.group_ids import group_ids_of_columns
from tqp.operators.kernel import Kernel
from tqp.operators.nested.layout import device_of
from tqp.operators.numbers.casts import storage_dtype
from tqp.operators.rows.selection import row_indices
from tqp.operators.string_keys.codes import distinct_values
from tqp.operators.strings import layout


def for_each_value(
    origin: Callable[[], Kernel], places: Sequence[int], columns: Sequence[int], result_type: DataType
) -> Kernel:
    """A kernel as that of `origin`, but for its constants at `places`, which come as values of the rows.

    It is called for the rows of each combination of them, of rows that count. The results of others may be anything.
    `columns`: the arguments that have a value for each row, `places` among them.
    """
    kernel = origin()

    def call(*arguments: Any, validity: Tensor | None = None) -> Any:
        num_rows, device = count_of(arguments[places[0]]), device_of(arguments[places[0]])
        rows = None if validity is None else row_indices(validity)
        nothing = _nothing(result_type, num_rows, device, kernel.returns_validity)
        given = list(arguments)
        if rows is not None:
            for place in columns:
                given[place] = take(given[place], rows)
        if count_of(given[places[0]]) == 0:
            return nothing
        order, sizes = _groups([given[place] for place in places])
        keywords = {"validity": None} if kernel.checks else {}
        parts = []
        for of_group in torch.split(order, sizes):
            values = [
                take(argument, of_group) if place in columns else _repeated(argument, of_group.shape[0])
                for place, argument in enumerate(given)
            ]
            for place in places:
                values[place] = _constant(values[place])
            parts.append(_called(kernel, values, keywords))
        at = order if rows is None else torch.index_select(rows, 0, order)
        return _placed(nothing, parts, at)

    return replace(
        kernel,
        function=call,
        constant_arguments=kernel.constant_arguments - set(places),
        varying_arguments=frozenset(),
        checks=True,
        scans=False,
    )


def _called(kernel: Kernel, values: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """A constant that a kernel does not know is refused in a query, and an error in a row."""
    try:
        return kernel.function(*values, **keywords)
    except UnsupportedError as error:
        raise ExecutionError(str(error)) from None


def _repeated(literal: Any, num_rows: int) -> Any:
    """One for each row of a literal that is no constant to the kernel."""
    if isinstance(literal, Strings):
        return layout.broadcast(literal, num_rows)
    if not isinstance(literal, Tensor):
        return literal
    return literal.expand(num_rows, *literal.shape[literal.shape[:1] == (1,) :])


def _groups(columns: Sequence[Any]) -> tuple[Tensor, list[int]]:
    """The rows, at least one, those with the same values beside each other, and how many have the same."""
    keys: list[Tensor] = []
    for column in columns:
        if isinstance(column, Strings):
            keys.append(distinct_values(column)[0])
        elif column.is_floating_point():
            keys.append(column.to(torch.float64).view(torch.int64))
        else:
            keys += [column] if column.dim() == 1 else list(column.unbind(1))
    ids, _, count = group_ids_of_columns(keys)
    return torch.argsort(ids, stable=True), torch.bincount(ids, minlength=count).tolist()


def _constant(values: Any) -> Any:
    """What all rows of a group have, as a constant comes to a kernel."""
    if isinstance(values, Strings):
        return layout.to_list(layout.cut(values, 0, 1))[0].decode()
    first = values[0].tolist()
    return tuple(first) if isinstance(first, list) else first


def _nothing(data_type: DataType, num_rows: int, device: torch.device, returns_validity: bool) -> Any:
    """Values for rows that do not count."""
    if data_type.is_string:
        empty = layout.from_list([b""], device)
        values: Any = layout.take(empty, torch.zeros(num_rows, dtype=torch.int64, device=device))
    else:
        shape = (num_rows, 3) if data_type.kind is TypeKind.INTERVAL else (num_rows,)
        values = torch.zeros(shape, dtype=storage_dtype(data_type), device=device)
    if not returns_validity:
        return values
    return values, torch.zeros(num_rows, dtype=torch.bool, device=device)


def _placed(whole: Any, parts: Sequence[Any], rows: Tensor) -> Any:
    """The whole with the parts, one after the other, at these rows."""
    if isinstance(whole, tuple) and not isinstance(whole, Strings):
        values, validity = whole
        validities = [
            torch.ones(count_of(part[0]), dtype=torch.bool, device=rows.device)
            if part[1] is None
            else part[1]
            for part in parts
        ]
        made = _placed(values, [part[0] for part in parts], rows)
        return made, validity.index_copy(0, rows, torch.cat(validities))
    if isinstance(whole, Strings):
        return layout.replace_rows(whole, rows, layout.concatenate(list(parts)))
    return whole.index_copy(0, rows, torch.cat([part.to(whole.dtype) for part in parts]))
