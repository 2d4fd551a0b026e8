"""Estimates: how many rows come out of a plan, and which share of rows satisfies a condition.

Textbook assumptions: values are spread evenly, but for the most frequent ones of a table's column; predicates and columns are independent, every key of the smaller domain
occurs in the larger one. Estimates only steer cost; correctness never depends on them.
"""

from __future__ import annotations

from collections.abc import Collection
from math import prod

from tqp.core.datatypes import TypeKind
from tqp.core.frozen import dataclass
from tqp.planner.algebra.expressions import (
    Call,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Parameter,
    Try,
    Value,
    column_ids,
    conjuncts,
    walk,
)
from tqp.planner.algebra.field_facts import expression_distinct, field_distinct
from tqp.planner.algebra.join_keys import JoinKeys, is_two_sided
from tqp.planner.algebra.known_fields import FieldsById
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
    Shared,
    Sort,
    UnionAll,
    Unnest,
    Window,
    WorkingRows,
)
from tqp.planner.algebra.value_ranges import value_range
from tqp.planner.functions.conditions import MIRRORED, ORDERINGS, UPPER
from tqp.planner.functions.ranges import Range
from tqp.planner.functions.registry import AGGREGATES, SCALARS, WINDOWS

# Shares of rows where nothing better is known.
_ELEMENTS = 5  # of a list of which nothing is known
_UNKNOWN_COMPARISON = 1 / 3
_UNKNOWN_EQUALITY = 0.05
_UNKNOWN_PREDICATE = 0.25
_MOST_OF_UNKNOWN_LIST = 0.3  # x IN (...) is not written to keep everything
_AGGREGATE_COMPARISON = 0.1  # HAVING sum(x) > c: thresholds on aggregates are set to keep few groups
_IS_NULL = 0.05
_UNKNOWN_DISTINCT_SHARE = 0.5
#: Of an iteration: so many that joins look its rows up in what is built of tables once, and build nothing of them in each.
_MANY_ROWS = 1e8
_LEAST_TRUSTED_SELECTIVITY = 1 / 64
_LEAST_UNMATCHED = 0.1  # an anti join would not be written if it never kept a row


@dataclass(frozen=True, slots=True)
class KeyValues:
    """The values of one side of an equality: how many there are, how many before conditions on other columns, their range."""

    distinct: float
    stored: float
    range: Range | None


def key_domain(sides: Collection[KeyValues]) -> float:
    """How many values a row with a partner may have; each side's are taken for a random choice of those.

    The larger number of stored values, as far as the ranges of all sides overlap. So 60 of the days of two centuries are
    found by few rows of a table with one day a week of five years.
    """
    known = max([side.distinct for side in sides])
    ranges = [side.range for side in sides if side.range is not None]
    if len(ranges) < len(sides):
        return known
    overlap = 1 + min([high for _, high in ranges]) - max([low for low, _ in ranges])
    return max(known, min(float(overlap), max([side.stored for side in sides])))


