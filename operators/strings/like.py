"""LIKE and ILIKE: a constant pattern is compiled once into words to look for."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow.compute as pc
import torch
from torch import Tensor

from tqp.core.errors import ExecutionError
from tqp.core.patterns import DANGLING_ESCAPE, expression_of_glob, like_problem
from tqp.data.backend import is_host
from tqp.data.strings import Strings
from tqp.operators.numbers.wide import raise_where
from tqp.operators.rows.selection import row_indices
from tqp.operators.strings.compare import equals_word
from tqp.operators.strings.layout import from_list, take, to_arrow, to_arrow_binary, to_list
from tqp.operators.strings.match import has_words
from tqp.operators.strings.search import ends_with_word, first_occurrences, starts_with_word
from tqp.operators.strings.transform import lower


@dataclass(frozen=True, slots=True)
class LikePattern:
    """A parsed pattern. `words` are the texts between the `%`s: the first anchored at the start of the string, the last
    at its end, the middle ones anywhere between, in order. One word only: no `%`.

    `expression` is set where a `_` makes words insufficient: an RE2 expression for the whole string.
    """

    words: tuple[bytes, ...]
    expression: str | None


@lru_cache(maxsize=1024)
def compile_like(pattern: str, escape: str = "") -> LikePattern:
    """Parse a LIKE pattern. `escape` is empty or one character, which takes the next character literally.

    >>> compile_like("%special%requests%").words
    (b'', b'special', b'requests', b'')

    Raises ExecutionError for a longer `escape`, or a pattern that ends in it.
    """
    problem = like_problem(pattern, escape)
    if problem is not None:
        raise ExecutionError(problem)
    return _compile(pattern, escape)


def _compile(pattern: str, escape: str, is_open: bool = False) -> LikePattern:
    """Of a pattern that does not end in `escape`; `is_open`: whatever comes after it."""
    words = [""]
    expression: list[str] = []
    has_single = False
    characters = iter(pattern)
    for character in characters:
        if escape and character == escape:
            character = next(characters)
        elif character == "%":
            words.append("")
            expression.append(".*")
            continue
        elif character == "_":
            has_single = True
            expression.append(".")
            continue
        words[-1] += character
        expression.append("\\x00" if character == "\0" else re.escape(character))
    if is_open:
        words.append("")
        expression.append(".*")
    if has_single:
        return LikePattern((), r"(?s)\A" + "".join(expression) + r"\z")
    inner = [word for word in words[1:-1] if word]
    anchored = [words[0], *inner, words[-1]] if len(words) > 1 else words
    return LikePattern(tuple(word.encode() for word in anchored), None)


def like(strings: Strings, pattern: str) -> Tensor:
    """strings LIKE pattern: bool [n]."""
    return matches(strings, compile_like(pattern))


def like_escape(strings: Strings, pattern: str, escape: str, *, validity: Tensor | None = None) -> Tensor:
    """strings LIKE pattern ESCAPE escape: bool [n]; raises ExecutionError for a valid row that `like_problem` concerns."""
    problem = like_problem(pattern, escape)
    if problem is None:
        return matches(strings, compile_like(pattern, escape))
    if problem is DANGLING_ESCAPE:  # nothing matches, and what matches the rest gets as far as the end
        concerned = matches(strings, _compile(pattern.removesuffix(escape), escape, is_open=True))
    else:
        concerned = torch.ones_like(strings.lengths, dtype=torch.bool)
    raise_where(concerned, problem, validity)
    return torch.zeros_like(concerned)


def ilike(strings: Strings, pattern: str) -> Tensor:
    """LIKE without regard to case: bool [n]."""
    return like(lower(strings), _lower(pattern))


def ilike_escape(strings: Strings, pattern: str, escape: str, *, validity: Tensor | None = None) -> Tensor:
    """`like_escape` without regard to case."""
    return like_escape(lower(strings), _lower(pattern), escape, validity=validity)


def glob(strings: Strings, pattern: str) -> Tensor:
    """strings GLOB pattern, byte by byte: bool [n]. Runs on the host."""
    expression = expression_of_glob(pattern)
    if expression is None or strings.num_rows == 0:
        return torch.zeros_like(strings.lengths, dtype=torch.bool)
    found = pc.match_substring_regex(to_arrow_binary(strings), expression).to_numpy(zero_copy_only=False)
    return torch.from_numpy(np.ascontiguousarray(found)).to(strings.starts.device)


def _lower(pattern: str) -> str:
    return to_list(lower(from_list([pattern])))[0].decode()


def matches(strings: Strings, pattern: LikePattern) -> Tensor:
    """Whether each row matches a compiled pattern: bool [n]."""
    if pattern.expression is not None:
        return match_expression(strings, pattern.expression)
    return _match_words(strings, pattern.words)


def _match_words(strings: Strings, words: tuple[bytes, ...]) -> Tensor:
    """Whether each row is made of these words, as `LikePattern` has them: bool [n]."""
    if len(words) == 1:
        return equals_word(strings, words[0])
    prefix, *inner, suffix = words
    if not inner and not suffix:
        return starts_with_word(strings, prefix)
    if not inner and not prefix:
        return ends_with_word(strings, suffix)
    if not prefix and not suffix:
        return _has_words(strings, inner)
    anchored = starts_with_word(strings, prefix) if prefix else ends_with_word(strings, suffix)
    if prefix and suffix:
        anchored &= ends_with_word(strings, suffix)
    anchored &= strings.lengths >= len(prefix) + len(suffix)
    if not inner:
        return anchored
    rows = row_indices(anchored)
    between = take(strings, rows)
    shorter = between.lengths - (len(prefix) + len(suffix))
    between = Strings(between.starts + len(prefix), shorter, between.data)
    return anchored.index_copy_(0, rows, _has_words(between, inner))


def _has_words(strings: Strings, words: list[bytes]) -> Tensor:
    """Whether each row contains the words one after the other, each as far left as it can be: bool [n]."""
    if is_host(strings.starts):
        return torch.from_numpy(has_words(strings, words))
    result = torch.zeros_like(strings.lengths, dtype=torch.bool)
    rows = torch.arange(strings.num_rows, device=strings.starts.device)
    for word in words:
        kept, offsets = first_occurrences(strings, word)
        rows = torch.index_select(rows, 0, kept)
        strings = take(strings, kept)
        passed = offsets + len(word)
        strings = Strings(strings.starts + passed, strings.lengths - passed.to(torch.int32), strings.data)
    return result.index_fill_(0, rows, True)


def match_expression(strings: Strings, expression: str) -> Tensor:
    """Whether an RE2 expression matches somewhere in each row: bool [n]. Runs on the host."""
    if strings.num_rows == 0:
        return torch.zeros_like(strings.lengths, dtype=torch.bool)
    found = pc.match_substring_regex(to_arrow(strings), expression).to_numpy(zero_copy_only=False)
    return torch.from_numpy(np.ascontiguousarray(found)).to(strings.starts.device)
