"""A regular expression for JSON documents of few levels: an automaton tells in one pass which of them are well-formed.

RE2 looks at a byte every five cycles. Documents that it does not know are checked by `json_index`.
"""

from __future__ import annotations

import numpy as np
import pyarrow.compute as pc
import torch
from torch import Tensor

from tqp.data.backend import is_host
from tqp.data.strings import Strings
from tqp.operators.strings.layout import to_arrow_binary, total_length

#: Each level makes the expression four times as long, and RE2 has no room for the states of longer ones.
_LEVELS = 3
#: For fewer bytes the expression is not worth its compilation, 2.5 ms.
_MANY_BYTES = 1 << 20

_SPACE = r"[ \t\n\r]*"
_KEY = r'"[^"\\\x00-\x1f]*"'
_SCALAR = (
    r'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt])*"|'
    r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null"
)


def match_plain(strings: Strings) -> Tensor:
    """bool [n]: the documents that are plain (see `json_documents`) for certain; none on other devices, nor of few bytes."""
    if not is_host(strings.starts) or total_length(strings) < _MANY_BYTES:
        return torch.zeros_like(strings.starts, dtype=torch.bool)
    found = pc.match_substring_regex(to_arrow_binary(strings), _EXPRESSION)
    return torch.from_numpy(np.asarray(found.to_numpy(zero_copy_only=False)))


def _value(levels: int) -> str:
    """A value with at most so many brackets around its innermost scalars."""
    if levels == 0:
        return f"(?:{_SCALAR})"
    element = _value(levels - 1) + _SPACE
    members = (each + f"(?:,{_SPACE}{each})*" for each in (f"{_KEY}{_SPACE}:{_SPACE}{element}", element))
    objects, arrays = (f"{_SPACE}(?:{each})?" for each in members)
    return rf"(?:{_SCALAR}|\{{{objects}\}}|\[{arrays}\])"


_EXPRESSION = rf"\A{_SPACE}{_value(_LEVELS)}{_SPACE}\z"
