"""Functions of text: patterns, slices, case, padding, code points."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from tqp.core.datatypes import VARCHAR
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.patterns import check_regular_expression, like_expression, like_problem, replacement_problem
from tqp.planner.algebra.expressions import Call, Expression, Literal, column_ids, is_null_literal
from tqp.planner.functions.constants import constant_number, constant_text
from tqp.planner.functions.declaration import (
    Fold,
    Infix,
    NullRule,
    ScalarFunction,
    Work,
    scalar,
)
from tqp.planner.functions.ranges import Range, Ranges, any_length


def _padded(call: Call, ranges: Ranges, result: Range | None) -> bool:
    filling = call.arguments[2]
    return not (isinstance(filling, Literal) and filling.value)


def _escaped(call: Call, ranges: Ranges, result: Range | None) -> bool:
    """LIKE with an ESCAPE that is not a single character, or stands at the pattern's end."""
    constants = [part.value for part in call.arguments[1:] if isinstance(part, Literal)]
    if len(constants) < len(call.arguments) - 1:
        return len(call.arguments) > 2
    texts = [value for value in constants if isinstance(value, str)]
    return len(texts) == 2 and like_problem(*texts) is not None


def _replaced(call: Call, ranges: Ranges, result: Range | None) -> bool:
    """regexp_replace with a group that the pattern does not have."""
    texts = [part.value for part in call.arguments[1:] if isinstance(part, Literal)]
    if len(texts) < len(call.arguments) - 1:
        return True
    return None not in texts and replacement_problem(*map(str, texts)) is not None


def _varies(call: Call, ranges: Ranges, result: Range | None) -> bool:
    """A pattern that is no constant may be none; one that is was checked when the query was bound."""
    return not isinstance(call.arguments[1], Literal)


def _regular_expression(function: str, options: int) -> Callable[[Sequence[Expression]], None]:
    """The second argument, with the options that stand at their place, if they do."""

    def check(arguments: Sequence[Expression]) -> None:
        if function == "regexp_extract_all" and len(arguments) > 2 and column_ids(arguments[2]):
            raise UnsupportedError("regexp_extract_all() of a group that is no constant is not supported")
        for option in arguments[min(options, 2) if function == "regexp_extract" else options :]:
            if column_ids(option):
                raise BindError(f"the options of {function}() must be constants")
        letters = arguments[options] if options < len(arguments) else Literal("", VARCHAR)
        if is_null_literal(letters):
            raise BindError(f"the options of {function}() must not be NULL")
        if function == "string_split_regex" and is_null_literal(arguments[1]):
            raise UnsupportedError("string_split_regex() by NULL is not supported")
        pattern, texts = constant_text(arguments[1]), constant_text(letters)
        if texts is not None:
            options_of_matches = texts.replace("g", "") if function == "regexp_replace" else texts
            check_regular_expression(pattern or "", options_of_matches)
        group = arguments[2] if function == "regexp_extract" and len(arguments) > 2 else None
        if isinstance(group, Literal) and group.value is not None and group.value not in range(10):
            raise BindError("the group of regexp_extract() must be between 0 and 9")

    return check


def _code_point(call: Call, ranges: Ranges) -> Range:
    return -1, 0x10FFFF


def _digits(call: Call, ranges: Ranges, result: Range | None) -> bool:
    """to_base: whether the number may be negative, or what it is told is no constant that will do."""
    number, base = ranges[0], constant_number(call.arguments[1])
    fewest = constant_number(call.arguments[2]) if len(call.arguments) > 2 else 0.0
    if number is None or base is None or fewest is None:
        return True
    return number[0] < 0 or not (2 <= base <= 36 and 0 <= fewest <= 64)


_PATTERN = ("VARCHAR VARCHAR -> BOOLEAN", "VARCHAR VARCHAR VARCHAR -> BOOLEAN")


def _pattern(name: str, operator: str, fold: Fold | None = None) -> ScalarFunction:
    lines = (*(f"{operator}: {line}" for line in _PATTERN), f"{name}_escape: {_PATTERN[1]}")
    infix = Infix(name.upper(), 4)
    return scalar(name, *lines, raises=_escaped, work=Work.SEARCH, selectivity=0.07, infix=infix, fold=fold)


def _is_like(call: Call, text: str, pattern: str, escape: str = "") -> Any:
    if like_problem(pattern, escape) is not None:
        return NotImplemented  # fails for the rows that ask
    return re.fullmatch(like_expression(pattern, escape), text, re.DOTALL) is not None


_WITH_DIGITS = ("VARCHAR", "BIGINT", "UBIGINT", "HUGEINT", "UHUGEINT")

