"""Lowering of predicates with parameters: what the program compares with is made of their values before each run.

An integer is clamped to what the column can hold, and one beyond on either side, so that columns are compared in their own
narrow dtype; text that is compared with codes of a dictionary becomes a code by binary search. Long lists become tables.
"""

from __future__ import annotations

import operator
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import partial, reduce
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from tqp.core.datatypes import BOOLEAN, VARCHAR
from tqp.operators import scalar_kernels
from tqp.operators.numbers import elementwise
from tqp.operators.rows.domain_tables import look_up
from tqp.operators.strings import compare as string_compare
from tqp.planner.algebra.expressions import (
    Call,
    ColumnRef,
    Constant,
    Expression,
    InList,
    Parameter,
    are_literals,
)
from tqp.planner.functions.conditions import COMPARISONS, MIRRORED, TEXT_PREDICATES
from tqp.runtime.lowering.expressions.code_ranges import (
    LARGEST_TABLE,
    MOST_COMPARISONS,
    DictionaryEntries,
    prefix_range,
)
from tqp.runtime.lowering.expressions.compare import (
    NUMBER_COMPARISONS,
    STRINGS,
    WIDE,
    compare_by_order,
    compare_with_float,
)
from tqp.runtime.lowering.expressions.numbers import range_of, wide_node
from tqp.runtime.lowering.graph_builder import NamedKernel, Node
from tqp.runtime.lowering.layouts import Form, Layout, canonical_layout
from tqp.runtime.lowering.stream import Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering

Constants = Sequence[Constant]


def lower_parameter_codes(lowering: ExpressionLowering, expression: Expression) -> Value | None:
    """A predicate with parameters on a column with a stored dictionary, by its codes; None of all else."""
    match _parameter_last(expression):
        case Call(function, (ColumnRef(id), Parameter() as parameter)) if function in _BY_CODE:
            constants: Constants = (parameter,)
        case Call("starts_with" as function, (ColumnRef(id), Parameter() as parameter)):
            constants = (parameter,)
        case InList(ColumnRef(id), constants) if not are_literals(constants):
            function = "in"
        case _:
            return None
    layout = lowering.stream.columns[id].layout
    entries = lowering.program.dictionary(layout.pool) if layout.pool is not None else None
    if layout.form is not Form.CODES or layout.pool is None or entries is None:
        return None
    if not entries.is_sorted and function not in ("equal", "not_equal", "in"):
        return None
    value, build = lowering.stream.column(id), lowering.stream.builder

    def given(find: Callable[..., Any]) -> Node:
        return _given(lowering, constants, (layout.pool, find), partial(find, entries))

    if function == "in":
        node = _listed(
            lowering, value, constants, partial(_code_of, entries), 0, len(entries) - 1, layout.pool
        )
    elif function == "starts_with":
        above = build.call(elementwise.greater_equal, value.node, given(_first_with_prefix))
        below = build.call(elementwise.less, value.node, given(_after_prefix))
        node = build.call(operator.and_, above, below)
    else:
        compare, find = _BY_CODE[function]
        node = build.call(compare, value.node, given(find))
    return Value(_mask_layout(value), node, value.validity)


def lower_with_parameter(lowering: ExpressionLowering, expression: Expression) -> Value | None:
    """A predicate with parameters, row by row, NULL where its operand is; None of all else."""
    constants: Constants
    expression = _parameter_last(expression)
    match expression:
        case InList(operand, constants) if not are_literals(constants):
            make = _in_list
        case Call(function, (operand, Parameter() as parameter)) if function in COMPARISONS:
            make, constants = partial(_compared, function=function), (parameter,)
        case Call(function, (operand, Parameter() as parameter)) if function in TEXT_PREDICATES:
            make, constants = partial(_searched, call=expression), (parameter,)
        case _:
            return None
    value = lowering.materialised(operand)
    return Value(_mask_layout(value), make(lowering, value, constants), value.validity)


def _parameter_last(expression: Expression) -> Expression:
    match expression:
        case Call(function, (Parameter() as parameter, operand)) if function in COMPARISONS:
            return Call(MIRRORED[function], (operand, parameter), BOOLEAN)
    return expression


def _mask_layout(value: Value) -> Layout:
    """What stands under a NULL is unspecified."""
    return canonical_layout(BOOLEAN, value.layout.nullable)


def _given(
    lowering: ExpressionLowering, constants: Constants, form: Hashable, convert: Callable[..., Any]
) -> Node:
    """What `convert` makes of the constants' values before each run."""
    return lowering.stream.object(lowering.program.parameter(constants, form, convert))


