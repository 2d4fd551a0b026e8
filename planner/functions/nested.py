"""Functions of lists and structs: made of values, and taken apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from tqp.core.datatypes import BIGINT, TypeKind
from tqp.core.text.nested import parts_of_text
from tqp.planner.algebra.expressions import Call, Expression, Literal
from tqp.planner.functions.constants import no_constant
from tqp.planner.functions.declaration import NullRule, scalar
from tqp.planner.functions.ranges import Range, Ranges, any_length


def _packed(call: Call, *values: Any) -> Any:
    return values


def _map(call: Call, keys: Any, values: Any) -> Any:
    """The entries of a map; which keys are equal is left to the kernel, where that is not plain."""
    if keys is None or values is None or not _are_keys(call, keys, len(values)):
        return NotImplemented
    return tuple(zip(keys, values, strict=True))


def _map_of_entries(call: Call, entries: Any) -> Any:
    """As `_map`."""
    if entries is None or None in entries:
        return NotImplemented
    keys = [key for key, _ in entries]
    return entries if _are_keys(call, keys, len(keys)) else NotImplemented


def _are_keys(call: Call, keys: Any, values: int) -> bool:
    """Are these, one for each value, plainly none of them NULL and all different?"""
    if call.data_type.element.children[0].kind in ORDERED_OTHERWISE or None in keys:
        return False
    return len(keys) == values == len(set(keys))


def _is_no_map(call: Call, ranges: Ranges, result: Range | None) -> bool:
    """Unless its keys are constants that are plainly different, and their number that of the values."""
    keys, values = call.arguments
    if not isinstance(keys, Literal) or keys.value is None:
        return True
    is_listed = isinstance(values, Call) and values.function == "list_value"
    return not (is_listed and _are_keys(call, keys.value, len(values.inputs)))


def _entries(call: Call, value: Any) -> Any:
    return value


def _parts(place: int, call: Call, value: Any) -> Any:
    return None if value is None else tuple(entry[place] for entry in value)


def _may_be_malformed(call: Call, ranges: Ranges, result: Range | None) -> bool:
    """Unless the cast is tried."""
    return not (isinstance(call.arguments[1], Literal) and call.arguments[1].value)


def _parts_of_text(call: Call, text: Any, is_try: Any, target: Any) -> Any:
    return parts_of_text(text, call.data_type, target, is_try)


#: Types of which values that differ may be equal, or hold such.
ORDERED_OTHERWISE = (
    TypeKind.FLOAT,
    TypeKind.DOUBLE,
    TypeKind.INTERVAL,
    TypeKind.LIST,
    TypeKind.ARRAY,
    TypeKind.STRUCT,
    TypeKind.MAP,
    TypeKind.UNION,
)


def _element(call: Call, values: Any, place: Any) -> Any:
    """Counted from 1 or from the end; NULL outside of the list."""
    if values is None or place is None or not 1 <= abs(place) <= len(values):
        return None
    return values[place - (place > 0)]


def _may_stand_still(call: Call, ranges: Ranges, result: Range | None) -> bool:
    """A slice whose step may be zero."""
    step = call.arguments[3] if len(call.arguments) > 3 else Literal(1, BIGINT)
    return not (isinstance(step, Literal) and step.value != 0)


def _check_order(arguments: Sequence[Expression]) -> None:
    """The elements of a list that is sorted, and the words behind it."""
    for argument in arguments[1:]:
        word = argument.value if isinstance(argument, Literal) else None
        if not isinstance(word, str) or word.upper() not in _ORDERS:
            raise no_constant(
                argument,
                "the order of list_sort() is a constant: 'ASC' or 'DESC', then 'NULLS FIRST' or 'NULLS LAST'",
            )


_ORDERS = ("ASC", "DESC", "NULLS FIRST", "NULLS LAST")
_SORTS = ("LIST -> same", "LIST VARCHAR -> same")
_VECTORS = ("FLOAT[] FLOAT[] -> FLOAT", "DOUBLE[] DOUBLE[] -> DOUBLE")
_RANGES = ("BIGINT -> BIGINT[]", "BIGINT BIGINT -> BIGINT[]", "BIGINT BIGINT BIGINT -> BIGINT[]")


def _may_be_long(call: Call, ranges: Ranges, result: Range | None) -> bool:
    """range(): whether there may be more than 2^32 elements."""
    return any(known is None or max(map(abs, known)) >= 2**31 for known in ranges[:2])


NESTED = (
    # bytes that compare as nested values do: what the planner and the runtime make of these to compare them
    scalar("order_key"),
    scalar("list_value list_pack", is_call=True, null=NullRule.NEVER, fold=_packed),
    scalar("struct_pack row", is_call=True, null=NullRule.NEVER, fold=_packed),
    scalar("struct_extract struct_extract_at", is_call=True, null=NullRule.PROPAGATES),
    # of lists of structs that are all there: what the rows of table functions are made of
    scalar("list_of_fields"),
    scalar("list_extract list_element", "LIST BIGINT -> element", null=NullRule.PROPAGATES, fold=_element),
    scalar("list_length", "length: LIST -> BIGINT", "array_length: LIST -> BIGINT", range=any_length),
    scalar(
        "list_slice array_slice",
        "LIST BIGINT BIGINT -> same",
        "LIST BIGINT BIGINT BIGINT -> same",
        "VARCHAR BIGINT BIGINT -> VARCHAR",
        "BLOB BIGINT BIGINT -> BLOB",
        raises=_may_stand_still,
        computes_all=True,
        bends=False,
    ),
    scalar("list_sort array_sort", *_SORTS, "LIST VARCHAR VARCHAR -> same", check=_check_order),
    scalar("list_reverse_sort array_reverse_sort", *_SORTS, check=_check_order),
    scalar(
        "list_grade_up array_grade_up grade_up",
        *("LIST -> BIGINT[]", "LIST VARCHAR -> BIGINT[]", "LIST VARCHAR VARCHAR -> BIGINT[]"),
        check=_check_order,
    ),
    scalar("list_select array_select", "LIST BIGINT[] -> same", raises=True),
    scalar("list_where array_where", "LIST BOOLEAN[] -> same", raises=True),
    scalar("list_repeat", "repeat: LIST BIGINT -> same"),
    scalar("list_zip array_zip", is_call=True, null=NullRule.NEVER),
    scalar("list_resize array_resize", is_call=True, null=NullRule.FIRST, raises=True),
    scalar("list_has_any array_has_any &&", is_call=True),
    scalar("list_has_all array_has_all @>", is_call=True),
    scalar("list_intersect array_intersect", is_call=True, null=NullRule.FIRST),
    *(
        scalar(names, *_VECTORS, raises=True, null=NullRule.PROPAGATES)
        for names in (
            *("list_inner_product list_dot_product", "list_negative_inner_product list_negative_dot_product"),
            *("list_distance", "list_cosine_similarity", "list_cosine_distance"),
        )
    ),
    scalar("array_cross_product", is_call=True, raises=True),
    scalar("list_distinct array_distinct", "LIST -> same"),
    scalar("list_unique array_unique", "LIST -> UBIGINT", range=any_length),
    scalar("list_concat list_cat array_concat array_cat", is_call=True, null=NullRule.NEVER),
    scalar("flatten", "LIST -> flat"),
    scalar("hash", is_call=True, null=NullRule.NEVER),
    scalar("range", *_RANGES, raises=_may_be_long),
    scalar("generate_series", *_RANGES, raises=_may_be_long),
    scalar("string_split str_split string_to_array split", "VARCHAR VARCHAR -> VARCHAR[]", computes_all=True),
    scalar("map", is_call=True, raises=_is_no_map, fold=_map),
    scalar("map_from_entries", is_call=True, raises=True, fold=_map_of_entries),
    scalar("map_keys", is_call=True, fold=partial(_parts, 0)),
    scalar("map_values", is_call=True, fold=partial(_parts, 1)),
    scalar("map_entries", is_call=True, fold=_entries),
    scalar("map_concat", is_call=True, null=NullRule.ALL),
    scalar("equi_width_bins", is_call=True, raises=True),
    # what casts from text read: the parts as text, of a list, a struct or a map
    scalar("parts_of_text", null=NullRule.PROPAGATES, raises=_may_be_malformed, fold=_parts_of_text),
    scalar("cardinality", is_call=True, range=any_length),
    # what casts from structs of a tag and members make, see `has_fields_of`
    scalar("union_of_fields", null=NullRule.PROPAGATES, raises=_may_be_malformed),
)

#: Aggregates that have a function of their own over lists.
LIST_AGGREGATES = """
    sum avg min max count product stddev_pop stddev_samp var_pop var_samp median bool_and bool_or any_value histogram
    approx_count_distinct bit_and bit_or bit_xor entropy first kurtosis kurtosis_pop last mad mode sem skewness string_agg
""".split()

#: Calls over the elements of lists, which the binder makes of other expressions; by what it makes, how SQL writes them.
ELEMENT_FUNCTIONS: Mapping[str, str] = {
    "list_transform": "list_transform array_transform list_apply array_apply apply",
    "list_filter": "list_filter array_filter filter",
    "list_reduce": "list_reduce array_reduce reduce",
    "list_any": "list_contains list_has array_contains array_has",
    "list_first_place": "list_position list_indexof array_position array_indexof",
    "list_aggregate": "list_aggregate list_aggr array_aggregate array_aggr aggregate",
    "array_to_string": "array_to_string",
    "": " ".join(f"list_{name}" for name in LIST_AGGREGATES),
}
