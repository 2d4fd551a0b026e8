"""Which columns may stand outside aggregates in a grouped block, and what its expressions are over the groups."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from tqp.core.errors import BindError
from tqp.planner.algebra.expressions import ColumnRef, Expression, Literal, walk
from tqp.planner.algebra.logical_plan import LogicalPlan
from tqp.planner.algebra.node import transform_plan
from tqp.planner.algebra.subquery_expressions import Exists, QuantifiedComparison, ScalarSubquery, read_ids
from tqp.planner.binder.scope import ColumnUse, Scope
from tqp.planner.binder.select.stars import star_of


def check_uses(uses: Iterable[ColumnUse], keys: Iterable[Expression]) -> None:
    """Refuse columns that are no group keys; before folding takes any away, so `k OR true` needs k as a key."""
    keys = set(keys)
    ids = {key.id for key in keys if isinstance(key, ColumnRef)}
    for use in uses:
        if use.id not in ids and use.whole not in keys:
            raise ungrouped(use)


def ungrouped(use: ColumnUse) -> BindError:
    """The error for a column that is neither a group key nor inside an aggregate."""
    return BindError(
        f'column "{use.name}" must appear in GROUP BY or inside an aggregate: add it to GROUP BY, or use '
        f"ANY_VALUE({use.name}) if any of its values will do",
        use.span,
    )


def is_of_all(group: exp.Group) -> bool:
    """GROUP BY ALL, or a star and nothing else: whose columns it is of does not matter then."""
    if group.args.get("all"):
        return True
    star = star_of(group.expressions[0]) if len(group.expressions) == 1 else None
    plain = star.this if isinstance(star, exp.Column) else star
    return plain is not None and not any(plain.args.values())


def keys_of_all(
    values: Sequence[Expression],
    uses: Sequence[Sequence[ColumnUse]],
    aggregates: Sequence[bool],
    windows: Sequence[bool],
    outer: Collection[int],
) -> list[Expression]:
    """GROUP BY ALL: the values of SELECT that read columns, not of enclosing queries (`outer`) alone, and hold no aggregate.

    `uses` are the columns that each value names outside of `aggregates`, if it holds any, folded away or not. `windows`: holds it
    window functions?
    """
    keys: list[Expression] = []
    for value, used, holds_aggregate, holds_window in zip(values, uses, aggregates, windows, strict=True):
        if holds_aggregate:
            if used:
                raise BindError(
                    f'GROUP BY ALL: "{used[0].name}" stands beside an aggregate in one expression; '
                    "write the keys out in GROUP BY",
                    used[0].span,
                )
        elif holds_window:
            if used:
                raise BindError(
                    "GROUP BY ALL: a window function cannot be a key; write the keys out in GROUP BY"
                )
        elif used or any(isinstance(part, ColumnRef) and part.id not in outer for part in walk(value)):
            keys.append(value)
    return keys


def keys_of_having(uses: Iterable[ColumnUse]) -> list[Expression]:
    """GROUP BY ALL: the columns that HAVING names outside aggregates are keys, too."""
    keys: list[Expression] = []
    for use in uses:
        if use.correlated:
            raise BindError(
                f'GROUP BY ALL: a subquery in HAVING cannot refer to "{use.name}"; write the keys out in GROUP BY',
                use.span,
            )
        keys.append(use.reference)
    return keys


@dataclass(slots=True)
class GroupedRewriter:
    """Makes an expression of the FROM clause one over the groups; whatever is neither key nor aggregate is an error.

    `key_ids`: the columns that groups have under their own ids; `expression_keys`: the columns that stand for other keys.
    """

    scope: Scope
    key_ids: frozenset[int]
    expression_keys: dict[Expression, ColumnRef]

    def rewrite(self, expression: Expression) -> Expression:
        if isinstance(expression, ColumnRef):
            key = self.expression_keys.get(expression)
            if key is not None:
                return key
            if expression.id in self.scope.used and expression.id not in self.key_ids:
                raise ungrouped(next(self.scope.uses_in(expression)))
            return expression
        if isinstance(expression, Literal):
            return expression
        if self.expression_keys:
            key = self.expression_keys.get(expression)
            if key is not None:
                return key
        if isinstance(expression, (ScalarSubquery, Exists, QuantifiedComparison)):
            plan = transform_plan(expression.plan, self._in_node)
            if plan is not expression.plan:  # else it stays the one it is: a CTE's may have to grow yet
                expression = replace(expression, plan=plan)
        inputs = expression.inputs
        changed = tuple(self.rewrite(part) for part in inputs)
        if any(new is not old for new, old in zip(changed, inputs)):
            return expression.with_inputs(changed)
        return expression

    def _in_node(self, plan: LogicalPlan) -> LogicalPlan:
        """A subquery computes what it can from columns that are keys, as grouping sets show, whose keys may be NULL."""
        columns = self.key_ids.union(key.id for key in self.expression_keys if isinstance(key, ColumnRef))
        keys = {
            key: field
            for key, field in self.expression_keys.items()
            if isinstance(key, ColumnRef) or not read_ids(key) <= columns
        }
        return plan.map_expressions(replace(self, expression_keys=keys).rewrite)
