"""Make expressions smaller without changing their value, NULL included; and conditions, where NULL counts as false."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from operator import is_

from tqp.core.datatypes import BOOLEAN, TypeKind
from tqp.core.errors import ExecutionError
from tqp.planner.algebra.expressions import (
    FALSE,
    TRUE,
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    InList,
    Literal,
    are_literals,
    conjunction,
    conjuncts,
    is_false,
    is_null_literal,
    is_true,
)
from tqp.planner.algebra.field_facts import reads_checked
from tqp.planner.algebra.join_keys import THREE_VALUED
from tqp.planner.algebra.known_fields import Fields, FieldsById, KnownFields
from tqp.planner.algebra.logical_plan import Filter, Join, JoinType, LogicalPlan
from tqp.planner.algebra.may_raise import decided_by_null, may_raise
from tqp.planner.algebra.outcomes import nullable
from tqp.planner.algebra.value_ranges import value_range
from tqp.planner.functions.conditions import COMPARISONS, MAY_HOLD, MIRRORED, NEGATED
from tqp.planner.functions.constant_folding import fold
from tqp.planner.rules.cast_comparisons import list_without_cast, without_cast
from tqp.planner.rules.columns import without_struct
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.instant_differences import all_finite, compared_by_ticks, measured_by_ticks
from tqp.planner.rules.instant_ranges import compared_instants
from tqp.planner.rules.nulls import conjoin, is_null, negate
from tqp.planner.rules.or_predicates import any_of, branches_of


def simplify_expressions(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """Fold constants, push NOT down, factor OR, turn equalities into lists, decide comparisons by value ranges."""

    def simplify(node: LogicalPlan) -> LogicalPlan:
        if not node.expressions:
            return node

        simplifier = Simplifier(lambda: _facts_below(node))
        if isinstance(node, Filter) or (isinstance(node, Join) and node.join_type not in THREE_VALUED):
            return node.map_expressions(simplifier.condition)
        return node.map_expressions(simplifier.value)

    return context.rewrite(plan, simplify)


def _facts_below(plan: LogicalPlan) -> Fields:
    """What is known of the inputs' columns. Of their values a cross product says no more than what it joins."""
    found: Fields = {}
    for child in plan.inputs:
        is_product = (
            isinstance(child, Join) and child.join_type is JoinType.INNER and is_true(child.condition)
        )
        found |= _facts_below(child) if is_product else child.field_facts
    return found


