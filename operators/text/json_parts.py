"""What is read of the parts that a path leads to: parts are found in all documents at once, and each distinct one is read once."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from tqp.core.datatypes import DataType
from tqp.core.json.paths import Deep, Path, Pointed, Wildcard
from tqp.data.nested import Values, take
from tqp.data.strings import Strings
from tqp.operators.rows.selection import row_indices
from tqp.operators.string_keys.codes import distinct_values, is_mostly_distinct
from tqp.operators.strings import layout
from tqp.operators.strings.json_documents import are_plain, parts_at
from tqp.operators.text.distinct_values import column_of, distinct, read_by

#: No array has so many elements; beyond, indexes would not fit into 64 bits.
_FAR = 1 << 62


def steps_of(path: Path) -> tuple[bytes | int, ...] | None:
    """The steps of a path as `parts_at` takes them; None where it does not, and of the path to the whole document."""
    steps: list[bytes | int] = []
    for step in path.steps:
        if isinstance(step, Wildcard | Deep | Pointed):
            return None
        steps.append(step.encode() if isinstance(step, str) else max(-_FAR, min(step, _FAR)))
    return tuple(steps) if steps and not path.impossible else None


def read_parts(
    documents: Strings,
    steps: tuple[bytes | int, ...],
    read: Callable[..., Any],
    missing: Any,
    simple: str | None,
    data_type: DataType,
) -> tuple[Values, Tensor]:
    """What is read of each document at the path, and whether it is not NULL.

    `read(text, is_whole)` gets the text of a part, or a whole document that `parts_at` leaves to others; it is `missing` where there
    is no part. `simple` says how texts without escapes, truth values and short integers are read: "json" as they stand,
    "text" without quotes; None by `read`, too.
    """
    numbers = None
    if not is_mostly_distinct(documents):
        numbers, documents = distinct_values(documents)
    parts = parts_at(documents, steps)
    as_it_stands = (
        parts.is_found & parts.is_simple if simple is not None else torch.zeros_like(parts.is_found)
    )
    codes = torch.zeros_like(documents.starts)
    items = [missing]
    rest = ((False, parts.is_found & ~as_it_stands), (True, ~parts.is_plain))
    for is_whole, mask in rest:
        rows = row_indices(mask)
        own, contents = distinct(layout.take(documents if is_whole else parts.texts, rows))
        codes.index_copy_(0, rows, own.to(torch.int64) + len(items))
        reader = partial(read, is_whole=is_whole)
        items += [read_by(reader, content) for content in contents]
    values, validity = column_of(items, codes, data_type)
    if simple is not None:
        assert isinstance(values, Strings)
        texts = parts.texts if simple == "json" else _unquoted(parts.texts, as_it_stands)
        values, validity = layout.choose([as_it_stands], [texts], values), validity | as_it_stands
    if numbers is None:
        return values, validity
    return take(values, numbers), torch.index_select(validity, 0, numbers)


def _unquoted(texts: Strings, rows: Tensor) -> Strings:
    """Those in quotes without these, of the rows that `rows`, bool [n], tells."""
    first = torch.index_select(texts.data, 0, texts.starts.clamp(max=max(texts.data.shape[0] - 1, 0)))
    is_quoted = (rows & (first == ord('"'))).to(torch.int32)
    return Strings(texts.starts + is_quoted, texts.lengths - 2 * is_quoted, texts.data)


def are_json(strings: Strings, is_json: Callable[[str], bool]) -> Tensor:
    """bool [n]: the documents that are well-formed; `is_json` is asked of each distinct one that is not plain."""
    if not is_mostly_distinct(strings):
        numbers, strings = distinct_values(strings)
        return torch.index_select(_are_json(strings, is_json), 0, numbers)
    return _are_json(strings, is_json)


def _are_json(strings: Strings, is_json: Callable[[str], bool]) -> Tensor:
    result = are_plain(strings)
    rows = row_indices(~result)
    codes, texts = distinct(layout.take(strings, rows))
    answers = torch.tensor([is_json(text) for text in texts], dtype=torch.bool, device=codes.device)
    return result.index_copy_(0, rows, torch.index_select(answers, 0, codes))
