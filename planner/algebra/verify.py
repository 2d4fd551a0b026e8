"""Checks that a logical plan is well formed: ids unique, columns available, types equal, schemas of the right shape.

A failure is a bug in the stage that made the plan, never a user's: it raises AssertionError naming that stage.
"""

from __future__ import annotations

from tqp.core.datatypes import BOOLEAN
from tqp.core.schema import Schema
from tqp.planner.algebra.expressions import AggregateCall, Call, ColumnRef, Expression
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    AsofJoin,
    Filter,
    Join,
    JoinType,
    Limit,
    LogicalPlan,
    Project,
    Recursive,
    Scan,
    Series,
    Shared,
    Sort,
    UnionAll,
    Unnest,
    Values,
    Window,
    WorkingRows,
)
from tqp.planner.algebra.subquery_expressions import Exists, QuantifiedComparison, ScalarSubquery
from tqp.planner.algebra.window_calls import WindowCall
from tqp.planner.functions.registry import SCALARS


class PlanVerifier:
    """Verifies plans that share nodes: a node seen before, under the same outer columns, is not checked again."""

    def __init__(self) -> None:
        self._seen: dict[int, tuple[LogicalPlan, frozenset[int]]] = {}
        self._expressions: dict[int, Expression] = {}
        self._shared: dict[int, LogicalPlan] = {}
        self.allow_subqueries = True

    def verify(self, plan: LogicalPlan, stage: str) -> None:
        """Raise AssertionError, naming the stage that made the plan, if it is not well formed."""
        self._shared.clear()
        try:
            self._check(plan, frozenset())
        except _IllFormedError as error:
            raise AssertionError(f"{stage} made an ill-formed plan: {error}") from None

    def verify_schema(self, plan: LogicalPlan, schema: Schema, stage: str) -> None:
        """Raise AssertionError if the plan's output columns are not those of `schema`, in order and type."""
        made = [(field.id, field.data_type) for field in plan.schema]
        wanted = [(field.id, field.data_type) for field in schema]
        if made != wanted:
            raise AssertionError(f"{stage} changed the output columns from {wanted} to {made}")

    def _check(self, plan: LogicalPlan, outer: frozenset[int]) -> frozenset[int]:
        """Check a plan that may read the `outer` columns; returns the ids it puts out."""
        seen = self._seen.get(id(plan))
        if seen is not None:
            return seen[1]
        outputs = self._check_node(plan, outer)
        if not outer:  # inside subqueries what is available differs from place to place
            self._seen[id(plan)] = (plan, outputs)  # the plan too: it keeps the id from being used again
        return outputs

    def _check_node(self, plan: LogicalPlan, outer: frozenset[int]) -> frozenset[int]:
        available = outer
        for child in plan.inputs:
            is_dependent = isinstance(plan, Join) and self.allow_subqueries
            available |= self._check(child, available if is_dependent else outer)
        for part in plan.parts:
            self._check_part(part, plan, available)
        outputs = frozenset([field.id for field in plan.schema])
        _require(len(outputs) == len(plan.schema), f"ids of {type(plan).__name__} are not unique")
        self._check_shape(plan)
        return outputs

    def _check_shape(self, plan: LogicalPlan) -> None:
        """What each kind of node promises besides."""
        match plan:
            case Filter():
                _require(plan.condition.data_type == BOOLEAN, "a filter's condition is not BOOLEAN")
            case Join():
                _require(plan.condition.data_type == BOOLEAN, "a join's condition is not BOOLEAN")
                is_mark = plan.join_type is JoinType.MARK
                _require((plan.mark is not None) == is_mark, "only a mark join has a mark")
            case Project():
                _pair_up(plan.fields, plan.outputs)
            case Aggregate():
                _pair_up(plan.key_fields, plan.keys)
                _pair_up(plan.aggregate_fields, plan.aggregates)
            case Window():
                _pair_up(plan.fields, plan.calls)
            case Unnest():
                types = [each.data_type.element for each in plan.lists]
                _require(
                    types == [each.data_type for each in plan.fields], "an unnested list has other elements"
                )
            case Scan():
                paired = len(plan.columns) == len(plan.fields)
                _require(paired, f"scan of {plan.table_name}: columns and fields differ")
            case Values():
                for row in plan.rows:
                    _pair_up(plan.fields, row)
            case UnionAll():
                for branch in plan.branches:
                    _same_types(plan.fields, branch.schema, "a union's branch")
            case Shared():
                first = self._shared.setdefault(plan.identifier, plan.input)
                _require(first is plan.input or first == plan.input, f"shared plan {plan.identifier} differs")
                _same_types(plan.fields, plan.input.schema, "a shared plan")
            case Recursive():
                _same_types(plan.fields, plan.first.schema, "the first rows of a recursion")
                _same_types(plan.fields, plan.step.schema, "the step of a recursion")
            case AsofJoin():
                for one, other in zip(plan.left_keys, plan.right_keys, strict=True):
                    _require(one.data_type == other.data_type, "the keys of an ASOF join differ in type")
                same = plan.left_value.data_type == plan.right_value.data_type
                _require(same, "the values of an ASOF join differ in type")
            case Sort() | Limit() | Series() | WorkingRows():
                pass
            case _:
                raise AssertionError(f"nothing says what a well-formed {type(plan).__name__} is")

    def _check_part(self, part: Expression, plan: LogicalPlan, available: frozenset[int]) -> None:
        match part:
            case ColumnRef():
                if part.id not in available:
                    raise _IllFormedError(f"column {part.name}#{part.id} is not available")
            case Call(function=function) if SCALARS[function].one_type:
                types = {argument.data_type for argument in part.arguments}
                if len(types) != 1:
                    raise _IllFormedError(f"{function} of {', '.join(sorted(map(str, types)))}")
            case Call(function="and" | "or" | "not" as function):
                if any(argument.data_type != BOOLEAN for argument in part.arguments):
                    raise _IllFormedError(f"{function} of something that is not BOOLEAN")
            case AggregateCall():
                is_result = isinstance(plan, Aggregate) and any(part is call for call in plan.aggregates)
                _require(is_result, "an aggregate call outside an Aggregate")
            case ScalarSubquery() | Exists() | QuantifiedComparison():
                _require(self.allow_subqueries, "a subquery is left")
                self._check(part.plan, available)
                if isinstance(part, QuantifiedComparison):
                    _same_types(part.plan.schema, part.operands, "the operands of a subquery")


class _IllFormedError(Exception):
    pass


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise _IllFormedError(message)


def _pair_up(fields: Schema, expressions: tuple[Expression | WindowCall, ...]) -> None:
    _require(len(fields) == len(expressions), f"{len(fields)} fields for {len(expressions)} expressions")
    for field, expression in zip(fields, expressions, strict=True):
        if field.data_type != expression.data_type:
            raise _IllFormedError(
                f"field {field.name}#{field.id} is {field.data_type}, its expression {expression.data_type}"
            )


def _same_types(fields: Schema, others: Schema | tuple[Expression, ...], what: str) -> None:
    types = [field.data_type for field in fields]
    made = [other.data_type for other in others]
    if types != made:
        raise _IllFormedError(f"{what} has the types {[*map(str, made)]}, not {[*map(str, types)]}")
