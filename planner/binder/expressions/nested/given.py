"""Lists and dicts that are given for parameters, as the lists, structs and maps that DuckDB makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tqp.core.datatypes import NULL, VARCHAR, DataType, TypeKind, list_of, map_of, struct
from tqp.core.errors import BindError
from tqp.core.keywords import lower_ascii
from tqp.planner.algebra.expressions import Call, Expression, Literal
from tqp.planner.binder.expressions.coercion import cast_to, folded
from tqp.planner.functions.type_rules import common_settled_type, settle
from tqp.planner.parse import Span


def list_given(values: Iterable[Expression], label: str, span: Span | None) -> Expression:
    """A list of constants, in the type of all of them."""
    settled = list(map(settle, values))
    common = common_type_given((each.data_type for each in settled), label, span)
    elements = tuple(cast_to(each, common, span) for each in settled)
    if not elements:
        return Literal((), list_of(NULL))
    return folded(Call("list_value", elements, list_of(common), span))


def common_type_given(types: Iterable[DataType], label: str, span: Span | None) -> DataType:
    """Of elements of one list, text makes text of the others, and any number a number of a truth value."""
    common = NULL
    for data_type in dict.fromkeys(types):
        found = _type_of_both(common, data_type)
        if found is None:
            raise BindError(f"the list given for {label} mixes {common} and {data_type}", span)
        common = found
    return common


def _type_of_both(left: DataType, right: DataType) -> DataType | None:
    if VARCHAR in (left, right) and TypeKind.BLOB not in (left.kind, right.kind):
        return VARCHAR
    if TypeKind.BOOLEAN in (left.kind, right.kind) and (left.is_numeric or right.is_numeric):
        return left if left.is_numeric else right
    return common_settled_type(left, right)


def is_map(value: Mapping[Any, Any]) -> bool:
    """Whether DuckDB makes a MAP of a dict: of one with nothing in it, and of one that holds a list of keys and one of as many values."""
    if set(value) != {"key", "value"}:
        return not value
    lists = [value["key"], value["value"]]
    return all(isinstance(each, list) for each in lists) and len(lists[0]) == len(lists[1])


def mapping_given(
    value: Mapping[Any, Any], fields: Sequence[Expression], label: str, span: Span | None
) -> Expression:
    """A dict whose values are bound."""
    if not value:
        return Literal((), map_of(NULL, NULL))
    names = list(map(str, value))
    if is_map(value):
        lists = (fields[names.index("key")], fields[names.index("value")])
        return folded(Call("map", lists, map_of(*(each.data_type.element for each in lists)), span))
    if len(set(map(lower_ascii, names))) < len(names):
        raise BindError(f"a dict given for {label} has two keys that are one name in SQL: {names}", span)
    settled = tuple(map(settle, fields))
    types = {name: field.data_type for name, field in zip(names, settled, strict=True)}
    return folded(Call("struct_pack", settled, struct(types), span))
