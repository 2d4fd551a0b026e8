"""Files in FROM: `FROM 'sales.parquet'`, and read_parquet() and read_csv() of paths or patterns."""

from __future__ import annotations

import re

from sqlglot import exp

from tqp.core.errors import BindError, Error, UnsupportedError
from tqp.core.file_kinds import FileKind
from tqp.core.schema import TableSource
from tqp.planner.algebra.expressions import Literal
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.scalars import ExpressionBinder
from tqp.planner.binder.scope import Scope
from tqp.planner.functions.constant_folding import fold
from tqp.planner.functions.type_rules import settle
from tqp.planner.parse import Span, span_of

#: The kind of files that each function reads, whatever their names say.
FILE_FUNCTIONS: dict[str, FileKind] = {
    "read_parquet": "parquet",
    "parquet_scan": "parquet",
    "read_csv": "csv",
    "read_csv_auto": "csv",
}


def file_named(context: BindContext, name: str, span: Span | None) -> TableSource | None:
    """The file, or the files that match the pattern, of that name; None if that is no name of a file."""
    return _files(context, [name], None, span)


def relation_name(path: str) -> str:
    """What a file is called in a query: its name up to the first dot; a pattern cannot be named, as in DuckDB."""
    if re.search(r"[*?\[]", path):
        return ""
    return re.split(r"[/\\]", path)[-1].partition(".")[0]


def bind_file_function(context: BindContext, call: exp.Anonymous, span: Span | None) -> TableSource:
    """The table that read_parquet() and the like give of a path or a list of paths."""
    name = call.name.lower()
    options = [node for node in call.expressions[1:] if isinstance(node, exp.EQ | exp.PropertyEQ | exp.Kwarg)]
    if options:
        raise UnsupportedError(
            f"options of {name}() ({options[0].this.name}) are not supported; it decides by the file",
            span_of(options[0]) or span,
        )
    if len(call.expressions) != 1:
        raise BindError(f"{name}() takes a path, or a list of paths", span)
    [given] = call.expressions
    nodes = given.expressions if isinstance(given, exp.Array) else [given]
    if not nodes:
        raise BindError(f"{name}() needs at least one file to read", span)
    table = _files(context, [_path(context, node, name) for node in nodes], FILE_FUNCTIONS[name], span)
    assert table is not None
    return table


def _path(context: BindContext, node: exp.Expr, name: str) -> str:
    span = span_of(node)
    if node.find(exp.Column, exp.Query) is not None:
        raise UnsupportedError(f"{name}() of columns or subqueries is not supported; pass a parameter", span)
    value = fold(settle(ExpressionBinder(context, Scope(), "FROM").bind_flexible(node)))
    if not isinstance(value, Literal) or not isinstance(value.value, str):
        raise BindError(f"{name}() takes the path of a file as text, not {value.data_type}", span)
    return value.value


def _files(
    context: BindContext, paths: list[str], kind: FileKind | None, span: Span | None
) -> TableSource | None:
    try:
        return context.catalog.lookup_files(paths, kind)
    except Error as error:
        if error.span is not None or not isinstance(error, BindError):
            raise
        raise BindError(error.message, span) from error