class Estimator:
    """Estimates for plan nodes, kept by node identity while the object lives."""

    def __init__(self) -> None:
        self._rows: dict[int, tuple[LogicalPlan, float]] = {}
        self._values: dict[tuple[int, int], tuple[LogicalPlan, float | None]] = {}
        self._keys: dict[tuple[int, Expression], tuple[LogicalPlan, KeyValues]] = {}
        self._aggregate_ids: set[int] = set()

    def rows(self, plan: LogicalPlan) -> float:
        """Estimated output rows, between 0 and the sound upper bound."""
        known = self._rows.get(id(plan))
        if known is None:
            estimated = min(float(self._derive(plan)), float(plan.max_rows))
            known = self._rows[id(plan)] = (plan, max(0.0, estimated))
        return known[1]

    def cautious_rows(self, plan: LogicalPlan) -> float:
        """As `rows`, if no filter below keeps less than a small share of what it reads: for what is bad where more is kept."""
        rows = self.rows(plan)
        match plan:
            case Filter():
                return max(rows, self.cautious_rows(plan.input) * _LEAST_TRUSTED_SELECTIVITY)
            case Project() | Sort() | Shared() | Window():
                return max(rows, self.cautious_rows(plan.input))
            case Join():
                for side in plan.inputs:
                    rows *= self.cautious_rows(side) / max(1.0, self.rows(side))
        return rows

    def distinct(self, plan: LogicalPlan, expressions: Collection[Expression]) -> float:
        """Estimated number of distinct combinations of the expressions in the plan's output; at least 1."""
        rows = max(1.0, self.rows(plan))
        return min(prod([self._distinct(plan, expression) for expression in expressions]), rows)

    def key_values(self, plan: LogicalPlan, key: Expression) -> KeyValues:
        """What is expected of the values that a key of a join takes in the plan's output."""
        known = self._keys.get((id(plan), key))
        if known is None:
            fields, distinct = plan.field_facts, self.distinct(plan, (key,))
            stored = expression_distinct(key, fields)
            values = KeyValues(distinct, distinct if stored is None else stored, value_range(key, fields))
            known = self._keys[id(plan), key] = plan, values
        return known[1]

    def key_selectivity(
        self,
        plan: LogicalPlan,
        keys: Collection[Expression],
        others: LogicalPlan,
        other_keys: Collection[Expression],
    ) -> float:
        """Estimated share (0 to 1) of the values of a plan's keys that other rows have in theirs."""
        if len(keys) == 1:
            (key,), (other,) = keys, other_keys
            of_others = self.key_values(others, other)
            return of_others.distinct / key_domain((self.key_values(plan, key), of_others))
        return min(1.0, self.distinct(others, other_keys) / self.distinct(plan, keys))

    def selectivity(self, condition: Expression, fields: FieldsById) -> float:
        """As the module's function, and aware of which columns are results of aggregates."""
        return selectivity(condition, fields, self._aggregate_ids)

    def _derive(self, plan: LogicalPlan) -> float:
        match plan:
            case WorkingRows():
                return _MANY_ROWS
            case Recursive():
                return max(_MANY_ROWS, self.rows(plan.first))
            case _ if not plan.inputs:
                return float(plan.max_rows)
            case Window():
                self._aggregate_ids.update(field.id for field in plan.fields)
                return self.rows(plan.input)
            case Project() | Sort() | Shared():
                return self.rows(plan.input)
            case Unnest():
                return self.rows(plan.input) * _ELEMENTS
            case Filter():
                rows = self.rows(plan.input)
                return rows * self.selectivity(plan.condition, plan.input.field_facts)
            case Join():
                return self._join(plan)
            case AsofJoin():
                return self._asof_join(plan)
            case Aggregate():
                measures = zip(plan.aggregate_fields, plan.aggregates, strict=True)
                self._aggregate_ids.update(  # a value that is picked is spread like the argument
                    field.id for field, call in measures if not AGGREGATES[call.function].picks_value
                )
                rows = self.rows(plan.input)
                return min(rows, self.distinct(plan.input, plan.keys)) if plan.keys else 1.0
            case Limit():
                rows = max(0.0, self.rows(plan.input) - plan.offset)
                return rows if plan.limit is None else min(rows, plan.limit)
            case UnionAll():
                return sum(self.rows(branch) for branch in plan.branches)
        raise AssertionError(f"no estimate of the rows of a {type(plan).__name__}")

    def _join(self, plan: Join) -> float:
        left, right = self.rows(plan.left), self.rows(plan.right)
        keys = plan.keys
        match plan.join_type:
            case JoinType.SINGLE | JoinType.MARK:
                return left
            case JoinType.SEMI:
                return left * self.semi_join_selectivity(plan, keys)
            case JoinType.ANTI | JoinType.NULL_AWARE_ANTI:
                return left * max(_LEAST_UNMATCHED, 1.0 - self.semi_join_selectivity(plan, keys))
        fields = {**plan.left.field_facts, **plan.right.field_facts}
        rows = left * right / self._key_domain(plan, keys)
        for part in keys.residual:
            rows *= self.selectivity(part, fields)
        if not keys.left and is_two_sided(keys.residual, plan.left.field_facts, plan.right.field_facts):
            rows = min(rows, max(left, right))  # as of points in intervals
        match plan.join_type:
            case JoinType.LEFT:
                return max(rows, left)
            case JoinType.RIGHT:
                return max(rows, right)
            case JoinType.FULL:
                return max(rows, left, right)
            case JoinType.INNER:
                return rows

    def _asof_join(self, plan: AsofJoin) -> float:
        """Most left rows with the key of a right one have one before them."""
        left, right = self.rows(plan.left), self.rows(plan.right)
        keys = plan.keys
        found = left
        if keys.left:
            found *= self.key_selectivity(plan.left, keys.left, plan.right, keys.right)
        rows = left if plan.keeps_left else found
        return rows + max(0.0, right - found) if plan.keeps_right else rows

    def semi_join_selectivity(self, plan: Join, keys: JoinKeys) -> float:
        """Estimated share of left rows that find a match."""
        if not keys.left:
            return 1.0 if not keys.residual else 0.5
        if self.rows(plan.right) < 0.5:
            return 0.0
        selectivity = self.key_selectivity(plan.left, keys.left, plan.right, keys.right)
        return selectivity * (0.8 if keys.residual else 1.0)

    def _key_domain(self, plan: Join, keys: JoinKeys) -> float:
        """L x R / domain is the size of the join.

        One key: what its values are chosen from. Several keys are correlated as a rule (a foreign key of two
        columns), so their combinations are counted on the side with fewer of them.
        """
        if not keys.left:
            return 1.0
        single = max(
            [
                key_domain((self.key_values(plan.left, left), self.key_values(plan.right, right)))
                for left, right in zip(keys.left, keys.right, strict=True)
            ]
        )
        if len(keys.left) == 1:
            return single
        return max(single, min(self.distinct(plan.left, keys.left), self.distinct(plan.right, keys.right)))

    def _distinct(self, plan: LogicalPlan, expression: Expression) -> float:
        rows = max(1.0, self.rows(plan))
        if isinstance(expression, ColumnRef):
            count = self._column_values(plan, expression.id)
        else:
            count = expression_distinct(expression, plan.field_facts)
            columns = column_ids(expression)
            if len(columns) == 1:
                of_column = self._column_values(plan, next(iter(columns)))
                count = of_column if count is None else count if of_column is None else min(count, of_column)
            if expression.data_type.is_float and any(map(_makes_bins, walk(expression))):
                count = min(rows**0.5, rows if count is None else count)
        if count is None:
            count = 2.0 if expression.data_type.kind is TypeKind.BOOLEAN else rows * _UNKNOWN_DISTINCT_SHARE
        return min(max(1.0, count), rows)

    def _column_values(self, plan: LogicalPlan, column: int) -> float | None:
        """Estimated number of values of a column, by the rows that reach each operator on its way; None if unknown."""
        key = id(plan), column
        if key not in self._values:
            field = plan.field_facts.get(column)
            if field is not None and field.facts.is_unique:
                count: float | None = self.rows(plan)
            else:
                known = None if field is None else field_distinct(field)
                kept = self._values_kept(plan, column)
                count = kept if known is None else known if kept is None else min(known, kept)
            self._values[key] = plan, count
        return self._values[key][1]

    def _values_kept(self, plan: LogicalPlan, column: int) -> float | None:
        """How many of the values that a column has in the input are left."""
        if isinstance(plan, Shared):
            places = (
                old.id for old, new in zip(plan.input.schema, plan.fields, strict=True) if new.id == column
            )
            return self._column_values(plan.input, next(places))
        if isinstance(plan, Window) and column not in plan.input.output_ids:
            return self._values_of_call(plan, column)
        source = next((each for each in plan.inputs if column in each.output_ids), None)
        before = None if source is None else self._column_values(source, column)
        if source is None or before is None:
            return None
        if isinstance(plan, Filter):
            return before * self._share_in_order(plan, column)
        if isinstance(plan, Join) and plan.join_type in (JoinType.INNER, JoinType.SEMI) and plan.keys.left:
            keys = plan.keys
            if source is plan.left:
                selectivity = self.key_selectivity(plan.left, keys.left, plan.right, keys.right)
            else:
                selectivity = self.key_selectivity(plan.right, keys.right, plan.left, keys.left)
            return min(before, self.rows(source) * selectivity)
        return before

    def _values_of_call(self, plan: Window, column: int) -> float | None:
        """What numbers the rows of a partition has as many values as a partition has rows."""
        calls = {field.id: call for field, call in zip(plan.fields, plan.calls, strict=True)}
        known = WINDOWS.get(calls[column].function)
        if known is None or not known.numbers_rows:
            return None
        return self.rows(plan.input) / self.distinct(plan.input, plan.partition)

    def _share_in_order(self, plan: Filter, column: int) -> float:
        """Of the values of a column that the rows are sorted by, the share kept: that of rows, if by sorted columns, too.

        So the 365 days of one year are in 52 weeks, where any 365 days of two centuries would be in as many.
        """
        fields = plan.input.field_facts
        if not fields[column].facts.is_sorted:
            return 1.0
        selectivity = 1.0
        for part in conjuncts(plan.condition):
            reads = column_ids(part) - {column}
            if reads and all(fields[each].facts.is_sorted for each in reads if each in fields):
                selectivity *= self.selectivity(part, fields)
        return selectivity


