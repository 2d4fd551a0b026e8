"""`bind`: SQL, as text or parsed, a catalog and parameters in, a logical plan out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass, replace

from tqp.core.datatypes import DataType
from tqp.core.errors import Error
from tqp.core.process.deep_recursion import call_deep
from tqp.core.schema import TableSource
from tqp.planner.algebra.expressions import ColumnRef, Expression, Literal
from tqp.planner.algebra.logical_plan import LogicalPlan, Project, Scan
from tqp.planner.algebra.node import walk_plan
from tqp.planner.algebra.random_calls import is_random
from tqp.planner.binder.context import BindContext, Parameters
from tqp.planner.binder.expressions.coercion import cast_to
from tqp.planner.binder.expressions.forms.sequences import check_drawn
from tqp.planner.binder.expressions.literals import check_unread_placeholders
from tqp.planner.binder.macros import expanded
from tqp.planner.binder.query import QueryBinder
from tqp.planner.binder.select.output import BoundQuery
from tqp.planner.binder.text_constants import NO_LIMIT, LimitPlaces, Place, mark_text_constants
from tqp.planner.catalog_protocol import Catalog
from tqp.planner.parse import Query, check_parameters, parse, text_of
from tqp.planner.scan_conditions import over_tables
from tqp.planner.syntax.query_grammar import Explain


@dataclass(frozen=True, slots=True)
class BoundStatement:
    """A bound query: `plan.schema` are its output columns, `names` what they are called (duplicates allowed).

    `varying`: the places of the constants that were to be `Varying`; `limit`: of the LIMIT and OFFSET of the whole query.
    """

    plan: LogicalPlan
    names: tuple[str, ...]
    explain: Explain = None
    varying: frozenset[Place] = frozenset()
    limit: LimitPlaces = NO_LIMIT

    @property
    def is_random(self) -> bool:
        """Whether it draws random numbers, or those of a sequence."""
        return is_random(self.plan)

    def over(
        self, tables: Mapping[TableSource, TableSource], satisfied: Collection[Expression] = ()
    ) -> BoundStatement:
        """The statement over tables with the same columns in place of those; without conditions that all their rows satisfy."""
        return replace(self, plan=over_tables(self.plan, tables, satisfied))

    def encode_columns(self) -> None:
        """Let each table encode what the query refers to, so that nothing is scanned while the plan is optimized."""
        columns: dict[TableSource, list[str]] = {}
        for node in walk_plan(self.plan, into_subqueries=True):
            if isinstance(node, Scan):
                columns.setdefault(node.table, []).extend(node.columns)
        for table, names in columns.items():
            table.encode(names)


#: What becomes of a query's columns, by their names: for each of the new ones, the place of the old one (None: NULL), and
#: the type that it is cast to.
Arrangement = Callable[[Sequence[str]], Sequence[tuple[int | None, DataType]]]


def bind(
    query: Query,
    catalog: Catalog,
    parameters: Parameters = None,
    *,
    text_constants: Container[Place] | None = None,
    arranged: Arrangement | None = None,
) -> BoundStatement:
    """Bind one statement, which is parsed first where it is text.

    `arranged`: what is put out in place of the query's own columns; the names stay those.

    `text_constants`: constants that predicates compare with, list and search for are `Varying`, and those at such places that
    are computed with.

    `parameters`: a sequence for `?` and `$1`, a mapping for `$name`. Raises ParseError, BindError, UnsupportedError and,
    where a constant cannot be computed, ExecutionError, all pointing at the SQL.
    """
    try:
        return call_deep(lambda: _bind(query, catalog, parameters, text_constants, arranged))
    except Error as error:
        raise error.with_query(text_of(query)) from None


def _bind(
    query: Query,
    catalog: Catalog,
    parameters: Parameters,
    text_constants: Container[Place] | None,
    arranged: Arrangement | None,
) -> BoundStatement:
    statement = parse(query) if isinstance(query, str) else query
    varying: frozenset[Place] = frozenset()
    limit = NO_LIMIT
    if text_constants is not None:
        statement = replace(statement, tree=statement.tree.copy())
        varying, limit = mark_text_constants(statement, text_constants)
    tree = expanded(statement.tree, catalog, statement.text)
    context = BindContext(
        catalog, parameters, statement.text, statement.parameter_keys, inputs=statement.inputs
    )
    context.bind_query = QueryBinder(context)
    bound = context.bind_query.bind_exact(tree, None)
    check_unread_placeholders(context, tree)
    if context.drawn:
        check_drawn(bound.plan)
    if not statement.is_part:
        check_parameters(context.parameters, context.used_parameters, "query")
    plan = bound.plan if arranged is None else _arrange(context, bound, arranged(bound.names))
    return BoundStatement(plan, bound.names, statement.explain, varying, limit)


def _arrange(
    context: BindContext, bound: BoundQuery, columns: Sequence[tuple[int | None, DataType]]
) -> LogicalPlan:
    schema = bound.plan.schema
    outputs = tuple(
        Literal(None, data_type) if place is None else cast_to(ColumnRef.of(schema[place]), data_type, None)
        for place, data_type in columns
    )
    fields = tuple(context.new_field("", data_type) for _, data_type in columns)
    return Project(bound.plan, fields, outputs)
