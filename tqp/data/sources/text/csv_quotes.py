"""Quotes in the text of a CSV file: whether they begin and end values, and the text with those inside of values doubled."""

from __future__ import annotations

import re

import numpy as np

#: Bytes that are looked at at once: caches hold what is made of them.
_STEP = 1 << 18


def loose_quote(content: bytes, delimiter: str, quote: str, *, is_whole: bool = True) -> int | None:
    """Where a value in quotes begins that does not end with its field; None where all do.

    Other values may have quotes inside of them. `is_whole`: a value that the text ends in is such a one, too.

    >>> loose_quote(b"1,'a ''b'\\n2,c'd\\n", ",", "'"), loose_quote(b"1,'a' b\\n", ",", "'"), loose_quote(b"1,'a\\n", ",", "'")
    (None, 2, 2)
    """
    if quote.encode() not in content or _pairs_are_fields(content, delimiter, quote, is_whole):
        return None
    mark, end = re.escape(quote.encode()), re.escape(delimiter.encode())
    inside = rb"%b[^%b]*+(?:%b%b[^%b]*+)*+" % (mark, mark, mark, mark, mark)
    field = rb"[%b\r\n]++|%b%b *+(?=[%b\r\n]|\Z)|[^%b\r\n%b][^%b\r\n]*+" % (
        end,
        inside,
        mark,
        end,
        end,
        mark,
        end,
    )
    found = re.match(rb"(?:%b)*+" % field, content)
    assert found is not None
    if found.end() == len(content) or (not is_whole and re.fullmatch(inside, content[found.end() :])):
        return None
    return found.end()


def _pairs_are_fields(content: bytes, delimiter: str, quote: str, is_whole: bool) -> bool:
    """Does every pair of quotes stand around a field, but for those that are doubled, or does no field begin with one?

    So it mostly is, and is found quickly.
    """
    values = np.frombuffer(content, np.uint8)
    (mark,) = quote.encode()
    is_separator = np.zeros(256, np.bool_)
    is_separator[list(delimiter.encode() + b"\r\n")] = True
    last, number, are_pairs, has_fields = len(values) - 1, 0, True, False
    for start in range(0, len(values), _STEP):
        places = np.flatnonzero(values[start : start + _STEP] == mark) + start
        before, after = values[places - 1], values[np.minimum(places + 1, last)]
        begins = is_separator[before] | (places == 0)
        ends = is_separator[after] | (places == last)
        opening, closing = slice(number % 2, None, 2), slice(1 - number % 2, None, 2)
        are_pairs = are_pairs and bool(
            (begins | (before == mark))[opening].all() and (ends | (after == mark))[closing].all()
        )
        has_fields = has_fields or bool(begins.any())
        if has_fields and not are_pairs:
            return False
        number += len(places)
    return not has_fields or number % 2 == 0 or not is_whole


def with_inner_quotes_doubled(content: bytes, delimiter: str, quote: str) -> bytes:
    """The text with the quotes doubled inside of quoted values, each of which ends with the first quote before the end of a field.

    >>> with_inner_quotes_doubled(b'1,"x "y" z"\\n2,"a""b"\\n', ",", '"')
    b'1,"x ""y"" z"\\n2,"a""b"\\n'
    """
    mark, end = re.escape(quote.encode()), re.escape(delimiter.encode())
    fields = re.compile(
        rb"%b(?P<inside>(?:[^%b]|%b%b|%b(?! *(?:[%b\r\n]|\Z)))*+)%b *+|[^%b\r\n]++|[%b\r\n]++"
        % (mark, mark, mark, mark, mark, end, mark, end, end)
    )
    plain = quote.encode()

    def doubled(found: re.Match[bytes]) -> bytes:
        if found["inside"] is None:
            return found[0]
        inside = found["inside"].replace(plain * 2, plain).replace(plain, plain * 2)
        return plain + inside + plain

    return fields.sub(doubled, content)


def with_doubled_quotes(content: bytes, quote: str) -> bytes:
    r"""The text with `""` for `\"`, and `\` for `\\`, inside of quoted values; other backslashes stay."""
    mark = re.escape(quote.encode())
    quoted = re.compile(rb"%b(?:[^%b\\]|\\.|%b%b)*%b" % (mark, mark, mark, mark, mark), re.DOTALL)
    escaped = re.compile(rb"\\([\\%b])" % mark)
    doubled = {b"\\": b"\\", quote.encode(): quote.encode() * 2}
    return quoted.sub(lambda value: escaped.sub(lambda match: doubled[match[1]], value[0]), content)


def has_blanks_around_quotes(content: bytes, delimiter: str, quote: str) -> bool:
    """Do blanks stand between the quotes of a value and the ends of its field?

    >>> has_blanks_around_quotes(b'"a, ""b"" ",c', ",", '"'), has_blanks_around_quotes(b'a, "b"', ",", '"')
    (False, True)
    """
    return any(found["before"] or found["after"] for found in _fields(delimiter, quote).finditer(content))


def without_blanks_around_quotes(content: bytes, delimiter: str, quote: str) -> bytes:
    """The text with quoted values alone in their fields, where blanks stand around them.

    >>> without_blanks_around_quotes(b"1, 'x, y' ,z", ",", "'")
    b"1,'x, y',z"
    """
    return _fields(delimiter, quote).sub(lambda found: found["quoted"] or found[0], content)


def _fields(delimiter: str, quote: str) -> re.Pattern[bytes]:
    """Finds field after field, and what stands between them: so nothing is found inside of a quoted value."""
    end, mark = re.escape(delimiter.encode()), re.escape(quote.encode())
    quoted = rb"(?P<before> *)(?P<quoted>%b(?:[^%b]|%b%b)*+%b)(?P<after> *)(?=[%b\r\n]|\Z)"
    return re.compile(quoted % (mark, mark, mark, mark, mark, end) + rb"|[^%b\r\n]++|[%b\r\n]++" % (end, end))