def _makes_bins(expression: Expression) -> bool:
    """Not by a number of digits, which may be many."""
    if not isinstance(expression, Call) or len(expression.arguments) > 1:
        return False
    return SCALARS[expression.function].makes_bins


def selectivity(
    condition: Expression, schema_by_id: FieldsById, aggregate_ids: Collection[int] = frozenset()
) -> float:
    """Estimated share (0 to 1) of rows for which the condition is true.

    Ranges of the columns in `aggregate_ids` are bounds and say nothing of where the values lie.
    """
    kept = CombinedSelectivity(schema_by_id, aggregate_ids)
    kept.add(condition)
    return kept.selectivity


class CombinedSelectivity:
    """The selectivity of a conjunction to which conditions are added one after the other."""

    def __init__(self, schema_by_id: FieldsById, aggregate_ids: Collection[int] = frozenset()) -> None:
        self._fields = schema_by_id
        self._aggregate_ids = aggregate_ids
        self._intervals: dict[Expression, list[float]] = {}
        self._by_value: list[float] = []
        self._others = 1.0

    def add(self, condition: Expression) -> None:
        """Only rows on which this is true, too, are kept."""
        for part in conjuncts(condition):
            of_values = _selectivity_by_frequent_values(part, self._fields)
            if of_values is not None:
                self._by_value.append(of_values)
                continue
            bound = _interval(part, self._fields, self._aggregate_ids)
            if bound is None:
                self._others *= _part_selectivity(part, self._fields, self._aggregate_ids)
            else:  # several bounds on one column make one interval
                expression, low, high = bound
                known = self._intervals.setdefault(expression, [low, high])
                known[0], known[1] = max(known[0], low), min(known[1], high)

    @property
    def selectivities(self) -> tuple[float, ...]:
        """What depends on constants: of each expression the share of its range that is kept, and shares by frequent values."""
        return (*(max(0.0, high - low) for low, high in self._intervals.values()), *self._by_value)

    @property
    def selectivity(self) -> float:
        """Estimated share (0 to 1) of the rows that are kept."""
        selectivity = self._others
        for kept in self.selectivities:
            selectivity *= kept
        return min(1.0, max(0.0, selectivity))


