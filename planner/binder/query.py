"""Queries: SELECT blocks, set operations, VALUES, WITH. The entry for whole statements and for every subquery."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.planner.binder.from_clause.recursive import is_recursive
from tqp.planner.binder.from_clause.values import bind_values
from tqp.planner.binder.scope import CteDefinition, Scope
from tqp.planner.binder.select.block import SelectBlock
from tqp.planner.binder.select.limits import bind_limit
from tqp.planner.binder.select.named_windows import check_windows
from tqp.planner.binder.select.output import BoundQuery, Branch
from tqp.planner.binder.select.set_operations import bind_result_order, bind_set_operation
from tqp.planner.binder.unsupported_clauses import check_understood
from tqp.planner.parse import head_span, span_of, without_parentheses

if TYPE_CHECKING:
    from tqp.planner.binder.context import BindContext


@dataclass(slots=True)
class QueryBinder:
    """Binds query nodes; the scope passed in is the enclosing one, whose columns are outer columns."""

    context: BindContext

    def bind_exact(self, node: exp.Expr, outer: Scope | None) -> BoundQuery:
        """The query with `plan.schema` being exactly its output columns, in order."""
        return self._bind(node, outer, lazy=False)

    def bind_lazy(self, node: exp.Expr, outer: Scope | None) -> BoundQuery:
        """The query as a derived table: columns come into being as they are referred to."""
        return self._bind(node, outer, lazy=True)

    def _bind(
        self,
        node: exp.Expr,
        outer: Scope | None,
        lazy: bool,
        around: tuple[exp.Expr, ...] = (),
    ) -> BoundQuery:
        """`around`: the parentheses around a SELECT, the innermost first; their ORDER BY may name what it may name."""
        context = self.context
        check_understood(node)
        scope = self.scope_of(node, outer)
        if isinstance(node, exp.Select):
            return SelectBlock(context, node, scope, lazy, around).bind()
        if isinstance(node, exp.SetOperation):
            return bind_set_operation(context, node, scope)
        if isinstance(node, exp.Values):
            return self._values(node, scope)
        if isinstance(node, (exp.Subquery, exp.Paren)):
            return self._parenthesised(node, scope, lazy, around)
        raise UnsupportedError(f"{type(node).__name__.upper()} as a query is not supported", span_of(node))

    def scope_of(self, node: exp.Expr, outer: Scope | None) -> Scope:
        """The scope of a query node, with the CTEs that it defines."""
        scope = Scope(parent=outer, ctes=outer.ctes if outer is not None else {})
        _define_ctes(node, scope)
        return scope

    def _parenthesised(
        self, node: exp.Expr, scope: Scope, lazy: bool, around: tuple[exp.Expr, ...]
    ) -> BoundQuery:
        """(query), perhaps with an ORDER BY or LIMIT of its own outside."""
        if isinstance(node.this, exp.Table):
            raise BindError("a table in parentheses is no query; write SELECT * FROM it", head_span(node))
        outer = scope.outside()
        if isinstance(without_parentheses(node), exp.Select):
            return self._bind(node.this, outer, lazy, (node, *around))
        if node.args.get("order") is not None:
            inner = self._bind(node.this, outer, lazy=False)
            plan = bind_result_order(self.context, node, inner, scope)
            plan = bind_limit(self.context, node, plan, scope)
            return BoundQuery.exact(plan, inner.names, inner.branches)
        inner = self._bind(node.this, outer, lazy)
        plan = bind_limit(self.context, node, inner.plan, scope, lazy=lazy)
        return BoundQuery(plan, inner.columns, inner.branches)

    def _values(self, node: exp.Values, scope: Scope) -> BoundQuery:
        query = bind_values(self.context, node, scope)
        query = replace(query, branches=[Branch(query.names)])
        plan = bind_result_order(self.context, node, query, scope)
        return replace(query, plan=bind_limit(self.context, node, plan, scope))


def _define_ctes(node: exp.Expr, scope: Scope) -> None:
    """WITH: each name is visible to the ones after it and to the query."""
    clause = node.args.get("with_")
    if clause is None:
        return
    check_understood(clause)
    for cte in clause.expressions:
        check_understood(cte)
        if not isinstance(cte.this, (exp.Query, exp.Values)):
            raise UnsupportedError("only queries may stand in WITH", span_of(cte))
        check_windows(cte.this)
        alias = cte.args["alias"]
        # a CTE sees the enclosing query and the CTEs before it, not the FROM clause it is used in
        definition = CteDefinition(
            alias.name,
            cte.this,
            cte.alias_column_names,
            scope.outside(),
            is_recursive=is_recursive(clause, cte),
            keys=cte.args.get("key_expressions") or None,
        )
        lowered = lower_ascii(alias.name)
        if lowered in scope.ctes and not (scope.parent is not None and lowered in scope.parent.ctes):
            raise BindError(f'WITH defines "{alias.name}" twice', head_span(alias))
        scope.ctes = {**scope.ctes, lowered: definition}
