"""Strings in another form, by libraries: digests, hexadecimal and base64 digits, percent signs, accents, parts of paths.

A library takes one text, so that each distinct value is made once.
"""

from __future__ import annotations

import binascii
import codecs
import hashlib
import re
import unicodedata
from collections.abc import Callable, Sequence
from typing import Any
from urllib.parse import quote, unquote_to_bytes

import numpy as np
import torch
from torch import Tensor

from tqp.core.datatypes import DataType
from tqp.core.errors import ExecutionError
from tqp.data.strings import Strings
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.string_keys.codes import distinct_values, of_each_value
from tqp.operators.strings.characters import is_ascii
from tqp.operators.strings.graphemes import NEWER_MARKS
from tqp.operators.strings.layout import take, to_list

#: From the bytes of a string, and constants, to those of another.
Recoding = Callable[..., bytes]


def _recoded(function: Recoding, constants: int = 0, *, raises: bool = False) -> Overload:
    """A kernel of one string; `raises`: the function raises ValueError for some, not for the empty one, saying why."""

    def call(strings: Strings, *given: Any, validity: Tensor | None = None) -> Strings:
        if validity is not None:
            strings = strings._replace(lengths=strings.lengths * validity)
        try:
            return of_each_value(strings, lambda value: function(value, *given))
        except ValueError as error:
            raise ExecutionError(str(error)) from error

    places = frozenset(range(1, constants + 1))
    kernel = Kernel(call, constant_arguments=places, varying_arguments=places, checks=raises)
    return lambda argument_types, result_type: kernel


def _shown(value: bytes) -> str:
    """A string as a message shows it."""
    return ascii(value.decode(errors="replace"))


# ---- digests and digits ----------------------------------------------------------------------------------------------


def _digest(algorithm: str) -> Overload:
    make = getattr(hashlib, algorithm)

    def call(strings: Strings) -> Strings:
        codes, distinct = distinct_values(strings)
        digests = b"".join([make(value, usedforsecurity=False).digest() for value in to_list(distinct)])
        length = 2 * make().digest_size
        data = torch.from_numpy(np.frombuffer(binascii.hexlify(digests), np.uint8).copy())
        lengths = torch.full_like(codes, length, dtype=torch.int32)
        return Strings(codes * length, lengths, data.to(codes.device))

    kernel = Kernel(call)
    return lambda argument_types, result_type: kernel


def _from_hex(digits: bytes) -> bytes:
    """Two digits a byte; the first of an odd number stands alone."""
    try:
        return binascii.unhexlify(digits if len(digits) % 2 == 0 else b"0" + digits)
    except binascii.Error:
        raise ValueError(f"{_shown(digits)} has other characters than hexadecimal digits") from None


