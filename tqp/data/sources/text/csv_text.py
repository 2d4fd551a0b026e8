"""The text of a CSV file as its reader wants it: UTF-8, without comments, of whole line ends."""

from __future__ import annotations

import re

import pyarrow as pa

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_UTF16_MARKS = (b"\xff\xfe", b"\xfe\xff")
#: Bytes that text hardly has.
_UNUSED = (b"\x1f", b"\x1e", b"\x1d", b"\x1c", b"\x01", b"\x02")
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
    """What stands behind so many lines.

    >>> without_lines(b"a\\r\\nb\\nc", 2), without_lines(b"a\\nb", 3)
    (b'c', b'')
    """
    found = re.match(rb"(?:[^\r\n]*+(?:\r\n|\n|\r|\Z)){%d}" % count, content)
    assert found is not None  # at the end there is always one more
    return content[found.end() :]


def with_plain_delimiter(content: bytes, delimiter: str, quote: str) -> tuple[bytes, str]:
    """The content with a byte that it has nowhere for each delimiter outside of quotes, and this byte.

    >>> with_plain_delimiter(b"a||b\\n'x||y'||2", "||", "'")
    (b"a\\x1fb\\n'x||y'\\x1f2", '\\x1f')
    """
    byte = next((each for each in _UNUSED if each not in content), None)
    if byte is None:
        raise ValueError(
            f"the delimiter {delimiter!r} is not supported in a file of so many control characters"
        )
    if not delimiter:
        return content, byte.decode()
    plain, mark = delimiter.encode(), re.escape(quote.encode())
    if not quote or quote.encode() not in content:
        return content.replace(plain, byte), byte.decode()
    end = rb"(?:%b|[\r\n]|\Z)" % re.escape(plain)
    quoted = rb"%b(?:[^%b]|%b%b)*+%b *+(?=%b)" % (mark, mark, mark, mark, mark, end)
    fields = re.compile(rb"(?P<end>%b)|[\r\n]|%b|(?:(?!%b).)++" % (re.escape(plain), quoted, end), re.DOTALL)
    return fields.sub(lambda found: byte if found["end"] else found[0], content), byte.decode()


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
