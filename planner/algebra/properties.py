"""Sound facts about logical plans: output fields, an upper bound of rows, column sets that identify a row.

`Facts` computes each of them once for every node. The functions below it answer a single question.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import TypeVar

from tqp.core.datatypes import TypeKind
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import ColumnRef, Expression, conjuncts, literal_labels
from tqp.planner.algebra.field_facts import (
    Fields,
    aggregate_fields,
    filter_fields,
    join_fields,
    project_field,
    union_field,
    values_field,
    weakened,
)
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Filter,
    Join,
    JoinType,
    Limit,
    LogicalPlan,
    Project,
    Scan,
    Shared,
    Sort,
    UnionAll,
    Values,
)
from tqp.planner.algebra.null_facts import null_rejected_columns, nullable
from tqp.planner.algebra.value_ranges import value_range
from tqp.planner.physical.join_keys import JoinKeys, key_column, split_condition

__all__ = [
    "Facts",
    "UniqueSets",
    "key_span",
    "max_rows",
    "null_rejected_columns",
    "nullable",
    "refine",
    "unique_columns",
]

#: Sets of column ids no two rows agree on (NULLs being equal). The empty set: there is at most one row.
UniqueSets = frozenset[frozenset[int]]

_ONE_ROW: UniqueSets = frozenset((frozenset(),))
_MOST_UNIQUE_SETS = 8
_LEFT_ONLY = (JoinType.SEMI, JoinType.ANTI, JoinType.NULL_AWARE_ANTI, JoinType.MARK)

Answer = TypeVar("Answer")


class Facts:
    """Facts about plan nodes, kept by node identity while the object lives."""

    def __init__(self) -> None:
        self._fields: dict[int, tuple[LogicalPlan, Fields]] = {}
        self._max_rows: dict[int, tuple[LogicalPlan, int]] = {}
        self._unique: dict[int, tuple[LogicalPlan, UniqueSets]] = {}
        self._keys: dict[int, tuple[LogicalPlan, JoinKeys]] = {}

    def fields(self, plan: LogicalPlan) -> Fields:
        """Output fields by id, in schema order, tightened by everything below (filters and joins included)."""
        return _remember(self._fields, plan, self._derive_fields)

    def max_rows(self, plan: LogicalPlan) -> int:
        """No more rows than this come out."""
        return _remember(self._max_rows, plan, self._derive_max_rows)

    def unique(self, plan: LogicalPlan) -> UniqueSets:
        """Some of the column sets that identify an output row."""
        return _remember(self._unique, plan, self._derive_unique)

    def join_keys(self, join: Join) -> JoinKeys:
        """The join's condition, split."""
        return _remember(self._keys, join, self._split)

    def left_at_most_once(self, join: Join) -> bool:
        """True if every left row comes out at most once."""
        return (
            join.join_type in _LEFT_ONLY
            or join.join_type is JoinType.SINGLE
            or self.right_key_is_unique(join)
        )

    def right_at_most_once(self, join: Join) -> bool:
        """True if every right row comes out at most once."""
        return self.left_key_is_unique(join)

    def right_key_is_unique(self, join: Join) -> bool:
        """True if no two right rows match on the keys."""
        keys = self.join_keys(join)
        return self.matches_at_most_once(join.right, keys.right, keys.null_equal)

    def left_key_is_unique(self, join: Join) -> bool:
        """True if no two left rows match on the keys."""
        keys = self.join_keys(join)
        return self.matches_at_most_once(join.left, keys.left, keys.null_equal)

    def matches_at_most_once(
        self, side: LogicalPlan, keys: tuple[Expression, ...], null_equal: tuple[bool, ...]
    ) -> bool:
        """True if for given values of the keys at most one row of `side` can match."""
        columns = {key_column(key) for key in keys}
        if any(unique <= columns for unique in self.unique(side)):
            return True
        fields = self.fields(side)
        for key, matches_null in zip(keys, null_equal, strict=True):
            column = key_column(key)
            field = None if column is None else fields.get(column)
            # A unique column may hold several NULLs; an equality does not match those.
            if field is not None and field.statistics.is_unique and not (matches_null and field.nullable):
                return True
        return False

    def _split(self, plan: LogicalPlan) -> JoinKeys:
        assert isinstance(plan, Join)
        return split_condition(plan.condition, self.fields(plan.left), self.fields(plan.right))

    def _derive_fields(self, plan: LogicalPlan) -> Fields:
        match plan:
            case Scan():
                return {field.id: field for field in plan.fields}
            case Filter():
                return filter_fields(self.fields(plan.input), conjuncts(plan.condition))
            case Project():
                below = self.fields(plan.input)
                pairs = zip(plan.fields, plan.outputs, strict=True)
                return {field.id: project_field(field, output, below) for field, output in pairs}
            case Join():
                return join_fields(
                    self.fields(plan.left),
                    self.fields(plan.right),
                    plan.join_type,
                    self.join_keys(plan),
                    plan.mark,
                    left_once=self.left_at_most_once(plan),
                    right_once=self.right_at_most_once(plan),
                    keeps_left_order=False,
                )
            case Aggregate():
                fields = aggregate_fields(
                    self.fields(plan.input),
                    plan.key_fields,
                    plan.keys,
                    plan.aggregate_fields,
                    plan.aggregates,
                    self.max_rows(plan.input),
                )
                return {field.id: field for field in fields}
            case Sort():
                return sorted_fields(plan, self.fields(plan.input))
            case Limit():
                return self.fields(plan.input)
            case UnionAll():
                branches = [self._in_order(branch) for branch in plan.branches]
                columns = zip(*branches, strict=True)
                pairs_of_union = zip(plan.fields, columns, strict=True)
                return {field.id: union_field(field, column) for field, column in pairs_of_union}
            case Values():
                return {
                    field.id: values_field(field, [row[position] for row in plan.rows])
                    for position, field in enumerate(plan.fields)
                }
            case Shared():
                sources = self._in_order(plan.input)
                return {
                    field.id: Field(field.id, field.name, field.data_type, source.nullable, source.statistics)
                    for field, source in zip(plan.fields, sources, strict=True)
                }
        return {field.id: field for field in plan.schema}

    def _in_order(self, plan: LogicalPlan) -> list[Field]:
        """Fields by position; unlike the dictionary, with repeated columns."""
        fields = self.fields(plan)
        return [fields[field.id] for field in plan.schema]

    def _derive_max_rows(self, plan: LogicalPlan) -> int:
        match plan:
            case Scan():
                return plan.table.num_rows
            case Values():
                return len(plan.rows)
            case Join():
                return self._join_rows(plan)
            case Aggregate():
                if not plan.keys:
                    return 1
                fields, groups = self.fields(plan.input), 1
                for key in plan.keys:
                    span = key_span(key, fields)
                    if span is None:
                        return self.max_rows(plan.input)
                    groups *= span
                return min(groups, self.max_rows(plan.input))
            case Limit():
                rows = max(0, self.max_rows(plan.input) - plan.offset)
                return rows if plan.limit is None else min(rows, plan.limit)
            case UnionAll():
                return sum(self.max_rows(branch) for branch in plan.branches)
        return self.max_rows(plan.inputs[0])

    def _join_rows(self, plan: Join) -> int:
        left = self.max_rows(plan.left)
        if plan.join_type in _LEFT_ONLY or plan.join_type is JoinType.SINGLE:
            return left
        right = self.max_rows(plan.right)
        left_once, right_once = self.left_at_most_once(plan), self.right_at_most_once(plan)
        matches = left * right
        if left_once:
            matches = min(matches, left)
        if right_once:
            matches = min(matches, right)
        match plan.join_type:
            case JoinType.LEFT:
                return left if left_once else min(left * max(right, 1), matches + left)
            case JoinType.FULL:
                return left + right if left_once or right_once else matches + left + right
        return matches

    def _derive_unique(self, plan: LogicalPlan) -> UniqueSets:
        match plan:
            case Scan():
                return frozenset(
                    frozenset((field.id,))
                    for field in plan.fields
                    if field.statistics.is_unique and not field.nullable
                )
            case Values():
                return _ONE_ROW if len(plan.rows) <= 1 else frozenset()
            case Project():
                return _renamed_sets(self.unique(plan.input), plan.outputs, plan.fields)
            case Join():
                return self._join_unique(plan)
            case Aggregate():
                if not plan.keys:
                    return _ONE_ROW
                group = frozenset(field.id for field in plan.key_fields)
                inherited = _renamed_sets(self.unique(plan.input), plan.keys, plan.key_fields)
                return _few({group, *inherited})
            case Limit() if plan.limit is not None and plan.limit <= 1:
                return _ONE_ROW
            case UnionAll():
                return frozenset()
            case Shared():
                renamed = {old.id: new.id for old, new in zip(plan.input.schema, plan.fields, strict=True)}
                return frozenset(
                    frozenset(renamed[identifier] for identifier in unique)
                    for unique in self.unique(plan.input)
                )
        return self.unique(plan.inputs[0])

    def _join_unique(self, plan: Join) -> UniqueSets:
        left = self.unique(plan.left)
        if plan.join_type in _LEFT_ONLY or plan.join_type is JoinType.SINGLE:
            return left
        if plan.join_type is JoinType.FULL:  # two padded rows may agree in everything but their NULLs
            return frozenset()
        right = self.unique(plan.right)
        result: set[frozenset[int]] = set()
        if self.left_at_most_once(plan):
            result |= left
        if plan.join_type is JoinType.INNER and self.right_at_most_once(plan):
            result |= right
        if not result:
            result = {first | second for first in left for second in right}
        return _few(result)