def _from_binary(digits: bytes) -> bytes:
    """Eight digits a byte; of the first, some may be left out."""
    if digits.strip(b"01"):
        raise ValueError(f"{_shown(digits)} has other characters than binary digits")
    return int(digits or b"0", 2).to_bytes(-(-len(digits) // 8), "big")


def _from_base64(text: bytes) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True)
    except binascii.Error as error:
        raise ValueError(f"{_shown(text)} is not base64: {error}") from None


# ---- text ------------------------------------------------------------------------------------------------------------


def _url_decode(text: bytes) -> bytes:
    decoded = unquote_to_bytes(text)
    try:
        decoded.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{_shown(text)} stands for bytes that are no UTF-8") from None
    return decoded


def _decode(content: bytes, errors: str = "strict") -> bytes:
    """`errors`: what becomes of bytes that are no UTF-8: strict (ValueError), replace (by a question mark) or ignore."""
    try:
        content.decode()
        return content
    except UnicodeDecodeError:
        handler = _DECODING_ERRORS.get(errors)
    if handler is None:
        hint = (
            "'replace' and 'ignore' decode the rest"
            if errors == "strict"
            else "use 'strict', 'replace' or 'ignore'"
        )
        raise ValueError(f"{_shown(content)} is no UTF-8, so decode() makes no text of it; {hint}")
    return content.decode(errors=handler).encode()


def _question_marks(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return "?" * (error.end - error.start), error.end


codecs.register_error("tqp_question_marks", _question_marks)
_DECODING_ERRORS = {"replace": "tqp_question_marks", "ignore": "ignore"}


def _error(messages: Strings, *, validity: Tensor | None = None) -> Strings:
    """Raises the first of the messages that are not NULL; gives them back where there is none."""
    rows = (
        torch.arange(messages.num_rows, device=messages.starts.device)
        if validity is None
        else validity.nonzero().squeeze(-1)
    )
    if not rows.shape[0]:
        return messages
    first = rows[:1] if messages.num_rows > 1 else torch.zeros_like(rows[:1])
    raise ExecutionError(to_list(take(messages, first))[0].decode())


def _of_letters(overload: Overload) -> Overload:
    """Where all is ASCII, nothing changes."""

    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
        kernel = overload(argument_types, result_type)
        assert kernel is not None
        return Kernel(lambda strings: strings if is_ascii(strings) else kernel.function(strings))

    return resolve


def _strip_accents(value: bytes) -> bytes:
    """Without marks, letters taken apart from them; what is not ASCII ends at a NUL, as in DuckDB."""
    if value.isascii():
        return value
    letters = unicodedata.normalize("NFD", value.decode().partition("\0")[0])
    kept = (each for each in letters if unicodedata.category(each)[0] != "M" and ord(each) not in NEWER_MARKS)
    return unicodedata.normalize("NFC", "".join(kept)).encode()


def _compose(value: bytes) -> bytes:
    if value.isascii():
        return value
    return unicodedata.normalize("NFC", value.decode().partition("\0")[0]).encode()


_SPECIAL = re.compile(rb"[^0-9A-Za-z_\x80-\xff]")


def _escape(value: bytes) -> bytes:
    """With a backslash before each character that regular expressions may give a meaning."""
    return _SPECIAL.sub(lambda found: rb"\x00" if found[0] == b"\0" else b"\\" + found[0], value)


# ---- paths -----------------------------------------------------------------------------------------------------------

_SEPARATORS = {"forward_slash": b"/", "system": b"/", "backslash": b"\\"}
_BOTH = (b"/", b"\\")


def _separators(name: str) -> Sequence[bytes]:
    """Those of an option; of any that is not known, both."""
    known = _SEPARATORS.get(name)
    return _BOTH if known is None else (known,)


def _last_separator(path: bytes, name: str) -> int:
    return max(path.rfind(each) for each in _separators(name))


def _parse_filename(path: bytes, *options: bool | str) -> bytes:
    """What stands behind the last separator; an option says whether without the last dot and what follows it."""
    name = next((each for each in options if not isinstance(each, bool)), "")
    found = path[_last_separator(path, name) + 1 :]
    return found.rpartition(b".")[0] if options[:1] == (True,) and b"." in found else found


def _parse_dirname(path: bytes, name: str = "") -> bytes:
    """The first directory; a separator where the path begins with one."""
    places = [place for place in map(path.find, _separators(name)) if place >= 0]
    return path[: max(min(places), 1)] if places else b""


def _parse_dirpath(path: bytes, name: str = "") -> bytes:
    """What stands before the last separator."""
    last = _last_separator(path, name)
    return path if last == 0 and len(path) == 1 else path[: max(last, 0)]


_PATH_KERNELS: dict[str, Recoding] = {
    "parse_filename": _parse_filename,
    "parse_dirname": _parse_dirname,
    "parse_dirpath": _parse_dirpath,
}


def _of_path(function: Recoding) -> Overload:
    return lambda argument_types, result_type: _recoded(function, len(argument_types) - 1)(
        argument_types, result_type
    )


RECODED_KERNELS: dict[str, Overload] = {
    **{name: _digest(name) for name in ("md5", "sha1", "sha256")},
    "from_hex": _recoded(_from_hex, raises=True),
    "from_binary": _recoded(_from_binary, raises=True),
    "from_base64": _recoded(_from_base64, raises=True),
    "url_encode": _recoded(lambda text: quote(text, safe="").encode()),
    "url_decode": _recoded(_url_decode, raises=True),
    "decode": lambda types, result: _recoded(_decode, len(types) - 1, raises=True)(types, result),
    "error": lambda *_: Kernel(_error, checks=True),
    "strip_accents": _of_letters(_recoded(_strip_accents)),
    "nfc_normalize": _of_letters(_recoded(_compose)),
    "regexp_escape": _recoded(_escape),
    **{name: _of_path(function) for name, function in _PATH_KERNELS.items()},
}