def _selectivity_by_frequent_values(part: Expression, fields: FieldsById) -> float | None:
    """The share of rows that a comparison of a column with constants keeps, by its frequent values; None without such."""
    match part:
        case InList(ColumnRef(id=id), constants):
            pass
        case Call("equal" | "not_equal", (ColumnRef(id=id), Literal() | Parameter() as constant)) | Call(
            "equal" | "not_equal", (Literal() | Parameter() as constant, ColumnRef(id=id))
        ):
            constants = (constant,)
        case _:
            return None
    field = fields.get(id)
    if field is None or not field.estimates.frequent or field.facts.is_unique:
        return None
    frequent: dict[Value, float] = {**dict(field.estimates.frequent)}
    others = max(1.0, (field_distinct(field) or 1.0) - len(frequent))
    other = min(max(0.0, 1.0 - sum(frequent.values())) / others, *frequent.values())
    values = [each.value if isinstance(each, Literal) else each.example for each in constants]
    selectivity = min(1.0, sum([0.0 if value is None else frequent.get(value, other) for value in values]))
    return 1.0 - selectivity if isinstance(part, Call) and part.function == "not_equal" else selectivity


def _interval(
    part: Expression, fields: FieldsById, aggregate_ids: Collection[int]
) -> tuple[Expression, float, float] | None:
    """(expression, low, high): a comparison with a constant, as the part of the expression's range that it keeps."""
    if not isinstance(part, Call) or part.function not in ORDERINGS:
        return None
    expression, constant, function = part.arguments[0], part.arguments[1], part.function
    if isinstance(expression, Literal | Parameter):
        expression, constant, function = constant, expression, MIRRORED[function]
    match constant:
        case Literal(int(value)) | Parameter(example=int(value)) if value is not True and value is not False:
            pass
        case _:
            return None
    if isinstance(expression, ColumnRef):
        field = fields.get(expression.id)
        if field is None or field.id in aggregate_ids:
            return None
        known = field.facts.range
    else:
        known = value_range(expression, fields)
    if known is None:
        return None
    span = known[1] - known[0] + 1
    first = value + (function in ("less_equal", "greater"))  # first value at or above the cut
    cut = min(1.0, max(0.0, (first - known[0]) / span))
    return (expression, 0.0, cut) if function in UPPER else (expression, cut, 1.0)


