"""CTEs: each is bound once, and every reference to it is a Shared node with column ids of its own.

Columns come into being when any reference is asked for them, and then for all: they stand for one plan.
"""

from __future__ import annotations

from functools import partial

from sqlglot import exp

from tqp.core.schema import Field
from tqp.planner.algebra.expressions import ColumnRef
from tqp.planner.algebra.logical_plan import Project, Shared
from tqp.planner.algebra.node import grow
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.from_clause.keyed_aggregates import KeyedRows
from tqp.planner.binder.from_clause.recursive import WorkingTable, bind_recursive
from tqp.planner.binder.scope import CteDefinition, ScopeColumn
from tqp.planner.binder.select.output import BoundQuery


def bind_reference(context: BindContext, definition: CteDefinition) -> BoundQuery:
    """The CTE as a relation in FROM. What nobody refers to is never bound, as in DuckDB."""
    if definition.bound is None:
        definition.bound = BoundCte(context, definition)
    assert isinstance(definition.bound, BoundCte | WorkingTable | KeyedRows)
    return definition.bound.reference()


class BoundCte:
    """The plan of a CTE, which like its references grows while the statement is bound."""

    def __init__(self, context: BindContext, definition: CteDefinition) -> None:
        assert isinstance(definition.tree, exp.Expr)
        if definition.is_recursive:
            bound = bind_recursive(context, definition)
        else:
            bound = context.bind_query.bind_lazy(definition.tree, definition.scope)
        self.context = context
        self.identifier = context.new_shared()
        self.columns = bound.columns
        self.source = Project(bound.plan, (), ())
        self.positions: dict[int, int] = {}  # in `source`, by the column's id
        self.references: list[Shared] = []

    def reference(self) -> BoundQuery:
        """One more reference."""
        node = Shared(self.source, self.identifier, tuple(map(self.context.renewed, self.source.fields)))
        self.references.append(node)
        columns = [ScopeColumn(column.name, partial(self._field, node, column)) for column in self.columns]
        return BoundQuery(node, columns)

    def _field(self, node: Shared, column: ScopeColumn) -> Field:
        output = column.reference()
        if output.id not in self.positions:
            self._add(output)
        return node.fields[self.positions[output.id]]

    def _add(self, output: ColumnRef) -> None:
        made = next(field for field in self.source.input.schema if field.id == output.id)
        self.positions[output.id] = len(self.source.fields)
        source = self.source
        grow(source, fields=(*source.fields, made), outputs=(*source.outputs, output))
        for node in self.references:
            grow(node, fields=(*node.fields, self.context.renewed(made)))
