"""Regular expressions: RE2, as in DuckDB, through Arrow's compute functions on the host. Patterns are constants."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import torch
from torch import Tensor

from tqp.core.errors import ExecutionError
from tqp.core.patterns import invalid_pattern, replacement_problem, with_options
from tqp.data.strings import Strings
from tqp.operators.numbers.wide import raise_where
from tqp.operators.strings.build import join
from tqp.operators.strings.layout import broadcast, from_arrow, from_list, pieces_from_arrow, take, to_arrow
from tqp.operators.strings.like import match_expression


def regexp_matches(strings: Strings, pattern: str, options: str = "") -> Tensor:
    """Whether the pattern matches somewhere in each row: bool [n]."""
    return _match(strings, pattern, with_options(pattern, options))


def regexp_full_match(strings: Strings, pattern: str, options: str = "") -> Tensor:
    """Whether the pattern matches the whole of each row: bool [n]."""
    expression = rf"\A(?:{with_options(pattern, options)})\z"
    return _match(strings, pattern, expression)


def regexp_replace(
    strings: Strings, pattern: str, replacement: str, options: str = "", *, validity: Tensor | None = None
) -> Strings:
    r"""The first match in each row (all of them with option `g`) replaced; \1 to \9 stand for groups, \0 for the match.

    Raises ExecutionError for a valid row, whether it matches or not, where the replacement names a group that there is not.
    """
    expression = with_options(pattern, options.replace("g", ""))
    limit = None if "g" in options else 1
    if strings.num_rows == 0:
        return strings
    problem = replacement_problem(pattern, replacement, options)
    if problem is not None:
        every = torch.ones(strings.num_rows, dtype=torch.bool, device=strings.starts.device)
        raise_where(every, problem, validity)
        return strings
    if limit == 1 and "\\" not in replacement:
        joined: Strings = _checked(pattern, lambda: _with_text_for_match(strings, expression, replacement))
        return joined
    if limit == 1 and _looks_around(pattern):
        replaced = _checked(pattern, lambda: _replaced_once(to_arrow(strings), pattern, replacement, options))
    else:
        replaced = _checked(
            pattern,
            lambda: pc.replace_substring_regex(
                to_arrow(strings), pattern=expression, replacement=replacement, max_replacements=limit
            ),
        )
    return from_arrow(replaced, strings.starts.device)


@lru_cache(maxsize=256)
def _looks_around(pattern: str) -> bool:
    r"""Whether what the pattern matches may depend on what stands before or behind the match: \b, or a ^ among other things.

    To replace one match, Arrow matches the pattern a second time, with nothing but the match itself.
    """
    plain = without_classes(pattern)
    if "|" not in plain and "(?" not in plain:
        plain = plain.removeprefix("^").removesuffix("$")
    return re.search(r"[$^\\]", plain) is not None


def has_assertions(pattern: str) -> bool:
    r"""Whether a pattern may ask what stands at a place between characters: ^, $, \A, \z, \b or \B."""
    return re.search(r"[$^\\]", without_classes(pattern)) is not None


def without_classes(pattern: str) -> str:
    """A pattern without its classes of characters, and without backslashes but for those of assertions."""
    return re.sub(r"\\[^bBAz]|\[\^?\]?[^\]]*\]", "", pattern)


def _with_text_for_match(strings: Strings, expression: str, text: str) -> Strings:
    """The first match in each row replaced by a text without groups: what Arrow splits there, joined by the text.

    To replace one match, Arrow matches the pattern a second time, and finds out what all groups are.
    """
    device = strings.starts.device
    offsets, pieces = pieces_from_arrow(
        pc.split_pattern_regex(to_arrow(strings), expression, max_splits=1), device
    )
    first, last = offsets[:-1], offsets[1:] - 1
    before, after, new = take(pieces, first), take(pieces, last), from_list([text], device)
    is_match = last > first
    if not bool(is_match.all()):
        new = broadcast(new, strings.num_rows)
        new, after = (each._replace(lengths=each.lengths * is_match) for each in (new, after))
    return join([before, new, after])


def _replaced_once(texts: pa.Array, pattern: str, replacement: str, options: str) -> pa.Array:
    """The first match in each text replaced, found with all that stands around it."""
    expression, _ = _named_groups(pattern)
    match = with_options(expression, options.replace("g", ""))
    whole = rf"\A(?P<before>(?s:.*?))(?P<g0>{match})(?P<behind>(?s:.*))\z"
    found = pc.extract_regex(texts, whole)
    parts = re.findall(r"\\\d|\\\\|[^\\]+", replacement)
    pieces = [
        pc.struct_field(found, f"g{part[1]}")
        if part[0] == "\\" and part[1] != "\\"
        else pa.scalar(part[:1] if part[0] == "\\" else part, texts.type)
        for part in parts
    ]
    around = [pc.struct_field(found, name) for name in ("before", "behind")]
    replaced = pc.binary_join_element_wise(around[0], *pieces, around[1], pa.scalar("", texts.type))
    return pc.if_else(pc.is_valid(found), replaced, texts)


def regexp_extract(strings: Strings, pattern: str, group: int = 0, options: str = "") -> Strings:
    """Group `group` (0: all) of the first match in each row, empty without a match or for a group that took no part."""
    if not 0 <= group <= 9:
        raise ExecutionError("Group index must be between 0 and 9")
    expression, count = _named_groups(pattern)
    names = f"g{group}"
    if group > count or strings.num_rows == 0:
        return strings._replace(lengths=strings.lengths * 0)
    whole = f"(?P<g0>{with_options(expression, options)})"
    extracted = _checked(pattern, lambda: pc.extract_regex(to_arrow(strings), whole))
    return from_arrow(pc.fill_null(pc.struct_field(extracted, names), ""), strings.starts.device)


def _match(strings: Strings, pattern: str, expression: str) -> Tensor:
    found: Tensor = _checked(pattern, lambda: match_expression(strings, expression))
    return found


def _checked(pattern: str, function: Callable[[], Any]) -> Any:
    try:
        return function()
    except pa.ArrowInvalid as error:
        raise invalid_pattern(pattern, error) from error


@lru_cache(maxsize=256)
def _named_groups(pattern: str) -> tuple[str, int]:
    """The pattern with its capturing groups named g1, g2, ... (Arrow returns named groups only), and their number."""
    pieces: list[str] = []
    count = 0
    index = 0
    in_class = False
    while index < len(pattern):
        letter = pattern[index]
        if letter == "\\":
            pieces.append(pattern[index : index + 2])
            index += 2
            continue
        if in_class:
            in_class = letter != "]"
        elif letter == "[":
            in_class = True
            # A closing bracket right after the opening is a member of the class.
            for opening in ("[^]", "[]", "[^"):
                if pattern.startswith(opening, index):
                    letter = opening
                    break
        elif letter == "(":
            named = pattern.startswith(("(?P<", "(?<"), index)
            if named or not pattern.startswith("(?", index):
                count += 1
                letter = f"(?P<g{count}>"
                if named:
                    index = pattern.index(">", index)
                pieces.append(letter)
                index += 1
                continue
        pieces.append(letter)
        index += len(letter)
    return "".join(pieces), count
