"""COLUMNS(...) of a lambda or a list that is computed: a query tells the names, and the query around it is bound anew with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from tqp.planner.binder.select.columns_calls import UnknownNamesError
from tqp.planner.parse import ParsedStatement, Query, parse, span_of
from tqp.planner.syntax.parser import is_columns_call


def with_names(
    query: Query, unknown: UnknownNamesError, texts_of: Callable[[ParsedStatement], Sequence[str | None]]
) -> Query:
    """The query with the names in the place of what tells them. `texts_of`: the one column of a query's rows.

    Raises the error where the text of the query does not hold that, as where it is in a view.
    """
    statement = parse(query) if isinstance(query, str) else query
    statement = replace(statement, tree=statement.tree.copy())
    place = span_of(unknown.argument)
    calls = [
        call
        for call in statement.tree.find_all(exp.Anonymous)
        if is_columns_call(call)
        and call.expressions[0] == unknown.argument
        and span_of(call.expressions[0]) == place
    ]
    if not calls:
        raise unknown
    variant = (statement.variant, "names", place, unknown.names)
    found = texts_of(replace(statement, tree=unknown.query, explain=None, is_part=True, variant=variant))
    names = tuple(name for name in found if name is not None)
    for call in calls:
        call.set("expressions", [exp.Array(expressions=[*map(exp.Literal.string, names)])])
    return replace(statement, variant=(*variant, names))
