"""Views in FROM: each use binds the view's query anew, in a text and surroundings of its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial

from tqp.core.datatypes import DataType
from tqp.core.definitions import TableDefinition
from tqp.core.errors import BindError, Error
from tqp.core.file_kinds import FileKind
from tqp.core.models import FunctionSignature, ModelSignature
from tqp.core.read_options import NO_OPTIONS, ReadOptions
from tqp.core.schema import Field, TableSource
from tqp.planner.algebra.expressions import Literal
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.macros import expanded
from tqp.planner.binder.scope import ScopeColumn
from tqp.planner.binder.select.output import BoundQuery
from tqp.planner.catalog_protocol import Catalog, Macro, View
from tqp.planner.parse import Span


def bind_view(context: BindContext, view: View, span: Span | None) -> BoundQuery:
    """The view's columns come into being as they are referred to. Errors in it point at its name."""
    if id(view) in context.views:
        raise BindError(f'the view "{view.name}" reads itself', span)
    inner = replace(
        context,
        catalog=_Inputs(view.inputs, _own_names(context.catalog)),
        parameters=None,
        query=view.query.text,
        parameter_keys={},
        used_parameters=set(),
        views=context.views | {id(view)},
    )
    inner.bind_query = type(context.bind_query)(inner)
    with _pointing_at(view, span):
        tree = expanded(view.query.tree, context.catalog, view.query.text)
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

    columns = [
        ScopeColumn(name, partial(make, column)) for name, column in zip(names, bound.columns, strict=True)
    ]
    return replace(bound, columns=columns)


def _own_names(catalog: Catalog) -> Catalog:
    """Without the inputs of the view around, which are names of that one alone."""
    return catalog.around if isinstance(catalog, _Inputs) else catalog


@dataclass(frozen=True, slots=True)
class _Inputs:
    """The catalog of a view that has inputs."""

    inputs: Mapping[str, View | TableSource]
    around: Catalog

    def lookup(self, name: str) -> TableSource | None:
        found = self.inputs.get(name.lower())
        if found is None:
            return self.around.lookup(name)
        return None if isinstance(found, View) else found

    def lookup_definition(self, name: str) -> TableDefinition | None:
        return None if name.lower() in self.inputs else self.around.lookup_definition(name)

    def lookup_view(self, name: str) -> View | None:
        found = self.inputs.get(name.lower())
        return found if isinstance(found, View) else self.around.lookup_view(name)

    def lookup_macro(self, name: str) -> Macro | None:
        return self.around.lookup_macro(name)

    def macro_names(self) -> Sequence[str]:
        return self.around.macro_names()

    def lookup_files(
        self, paths: Sequence[str], kind: FileKind | None = None, options: ReadOptions = NO_OPTIONS
    ) -> TableSource | None:
        return self.around.lookup_files(paths, kind, options)

    def query_time(self) -> int:
        return self.around.query_time()

    def lookup_type(self, name: str) -> DataType | None:
        return self.around.lookup_type(name)

    def lookup_variable(self, name: str) -> Literal | None:
        return self.around.lookup_variable(name)

    def table_names(self) -> Sequence[str]:
        return [*self.inputs, *self.around.table_names()]

    def lookup_function(self, name: str) -> ModelSignature | FunctionSignature | None:
        return self.around.lookup_function(name)

    def function_names(self) -> Sequence[str]:
        return self.around.function_names()


@contextmanager
def _pointing_at(view: View, span: Span | None) -> Iterator[None]:
    try:
        yield
    except Error as error:
        if view.is_relation:
            raise error.with_query(view.query.text) from None
        raise type(error)(f'view "{view.name}": {error.message}', span) from error
