"""Lists of the pieces of texts that a constant regular expression cuts out or apart. RE2 through Arrow, on the host."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from tqp.core.errors import ExecutionError, UnsupportedError
from tqp.core.patterns import invalid_pattern, number_of_groups, text_of_group, with_options
from tqp.data.nested import Lists, Vector
from tqp.data.strings import Strings
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.nested.elements import lists_from_arrow
from tqp.operators.nested.functions import string_split
from tqp.operators.strings.layout import to_arrow

#: What stands before and behind a match while the matches are found; a text that holds one of them is refused.
_BEFORE, _BEHIND = "\x01", "\x02"
#: Arrow's replacements name 9 groups, of which one is the match.
_MOST_GROUPS = 8


@lru_cache(maxsize=256)
def _checked(pattern: str, options: str, function: str) -> tuple[str, int]:
    """The expression with its options, and how many groups it has. Raises UnsupportedError where it may match no byte."""
    expression = with_options(pattern, options)
    try:
        matches_nothing = _may_be_empty(expression)
    except pa.ArrowInvalid as error:
        raise invalid_pattern(pattern, error) from error
    if matches_nothing:
        raise UnsupportedError(f"{function}() by an expression that matches the empty text is not supported")
    return expression, number_of_groups(expression)


def _may_be_empty(expression: str) -> bool:
    return bool(pc.match_substring_regex(pa.scalar(""), rf"\A(?:{expression})\z").as_py())


def _may_take_part_empty(group: str, options: str) -> bool:
    """Whether what a group matches may be empty; at the edge of a word that may be where it is not in an empty text."""
    return r"\b" in group or _may_be_empty(with_options(group, options))


def string_split_regex(strings: Strings, pattern: str, options: str = "") -> Lists:
    """The pieces of each text between matches, its characters if the pattern is empty."""
    if not pattern:
        return string_split(strings, pattern)
    expression, _ = _checked(pattern, options, "string_split_regex")
    return lists_from_arrow(pc.split_pattern_regex(to_arrow(strings), expression), strings.starts.device)


def regexp_extract_all(
    strings: Strings,
    pattern: str,
    group: int = 0,
    options: str = "",
    *,
    validity: Tensor | None = None,
) -> Lists:
    """Group `group` (0: all) of each match in each text.

    A group that took no part is NULL. Raises ExecutionError for a group that the pattern has not, if a row counts, and UnsupportedError
    where one that is empty may also have taken part.
    """
    expression, groups = _checked(pattern, options, "regexp_extract_all")
    if not 0 <= group <= groups:
        if strings.num_rows and (validity is None or bool(validity.any())):
            raise ExecutionError(f"regexp_extract_all(): the pattern has {groups} groups, and not {group}")
        group = 0
    if group > _MOST_GROUPS:
        raise UnsupportedError(f"regexp_extract_all() of group {group} is not supported")
    texts = to_arrow(strings)
    if pc.any(pc.match_substring_regex(texts, f"[{_BEFORE}{_BEHIND}]")).as_py():
        raise UnsupportedError("regexp_extract_all() of texts with the characters 1 and 2 is not supported")
    marked = pc.replace_substring_regex(
        texts, pattern=f"({expression})", replacement=rf"{_BEFORE}\{group + 1}{_BEHIND}"
    )
    without = pc.replace_substring_regex(marked, pattern=rf"\A[^{_BEFORE}]*", replacement="")
    without = pc.replace_substring_regex(without, pattern=rf"{_BEHIND}[^{_BEFORE}]*", replacement=_BEHIND)
    has_empty = group and pc.any(pc.match_substring(without, f"{_BEFORE}{_BEHIND}")).as_py()
    if has_empty and _may_take_part_empty(text_of_group(pattern, group), options):
        raise UnsupportedError("regexp_extract_all() of groups that are empty is not supported")
    lists = lists_from_arrow(pc.split_pattern(without, _BEHIND), strings.starts.device)
    pieces = _without_mark(lists)
    elements = Vector(pieces, pieces.lengths > 0 if has_empty else None)
    return Lists(lists.starts, (lists.lengths - 1).clamp(min=0), elements)


def _without_mark(lists: Lists) -> Strings:
    """The pieces without the mark that each begins with but for the last of a list, which is empty."""
    pieces = lists.elements.values
    assert isinstance(pieces, Strings)
    cut = (pieces.lengths > 0).to(torch.int32)
    return Strings(pieces.starts + cut, pieces.lengths - cut, pieces.data)


def _kernel(function: Callable[..., Lists], *, checks: bool = False) -> Overload:
    return lambda types, result: Kernel(
        function, constant_arguments=frozenset(range(1, len(types))), checks=checks
    )


REGEXP_LIST_KERNELS: dict[str, Overload] = {
    "string_split_regex": _kernel(string_split_regex),
    "regexp_extract_all": _kernel(regexp_extract_all, checks=True),
}
