"""Turn every subquery expression and every dependent join into an ordinary join.

This file decides which join a subquery becomes; `dependent_join.py` then removes the dependency, as in
Neumann and Kemper, Unnesting Arbitrary Queries (BTW 2015).

    WHERE EXISTS (q)             SEMI           WHERE NOT EXISTS (q)     ANTI
    WHERE x IN (q)               SEMI           WHERE x NOT IN (q)       NULL_AWARE_ANTI
    x < ANY (q)                  quantified_extremes.py, else as IN      x < ALL (q)  NOT x >= ANY (q)
    either, anywhere else        MARK           scalar (q)               SINGLE, LEFT or INNER
"""

from __future__ import annotations

from dataclasses import replace

from tqp.core.datatypes import BOOLEAN
from tqp.core.errors import UnsupportedError
from tqp.planner.algebra.expressions import TRUE, Call, Case, Expression, Literal, conjunction, conjuncts
from tqp.planner.algebra.logical_plan import (
    Filter,
    Join,
    JoinType,
    Limit,
    LogicalPlan,
    Project,
    Recursive,
    Sort,
    UnionAll,
    Values,
)
from tqp.planner.algebra.may_raise import is_failing_constant, raising_in
from tqp.planner.algebra.node import walk_plan
from tqp.planner.algebra.outcomes import nullable
from tqp.planner.algebra.subquery_expressions import (
    Exists,
    QuantifiedComparison,
    ScalarSubquery,
    Subquery,
    has_subquery,
    read_ids,
)
from tqp.planner.functions.conditions import NEGATED
from tqp.planner.rules.columns import (
    fresh_copy,
    numbered,
    reference,
    restore_schema,
    shared_twice,
    substitute,
    substitute_plan,
)
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.nulls import filtered, is_null, negate
from tqp.planner.rules.subqueries.dependent_join import join_dependent
from tqp.planner.rules.subqueries.quantified_extremes import compare_with_extremes


