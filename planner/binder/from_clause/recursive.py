"""WITH RECURSIVE: the first part, and the step that is repeated on the rows that it gave before."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from tqp.core.datatypes import NULL
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.core.schema import Schema
from tqp.planner.algebra.logical_plan import LogicalPlan, Recursive, UnionAll, WorkingRows
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.subqueries import cast_columns
from tqp.planner.binder.from_clause.keyed_aggregates import keyed_columns
from tqp.planner.binder.scope import CteDefinition, Scope
from tqp.planner.binder.select.output import BoundQuery, distinct
from tqp.planner.parse import head_span, without_parentheses


def is_recursive(clause: exp.With, cte: exp.CTE) -> bool:
    """Whether a CTE may refer to itself, as the second part of a UNION may. Where it does not, it has the first part's types too.

    Raises BindError where it has ORDER BY, LIMIT or OFFSET, whether or not anything reads it.
    """
    query = without_parentheses(cte.this)
    if (
        not clause.args.get("recursive")
        or not isinstance(query, exp.Union)
        or query.args.get("by_name")
        and not _names(query.expression, cte.alias)
    ):
        return False
    part = cte.this
    while part is not query.this:
        if any(part.args.get(word) is not None for word in ("order", "limit", "offset")):
            raise BindError(
                "WITH RECURSIVE: ORDER BY and LIMIT may stand in the query that reads it", head_span(query)
            )
        part = part.this
    return True


def _names(query: exp.Expr, name: str) -> bool:
    return any(lower_ascii(table.name) == lower_ascii(name) for table in query.find_all(exp.Table))


def bind_recursive(context: BindContext, definition: CteDefinition) -> BoundQuery:
    """A CTE that may refer to itself. Its columns have the types and names of the first part."""
    assert isinstance(definition.tree, exp.Expr)
    tree = without_parentheses(definition.tree)
    assert isinstance(tree, exp.Union)
    span = head_span(tree)
    if tree.args.get("by_name"):
        raise UnsupportedError("WITH RECURSIVE by UNION BY NAME is not supported", span)
    scope = context.bind_query.scope_of(tree, definition.scope)
    first = context.bind_query.bind_exact(tree.this, scope.outside())
    types = [field.data_type for field in first.plan.schema]
    names = [*definition.columns, *first.names[len(definition.columns) :]]
    if NULL in types:
        raise UnsupportedError(
            "WITH RECURSIVE: a column of the first part that is NULL without a type is not supported; cast it",
            span,
        )
    is_distinct = bool(tree.args.get("distinct"))
    keyed = None if definition.keys is None else keyed_columns(definition.keys, names)
    # UNION goes on with the rows of keys that changed; UNION ALL with all rows of the step, which are grouped at the end
    is_grouped = keyed is not None and bool(keyed.calls)
    is_grouped_before, is_grouped_after = is_grouped and is_distinct, is_grouped and not is_distinct
    rows = keyed.grouped(context, first.plan, scope) if keyed and is_grouped_before else first.plan
    fields = tuple(
        context.new_field(name, made.data_type) for name, made in zip(first.names, rows.schema, strict=True)
    )
    identifier = context.new_shared()
    last, whole = (WorkingTable(context, identifier, fields, is_whole) for is_whole in (False, True))
    tables = {
        name: CteDefinition(definition.name, tree, definition.columns, None, table)
        for name, table in (
            (lower_ascii(definition.name), last),
            (recurring_name(definition.name), whole),
        )
    }
    inner = Scope(parent=scope.parent, ctes={**scope.ctes, **tables})
    step = context.bind_query.bind_exact(tree.expression, inner).plan
    if len(step.schema) != len(fields):
        raise BindError(
            f"WITH RECURSIVE: the first part has {len(fields)} columns, the second {len(step.schema)}", span
        )
    step = cast_columns(context, step, types, span)
    if is_grouped_after and whole.references:
        raise UnsupportedError(
            "recurring. is not supported beside aggregates in USING KEY and UNION ALL", span
        )
    reads_itself = last.references or whole.references
    if keyed and is_grouped_before and reads_itself:
        step = keyed.merged(context, keyed.grouped(context, step, scope), whole.reference().plan)
    if not reads_itself:
        if keyed is not None:
            raise UnsupportedError(
                "USING KEY is not supported where the second part does not read the rows of the first", span
            )
        union = UnionAll((rows, step), tuple(map(context.renewed, fields)))
        return BoundQuery.exact(distinct(union) if is_distinct else union, first.names)
    keys = None if keyed is None or is_grouped_after else keyed.keys
    plan: LogicalPlan = Recursive(rows, step, fields, identifier, is_distinct, keys)
    if keyed and is_grouped_after:
        plan = keyed.grouped(context, plan, scope)
    return BoundQuery.exact(plan, first.names)


def recurring_name(name: str) -> str:
    """Under what the table of all rows so far, `recurring.name`, stands among the CTEs."""
    return f"recurring.{lower_ascii(name)}"


@dataclass(slots=True)
class WorkingTable:
    """What the name of the CTE means in its second part: the rows of the iteration before, or the whole of them so far."""

    context: BindContext
    identifier: int
    fields: Schema
    is_whole: bool
    references: int = 0

    def reference(self) -> BoundQuery:
        """One more reference."""
        self.references += 1
        node = WorkingRows(self.identifier, tuple(map(self.context.renewed, self.fields)), self.is_whole)
        return BoundQuery.exact(node, [field.name for field in self.fields])
