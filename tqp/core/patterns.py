"""Patterns are constants: of LIKE, regular expressions and formats of dates. What is wrong with one shows without any row."""

from __future__ import annotations

import re
from functools import lru_cache

import pyarrow as pa
import pyarrow.compute as pc

from tqp.core.errors import ExecutionError

# LIKE


def like_problem(pattern: str, escape: str) -> str | None:
    """Why `LIKE pattern ESCAPE escape` fails for a row; None if it fails for none."""
    if len(escape.encode()) > 1:
        return "Invalid escape string: ESCAPE takes an empty string or one character of ASCII"
    return DANGLING_ESCAPE if _ends_in_escape(pattern, escape) else None


#: This one fails only for the rows that match what comes before.
DANGLING_ESCAPE = "Like pattern must not end with escape character: write it twice to mean itself"


def _ends_in_escape(pattern: str, escape: str) -> bool:
    rest = iter(pattern)
    return any(character == escape and next(rest, None) is None for character in rest)


def words_of_like(pattern: str) -> tuple[str, ...] | None:
    """The texts between the `%`s of a LIKE pattern without an escape character; None where it has a `_`.

    >>> words_of_like("%special%requests%")
    ('', 'special', 'requests', '')
    """
    return None if "_" in pattern else tuple(pattern.split("%"))


def like_expression(pattern: str, escape: str) -> str:
    """The regular expression that a whole text fills where it is LIKE the pattern.

    >>> like_expression("a%_b", "")
    'a.*.b'
    """
    pieces, letters = [], iter(pattern)
    for letter in letters:
        if letter == escape:
            letter = next(letters, "")
            pieces.append(re.escape(letter))
        else:
            pieces.append({"%": ".*", "_": "."}.get(letter) or re.escape(letter))
    return "".join(pieces)


def like_of_glob(pattern: str) -> str | None:
    """The LIKE pattern, with a backslash for an escape, of a GLOB pattern of texts and `*`; None of one with another wildcard.

    >>> like_of_glob("a*_"), like_of_glob("[ab]")
    ('a%\\\\_', None)
    """
    if any(letter in pattern for letter in "?[]\\"):  # which stand for bytes, not for characters
        return None
    return "".join({"*": "%", "%": "\\%", "_": "\\_"}.get(letter, letter) for letter in pattern)


def expression_of_glob(pattern: str) -> str | None:
    """The RE2 expression, over bytes, of a GLOB pattern; None of one that matches nothing, as it ends before it should.

    >>> expression_of_glob("a*[!b-d]?"), expression_of_glob("[a")
    ('(?s)\\\\A\\\\x61.*[^\\\\x62-\\\\x64].\\\\z', None)
    """
    pieces: list[str] = []
    content = pattern.encode()
    place = 0
    while place < len(content):
        letter = content[place : place + 1]
        place += 1
        if letter in (b"*", b"?"):
            pieces.append(".*" if letter == b"*" else ".")
            continue
        if letter == b"[":
            found = _class_of_glob(content, place)
            if found is None:
                return None
            piece, place = found
            pieces.append(piece)
            continue
        if letter == b"\\":
            letter = content[place : place + 1]
            place += 1
            if not letter:
                return None
        pieces.append(_byte(letter[0]))
    return rf"(?s)\A{''.join(pieces)}\z"


def _class_of_glob(content: bytes, place: int) -> tuple[str, int] | None:
    """The class of bytes that begins behind a bracket, and where it ends; the first byte may be the closing bracket itself."""
    is_inverted = content[place : place + 1] == b"!"
    place += is_inverted
    members: list[str] = []
    first = place
    while place < len(content) and (content[place] != ord("]") or place == first):
        low = high = content[place]
        if content[place + 1 : place + 2] == b"-" and content[place + 2 : place + 3] not in (b"", b"]"):
            high = content[place + 2]
            place += 2
        place += 1
        if low <= high:
            members.append(f"{_byte(low)}-{_byte(high)}")
    if place >= len(content):
        return None
    if not members:
        members = [r"\x00-\xff"]
        is_inverted = not is_inverted
    return f"[{'^' if is_inverted else ''}{''.join(members)}]", place + 1


def _byte(code: int) -> str:
    return f"\\x{code:02x}"


# regular expressions

#: Arrow's replacements name so many groups.
_MOST_GROUPS = 9


def number_of_groups(expression: str) -> int:
    """How many capturing groups an RE2 expression has, 9 at most are counted. Raises ExecutionError where it is none.

    >>> number_of_groups("(a)(?:b)(?P<c>c)"), number_of_groups("a")
    (2, 0)
    """
    for groups in range(_MOST_GROUPS, -1, -1):
        try:
            pc.replace_substring_regex(pa.scalar(""), pattern=expression, replacement=rf"\{groups}")
        except pa.ArrowInvalid:
            continue
        return groups
    check_regular_expression(expression)
    return 0


#: An escaped character or text, a class of characters, and what begins or ends a group.
_PARTS_OF_GROUPS = re.compile(
    r"\\Q.*?(?:\\E|\Z)|\\.|\[\^?\]?(?:\\.|\[:\^?\w+:\]|[^\]])*\]|\(\?P?<\w+>|\(\?|\(|\)", re.DOTALL
)


