"""Unions: structs of a tag, the position of the member that there is, and a field for each member. All others are NULL."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor

from tqp.core.datatypes import DataType, enum
from tqp.core.errors import ExecutionError
from tqp.data.nested import Structs, Vector, count_of, element_dtype
from tqp.data.strings import Strings
from tqp.operators.kernel import Kernel, NullRule, Overload
from tqp.operators.nested.elements import Pair
from tqp.operators.nested.layout import every_row, validity_of
from tqp.operators.numbers.logic import any_true
from tqp.operators.rows.batches import common_rows
from tqp.operators.strings import layout as string_layout


def are_comparable(data_type: DataType, *pairs: Pair) -> tuple[Tensor, None]:
    """bool [n]: False where both unions have one tag and a member is NULL; a union that is NULL is comparable."""
    num_rows = common_rows(count_of(values) for values, _ in pairs)
    left, right = (every_row(values, num_rows) for values, _ in pairs)
    assert isinstance(left, Structs) and isinstance(right, Structs)
    comparable = ~_has_null_member(left, right, data_type)
    for _, validity in pairs:
        if validity is not None:
            comparable = comparable | ~validity
    return comparable, None


def _has_null_member(left: Structs, right: Structs, data_type: DataType) -> Tensor:
    """bool [n]: the tags are equal, and one of both members is NULL, or of unions inside of them, which are there, that is so."""
    tags, others = left.fields[0].values, right.fields[0].values
    assert isinstance(tags, Tensor) and isinstance(others, Tensor)
    found = torch.zeros_like(tags, dtype=torch.bool)
    for place, member in enumerate(data_type.children[1:], 1):
        one, other = left.fields[place], right.fields[place]
        is_unknown = ~(validity_of(one) & validity_of(other))
        if member.is_union:
            assert isinstance(one.values, Structs) and isinstance(other.values, Structs)
            is_unknown = is_unknown | _has_null_member(one.values, other.values, member)
        found = found | ((tags == place - 1) & is_unknown)
    return found & (tags == others)


def union_of_fields(
    structs: Structs, is_try: bool, *, validity: Tensor | None = None
) -> tuple[Structs, Tensor]:
    """Unions of structs of a tag and members, and bool [n]: NULL where the tag is. `validity`: bool [n], the rows that count.

    Raises ExecutionError where the tag is that of no member, and where there is another member; `is_try`: NULL there.
    """
    (tags, has_tag), *members = structs.fields
    assert isinstance(tags, Tensor)
    is_whole = tags < len(members)
    for place, member in enumerate(members):
        is_whole = is_whole & ((tags == place) | ~validity_of(member))
    is_there = validity_of(structs.fields[0])
    wrong = is_there & ~is_whole
    if not is_try and any_true(wrong if validity is None else wrong & validity):
        raise ExecutionError(
            "the tag of a union is that of no member, or a member of another tag is not NULL"
        )
    valid = is_there & is_whole
    dtype = element_dtype(enum(map(str, range(len(members)))))
    return Structs((Vector((tags * valid).to(dtype), has_tag), *members)), valid


def _resolve_union_of_fields(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
    return Kernel(union_of_fields, constant_arguments=frozenset((1,)), returns_validity=True, checks=True)


def retagged(tags: Tensor, places: Sequence[int], tag_type: DataType) -> Tensor:
    """The tags of another union, whose tags are of this type: `places[tag]` of each."""
    table = torch.tensor(places, dtype=element_dtype(tag_type), device=tags.device)
    return torch.index_select(table, 0, tags.to(torch.int64))


def member_texts(tags: Tensor, *texts: Strings) -> Strings:
    """Of each row the text of the member that the tag names."""
    texts = tuple(string_layout.broadcast(each, tags.shape[0]) for each in texts)
    conditions = [tags == place for place in range(len(texts) - 1)]
    return string_layout.choose(conditions, texts[:-1], texts[-1]) if conditions else texts[0]


UNION_KERNELS: dict[str, Overload] = {
    "union_of_fields": _resolve_union_of_fields,
    "are_comparable": lambda types, result: Kernel(partial(are_comparable, types[0]), NullRule.CUSTOM),
}
