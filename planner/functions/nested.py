"""Functions of lists and structs: made of values, and taken apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tqp.core.datatypes import BIGINT
from tqp.planner.algebra.expressions import Call, Literal
from tqp.planner.functions.declaration import NullRule, scalar
from tqp.planner.functions.ranges import Range, Ranges


def _packed(call: Call, *values: Any) -> Any:
    return values


def _length(call: Call, ranges: Ranges) -> Range:
    return 0, 2**40


def _may_stand_still(call: Call, ranges: Ranges, result: Range | None) -> bool:
    """A slice whose step may be zero."""
    step = call.arguments[3] if len(call.arguments) > 3 else Literal(1, BIGINT)
    return not (isinstance(step, Literal) and step.value != 0)


NESTED = (
    # bytes that compare as nested values do: what the planner and the runtime make of these to compare them
    scalar("order_key"),
    scalar("list_value", is_call=True, null=NullRule.NEVER, fold=_packed),
    scalar("struct_pack row", is_call=True, null=NullRule.NEVER, fold=_packed),
    scalar("struct_extract struct_extract_at", is_call=True, null=NullRule.PROPAGATES),
    scalar("list_extract list_element", "LIST BIGINT -> element", null=NullRule.PROPAGATES),
    scalar("list_length", "length: LIST -> BIGINT", "array_length: LIST -> BIGINT", range=_length),
    scalar(
        "list_slice array_slice",
        "LIST BIGINT BIGINT -> same",
        "LIST BIGINT BIGINT BIGINT -> same",
        raises=_may_stand_still,
    ),
)

#: Aggregates that have a function of their own over lists.
LIST_AGGREGATES = """
    sum avg min max count product stddev_pop stddev_samp var_pop var_samp median bool_and bool_or any_value
""".split()

#: Calls over the elements of lists, which the binder makes of other expressions; by what it makes, how SQL writes them.
ELEMENT_FUNCTIONS: Mapping[str, str] = {
    "list_transform": "list_transform array_transform list_apply array_apply apply",
    "list_filter": "list_filter array_filter filter",
    "list_any": "list_contains list_has array_contains array_has",
    "list_first_place": "list_position list_indexof array_position array_indexof",
    "list_aggregate": "list_aggregate list_aggr array_aggregate array_aggr aggregate",
    "": " ".join(f"list_{name}" for name in LIST_AGGREGATES),
}
