"""query('SELECT ...') and query_table('name'): the rows of a query, or of tables, that a constant text says."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from tqp.core.errors import BindError, Error
from tqp.core.file_kinds import kind_of_name
from tqp.core.keywords import lower_ascii, quoted
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.from_clause.constant_arguments import constant_text
from tqp.planner.binder.macros import expanded
from tqp.planner.binder.scope import Scope
from tqp.planner.binder.select.output import BoundQuery
from tqp.planner.parse import Span, parse

QUERY_FUNCTIONS = ("query", "query_table")

#: A part of a name, and a name of several.
_PART = re.compile(r'"(?:[^"]|"")+"|[^".]+')
_NAME = re.compile(rf"(?:{_PART.pattern})(?:\.(?:{_PART.pattern}))*")


def bind_query_function(
    context: BindContext, call: exp.Anonymous, siblings: Scope, span: Span | None
) -> BoundQuery:
    """The query, which reads the tables that the one around it may read. Raises the errors of the text, at the call."""
    text = _text(context, lower_ascii(call.name), call.expressions, span)
    try:
        statement = parse(text)
        if statement.explain is not None:
            raise BindError("query() takes a query, not EXPLAIN")
        if statement.tree.find(exp.Placeholder, exp.Parameter) is not None:
            raise BindError("the text of query() takes no parameters")
        inner = replace(context, parameters=None, query=text, parameter_keys={}, used_parameters=set())
        inner.bind_query = type(context.bind_query)(inner)
        return inner.bind_query.bind_exact(expanded(statement.tree, context.catalog, text), siblings)
    except Error as error:
        raise type(error)(f"{error.message}, in {text!r}", span) from None


def _text(context: BindContext, name: str, nodes: Sequence[exp.Expr], span: Span | None) -> str:
    if name == "query":
        if len(nodes) != 1:
            raise BindError("query() takes the text of a query", span)
        return _constant(context, nodes[0], name)
    if len(nodes) not in (1, 2):
        raise BindError("query_table() takes the name of a table, or a list of names", span)
    given, *by_name = nodes
    tables = [
        _constant(context, node, name)
        for node in (given.expressions if isinstance(given, exp.Array) else [given])
    ]
    if not tables:
        raise BindError("query_table() needs at least one table", span)
    matched = bool(by_name) and isinstance(by_name[0], exp.Boolean) and by_name[0].this
    union = " UNION ALL BY NAME " if matched else " UNION ALL "
    return union.join(f"FROM {_table_name(table, span)}" for table in tables)


def _table_name(text: str, span: Span | None) -> str:
    """A name of query_table() as SQL: its parts, each of them in double quotes or without; or a path to a file."""
    if kind_of_name(text) is not None:
        return quoted(text)
    if not _NAME.fullmatch(text):
        raise BindError(f"query_table() takes the name of a table, not {text!r}", span)
    parts = (part[1:-1].replace('""', '"') if part.startswith('"') else part for part in _PART.findall(text))
    return ".".join(map(quoted, parts))


def _constant(context: BindContext, node: exp.Expr, name: str) -> str:
    """A constant text; query_table() also takes a name as it is."""
    if name == "query_table" and isinstance(node, exp.Column):
        return ".".join(part.name for part in node.parts)
    return constant_text(context, node, name, "a constant text")
