"""Which operation a call of a graph is: those that say so themselves, and the functions of Python, torch and ours that are listed.

Arrays go from call to call on the host, without tensors in between: a tensor over an array takes a microsecond to make and to
drop, and the interpreter lock is given away and taken again with it, where another thread may step in; of a call on 100
thousand rows that is a tenth (see docs/performance.md).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import torch

from tqp.data import division
from tqp.operators.asked_gradients import asked_only
from tqp.operators.gradients import choose_rows
from tqp.operators.groups import aggregates
from tqp.operators.joins import column_keys, run_rows
from tqp.operators.joins import pairs as join_pairs
from tqp.operators.memory.arrays import Array, converted
from tqp.operators.numbers import elementwise, logic
from tqp.operators.numbers.elementwise import of_floats
from tqp.operators.operation import Operation
from tqp.operators.rows import batches, domain_tables, keys
from tqp.operators.rows import selection as rows


def _same_of_arrays(function: Callable[..., Any], **part_of: Any) -> Operation:
    """A function that takes arrays as it takes tensors, and then gives arrays."""
    return Operation(function.__name__, function, function, **part_of)


def _syntax(function: Callable[..., Any], **part_of: Any) -> Operation:
    """An operator of Python that means the same for arrays and tensors, of masks and of integers of any width."""
    return _same_of_arrays(function, only_of_arrays=True, **part_of)


def _index_select(values: Array, dimension: int, indices: Array) -> Array:
    assert dimension == 0
    return rows.take(values, indices)


def _question(method: str) -> Operation:
    """A method of a join build."""

    def ask(build: Any, *arguments: Any) -> Any:
        return join_pairs.ask_with_arrays(build, method, *arguments)

    return Operation(method, method, ask)


def _with_gradient(function: Callable[..., Any]) -> Operation:
    """A function through which gradients pass as they are."""
    return Operation(function.__name__, function, gradient=function)


_LISTED: Mapping[Any, Operation] = {
    operator.and_: _syntax(operator.and_, is_mask=True, can_fuse=True),
    operator.or_: _syntax(operator.or_, is_mask=True, can_fuse=True),
    operator.invert: _syntax(operator.invert, is_mask=True, can_fuse=True),
    operator.xor: _syntax(operator.xor),
    operator.gt: _syntax(operator.gt),
    operator.ge: _syntax(operator.ge),
    operator.getitem: _syntax(operator.getitem, gradient=operator.getitem),
    batches.count: _syntax(batches.count),
    logic.combine_validity: _syntax(logic.combine_validity),
    # floats
    operator.add: of_floats("add", operator.add, np.add, gradient=operator.add, can_fuse=True),
    operator.sub: of_floats("sub", operator.sub, np.subtract, gradient=operator.sub, can_fuse=True),
    operator.mul: of_floats(
        "mul", operator.mul, np.multiply, gradient=asked_only(operator.mul), can_fuse=True
    ),
    operator.truediv: of_floats(
        "truediv", operator.truediv, np.divide, gradient=asked_only(operator.truediv), can_fuse=True
    ),
    division.divide_by: of_floats(
        "divide_by", division.divide_by, np.divide, gradient=asked_only(division.divide_by), can_fuse=True
    ),
    operator.neg: of_floats("neg", operator.neg, np.negative, gradient=operator.neg),
    # masks
    elementwise.all_of: _same_of_arrays(elementwise.all_of, is_mask=True, can_fuse=True),
    elementwise.any_of: _same_of_arrays(elementwise.any_of, is_mask=True, can_fuse=True),
    # rows
    rows.row_indices: _same_of_arrays(rows.row_indices),
    rows.select_most: _same_of_arrays(rows.select_most),
    rows.take: _with_gradient(rows.take),
    rows.take_selected: _same_of_arrays(rows.take_selected, gradient=rows.take_selected),
    rows.take_padded: _same_of_arrays(rows.take_padded, gradient=rows.take_padded),
    rows.compose_selected: _same_of_arrays(rows.compose_selected),
    rows.compose_padded: _same_of_arrays(rows.compose_padded),
    rows.padding_validity: _same_of_arrays(rows.padding_validity),
    batches.repeat: _with_gradient(batches.repeat),
    batches.every_row: _with_gradient(batches.every_row),
    torch.index_select: Operation(
        "index_select", torch.index_select, _index_select, gradient=torch.index_select
    ),
    keys.pack: _same_of_arrays(keys.pack),
    keys.pack_narrow: _same_of_arrays(keys.pack_narrow),
    keys.unpack: _same_of_arrays(keys.unpack),
    domain_tables.unit_codes: _same_of_arrays(domain_tables.unit_codes),
    domain_tables.look_up: _same_of_arrays(domain_tables.look_up, gradient=domain_tables.look_up),
    run_rows.rows_in_build: Operation("rows_in_build", run_rows.rows_in_build, run_rows.rows_in_build_array),
    column_keys.values_in_build: Operation(
        "values_in_build", column_keys.values_in_build, column_keys.values_in_build_array
    ),
    logic.choose: Operation("choose", logic.choose, gradient=choose_rows),
    # methods
    "to": Operation("to", "to", converted, can_fuse=True),
    **{method: _question(method) for method in ("contains", "matches", "matches_equal", "first_match")},
}


#: The device's forms of operations that say so themselves: a graph that is lowered for torch calls these.
_DEVICE_FORMS = {
    each.device: each
    for module in (elementwise, aggregates)
    for each in vars(module).values()
    if isinstance(each, Operation)
}
#: Any other function: it has the one form that it is, and takes part in nothing.
_OTHER = Operation("other", None)


def operation_of(target: Any) -> Operation:
    """The operation that a graph's call of `target` is, which may hold it as its `function`."""
    function = getattr(target, "function", target)
    return (
        function
        if isinstance(function, Operation)
        else _LISTED.get(function) or _DEVICE_FORMS.get(function, _OTHER)
    )
