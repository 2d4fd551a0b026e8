"""The text of a CSV file as its reader wants it: UTF-8, without comments and without backslashes before quotes."""

from __future__ import annotations

import re

import pyarrow as pa

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
#: What may stand before a field in quotes: a separator, or nothing.
_BEFORE_QUOTES = rb"(?<![^\r\n,|;\t%b])"


def in_utf8(content: bytes, encoding: str | None) -> bytes:
    """The content as UTF-8 without a byte order mark; raises ValueError if it is not of this encoding (None: UTF-8)."""
    if encoding is not None and encoding != "utf-8":
        try:
            return content.decode(encoding).encode().removeprefix(BYTE_ORDER_MARK)
        except UnicodeError as error:
            raise ValueError(f"the file is not of the encoding {encoding!r}: {error}") from None
    if content.isascii():
        return content
    if content.startswith(_UTF16_MARKS):
        raise ValueError("the file is UTF-16; say encoding = 'utf-16' in read_csv(), or save it as UTF-8")
    try:
        content.decode()
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"line {line} is not UTF-8 (byte 0x{content[error.start]:02x}); say encoding = 'latin-1', or what it is, "
            "in read_csv(), or save the file as UTF-8"
        ) from None
    return content.removeprefix(BYTE_ORDER_MARK)


def without_lines(content: bytes, count: int) -> bytes:
    """What stands behind so many lines."""
    for _ in range(count):
        content = content.partition(b"\n")[2]
    return content


def without_comments(content: bytes, mark: str, quote: str, delimiter: str | None) -> bytes:
    """Without what stands behind the mark, unless that is in quotes, and without lines of nothing else.

    >>> without_comments(b'#x\\n1,2 #y\\n  #z\\n"#",3', "#", '"', None)
    b'1,2 \\n"#",3'
    """
    begin, ends = re.escape(mark.encode()), re.escape(quote.encode())
    before = _BEFORE_QUOTES % re.escape((delimiter or "").encode())
    found = re.compile(
        rb"(?P<kept>%b%b(?:[^%b]|%b%b)*%b)|^[ \t]*%b[^\r\n]*(?:\r\n|\n|\r|\Z)|%b[^\r\n]*"
        % (before, ends, ends, ends, ends, ends, begin, begin),
        re.MULTILINE,
    )
    return found.sub(lambda match: match["kept"] or b"", content)


def without_first_comments(content: bytes) -> bytes:
    """Without the lines at the start that begin with `#`."""
    return re.sub(rb"\A(?:#[^\r\n]*(?:\r\n|\n|\r|\Z))+", b"", content)


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


def with_whole_line_ends(stream: pa.NativeFile) -> pa.NativeFile:
    r"""The same bytes, of which no read ends between `\r` and `\n`: Arrow drops a `\n` there, even one inside of a quoted value."""
    return pa.PythonFile(_WholeLineEnds(stream), mode="r")


class _WholeLineEnds:
    """What `pa.PythonFile` asks of a file."""

    closed = False

    def __init__(self, stream: pa.NativeFile) -> None:
        self._stream = stream
        self._held = b""

    def read(self, size: int) -> bytes:
        content = self._held + bytes(self._stream.read(size - len(self._held)))
        self._held = b"\r" if len(content) > 1 and content.endswith(b"\r") else b""
        return content.removesuffix(self._held)

    def close(self) -> None:
        """Whoever opened the stream closes it."""