def unnest_subqueries(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """Replace all subqueries; the result has no subquery expression and no join whose right side reads its left."""
    return _Unnesting(context).plan(plan)


class _Unnesting:
    """Replaces subqueries by joins below the nodes that they stand in."""

    def __init__(self, context: OptimizerContext) -> None:
        self.context = context
        self.joined: set[int] = set()  # a column of each subquery that has become part of the plan

    def plan(self, plan: LogicalPlan) -> LogicalPlan:
        """The plan without any."""
        if isinstance(plan, Limit) and plan.limit == 0:
            return Values((), plan.schema)
        # Inside first: what an outer subquery wraps is then an ordinary plan with free columns.
        plan = self.context.rewrite_inputs(plan, self.plan)
        if plan.subqueries:
            return self.node(plan)
        if isinstance(plan, Join) and plan.is_dependent:
            mark = plan.mark
            return join_dependent(plan.left, plan.right, plan.join_type, plan.condition, mark, self.context)
        return plan

    def node(self, plan: LogicalPlan) -> LogicalPlan:
        match plan:
            case Filter():
                return self.filter(plan.input, conjuncts(plan.condition))
            case Join():
                return self.join(plan)
            case Values():
                return self.node(self.as_union(plan))
            case UnionAll():
                return plan.with_inputs(tuple(self.node(branch) for branch in plan.branches))
            case Sort():
                return restore_schema(self.over_input(plan), plan.schema)
            case Recursive():
                return plan
            case _:
                return self.over_input(plan)

    def over_input(self, plan: LogicalPlan) -> LogicalPlan:
        """The node with its subqueries computed by joins on its only input."""
        below = plan.inputs[0]

        def on_expression(expression: Expression) -> Expression:
            nonlocal below
            below, expression = self.extract(below, expression)
            return expression

        changed = plan.map_expressions(on_expression)
        return changed.with_inputs((below,))

    def filter(self, plan: LogicalPlan, parts: tuple[Expression, ...]) -> LogicalPlan:
        """A Filter whose conjuncts may hold subqueries.

        The plain ones stand lowest, then joins that only drop rows; last what may raise for a row that those drop.
        """
        parts = tuple(piece for part in parts for piece in conjuncts(_push_not(part)))
        plain = tuple(part for part in parts if not has_subquery(part))
        if len(plain) < len(parts):
            raising = raising_in(plain, plan)
            plain = tuple(part for part in plain if part not in raising)
        plan = filtered(plan, plain)
        for part in parts:
            if isinstance(_without_not(part), Exists | QuantifiedComparison):
                plan = self.quantified(plan, part)
        rest, done = [], {id(part) for part in plain}
        for part in parts:
            if id(part) not in done and not isinstance(_without_not(part), Exists | QuantifiedComparison):
                plan, part = self.extract(plan, part)
                rest.append(part)
        return filtered(plan, tuple(rest))

    def quantified(self, plan: LogicalPlan, part: Expression) -> LogicalPlan:
        """A conjunct that is EXISTS, IN, ANY or the negation of one."""
        negated = isinstance(part, Call)
        subquery = _without_not(part)
        if isinstance(subquery, Exists):
            inner = self.plan(_without_limit(self.once(subquery.plan)))
            return join_dependent(
                plan, inner, JoinType.ANTI if negated else JoinType.SEMI, TRUE, None, self.context
            )
        assert isinstance(subquery, QuantifiedComparison)
        plan, operands, inner = self.comparison(plan, subquery)
        compared = compare_with_extremes(
            plan, operands, subquery.comparison, inner, not negated, self.context
        )
        if compared is not None:
            plan, condition = compared
            return Filter(plan, negate(condition) if negated else condition)
        condition = _pairwise(subquery.comparison, operands, inner)
        join_type = JoinType.SEMI
        if negated:
            fields = {**plan.field_facts, **inner.field_facts}
            join_type = JoinType.NULL_AWARE_ANTI if nullable(condition, fields) else JoinType.ANTI
        return join_dependent(plan, inner, join_type, condition, None, self.context)

    def comparison(
        self, plan: LogicalPlan, subquery: QuantifiedComparison
    ) -> tuple[LogicalPlan, list[Expression], LogicalPlan]:
        """The plan with the operands' own subqueries computed, the operands over it, and the subquery's plan."""
        operands = []
        for operand in subquery.operands:
            plan, operand = self.extract(plan, operand)
            operands.append(operand)
        inner = self.once(subquery.plan)
        return plan, operands, restore_schema(self.plan(inner), inner.schema)

    def once(self, plan: LogicalPlan) -> LogicalPlan:
        """A subquery's plan; under new ids if it has been joined elsewhere, as that of an alias used in two clauses."""
        fields = (field for node in walk_plan(plan) for field in node.created_fields)
        first = next(fields, None)
        if first is not None and first.id in self.joined:
            plan, _ = fresh_copy(plan, self.context)
        elif first is not None:
            self.joined.add(first.id)
        return plan

    def extract(self, plan: LogicalPlan, expression: Expression) -> tuple[LogicalPlan, Expression]:
        """Join the subqueries in an expression to the plan; returns it and the expression over its columns."""
        if not has_subquery(expression):
            return plan, expression
        expression = _without_all(expression)
        match expression:
            case ScalarSubquery():
                field = expression.plan.schema[0]
                if field.id in plan.output_ids:  # computed already: BETWEEN has its operand twice
                    return plan, reference(field)
                inner = self.plan(self.once(expression.plan))
                plan = join_dependent(plan, inner, JoinType.SINGLE, TRUE, None, self.context)
                return plan, reference(inner.schema[0])
            case Exists():
                mark = self.context.new_field("exists", BOOLEAN, nullable=False)
                inner = self.plan(_without_limit(self.once(expression.plan)))
                plan = join_dependent(plan, inner, JoinType.MARK, TRUE, mark, self.context)
                return plan, reference(mark)
            case QuantifiedComparison():
                plan, operands, inner = self.comparison(plan, expression)
                compared = compare_with_extremes(
                    plan, operands, expression.comparison, inner, False, self.context
                )
                if compared is not None:
                    return compared
                condition = _pairwise(expression.comparison, operands, inner)
                fields = {**plan.field_facts, **inner.field_facts}
                mark = self.context.new_field("matches", BOOLEAN, nullable(condition, fields))
                plan = join_dependent(plan, inner, JoinType.MARK, condition, mark, self.context)
                return plan, reference(mark)
            case _:
                inputs = []
                for child in expression.inputs:
                    plan, child = self.extract(plan, child)
                    inputs.append(child)
                return plan, expression.with_inputs(tuple(inputs))

    def join(self, plan: Join) -> LogicalPlan:
        """Subqueries in ON: over the joined rows for an inner join, else over the side whose columns they read."""
        parts = conjuncts(plan.condition)
        plain = conjunction(tuple(part for part in parts if not has_subquery(part)))
        if plan.join_type is JoinType.INNER:
            joined = join_dependent(plan.left, plan.right, JoinType.INNER, plain, None, self.context)
            return self.filter(joined, tuple(part for part in parts if has_subquery(part)))
        left, right = plan.left, plan.right
        if any(has_subquery(part) and self.reads_both(part, left, right) for part in parts):
            return self.join_of_pairs(plan)
        rest = [plain]
        for part in parts:
            if has_subquery(part):
                left, right, part = self.extract_sided(left, right, part)
                rest.append(part)
        condition = conjunction(tuple(piece for part in rest for piece in conjuncts(part)))
        joined = join_dependent(left, right, plan.join_type, condition, plan.mark, self.context)
        return restore_schema(joined, plan.schema)

    def reads_both(self, expression: Expression, left: LogicalPlan, right: LogicalPlan) -> bool:
        """Whether a subquery in the expression reads columns of both plans."""
        if isinstance(expression, Subquery):
            reads = read_ids(expression)
            return bool(reads & left.output_ids) and bool(reads & right.output_ids)
        return any(self.reads_both(child, left, right) for child in expression.inputs)

    def join_of_pairs(self, plan: Join) -> LogicalPlan:
        """The left rows, joined by their numbers with the pairs for which the condition is true."""
        if plan.join_type is JoinType.FULL:
            raise UnsupportedError(
                "a subquery in the ON condition of a FULL JOIN that reads columns of both sides is not "
                "supported; compute it in a derived table on one side"
            )
        window, number = numbered(plan.left, self.context)
        left, again = shared_twice(window, self.context)
        renamed = {old.id: reference(new) for old, new in zip(left.fields, again.fields, strict=True)}
        right = substitute_plan(plan.right, renamed)
        condition = substitute(plan.condition, renamed)
        pairs = self.join(Join(again, right, JoinType.INNER, condition))
        same = Call("equal", (number, renamed[number.id]), BOOLEAN)
        joined = Join(left, pairs, plan.join_type, same, plan.mark)
        return restore_schema(joined, plan.schema)

    def as_union(self, plan: Values) -> LogicalPlan:
        """VALUES with subqueries as a union of one-row projections."""
        branches = []
        for row in plan.rows:
            fields = tuple(map(self.context.renewed, plan.fields))
            branches.append(Project(Values(((),), ()), fields, row))
        return UnionAll(tuple(branches), plan.fields)

    def extract_sided(
        self, left: LogicalPlan, right: LogicalPlan, expression: Expression
    ) -> tuple[LogicalPlan, LogicalPlan, Expression]:
        """As `extract`, with each subquery joined to the one side of an outer join that it reads."""
        if not has_subquery(expression):
            return left, right, expression
        if isinstance(expression, Subquery):
            reads = read_ids(expression)
            if not reads & left.output_ids:
                right, expression = self.extract(right, expression)
            else:
                left, expression = self.extract(left, expression)
            return left, right, expression
        inputs = []
        for child in expression.inputs:
            left, right, child = self.extract_sided(left, right, child)
            inputs.append(child)
        return left, right, expression.with_inputs(tuple(inputs))


def _pairwise(comparison: str, operands: list[Expression], inner: LogicalPlan) -> Expression:
    """The operands compared with the columns of a subquery; a constant that fails is asked for by a key that is not NULL."""
    columns = [reference(field) for field in inner.schema]
    if len(operands) == 1 and is_failing_constant(operands[0]):
        null = Literal(None, operands[0].data_type)
        operands = [Case(((is_null(columns[0]), null),), operands[0], null.data_type)]
    pairs = zip(operands, columns, strict=True)
    return conjunction(tuple(Call(comparison, pair, BOOLEAN) for pair in pairs))


def _without_not(part: Expression) -> Expression:
    """The argument of a NOT, or the expression itself."""
    return part.arguments[0] if isinstance(part, Call) and part.function == "not" else part


def _without_all(expression: Expression) -> Expression:
    """x op ALL (q) is NOT (x negated-op ANY (q)), NULLs included."""
    if isinstance(expression, QuantifiedComparison) and expression.is_all:
        return negate(replace(expression, comparison=NEGATED[expression.comparison], is_all=False))
    return expression


def _push_not(part: Expression) -> Expression:
    """NOT moved towards subqueries, so that a negated one stands as a conjunct of its own."""
    part = _without_all(part)
    if not (isinstance(part, Call) and has_subquery(part)):
        return part
    if part.function == "and":
        return replace(part, arguments=tuple(_push_not(argument) for argument in part.arguments))
    if part.function != "not":
        return part
    inner = _without_all(part.arguments[0])
    if isinstance(inner, Call) and inner.function == "not":
        return _push_not(inner.arguments[0])
    if isinstance(inner, Call) and inner.function == "or":
        return Call("and", tuple(_push_not(negate(argument)) for argument in inner.arguments), BOOLEAN)
    return part


def _without_limit(plan: LogicalPlan) -> LogicalPlan:
    """For EXISTS: neither order nor a positive LIMIT matters, nor what is projected."""
    while (
        isinstance(plan, Sort)
        or (isinstance(plan, Limit) and plan.offset == 0 and plan.limit != 0)
        or (isinstance(plan, Project) and not plan.subqueries)
    ):
        plan = plan.input
    return plan