def _compared(lowering: ExpressionLowering, left: Value, constants: Constants, function: str) -> Node:
    build, layout = lowering.stream.builder, left.layout
    given = partial(_given, lowering, constants)
    if layout.data_type.is_string:
        one_row = partial(lowering.program.one_row, layout=canonical_layout(VARCHAR, False))
        return compare_by_order(
            build, STRINGS, function, lowering.strings(left), given(Form.STRINGS, one_row)
        )
    if layout.form is Form.WIDE:
        row = given(Form.WIDE, partial(lowering.program.one_row, layout=layout))
        return compare_by_order(build, WIDE, function, wide_node(lowering, left), row)
    if layout.data_type.is_float:
        return compare_with_float(lowering, function, left, given("number", _same))
    limits = torch.iinfo(layout.dtype)
    low, high = range_of(left)
    low, high = max(low, limits.min) - 1, min(high, limits.max) + 1
    node = lowering.tensor(left)
    if low < limits.min or high > limits.max:
        node, limits = lowering.to_dtype(left, torch.int64), torch.iinfo(torch.int64)
        low, high = max(low, limits.min), min(high, limits.max)
    clamped = given((low, high), lambda value: min(max(value, low), high))
    return build.call(NUMBER_COMPARISONS[function], node, clamped)


def _searched(lowering: ExpressionLowering, value: Value, constants: Constants, call: Call) -> Node:
    """LIKE and its kin: a pattern is a Python string, a word one row of strings."""
    types = tuple(argument.data_type for argument in call.arguments)
    origin = partial(scalar_kernels.resolve, call.function, types, call.data_type)
    kernel = origin()
    if kernel.constant_arguments:
        word = _given(lowering, constants, "text", _same)
    else:
        one_row = partial(lowering.program.one_row, layout=canonical_layout(VARCHAR, False))
        word = _given(lowering, constants, Form.STRINGS, one_row)
    target = NamedKernel(kernel.function, call.function, call.span, origin)
    node = lowering.stream.builder.call(target, lowering.strings(value), word)
    node.scans = kernel.scans
    return node


def _in_list(lowering: ExpressionLowering, value: Value, constants: Constants) -> Node:
    layout = value.layout
    if layout.data_type.is_string:
        words = _given(lowering, constants, "words", lambda *texts: [text.encode() for text in texts])
        return lowering.stream.builder.call(string_compare.in_list, lowering.strings(value), words)
    if layout.form is Form.NUMBER and layout.data_type.is_integer_like:
        low, high = range_of(value)
        limits = torch.iinfo(layout.dtype)
        return _listed(lowering, value, constants, _same, max(low, limits.min), min(high, limits.max))
    return _any(lowering, (_compared(lowering, value, (constant,), "equal") for constant in constants))


def _listed(
    lowering: ExpressionLowering,
    value: Value,
    constants: Constants,
    find: Callable[[Any], int],
    low: int,
    high: int,
    pool: Hashable = None,
) -> Node:
    """A bool tensor: integers from `low` to `high` that are among what `find` makes of the constants."""
    build = lowering.stream.builder
    if pool is not None and len(constants) <= MOST_COMPARISONS:
        codes = (_given(lowering, (constant,), (pool, _code_of), find) for constant in constants)
        return _any(lowering, (build.call(elementwise.equal, value.node, code) for code in codes))
    if len(constants) <= MOST_COMPARISONS:
        return _any(lowering, (_compared(lowering, value, (constant,), "equal") for constant in constants))
    dtype, device = value.layout.dtype, lowering.program.device

    def wanted(*values: Any) -> Tensor:
        found = sorted({number for number in map(find, values) if low <= number <= high})
        return torch.tensor(found, dtype=torch.int64)

    if high - low < LARGEST_TABLE:

        def table(*values: Any) -> Tensor:
            members = torch.zeros(high - low + 1, dtype=torch.bool)
            members[wanted(*values) - low] = True
            return members.to(device)

        members = _given(lowering, constants, ("members", pool, low, high), table)
        return build.call(look_up, members, value.node, low, value.layout.nullable, name="looked_up")
    listed = _given(
        lowering, constants, (pool, low, high, dtype), lambda *values: wanted(*values).to(device, dtype)
    )
    return build.call(torch.isin, value.node, listed)


def _any(lowering: ExpressionLowering, masks: Iterable[Node]) -> Node:
    return reduce(lambda a, b: lowering.stream.builder.call(operator.or_, a, b), masks)


def _same(value: Any) -> Any:
    return value


def _first_with_prefix(entries: Sequence[bytes], prefix: str) -> int:
    return prefix_range(prefix.encode(), entries)[0]


def _after_prefix(entries: Sequence[bytes], prefix: str) -> int:
    return prefix_range(prefix.encode(), entries)[1]


def _code_of(entries: DictionaryEntries, text: str) -> int:
    """Of the text; -1 if the dictionary lacks it."""
    return entries.place(text.encode())


def _last_below(entries: Sequence[bytes], text: str) -> int:
    return bisect_left(entries, text.encode()) - 1


def _last_through(entries: Sequence[bytes], text: str) -> int:
    return bisect_right(entries, text.encode()) - 1


#: How codes of a dictionary, which is sorted where their order counts, are compared, and with which; all of these are at least -1 and less than its size.
_BY_CODE: dict[str, tuple[Callable[..., Any], Callable[[DictionaryEntries, str], int]]] = {
    "equal": (elementwise.equal, _code_of),
    "not_equal": (elementwise.not_equal, _code_of),
    "less": (elementwise.less_equal, _last_below),
    "less_equal": (elementwise.less_equal, _last_through),
    "greater": (elementwise.greater, _last_through),
    "greater_equal": (elementwise.greater, _last_below),
}
