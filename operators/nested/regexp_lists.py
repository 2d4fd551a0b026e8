"""Lists of the pieces of texts that a constant regular expression cuts out or apart. RE2 through Arrow, on the host."""

from __future__ import annotations

import re
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
from tqp.operators.strings.regexp import has_assertions, without_classes

#: What stands before and behind a match, or a group and the match, while they are found; a text that holds one of them is refused.
_BEFORE, _BEHIND, _END, _NEXT = _MARKS = "\x01\x02\x03\x04"
#: Arrow's replacements name 9 groups, of which one is the match.
_MOST_GROUPS = 8


@lru_cache(maxsize=256)
def _checked(pattern: str, options: str, function: str) -> tuple[str, int, bool]:
    """The expression with its options, how many groups it has, and whether it may match the empty text, as it then does anywhere.

    Raises UnsupportedError where it depends on the place.
    """
    expression = with_options(pattern, options)
    try:
        matches_nothing = _may_be_empty(expression)
    except pa.ArrowInvalid as error:
        raise invalid_pattern(pattern, error) from error
    if matches_nothing and has_assertions(pattern):
        raise UnsupportedError(
            f"{function}() by an expression that matches the empty text in places is not supported"
        )
    return expression, number_of_groups(expression), matches_nothing


def _marked(strings: Strings, function: str) -> pa.Array:
    texts = to_arrow(strings)
    if pc.any(pc.match_substring_regex(texts, f"[{_MARKS}]")).as_py():
        raise UnsupportedError(f"{function}() of texts with the characters 1 to 4 is not supported")
    return texts


def _replaced(texts: pa.Array, pattern: str, replacement: str) -> pa.Array:
    return pc.replace_substring_regex(texts, pattern=pattern, replacement=replacement)


def _may_be_empty(expression: str) -> bool:
    return bool(pc.match_substring_regex(pa.scalar(""), rf"\A(?:{expression})\z").as_py())


def _may_take_part_empty(group: str, options: str) -> bool:
    """Whether what a group matches may be empty; at the edge of a word that may be where it is not in an empty text."""
    return r"\b" in group or _may_be_empty(with_options(group, options))


def string_split_regex(strings: Strings, pattern: str, options: str = "") -> Lists:
    """The pieces of each text between matches, its characters if the pattern is empty."""
    if not pattern:
        return string_split(strings, pattern)
    expression, _, matches_nothing = _checked(pattern, options, "string_split_regex")
    if not matches_nothing:
        return lists_from_arrow(pc.split_pattern_regex(to_arrow(strings), expression), strings.starts.device)
    # The empty text parts all characters, too, from what comes next.
    texts = _replaced(_marked(strings, "string_split_regex"), f"({expression})", rf"{_BEFORE}\1{_BEHIND}")
    texts = pc.replace_substring(texts, f"{_BEFORE}{_BEHIND}", "")
    texts = _replaced(texts, f"{_BEFORE}[^{_BEHIND}]+{_BEHIND}", _END)
    texts = _replaced(texts, f"([^{_END}])", rf"\1{_END}")
    texts = _replaced(texts, rf"([^{_END}]){_END}\z", r"\1")
    return lists_from_arrow(pc.split_pattern(texts, _END), strings.starts.device)


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
    expression, groups, matches_nothing = _checked(pattern, options, "regexp_extract_all")
    if not 0 <= group <= groups:
        if strings.num_rows and (validity is None or bool(validity.any())):
            raise ExecutionError(f"regexp_extract_all(): the pattern has {groups} groups, and not {group}")
        group = 0
    if group > _MOST_GROUPS:
        raise UnsupportedError(f"regexp_extract_all() of group {group} is not supported")
    texts = _marked(strings, "regexp_extract_all")
    marked = _replaced(texts, f"({expression})", rf"{_BEFORE}\{group + 1}{_BEHIND}\1{_END}")
    if matches_nothing:  # and does behind a match of something, too, where none begins, which RE2 leaves out
        marked = _replaced(marked, f"{_BEHIND}[^{_END}]+{_END}", f"{_BEHIND}{_NEXT}")
        marked = pc.replace_substring(marked, _NEXT + _BEFORE, _BEFORE)
        marked = pc.replace_substring(marked, _NEXT, _BEFORE + _BEHIND)
    without = _replaced(marked, rf"\A[^{_BEFORE}]*", "")
    without = _replaced(without, rf"{_BEHIND}[^{_BEFORE}]*", _BEHIND)
    may_take_no_part = group and re.search(r"\||\)[?*{]", without_classes(pattern))
    has_empty = may_take_no_part and pc.any(pc.match_substring(without, f"{_BEFORE}{_BEHIND}")).as_py()
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