def refine(plan: LogicalPlan) -> LogicalPlan:
    """The same plan with the nullability and statistics of every computed field brought up to date, bottom-up."""
    return _refine(plan, Facts(), {})


def max_rows(plan: LogicalPlan) -> int:
    """A sound upper bound of the rows that come out."""
    return Facts().max_rows(plan)


def unique_columns(plan: LogicalPlan) -> UniqueSets:
    """Sets of column ids that identify a row of the output; the empty set means there is at most one row."""
    return Facts().unique(plan)


def key_span(key: Expression, fields: Fields) -> int | None:
    """How many values a group key can take, NULL included, if that is known."""
    known = value_range(key, fields)
    if known is not None:
        return known[1] - known[0] + 1 + nullable(key, fields)
    if key.data_type.kind is TypeKind.BOOLEAN:
        return 2 + nullable(key, fields)
    if labels := literal_labels(key):
        return len(labels) + nullable(key, fields)
    field = fields.get(key.id) if isinstance(key, ColumnRef) else None
    if field is not None and field.statistics.dictionary_size is not None:
        return field.statistics.dictionary_size + field.nullable
    return None


def sorted_fields(plan: Sort, below: Fields) -> Fields:
    """Fields after a sort: only the first key is in order, if ascending and free of NULLs."""
    first = plan.keys[0] if plan.keys else None
    in_order = (
        first.expression.id
        if first is not None and not first.descending and isinstance(first.expression, ColumnRef)
        else None
    )
    result: Fields = {}
    for identifier, field in below.items():
        if identifier == in_order and not field.nullable:
            statistics = replace(field.statistics, is_sorted=True)
            result[identifier] = Field(field.id, field.name, field.data_type, False, statistics)
        else:
            result[identifier] = weakened(field, False, True, False)
    return result


