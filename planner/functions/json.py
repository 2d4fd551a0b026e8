"""Functions of JSON: parts of documents by paths, and what documents hold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tqp.core.errors import BindError, UnsupportedError
from tqp.core.json.paths import Path, parse_path
from tqp.core.json.structure import structure_of
from tqp.core.json.values import parse_json
from tqp.core.text.numbers import ParseFailure
from tqp.planner.algebra.expressions import Call, Expression, Literal
from tqp.planner.functions.constants import no_constant
from tqp.planner.functions.declaration import NullRule, ScalarFunction, scalar
from tqp.planner.functions.ranges import Range, Ranges, any_length


def _may_be_malformed(call: Call, ranges: Ranges, result: Range | None) -> bool:
    """Where text is no JSON, and where a path that is no constant is none."""
    document, *path = call.arguments
    return not document.data_type.is_json or not all(
        isinstance(each, Literal) or each.data_type.is_integer for each in path
    )


def _may_one_be_malformed(call: Call, ranges: Ranges, result: Range | None) -> bool:
    return not all(argument.data_type.is_json for argument in call.arguments)


def _may_path_be_wrong(call: Call, ranges: Ranges, result: Range | None) -> bool:
    """Of a change: its path is looked at when there are rows, as in DuckDB."""
    path = call.arguments[1]
    if not isinstance(path, Literal):
        return True
    try:
        return path.value is not None and parse_path(str(path.value)).has_wildcards
    except (ParseFailure, UnsupportedError):
        return True


def _may_rows_fail(call: Call, ranges: Ranges, result: Range | None) -> bool:
    document, *path = call.arguments
    return not document.data_type.is_json or not all(isinstance(each, Literal) for each in path)


def _may_not_fit(call: Call, ranges: Ranges, result: Range | None) -> bool:
    manner = call.arguments[1]
    assert isinstance(manner, Literal)
    return manner.value not in ("try_cast", "json_transform")


def _fold_structure(call: Call, document: Any) -> Any:
    """Known while a query is planned, so that json_transform() can take it."""
    try:
        return structure_of(parse_json(document))
    except ParseFailure:
        return NotImplemented


def constant_path(text: str) -> Path:
    """The path that a constant says; raises BindError."""
    try:
        return parse_path(text)
    except ParseFailure as failure:
        raise BindError(str(failure)) from None


def _check_path(arguments: Sequence[Expression]) -> None:
    """Paths that are constants are part of the query: it is refused where one is wrong."""
    if len(arguments) < 2:
        return
    path = arguments[1]
    if path.data_type.has_elements:
        _check_paths(path)
    elif isinstance(path, Literal) and isinstance(path.value, str):
        constant_path(path.value)


def _check_paths(paths: Expression) -> None:
    if not isinstance(paths, Literal):
        raise no_constant(paths, "a list of JSON paths must be a constant")
    if paths.value is None:
        return
    if not paths.value:
        raise UnsupportedError("an empty list of JSON paths is not supported")
    assert isinstance(paths.value, tuple)
    for text in paths.value:
        if text is None:
            raise BindError("a JSON path in a list must not be NULL")
        if constant_path(str(text)).has_wildcards:
            raise BindError(f"a JSON path in a list must not have wildcards, as '{text}' has")


def _of_both(*lines: str) -> tuple[str, ...]:
    """Of text, which is parsed, and of JSON, which everything else is cast to."""
    return tuple(line.format(document) for line in lines for document in ("VARCHAR", "JSON"))


def _by_path(result: str) -> tuple[str, ...]:
    """Of one path, which may have wildcards, and of a list of paths."""
    return _of_both(f"{{}} VARCHAR -> {result} by path", f"{{}} VARCHAR[] -> {result}[]")


def _reader(names: str, *lines: str, **facts: Any) -> ScalarFunction:
    """What is NULL where there is nothing at the path."""
    return scalar(
        names, *lines, null=NullRule.PROPAGATES, raises=_may_be_malformed, check=_check_path, **facts
    )


#: Of two documents or more, one after the other.
MERGES = ("json_merge_patch", "json_deep_merge", "json_merge_patch_diff")
#: In FROM: the parts of a document, and the parts of these, too.
ROW_FUNCTIONS = ("json_each", "json_tree")

JSON_FUNCTIONS = (
    _reader("json_extract json_extract_path ->", *_of_both("{} BIGINT -> JSON"), *_by_path("JSON")),
    _reader(
        "json_extract_string json_extract_path_text ->>",
        *(*_of_both("{} BIGINT -> VARCHAR"), *_by_path("VARCHAR")),
    ),
    _reader("json_value", *_of_both("{} BIGINT -> VARCHAR"), *_by_path("VARCHAR")),
    scalar("json_exists", *_by_path("BOOLEAN"), raises=_may_be_malformed, check=_check_path),
    _reader("json_type", *_of_both("{} -> VARCHAR"), *_by_path("VARCHAR")),
    _reader("json_keys", *_of_both("{} -> VARCHAR[]"), *_by_path("VARCHAR[]")),
    _reader("json_array_length", *_of_both("{} -> UBIGINT"), *_by_path("UBIGINT"), range=any_length),
    scalar("json_quote to_json", is_call=True),
    # JSON as a nested value, in the manner of a cast or of json_transform()
    scalar("json_as", null=NullRule.PROPAGATES, raises=_may_not_fit),
    scalar("json_valid", *_of_both("{} -> BOOLEAN")),
    scalar(
        "json_contains",
        *_of_both("{} VARCHAR -> BOOLEAN", "{} JSON -> BOOLEAN"),
        raises=_may_one_be_malformed,
    ),
    *(scalar(name, is_call=True) for name in MERGES),
    *(
        scalar(name, is_call=True, raises=_may_path_be_wrong)
        for name in ("json_set", "json_insert", "json_replace")
    ),
    scalar("json_remove", is_call=True, null=NullRule.PROPAGATES, raises=_may_path_be_wrong),
    scalar("json_strip_nulls", *_of_both("{} -> JSON"), raises=_may_be_malformed),
    scalar("json_normalize", *_of_both("{} -> VARCHAR"), raises=_may_be_malformed),
    # what the table functions make of a document, as a list of structs
    *(scalar(name, raises=_may_rows_fail) for name in ROW_FUNCTIONS),
    scalar("json_structure", *_of_both("{} -> JSON"), raises=_may_be_malformed, fold=_fold_structure),
    scalar("json", *_of_both("{} -> JSON"), raises=_may_be_malformed),
    scalar("json_pretty", *_of_both("{} -> VARCHAR"), raises=_may_be_malformed),
)
