"""Which columns determine which others in the rows of a plan, NULLs being equal to each other."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from tqp.core.datatypes import TypeKind
from tqp.planner.algebra.expressions import Call, ColumnRef, Expression, Literal, conjuncts, walk
from tqp.planner.algebra.join_keys import LEFT_ONLY
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Filter,
    Join,
    JoinType,
    Limit,
    LogicalPlan,
    Project,
    Sort,
)
from tqp.planner.algebra.subquery_expressions import read_ids
from tqp.planner.rules.joins.region import column_equality

_EQUAL_BUT_DIFFERENT = (TypeKind.FLOAT, TypeKind.DOUBLE, TypeKind.ARRAY, TypeKind.INTERVAL)


def same_for_equal_inputs(expression: Expression) -> bool:
    """Whether equal columns always give equal values: 0.0 and -0.0, 1 day and 24 hours are equal and not the same."""
    if isinstance(expression, ColumnRef):
        return True
    return not any(
        isinstance(part, ColumnRef) and part.data_type.kind in _EQUAL_BUT_DIFFERENT
        for part in walk(expression)
    )


@dataclass(slots=True)
class Dependencies:
    """Rules of the form: rows that agree on all columns of the first set agree on all of the second."""

    rules: list[tuple[frozenset[int], frozenset[int]]] = field(default_factory=list)

    @staticmethod
    def of(plan: LogicalPlan) -> Dependencies:
        """The dependencies that keys, join equalities and computed columns give rise to."""
        found = Dependencies()
        found._collect(plan)
        return found

    def closure(self, ids: Collection[int]) -> set[int]:
        """All columns that the given ones determine."""
        known = set(ids)
        rules = self.rules
        while True:
            waiting = []
            for rule in rules:
                if rule[0] <= known:
                    known |= rule[1]
                else:
                    waiting.append(rule)
            if len(waiting) == len(rules):
                return known
            rules = waiting

    def _add(self, determinant: Collection[int], determined: Collection[int]) -> None:
        self.rules.append((frozenset(determinant), frozenset(determined)))

    def _collect(self, plan: LogicalPlan) -> None:
        match plan:
            case Filter():
                self._conditions(plan.condition)
                self._collect(plan.input)
            case Project():
                for output_field, output in zip(plan.fields, plan.outputs, strict=True):
                    if isinstance(output, ColumnRef):
                        if output.id != output_field.id:
                            self._equate(output.id, output_field.id)
                    elif same_for_equal_inputs(output):
                        self._add(read_ids(output), (output_field.id,))
                self._collect(plan.input)
            case Aggregate():
                for key_field, key in zip(plan.key_fields, plan.keys, strict=True):
                    if isinstance(key, ColumnRef) and key.id != key_field.id:
                        self._equate(key.id, key_field.id)
                self._add([f.id for f in plan.key_fields], [f.id for f in plan.schema])
                self._collect(plan.input)
            case Join() if plan.join_type is not JoinType.FULL:
                self._join(plan)
            case Sort() | Limit():
                self._collect(plan.input)
            case _:
                for unique in plan.unique_sets:
                    self._add(unique, plan.output_ids)

    def _join(self, plan: Join) -> None:
        self._collect(plan.left)
        if plan.join_type is JoinType.INNER:
            self._conditions(plan.condition)
            self._collect(plan.right)
        elif plan.join_type not in LEFT_ONLY:
            # Padding makes a row of NULLs: that breaks a dependency only on columns that were NULL in other rows.
            right = Dependencies.of(plan.right)
            fields = plan.right.field_facts
            never_null = {identifier for identifier, known in fields.items() if not known.nullable}
            for determinant, determined in right.rules:
                if determinant & never_null:
                    self._add(determinant, determined & fields.keys())

    def _conditions(self, condition: Expression) -> None:
        for part in conjuncts(condition):
            pair = column_equality(part)
            if pair is not None:
                self._equate(pair[0].id, pair[1].id)
                continue
            match part:
                case Call("equal", (ColumnRef(id=identifier), Literal())):
                    self._add((), (identifier,))

    def _equate(self, first: int, second: int) -> None:
        self._add((first,), (second,))
        self._add((second,), (first,))