def _refine(plan: LogicalPlan, facts: Facts, shared: dict[int, LogicalPlan]) -> LogicalPlan:
    inputs = plan.inputs
    if isinstance(plan, Shared):  # every reference keeps the same input object
        if plan.identifier not in shared:
            shared[plan.identifier] = _refine(plan.input, facts, shared)
        changed: tuple[LogicalPlan, ...] = (shared[plan.identifier],)
    else:
        changed = tuple(_refine(child, facts, shared) for child in inputs)
    if any(new is not old for new, old in zip(changed, inputs, strict=True)):
        plan = plan.with_inputs(changed)
    if not isinstance(plan, Project | Aggregate | UnionAll | Values | Shared):
        return plan
    known = facts.fields(plan)
    fields = tuple(_renamed(known[field.id], field.name) for field in plan.schema)
    if fields == plan.schema:
        return plan
    if isinstance(plan, Aggregate):
        count = len(plan.key_fields)
        return replace(plan, key_fields=fields[:count], aggregate_fields=fields[count:])
    return replace(plan, fields=fields)


def _renamed_sets(sets: UniqueSets, outputs: Iterable[Expression], fields: Iterable[Field]) -> UniqueSets:
    """Those of the sets whose columns all pass through as bare references, by the ids they have afterwards."""
    renamed = {
        output.id: field.id
        for output, field in zip(outputs, fields, strict=True)
        if isinstance(output, ColumnRef)
    }
    return frozenset(
        frozenset(renamed[identifier] for identifier in unique)
        for unique in sets
        if all(identifier in renamed for identifier in unique)
    )


def _renamed(field: Field, name: str) -> Field:
    return field if field.name == name else replace(field, name=name)


def _remember(
    memory: dict[int, tuple[LogicalPlan, Answer]], plan: LogicalPlan, derive: Callable[[LogicalPlan], Answer]
) -> Answer:
    """The answer for this very node; the node is kept alive, so its id stays its own."""
    known = memory.get(id(plan))
    if known is None:
        known = memory[id(plan)] = (plan, derive(plan))
    return known[1]


def _few(sets: set[frozenset[int]]) -> UniqueSets:
    """The smallest few, in a fixed order."""
    return frozenset(sorted(sets, key=lambda ids: (len(ids), sorted(ids)))[:_MOST_UNIQUE_SETS])