TEXT = (
    _pattern("like", "~~", _is_like),
    _pattern("ilike", "~~*"),
    scalar("glob", f"~~~: {_PATTERN[0]}", work=Work.SEARCH, selectivity=0.07, infix=Infix("GLOB", 4)),
    scalar(
        "regexp_matches",
        *_PATTERN,
        raises=_varies,
        work=Work.SEARCH,
        selectivity=0.07,
        computes_all=True,
        check=_regular_expression("regexp_matches", options=2),
    ),
    scalar(
        "regexp_full_match",
        *_PATTERN,
        raises=_varies,
        work=Work.SEARCH,
        selectivity=0.05,
        computes_all=True,
        check=_regular_expression("regexp_full_match", options=2),
    ),
    scalar(
        "regexp_replace",
        "VARCHAR VARCHAR VARCHAR -> VARCHAR",
        "VARCHAR VARCHAR VARCHAR VARCHAR -> VARCHAR",
        work=Work.SEARCH,
        computes_all=True,
        check=_regular_expression("regexp_replace", options=3),
        raises=_replaced,
        knows_null=False,
        bends=False,
    ),
    scalar(
        "regexp_extract",
        "VARCHAR VARCHAR -> VARCHAR",
        "VARCHAR VARCHAR INTEGER -> VARCHAR",
        "VARCHAR VARCHAR INTEGER VARCHAR -> VARCHAR",
        raises=_varies,
        work=Work.SEARCH,
        computes_all=True,
        check=_regular_expression("regexp_extract", options=3),
        bends=False,
    ),
    scalar(
        "string_split_regex str_split_regex regexp_split_to_array",
        *("VARCHAR VARCHAR -> VARCHAR[]", "VARCHAR VARCHAR VARCHAR -> VARCHAR[]"),
        work=Work.SEARCH,
        computes_all=True,
        check=_regular_expression("string_split_regex", options=2),
    ),
    scalar(
        "regexp_extract_all",
        *("VARCHAR VARCHAR -> VARCHAR[]", "VARCHAR VARCHAR INTEGER -> VARCHAR[]"),
        "VARCHAR VARCHAR INTEGER VARCHAR -> VARCHAR[]",
        work=Work.SEARCH,
        raises=True,
        computes_all=True,
        check=_regular_expression("regexp_extract_all", options=3),
    ),
    scalar("starts_with prefix", "VARCHAR VARCHAR -> BOOLEAN", selectivity=0.05),
    scalar("ends_with suffix", "VARCHAR VARCHAR -> BOOLEAN", selectivity=0.05),
    scalar(
        "contains", "VARCHAR VARCHAR -> BOOLEAN", "NULL ANY -> BOOLEAN", work=Work.SEARCH, selectivity=0.07
    ),
    scalar(
        "position",
        *("strpos instr: VARCHAR VARCHAR -> BIGINT", "bit_position: ~ BIT BIT -> INTEGER"),
        range=any_length,
    ),
    scalar(
        "substring substr",
        "VARCHAR BIGINT -> VARCHAR",
        "VARCHAR BIGINT BIGINT -> VARCHAR",
        slices_text=True,
        constants_vary=True,
    ),
    *(
        scalar(name, "VARCHAR BIGINT -> VARCHAR", slices_text=True, constants_vary=True)
        for name in ("left", "right")
    ),
    scalar("substring_grapheme", "VARCHAR BIGINT -> VARCHAR", "VARCHAR BIGINT BIGINT -> VARCHAR"),
    *(scalar(name, "VARCHAR BIGINT -> VARCHAR") for name in ("left_grapheme", "right_grapheme")),
    scalar(
        "length len char_length character_length",
        *("VARCHAR -> BIGINT", "BIT -> BIGINT", "bit_length: BIT -> BIGINT"),
        range=any_length,
    ),
    scalar("length_grapheme", "VARCHAR -> BIGINT", range=any_length),
    scalar("bit_length", "VARCHAR -> BIGINT", range=any_length),
    scalar("octet_length", "BLOB -> BIGINT", "strlen: VARCHAR -> BIGINT", range=any_length),
    scalar("upper ucase", "VARCHAR -> VARCHAR"),
    scalar("lower lcase", "VARCHAR -> VARCHAR"),
    scalar("trim", "VARCHAR -> VARCHAR", "VARCHAR VARCHAR -> VARCHAR", constants_vary=True),
    scalar("ltrim", "VARCHAR -> VARCHAR", "VARCHAR VARCHAR -> VARCHAR", constants_vary=True),
    scalar("rtrim", "VARCHAR -> VARCHAR", "VARCHAR VARCHAR -> VARCHAR", constants_vary=True),
    scalar("lpad", "VARCHAR INTEGER VARCHAR -> VARCHAR", raises=_padded, constants_vary=True),
    scalar("rpad", "VARCHAR INTEGER VARCHAR -> VARCHAR", raises=_padded, constants_vary=True),
    scalar("replace", "VARCHAR VARCHAR VARCHAR -> VARCHAR", constants_vary=True),
    scalar("reverse", "VARCHAR -> VARCHAR"),
    scalar("repeat", "VARCHAR BIGINT -> VARCHAR", "BLOB BIGINT -> BLOB", raises=True, constants_vary=True),
    scalar(
        "concat_operator",
        fold=lambda _, left, right: left + right,
        infix=Infix("||", 5, is_associative=True),
        constants_vary=True,
    ),
    scalar(
        "split_part", "VARCHAR VARCHAR BIGINT -> VARCHAR", bends=False, knows_null=False, constants_vary=True
    ),
    scalar("ascii", "VARCHAR -> INTEGER", range=_code_point),
    scalar(
        "enum_code",
        is_call=True,
        range=lambda _, ranges: ranges[0],
        fold=lambda _, position: position,
        work=Work.CALCULATION,
    ),
    scalar("unicode ord", "VARCHAR -> INTEGER", range=_code_point),
    scalar("chr", "INTEGER -> VARCHAR", raises=True),
    scalar("translate", "VARCHAR VARCHAR VARCHAR -> VARCHAR", constants_vary=True),
    scalar("concat", is_call=True, null=NullRule.NEVER, constants_vary=True),
    scalar("concat_ws", is_call=True, null=NullRule.FIRST, constants_vary=True),
    scalar("hex to_hex", *(f"{each} -> VARCHAR" for each in (*_WITH_DIGITS, "BLOB"))),
    scalar("bin to_binary", *(f"{each} -> VARCHAR" for each in _WITH_DIGITS)),
    scalar("base64 to_base64", "BLOB -> VARCHAR"),
    scalar("encode", "VARCHAR -> BLOB", bends=False),
    scalar("decode", "BLOB -> VARCHAR", "BLOB VARCHAR -> VARCHAR", raises=True),
    scalar("error", is_call=True, raises=True),
    scalar("from_hex unhex", "VARCHAR -> BLOB", raises=True),
    scalar("from_binary unbin", "VARCHAR -> BLOB", raises=True),
    scalar("from_base64", "VARCHAR -> BLOB", raises=True),
    scalar(
        "to_base",
        "BIGINT INTEGER -> VARCHAR",
        "BIGINT INTEGER INTEGER -> VARCHAR",
        raises=_digits,
    ),
    *(scalar(name, "BLOB -> VARCHAR", "VARCHAR -> VARCHAR") for name in ("md5", "sha1", "sha256")),
    scalar("url_encode", "VARCHAR -> VARCHAR"),
    scalar("url_decode", "VARCHAR -> VARCHAR", raises=True),
    scalar("strip_accents", "VARCHAR -> VARCHAR"),
    scalar("nfc_normalize", "VARCHAR -> VARCHAR"),
    scalar("regexp_escape", "VARCHAR -> VARCHAR"),
    scalar("overlay", "VARCHAR VARCHAR BIGINT -> VARCHAR", "VARCHAR VARCHAR BIGINT BIGINT -> VARCHAR"),
    scalar(
        "parse_filename",
        "VARCHAR -> VARCHAR",
        *(f"VARCHAR {options} -> VARCHAR" for options in ("BOOLEAN", "BOOLEAN VARCHAR", "VARCHAR")),
        bends=False,
        computes_all=True,
    ),
    *(
        scalar(name, "VARCHAR -> VARCHAR", "VARCHAR VARCHAR -> VARCHAR", bends=False, computes_all=True)
        for name in ("parse_dirname", "parse_dirpath")
    ),
    scalar("format_bytes formatreadablesize", "BIGINT -> VARCHAR"),
    scalar("format_decimal_bytes", "formatreadabledecimalsize: BIGINT -> VARCHAR"),
    scalar("bar", "DOUBLE DOUBLE DOUBLE -> VARCHAR", "DOUBLE DOUBLE DOUBLE DOUBLE -> VARCHAR", raises=True),
    *(scalar(name, is_call=True, raises=True) for name in ("format", "printf")),
    scalar("levenshtein editdist3", "VARCHAR VARCHAR -> BIGINT", range=any_length, work=Work.SEARCH),
    scalar("damerau_levenshtein", "VARCHAR VARCHAR -> BIGINT", range=any_length, work=Work.SEARCH),
    scalar("hamming mismatches", "VARCHAR VARCHAR -> BIGINT", range=any_length, raises=True),
    scalar("jaccard", "VARCHAR VARCHAR -> DOUBLE", raises=True),
    *(
        scalar(name, "VARCHAR VARCHAR -> DOUBLE", "VARCHAR VARCHAR DOUBLE -> DOUBLE", work=Work.SEARCH)
        for name in ("jaro_similarity", "jaro_winkler_similarity")
    ),
)