class Simplifier:
    """Simplifies expressions over columns with the given facts."""

    def __init__(self, fields: Callable[[], FieldsById]) -> None:
        self._fields = fields

    @cached_property
    def fields(self) -> KnownFields:
        """Found when something asks: most expressions are as simple as can be without."""
        return KnownFields(self._fields())

    def condition(self, expression: Expression) -> Expression:
        """A simpler condition that is true on the same rows."""
        value = self.value(expression)
        parts = conjuncts(value)
        where_true = [self._where_true(part) for part in parts]
        if all(map(is_, where_true, parts)):
            return value
        result = conjoin(*where_true)
        return FALSE if any(map(is_false, conjuncts(result))) else _kept(result, expression)

    def _where_true(self, part: Expression) -> Expression:
        """One conjunct; below AND and OR, too, NULL may become false."""
        if is_null_literal(part):
            return FALSE
        if isinstance(part, Case):
            return self._where_case_is_true(part)
        if isinstance(part, Call) and part.function == "and":
            return self.condition(part)
        if isinstance(part, Call) and part.function == "or":
            branches = [self._where_true(branch) for branch in branches_of(part)]
            branches = [branch for branch in branches if not is_false(branch)]
            return any_of(branches) if branches else FALSE
        if isinstance(part, Call) and part.function in COMPARISONS:
            verdict = self._verdict(part)
            if verdict is False:
                return FALSE
            if verdict is True:
                tests = [negate(is_null(side)) for side in part.arguments if nullable(side, self.fields)]
                return conjoin(*tests)
        return part

    def _where_case_is_true(self, case: Case) -> Expression:
        """CASE WHEN a THEN b END as a AND b, which is true on the same rows, where b raises nothing on others."""
        ((condition, value), *others) = case.branches
        if others or not (is_null_literal(case.default) or is_false(case.default)):
            return case
        return case if may_raise(value, self.fields) else self.condition(conjoin(condition, value))

    def value(self, expression: Expression) -> Expression:
        """A simpler expression of the same value and type."""
        expression = expression.map_inputs(self.value)
        match expression:
            case Call():
                return self._call(expression)
            case Cast():
                return _folded(expression)
            case Case():
                return self._case(expression)
            case InList(input=Literal(value=value), values=values) if are_literals(values):
                known = None if value is None else value in [literal.value for literal in values]
                return Literal(known, BOOLEAN)
            case InList():
                return list_without_cast(expression)
            case _:
                return expression

    def _call(self, call: Call) -> Expression:
        folded = _folded(call)
        if folded is not call:
            return folded
        null = decided_by_null(call)
        if null is not None:
            return null
        match call.function:
            case "not":
                return self._not(call)
            case "and":
                parts = tuple(dict.fromkeys(conjuncts(call)))
                if any(map(is_false, parts)):
                    return FALSE
                return call if parts == call.arguments else conjunction(parts)
            case "or":
                branches = [branch for branch in branches_of(call) if not is_false(branch)]
                if not branches or any(map(is_true, branches)):
                    return TRUE if branches else FALSE
                return _kept(any_of(branches), call)
            case "is_null" if self._is_never_null(call.arguments[0]):
                return FALSE
            case "is_distinct_from" | "is_not_distinct_from" if self._are_the_same(*call.arguments):
                return FALSE if call.function == "is_distinct_from" else TRUE
            case "coalesce":
                return self._coalesce(call)
            case "date_part" | "date_diff":
                return measured_by_ticks(call, self._are_finite)
            case "struct_extract":
                return without_struct(call, self.fields)
            case function if function in COMPARISONS:
                return self._comparison(call)
        return call

    def _is_never_null(self, argument: Expression) -> bool:
        """NULL for no row, and nothing that raises for one: errors are never dropped."""
        return not nullable(argument, self.fields) and not may_raise(argument, self.fields)

    def _are_the_same(self, first: Expression, second: Expression) -> bool:
        """One expression twice, which raises for no row."""
        return first == second and not may_raise(first, self.fields)

    def _not(self, call: Call) -> Expression:
        inner = call.arguments[0]
        if not isinstance(inner, Call):
            return call
        if inner.function == "not":
            return inner.arguments[0]
        if inner.function in NEGATED:
            return self.value(replace(inner, function=NEGATED[inner.function]))
        if inner.function in ("and", "or"):
            opposite = "or" if inner.function == "and" else "and"
            arguments = tuple(self._not(Call("not", (part,), BOOLEAN)) for part in inner.arguments)
            return self._call(Call(opposite, arguments, BOOLEAN))
        return call

    def _comparison(self, call: Call) -> Expression:
        first, second = call.arguments
        if isinstance(first, Literal) and not isinstance(second, Literal):
            call = replace(call, function=MIRRORED[call.function], arguments=(second, first))
        call = without_cast(call, lambda value: value_range(value, self.fields))
        if first.data_type.kind is TypeKind.INTERVAL:
            call = compared_by_ticks(call, self._are_finite)
        if type(call.arguments[0]) is not ColumnRef:
            ranges = compared_instants(call, self.fields)
            if ranges[0] is not call:
                return conjoin(*map(self._comparison, ranges))
        verdict = self._verdict(call)
        if verdict is not None and not any(nullable(side, self.fields) for side in call.arguments):
            return TRUE if verdict else FALSE
        return call

    def _are_finite(self, instants: Sequence[Expression]) -> bool:
        return all_finite(instants, self.fields)

    def _verdict(self, call: Call) -> bool | None:
        """What the comparison is wherever it is not NULL, if the ranges of its sides decide that, and neither may raise."""
        if not call.arguments[0].data_type.is_integer_like:
            return None
        return self.fields.derived(_verdict, call)

    def _coalesce(self, call: Call) -> Expression:
        arguments: list[Expression] = []
        for argument in call.arguments:
            if is_null_literal(argument):
                continue
            arguments.append(argument)
            if not nullable(argument, self.fields):
                break
        if not arguments:
            return Literal(None, call.data_type)
        if len(arguments) == 1:
            return arguments[0]
        return call if len(arguments) == len(call.arguments) else replace(call, arguments=tuple(arguments))

    def _case(self, case: Case) -> Expression:
        branches = []
        default = case.default
        for condition, value in case.branches:
            if isinstance(condition, Literal) and condition.value is not True:
                continue
            if condition == TRUE:
                default = value
                break
            branches.append((condition, value))
        if all(value == default and not may_raise(condition, self.fields) for condition, value in branches):
            return default
        if len(branches) == len(case.branches) and default is case.default:
            return case
        return replace(case, branches=tuple(branches), default=default)


def _verdict(call: Call, fields: FieldsById) -> bool | None:
    verdict = _by_ranges(call, fields)
    return None if verdict is None or reads_checked(call, fields) or may_raise(call, fields) else verdict


def _by_ranges(call: Call, fields: FieldsById) -> bool | None:
    left, right = [value_range(side, fields) for side in call.arguments]
    if left is None or right is None:
        return None
    if not MAY_HOLD[call.function](left, right):
        return False
    return None if MAY_HOLD[NEGATED[call.function]](left, right) else True


def _folded(expression: Expression) -> Expression:
    """The constant, if it is one; an error stays for the run, since the row that raises it may never come."""
    try:
        return fold(expression)
    except ExecutionError:
        return expression


def _kept(new: Expression, old: Expression) -> Expression:
    """The old object if nothing changed, so that callers see that by identity."""
    return old if new == old else new
