"""Nested values written as text: lists, structs and maps of the texts of what they hold. Those of lists and maps are JSON's, too."""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.data.strings import Strings
from tqp.operators.numbers.logic import any_true
from tqp.operators.rows.runs import sums_before
from tqp.operators.rows.selection import row_indices
from tqp.operators.strings import layout as string_layout
from tqp.operators.strings.build import join
from tqp.operators.strings.compare import equal
from tqp.operators.strings.join_groups import join_groups
from tqp.operators.strings.layout import from_list
from tqp.operators.strings.transform import lower, replace

#: Bytes for which a value stands in quotes inside of a nested one, and those of white space, for which it does at its ends.
_MARKS, _SPACES = b"\"'(),:=[]{}\\", b" \t\n\v\f\r"


def quoted_texts(strings: Strings) -> Strings:
    """The texts of values as they stand inside of lists and structs: in quotes where they need them."""
    if strings.num_rows == 0:
        return strings
    strings = string_layout.compact(strings)
    device, lengths = strings.starts.device, strings.lengths
    needs = lengths == 0
    data = strings.data
    if data.shape[0]:
        marks, spaces = (_table(each, device) for each in (_MARKS, _SPACES))
        counts = sums_before(marks[data.to(torch.int64)])
        stops = strings.starts + lengths
        needs = needs | (torch.index_select(counts, 0, stops) > torch.index_select(counts, 0, strings.starts))
        limit = data.shape[0] - 1
        for ends in (strings.starts.clamp(max=limit), (stops - 1).clamp(min=0)):
            needs = needs | (spaces[torch.index_select(data, 0, ends).to(torch.int64)] > 0)
    needs = needs | equal(lower(strings), from_list([b"null"], device))
    if not any_true(needs):
        return strings
    rows = row_indices(needs)
    chosen = replace(replace(string_layout.take(strings, rows), "\\", "\\\\"), "'", "\\'")
    quote = from_list([b"'"], device)
    return string_layout.replace_rows(strings, rows, join([quote, chosen, quote]))


def list_texts(elements: Strings, rows: Tensor, lengths: Tensor, around: str, between: str = ", ") -> Strings:
    """Lists as text, of the texts of their elements; `rows`: the list of each; `around`: the brackets."""
    inside = join_groups(elements, rows, lengths.shape[0], None, between)
    opened, closed = (from_list([bracket.encode()], rows.device) for bracket in around)
    return join([opened, inside, closed])


def entry_texts(keys: Strings, values: Strings, mark: str) -> Strings:
    """Entries of maps as text, of the texts of their keys and values; `mark`: what stands between both."""
    return join([keys, from_list([mark], keys.starts.device), values])


def struct_texts(names: tuple[str, ...], *fields: Strings) -> Strings:
    """Structs as text, of the texts of their fields, after the names that these have, if they have any."""
    device = fields[0].starts.device
    is_tuple = not names[0]
    parts: list[Strings] = []
    for place, (name, field) in enumerate(zip(names, fields, strict=True)):
        before = ", " if place else "(" if is_tuple else "{"
        if not is_tuple:
            escaped = name.replace("\\", "\\\\").replace("'", "\\'")
            before += f"'{escaped}': "
        parts += [from_list([before.encode()], device), field]
    end = "}" if not is_tuple else ",)" if len(fields) == 1 else ")"
    return join([*parts, from_list([end.encode()], device)])


def text_or_null(strings: Strings, validity: Tensor | None, word: str) -> Strings:
    """The texts of values, the word for NULL where there is none."""
    if validity is None:
        return strings
    null = from_list([word], strings.starts.device)
    return string_layout.choose([validity], [strings], string_layout.broadcast(null, strings.num_rows))


def _table(members: bytes, device: torch.device) -> Tensor:
    table = torch.zeros(256, dtype=torch.int64)
    table[list(members)] = 1
    return table.to(device)
