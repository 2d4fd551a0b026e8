"""The table of string functions: which kernel runs a function for given argument types."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tqp.core.datatypes import DataType, TypeKind
from tqp.data.strings import Strings
from tqp.operators.kernel import Kernel, NullRule, Overload
from tqp.operators.string_keys import codes as string_codes
from tqp.operators.strings import build as string_build
from tqp.operators.strings import characters as string_characters
from tqp.operators.strings import like as string_like
from tqp.operators.strings import regexp as string_regexp
from tqp.operators.strings import search as string_search
from tqp.operators.strings import substring as string_substring
from tqp.operators.strings import transform as string_transform


def _strings(
    function: Callable[..., Any],
    constants: Sequence[int] = (),
    *,
    options: Sequence[int] = (),
    checks: bool = False,
    scans: bool = False,
) -> Overload:
    """A kernel whose first argument is a string and which sees no NULLs.

    `constants` may be columns; it is called for each of their values. `options` may not.
    """
    places = frozenset((*constants, *options))
    kernel = Kernel(
        function,
        constant_arguments=places,
        varying_arguments=frozenset(constants),
        checks=checks,
        scans=scans,
    )

    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
        return kernel if argument_types and argument_types[0].is_string else None

    return resolve


def _like(plain: Callable[..., Any], with_escape: Callable[..., Any]) -> Overload:
    """LIKE without an escape character fails for no row."""
    overloads = {
        2: _strings(plain, (1,), scans=plain is string_like.like),
        3: _strings(with_escape, (1, 2), checks=True),
    }
    return lambda argument_types, result_type: overloads[len(argument_types)](argument_types, result_type)


def _any(kernel: Kernel) -> Overload:
    return lambda argument_types, result_type: kernel


def _length(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    """Characters of a VARCHAR, bytes of a BLOB."""
    if argument_types[0].kind is TypeKind.BLOB:
        return Kernel(string_transform.octet_length)
    return Kernel(string_characters.character_lengths) if argument_types[0].is_string else None


def _concat_operator(*parts: Strings) -> Strings:
    return string_build.join(parts)


def _category_code(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
    """The categories of a model's input are constants."""
    places = frozenset(range(1, len(argument_types)))
    return Kernel(string_codes.category_codes, constant_arguments=places, any_width=True)


STRING_KERNELS: dict[str, Overload] = {
    "like": _like(string_like.like, string_like.like_escape),
    "ilike": _like(string_like.ilike, string_like.ilike_escape),
    "glob": _strings(string_like.glob, (1,)),
    "regexp_matches": _strings(string_regexp.regexp_matches, (1,), options=(2,)),
    "regexp_full_match": _strings(string_regexp.regexp_full_match, (1,), options=(2,)),
    "regexp_replace": _strings(string_regexp.regexp_replace, (1, 2), options=(3,), checks=True),
    "regexp_extract": _strings(string_regexp.regexp_extract, (1,), options=(2, 3)),
    "starts_with": _strings(string_search.starts_with),
    "ends_with": _strings(string_search.ends_with),
    "contains": _strings(string_search.contains),
    "position": _strings(string_transform.position),
    "substring": _strings(string_substring.substring),
    "left": _strings(string_substring.left),
    "right": _strings(string_substring.right),
    "substring_grapheme": _strings(string_substring.substring_grapheme),
    "left_grapheme": _strings(string_substring.left_grapheme),
    "right_grapheme": _strings(string_substring.right_grapheme),
    "length": _length,
    "length_grapheme": _strings(string_transform.grapheme_length),
    "octet_length": _strings(string_transform.octet_length),
    "bit_length": _strings(string_transform.bit_length),
    "upper": _strings(string_transform.upper),
    "lower": _strings(string_transform.lower),
    "trim": _strings(string_transform.trim, (1,)),
    "ltrim": _strings(string_transform.trim_left, (1,)),
    "rtrim": _strings(string_transform.trim_right, (1,)),
    "lpad": _strings(string_build.pad_left, (2,), checks=True),
    "rpad": _strings(string_build.pad_right, (2,), checks=True),
    "replace": _strings(string_transform.replace, (1, 2)),
    "reverse": _strings(string_transform.reverse),
    "repeat": _strings(string_build.repeat, checks=True),
    "concat_operator": _strings(_concat_operator),
    "concat": _any(Kernel(string_build.concat, NullRule.CUSTOM)),
    "concat_ws": _any(Kernel(string_build.concat_separated, NullRule.CUSTOM)),
    "overlay": _strings(string_build.overlay),
    "split_part": _strings(string_build.split_part, (1,)),
    "ascii": _strings(string_characters.first_code_points),
    "unicode": _strings(string_transform.unicode_code),
    "chr": _any(Kernel(string_build.character, checks=True)),
    "category_code": _category_code,
    "translate": _strings(string_transform.translate, (1, 2)),
}
