"""What is read of the parts that a path leads to: parts are found in all documents at once, and each distinct one is read once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tqp.core.datatypes import DataType
from tqp.core.json.paths import Deep, Path, Pointed, Wildcard
from tqp.data.nested import Lists, Values, take
from tqp.data.strings import Strings
from tqp.operators.nested.layout import choose
from tqp.operators.rows.selection import row_indices
from tqp.operators.strings import layout
from tqp.operators.strings.json_documents import (
    FRACTION,
    NULL,
    SIGNED,
    TRUTH,
    UNSIGNED,
    Documents,
    Parts,
)
from tqp.operators.strings.json_index import ARRAY, OBJECT, QUOTE
from tqp.operators.text.distinct_values import column_of, distinct, read_by

#: Of which parts something is known, bool [n], and what.
Known = Callable[[Parts], tuple[Tensor, Values]]
#: The names of kinds of parts.
_TYPE_NAMES = {
    OBJECT: "OBJECT",
    ARRAY: "ARRAY",
    QUOTE: "VARCHAR",
    TRUTH: "BOOLEAN",
    NULL: "NULL",
    UNSIGNED: "UBIGINT",
    SIGNED: "BIGINT",
    FRACTION: "DOUBLE",
}
#: No array has so many elements; beyond, indexes would not fit into 64 bits.
_FAR = 1 << 62


def steps_of(path: Path) -> tuple[bytes | int, ...] | None:
    """The steps of a path as `parts_at` takes them; None where it does not."""
    steps: list[bytes | int] = []
    for step in path.steps:
        if isinstance(step, Wildcard | Deep | Pointed):
            return None
        steps.append(step.encode() if isinstance(step, str) else max(-_FAR, min(step, _FAR)))
    return None if path.impossible else tuple(steps)


def read_parts(
    documents: Documents,
    rows: Tensor | None,
    steps: tuple[bytes | int, ...],
    read: Callable[..., Any],
    missing: Any,
    known: Known | None,
    data_type: DataType,
) -> tuple[Values, Tensor]:
    """What is read of each document at the path, and whether it is not NULL, of the rows that count (None: all).

    `read(text, is_whole)` gets the text of a part of which nothing is `known`, or a whole document that `parts_at` leaves to
    others; it is `missing` where there is no part.
    """
    numbers, documents = documents.distinct()
    parts = documents.parts_at(steps)
    counts = torch.ones_like(parts.is_found)
    if rows is not None:
        counts.zero_()[rows if numbers is None else torch.index_select(numbers, 0, rows)] = True
    is_known, answers = torch.zeros_like(parts.is_found), None
    if known is not None:
        is_known, answers = known(parts)
        is_known = is_known & parts.is_found
    codes = torch.zeros_like(parts.texts.starts)
    items = [missing]
    for is_whole, mask in ((False, parts.is_found & ~is_known), (True, ~parts.is_plain)):
        others = row_indices(mask & counts)
        own, contents = distinct(layout.take(documents.strings if is_whole else parts.texts, others))
        codes.index_copy_(0, others, own.to(torch.int64) + len(items))
        reader = partial(read, is_whole=is_whole)
        items += [read_by(reader, content) for content in contents]
    if items == [None] and answers is not None:
        values, validity = answers, is_known
    else:
        values, validity = column_of(items, codes, data_type)
        if answers is not None:
            values, validity = _chosen(is_known, answers, values), validity | is_known
    if numbers is None:
        return values, validity
    return take(values, numbers), torch.index_select(validity, 0, numbers)


def _chosen(condition: Tensor, values: Any, others: Any) -> Any:
    if isinstance(values, Tensor):
        return torch.where(condition, values.to(others.dtype), others)
    return choose([condition], [values], others)


# ---- what is known of parts that were not read -----------------------------------------------------------------------


def as_json(parts: Parts) -> tuple[Tensor, Strings]:
    """Texts without escapes, truth values and short numbers, as they stand."""
    return parts.is_simple, parts.texts


def as_text(parts: Parts) -> tuple[Tensor, Strings]:
    """The same without quotes."""
    is_quoted = (parts.kinds == QUOTE).to(torch.int32)
    texts = parts.texts
    return parts.is_simple, Strings(texts.starts + is_quoted, texts.lengths - 2 * is_quoted, texts.data)


def type_names(parts: Parts) -> tuple[Tensor, Strings]:
    """What json_type() says, but of numbers that may have one of several types."""
    place_of_kind = torch.zeros(256, dtype=torch.int32)
    place_of_kind[list(_TYPE_NAMES)] = torch.arange(len(_TYPE_NAMES), dtype=torch.int32)
    device = parts.kinds.device
    places = torch.index_select(place_of_kind.to(device), 0, parts.kinds.to(torch.int32))
    return parts.kinds != 0, layout.take(layout.from_list([*_TYPE_NAMES.values()], device), places)


def lengths_of_arrays(parts: Parts) -> tuple[Tensor, Tensor]:
    """How many elements arrays have; other parts have none."""
    return parts.is_found, parts.sizes() * (parts.kinds == ARRAY)


def keys_of_objects(parts: Parts) -> tuple[Tensor, Lists]:
    """The keys of objects; other parts have none."""
    return parts.is_found, parts.keys()


def existence(parts: Parts) -> tuple[Tensor, Tensor]:
    """That parts that were found exist."""
    return parts.is_found, parts.is_found


# ---- whether there is a document -------------------------------------------------------------------------------------


def are_json(documents: Documents, is_json: Callable[[str], bool]) -> Tensor:
    """bool [n]: the documents that are well-formed; `is_json` is asked of each distinct one that is not plain."""
    numbers, documents = documents.distinct()
    result = documents.are_plain()
    rows = row_indices(~result)
    codes, texts = distinct(layout.take(documents.strings, rows))
    answers = torch.tensor([is_json(text) for text in texts], dtype=torch.bool, device=codes.device)
    result.index_copy_(0, rows, torch.index_select(answers, 0, codes))
    return result if numbers is None else torch.index_select(result, 0, numbers)
