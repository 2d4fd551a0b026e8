"""Views in FROM: each use binds the view's query anew, in a text and surroundings of its own."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

from tqp.core.errors import BindError, Error
from tqp.core.schema import Field
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.macros import expanded
from tqp.planner.binder.scope import ScopeColumn
from tqp.planner.binder.select.output import BoundQuery
from tqp.planner.catalog_protocol import View
from tqp.planner.parse import Span


def bind_view(context: BindContext, view: View, span: Span | None) -> BoundQuery:
    """The view's columns come into being as they are referred to. Errors in it point at its name."""
    if id(view) in context.views:
        raise BindError(f'the view "{view.name}" reads itself', span)
    inner = replace(
        context,
        catalog=context.catalog.seen_from(view),
        inputs=view.query.inputs,
        parameters=None,
        query=view.query.text,
        parameter_keys={},
        used_parameters=set(),
        views=context.views | {id(view)},
    )
    inner.bind_query = type(context.bind_query)(inner)
    with _pointing_at(view, span):
        tree = expanded(view.query.tree, inner.catalog, view.query.text)
        bound = inner.bind_query.bind_lazy(tree, None)
    if len(view.columns) > len(bound.columns):
        raise BindError(
            f'view "{view.name}" has {len(view.columns)} names for the {len(bound.columns)} columns of its query',
            span,
        )
    names = [*view.columns, *(column.name for column in bound.columns[len(view.columns) :])]

    def make(column: ScopeColumn) -> Field:
        with _pointing_at(view, span):
            return column.field()

    first_hidden = len(names) - view.num_hidden
    columns = [
        ScopeColumn(name, partial(make, column), is_hidden=place >= first_hidden)
        for place, (name, column) in enumerate(zip(names, bound.columns, strict=True))
    ]
    return replace(bound, columns=columns)


@contextmanager
def _pointing_at(view: View, span: Span | None) -> Iterator[None]:
    try:
        yield
    except Error as error:
        if view.is_relation:
            raise error.with_query(view.query.text) from None
        raise type(error)(f'view "{view.name}": {error.message}', span) from error