def _part_selectivity(part: Expression, fields: FieldsById, aggregate_ids: Collection[int]) -> float:
    if isinstance(part, Literal):
        return 1.0 if part.value is True else 0.0
    if isinstance(part, InList):
        distinct = _known_distinct(part.input, fields)
        if distinct is None:
            return min(_MOST_OF_UNKNOWN_LIST, len(part.values) * _UNKNOWN_EQUALITY)
        return min(1.0, len(part.values) / max(1.0, distinct))
    if isinstance(part, ColumnRef):
        return 0.5
    if isinstance(part, Try):
        return selectivity(part.input, fields, aggregate_ids)
    if not isinstance(part, Call):
        return _UNKNOWN_PREDICATE
    function, arguments = part.function, part.arguments
    match function:
        case "not":
            return 1.0 - selectivity(arguments[0], fields, aggregate_ids)
        case "or":
            return 1.0 - prod(1.0 - selectivity(argument, fields, aggregate_ids) for argument in arguments)
        case "coalesce":
            return selectivity(arguments[0], fields, aggregate_ids)
        case "equal" | "is_not_distinct_from":
            return _equality(arguments[0], arguments[1], fields)
        case "not_equal" | "is_distinct_from":
            return 1.0 - _equality(arguments[0], arguments[1], fields)
        case "is_null":
            field = fields.get(arguments[0].id) if isinstance(arguments[0], ColumnRef) else None
            return 0.0 if field is not None and not field.nullable else _IS_NULL
        case "less" | "less_equal" | "greater" | "greater_equal":
            of_aggregate = any(isinstance(side, ColumnRef) and side.id in aggregate_ids for side in arguments)
            return _AGGREGATE_COMPARISON if of_aggregate else _UNKNOWN_COMPARISON
    declared = SCALARS[function].selectivity
    return _UNKNOWN_PREDICATE if declared is None else declared


def _equality(left: Expression, right: Expression, fields: FieldsById) -> float:
    counts = [
        count
        for side in (left, right)
        if not isinstance(side, Literal) and (count := _known_distinct(side, fields)) is not None
    ]
    return 1.0 / max(1.0, *counts) if counts else _UNKNOWN_EQUALITY


def _known_distinct(expression: Expression, fields: FieldsById) -> float | None:
    """The number of values of a column, or of a function with a known range; of others only a bound is known."""
    if isinstance(expression, ColumnRef) or value_range(expression, fields) is not None:
        return expression_distinct(expression, fields)
    return None