def text_of_group(expression: str, group: int) -> str:
    """What stands in the capturing group of that number, from 1, of an RE2 expression that has it.

    >>> text_of_group(r"\\((?:a)[(](?P<k>b(c))?", 1), text_of_group("(a(b)c)", 2)
    ('b(c)', 'b')
    """
    number, begun = 0, list[tuple[int, int]]()
    for part in _PARTS_OF_GROUPS.finditer(expression):
        if part[0] == ")":
            found, start = begun.pop()
            if found == group:
                return expression[start : part.start()]
        elif part[0] == "(" or part[0].endswith(">"):
            number += 1
            begun.append((number, part.end()))
        elif part[0] == "(?":
            begun.append((0, part.end()))
    raise AssertionError(f"group {group} of {expression}")


#: What RE2's flag for each of DuckDB's option letters is; "g" concerns regexp_replace only.
_FLAGS = {"i": "i", "c": "-i", "s": "s", "m": "-s", "n": "-s", "p": "-s"}


def check_regular_expression(pattern: str, options: str = "") -> None:
    """Raises ExecutionError for a pattern that RE2 does not take, and for options that do not exist."""
    expression = with_options(pattern, options)
    try:
        pc.match_substring_regex(pa.scalar(""), expression)
    except pa.ArrowInvalid as error:
        raise invalid_pattern(pattern, error) from None


@lru_cache(maxsize=256)
def replacement_problem(pattern: str, replacement: str, options: str = "") -> str | None:
    """Why a valid pattern's match cannot be replaced so, whatever the row is; None if it can."""
    expression = with_options(pattern, options.replace("g", ""))
    try:
        pc.replace_substring_regex(pa.scalar(""), pattern=expression, replacement=replacement)
    except pa.ArrowInvalid as error:
        return str(error)
    return None


def fills_pattern(text: str, pattern: str, *, ignore_case: bool = False) -> bool:
    """Whether the whole text matches. Raises ExecutionError for a pattern that RE2 does not take."""
    check_regular_expression(pattern)
    flags = "(?si)" if ignore_case else "(?s)"
    return bool(pc.match_substring_regex(pa.scalar(text), f"{flags}^(?:{pattern})$").as_py())


def groups_of_match(text: str, pattern: str) -> list[str] | None:
    """What the first match in the text is, and each of its groups ("" for one that has no part); None if there is none.

    Raises ExecutionError for a pattern that RE2 does not take.
    """
    check_regular_expression(pattern)
    if not pc.match_substring_regex(pa.scalar(text), pattern).as_py():
        return None
    whole = f"(?s:^.*?)({pattern})(?s:.*$)"
    groups: list[str] = []
    while len(groups) < 9 and replacement_problem(whole, f"\\{len(groups) + 1}") is None:
        replaced = pc.replace_substring_regex(
            pa.scalar(text), pattern=whole, replacement=f"\\{len(groups) + 1}"
        )
        groups.append(replaced.as_py())
    return groups


def invalid_pattern(pattern: str, error: pa.ArrowInvalid) -> ExecutionError:
    """Arrow's error, as ours."""
    reason = str(error).removeprefix("Invalid regular expression: ")
    return ExecutionError(f"Invalid regular expression '{pattern}': {reason}")


def with_options(pattern: str, options: str) -> str:
    """The pattern with DuckDB's option letters as RE2 flags."""
    if "l" in options:
        pattern = "".join(
            "\\x00" if letter == "\0" else "\\" + letter if letter in r"\.+*?()|[]{}^$" else letter
            for letter in pattern
        )
    flags = ""
    for letter in options:
        if letter in "l \t\n":
            continue
        if letter not in _FLAGS:
            raise ExecutionError(
                f"Unrecognized regular expression option '{letter}': use c, i, l, m, n, p or s, and g in regexp_replace()"
            )
        flags += f"(?{_FLAGS[letter]})"
    return flags + pattern


# formats of strftime and strptime

#: Whether it is a specifier, and its letters or the text itself.
Piece = tuple[bool, str]

_NUMERIC_SPECIFIERS = frozenset("dmyHIMSj")  # those that take "-", for no padding
_SPECIFIERS = frozenset("aAwubBhmyYdHIpMSgfnjzZUWVGcxXT") | {f"-{letter}" for letter in _NUMERIC_SPECIFIERS}


@lru_cache(maxsize=256)
def parse_format(pattern: str) -> tuple[Piece, ...]:
    """A strftime pattern as (is a specifier, its letters or literal text); raises ExecutionError if it is none."""
    if not pattern:
        raise ExecutionError("Failed to parse format specifier: the format is empty")
    pieces: list[Piece] = []
    position = 0
    while position < len(pattern):
        if pattern[position] != "%":
            stop = pattern.find("%", position)
            stop = len(pattern) if stop < 0 else stop
            pieces.append((False, pattern[position:stop]))
            position = stop
            continue
        length = 2 if pattern[position + 1 : position + 2] == "-" else 1
        code = pattern[position + 1 : position + 1 + length]
        position += 1 + length
        if code == "%":
            pieces.append((False, "%"))
        elif code in _SPECIFIERS:
            pieces.append((True, code))
        else:
            raise ExecutionError(f'Failed to parse format specifier "{pattern}": %{code} is not known')
    return tuple(pieces)
