"""SQL texts as tokens, and where their brackets, CASEs and clauses begin and end."""

from __future__ import annotations

import re
from collections.abc import Sequence

_TOKEN = re.compile(
    r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$\w+|\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b|\w+|"
    r"->>|->|:=|=>|<@|@>|&&|\^@|!?~~\*?|~~~|!~|<=|>=|<>|!=|==|\|\||//|\*\*|::|<<|>>|\S"
)
_NO_BLANK_BEFORE = {")", ",", ".", "::", "]"}
_NO_BLANK_AFTER = {"(", ".", "::", "["}

#: Words that begin something that can be left out up to the next such word.
CLAUSES = frozenset(
    "WITH SELECT FROM WHERE GROUP HAVING ORDER LIMIT OFFSET UNION EXCEPT INTERSECT JOIN LEFT RIGHT FULL CROSS INNER "
    "SEMI ANTI NATURAL ON USING AND OR WHEN ELSE FILTER BETWEEN AS".split()
)


def tokens_of(sql: str) -> list[str]:
    """The tokens of a text, right or wrong."""
    return _TOKEN.findall(sql)


def text_of(tokens: Sequence[str]) -> str:
    """A text of these tokens."""
    text = ""
    previous = "("
    for token in tokens:
        call = token == "(" and previous[:1].isalpha() and previous.upper() not in CLAUSES | {"IN", "SELECT"}
        if previous not in _NO_BLANK_AFTER and token not in _NO_BLANK_BEFORE and not call:
            text += " "
        text += token
        previous = token
    return text


def levels(tokens: Sequence[str]) -> list[list[tuple[int, int]]]:
    """For every bracket pair, every CASE ... END and the whole text: its items, as [start, stop) of tokens.

    An item is one token, or an inner pair with all that is in it. Brackets that do not match are tokens.
    """
    done: list[list[tuple[int, int]]] = []
    open_levels: list[tuple[int, list[tuple[int, int]]]] = [(0, [])]
    for index, token in enumerate(tokens):
        word = token.upper()
        if token == "(" or word == "CASE":
            open_levels.append((index, []))
        elif len(open_levels) > 1 and (word == "END" or token == ")"):
            start, items = open_levels.pop()
            done.append(items)
            open_levels[-1][1].append((start, index + 1))
        else:
            open_levels[-1][1].append((index, index + 1))
    while open_levels:
        done.append(open_levels.pop()[1])
    return done


def order_of(sql: str) -> tuple[str, ...] | None:
    """Names, positions or ALL that the whole query is ordered by, as far as they are plain; None without ORDER BY."""
    tokens = tokens_of(sql)
    whole = levels(tokens)[-1]
    words = [tokens[start].upper() if stop - start == 1 else "(" for start, stop in whole]
    if "ORDER" not in words:
        return None
    start = len(words) - words[::-1].index("ORDER") + 1
    keys: list[str] = []
    at_start = True
    for position in range(start, len(words)):
        word = words[position]
        if word in ("LIMIT", "OFFSET"):
            break
        if at_start:
            keys.append(tokens[whole[position][0]])
        elif word not in (",", "ASC", "DESC", "NULLS", "FIRST", "LAST"):
            return tuple(keys[:-1])
        at_start = word == ","
    return tuple(keys)


_TYPE = re.compile(
    r"\b(?:U?(?:TINY|SMALL|BIG|HUGE)INT|U?INTEGER(?:_LITERAL)?|DECIMAL\(\d+,\d+\)|FLOAT(?:\[\d+\])?|DOUBLE|VARCHAR|"
    r"STRING_LITERAL|BLOB|BOOLEAN|DATE|TIMESTAMP WITH TIME ZONE|TIMESTAMP(?:_N?M?S)?|TIME WITH TIME ZONE|TIME|INTERVAL|UUID|BIT|U?INT\d+)\b(?!\()|DECIMAL\(\d+,\d+\)"
)


def shape_of(text: str) -> str:
    """The first line of a text without what differs from case to case: quoted parts, numbers, columns, types."""
    text = re.sub(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"", "'..'", text.strip().split("\n")[0])
    text = _TYPE.sub("T", text)
    text = re.sub(r"\b[a-z]{1,2}\d+\b(?:\.\w+)?", "x", text)
    text = re.sub(r"-?\d[\d.e+]*", "0", text)
    return re.sub(r"(\$?\w+)(?:, \1)+", r"\1, ..", text).strip()[:160]
