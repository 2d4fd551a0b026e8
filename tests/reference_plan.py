"""A slow interpreter of logical plans over Python rows, to check that rewrites keep the rows.

Obviously right rather than fast: nested loops, and subqueries and dependent joins are run anew for every outer row.
Rows are dicts from column id to storage value. `MemoryTable` is a table it can scan.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cmp_to_key
from typing import Any

from tqp.core.datatypes import BIGINT, DataType
from tqp.core.errors import ExecutionError
from tqp.core.names import ObjectName
from tqp.core.schema import ColumnEstimates, ColumnFacts
from tqp.planner.algebra.expressions import (
    AggregateCall,
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Try,
)
from tqp.planner.algebra.join_keys import KEEPS_RIGHT
from tqp.planner.algebra.logical_plan import (
    Aggregate,
    Filter,
    Join,
    JoinType,
    Limit,
    LogicalPlan,
    Project,
    Scan,
    Series,
    Shared,
    Sort,
    SortKey,
    UnionAll,
    Values,
)
from tqp.planner.algebra.subquery_expressions import Exists, QuantifiedComparison, ScalarSubquery

Row = dict[int, Any]


class MemoryTable:
    """A small table of Python values, with exact statistics."""

    def __init__(
        self, name: str, columns: Mapping[str, Sequence[Any]], types: Mapping[str, DataType] = {}
    ) -> None:
        self.name = name
        self.columns = {column: list(values) for column, values in columns.items()}
        self.types = dict(types)

    @property
    def num_rows(self) -> int:
        return len(next(iter(self.columns.values()), []))

    @property
    def column_names(self) -> Sequence[str]:
        return tuple(self.columns)

    @property
    def place(self) -> ObjectName:
        return ObjectName.of(self.name)

    @property
    def hidden_names(self) -> Sequence[str]:
        return ()

    def column_type(self, name: str) -> DataType:
        return self.types.get(name, BIGINT)

    def encode(self, names: Iterable[str]) -> None:
        return

    def column_nullable(self, name: str) -> bool:
        return None in self.columns[name]

    def column_facts(self, name: str) -> ColumnFacts:
        values = [value for value in self.columns[name] if value is not None]
        numbers = values if values and all(isinstance(value, int) for value in values) else []
        return ColumnFacts(
            minimum=min(numbers, default=None),
            maximum=max(numbers, default=None),
            is_unique=len(set(values)) == len(values),
        )

    def column_estimates(self, name: str) -> ColumnEstimates:
        return ColumnEstimates(float(len(set(self.columns[name]) - {None})))

    def dictionary_size(self, name: str) -> int | None:
        return len(set(self.columns[name]))

    def dictionary_encode(self, name: str) -> bool: ...


def rows_of(plan: LogicalPlan) -> list[tuple[Any, ...]]:
    """The plan's output rows, in order of its columns."""
    return Interpreter().rows_of(plan)


def sorted_rows(plan: LogicalPlan) -> list[tuple[Any, ...]]:
    """The output as a multiset: sorted, NULLs first."""
    return sorted(
        rows_of(plan), key=lambda row: tuple((value is not None, value or 0, str(value)) for value in row)
    )


def run(plan: LogicalPlan, outer: Row) -> list[Row]:
    """The plan's rows, its correlated columns read from `outer`."""
    return Interpreter().run(plan, outer)


def evaluate(expression: Expression, row: Row) -> Any:
    """An expression's value on a row that holds every column it reads, outer ones too."""
    return Interpreter().evaluate(expression, row)


class Interpreter:
    """Runs logical plans. What scalar functions, casts and aggregates give is for a class below it to widen."""

    def rows_of(self, plan: LogicalPlan) -> list[tuple[Any, ...]]:
        """The plan's output rows, in order of its columns."""
        ids = [field.id for field in plan.schema]
        return [tuple(row[identifier] for identifier in ids) for row in self.run(plan, {})]

    def run(self, plan: LogicalPlan, outer: Row) -> list[Row]:
        """The plan's rows, its correlated columns read from `outer`."""
        match plan:
            case Scan():
                ids = [field.id for field in plan.fields]
                columns = [self.column(plan, name) for name in plan.columns]
                return [
                    {i: column[row] for i, column in zip(ids, columns, strict=True)}
                    for row in range(plan.table.num_rows)
                ]
            case Values():
                ids = [field.id for field in plan.fields]
                return [dict(zip(ids, self.values(row, outer), strict=True)) for row in plan.rows]
            case Series():
                return [{plan.field.id: plan.start + plan.step * number} for number in range(plan.rows)]
            case Filter():
                return [
                    row for row in self.run(plan.input, outer) if self.is_true(plan.condition, outer | row)
                ]
            case Project():
                ids = [field.id for field in plan.fields]
                return [
                    dict(zip(ids, self.values(plan.outputs, outer | row), strict=True))
                    for row in self.run(plan.input, outer)
                ]
            case Join():
                return self._join(plan, outer)
            case Aggregate():
                return self._aggregate(plan, outer)
            case Sort():
                return self._sort(plan, outer)
            case Limit():
                stop = None if plan.limit is None else plan.offset + plan.limit
                return self.run(plan.input, outer)[plan.offset : stop]
            case UnionAll():
                return [row for branch in plan.branches for row in self._renamed(branch, plan, outer)]
            case Shared():
                return self._renamed(plan.input, plan, outer)
        raise TypeError(f"no plan: {plan}")

    def column(self, scan: Scan, name: str) -> Sequence[Any]:
        """The storage values of a table's column."""
        assert isinstance(scan.table, MemoryTable)
        return scan.table.columns[name]

    def values(self, expressions: Iterable[Expression], row: Row) -> list[Any]:
        """What becomes of a row: outputs, keys, arguments of aggregates."""
        return [self.evaluate(expression, row) for expression in expressions]

    def verdict(self, condition: Expression, row: Row) -> bool | None:
        """What a condition that keeps or drops rows says of this one."""
        result: bool | None = self.evaluate(condition, row)
        return result

    def is_true(self, condition: Expression, row: Row) -> bool:
        """Whether a condition that drops rows keeps this one."""
        return self.verdict(condition, row) is True

    def _renamed(self, source: LogicalPlan, target: LogicalPlan, outer: Row) -> list[Row]:
        pairs = [(a.id, b.id) for a, b in zip(source.schema, target.schema, strict=True)]
        return [{new: row[old] for old, new in pairs} for row in self.run(source, outer)]

    def _join(self, plan: Join, outer: Row) -> list[Row]:
        left_rows = self.run(plan.left, outer)
        left_nulls = {field.id: None for field in plan.left.schema}
        right_nulls = {field.id: None for field in plan.right.schema}
        dependent = bool(plan.right.free_ids & plan.left.output_ids)
        fixed = [] if dependent else self.run(plan.right, outer)
        met: set[int] = set()
        result = []
        for left in left_rows:
            right_rows = self.run(plan.right, outer | left) if dependent else fixed
            verdicts = [self.verdict(plan.condition, outer | left | right) for right in right_rows]
            matches = [right for right, verdict in zip(right_rows, verdicts, strict=True) if verdict is True]
            met.update(i for i, verdict in enumerate(verdicts) if verdict is True)
            match plan.join_type:
                case JoinType.INNER | JoinType.RIGHT:
                    result += [left | right for right in matches]
                case JoinType.LEFT | JoinType.FULL:
                    result += [left | right for right in matches or [right_nulls]]
                case JoinType.SINGLE:
                    if len(matches) > 1:
                        raise ExecutionError("more than one row")
                    result += [left | right for right in matches or [right_nulls]]
                case JoinType.SEMI:
                    result += [left] if matches else []
                case JoinType.ANTI:
                    result += [] if matches else [left]
                case JoinType.NULL_AWARE_ANTI:
                    result += [left] if all(verdict is False for verdict in verdicts) else []
                case JoinType.MARK:
                    assert plan.mark is not None
                    result.append(left | {plan.mark.id: any_of(verdicts)})
        if plan.join_type in KEEPS_RIGHT:
            result += [left_nulls | right for i, right in enumerate(fixed) if i not in met]
        return result

    def _aggregate(self, plan: Aggregate, outer: Row) -> list[Row]:
        groups: dict[tuple[Any, ...], tuple[tuple[Any, ...], list[Row]]] = {} if plan.keys else {(): ((), [])}
        for row in self.run(plan.input, outer):
            key = tuple(self.values(plan.keys, outer | row))
            identity = tuple(
                self.identity(value, expression.data_type)
                for value, expression in zip(key, plan.keys, strict=True)
            )
            groups.setdefault(identity, (key, []))[1].append(row)
        result = []
        for key, rows in groups.values():
            values = [self._call(call, rows, outer) for call in plan.aggregates]
            result.append(dict(zip((field.id for field in plan.schema), (*key, *values), strict=True)))
        return result

    def identity(self, value: Any, data_type: DataType) -> Any:
        """The same of all values that make one group."""
        return value

    def _call(self, call: AggregateCall, rows: list[Row], outer: Row) -> Any:
        if call.filter is not None:
            rows = [row for row in rows if self.is_true(call.filter, outer | row)]
        if call.function == "count_star":
            return len(rows)
        values = [self.values(call.arguments, outer | row)[0] for row in rows]
        if call.function == "first":
            return values[0] if values else None
        values = [value for value in values if value is not None]
        if call.distinct:
            data_type = call.arguments[0].data_type
            values = list({self.identity(value, data_type): value for value in values}.values())
        return len(values) if call.function == "count" else self.aggregate(call, values)

    def aggregate(self, call: AggregateCall, values: list[Any]) -> Any:
        """An aggregate of values that are not NULL."""
        if not values:
            return 0 if call.function == "sum_of_counts" else None
        functions: dict[str, Callable[[list[Any]], Any]] = {
            **dict.fromkeys(("sum", "sum_of_sums", "sum_of_counts"), sum),
            "min": min,
            "max": max,
            "any_value": lambda values: values[0],
            "bool_and": all,
            "bool_or": any,
            "avg": lambda values: sum(values) / len(values) / 10 ** call.arguments[0].data_type.scale,
        }
        return functions[call.function](values)

    def _sort(self, plan: Sort, outer: Row) -> list[Row]:
        rows = [
            (self.values((key.expression for key in plan.keys), outer | row), row)
            for row in self.run(plan.input, outer)
        ]
        for position, key in reversed(list(enumerate(plan.keys))):

            def compare(
                one: tuple[list[Any], Row],
                other: tuple[list[Any], Row],
                position: int = position,
                key: SortKey = key,
            ) -> int:
                a, b = one[0][position], other[0][position]
                if a is None or b is None:
                    return ((a is not None) - (b is not None)) * (1 if key.nulls_first else -1)
                return self.order(a, b, key.expression.data_type) * (-1 if key.descending else 1)

            rows.sort(key=cmp_to_key(compare))
        return [row for _, row in rows]

    def order(self, a: Any, b: Any, data_type: DataType) -> int:
        """-1, 0 or 1: which of two values comes first."""
        return (a > b) - (a < b)

    def evaluate(self, expression: Expression, row: Row) -> Any:
        """An expression's value on a row that holds every column it reads, outer ones too."""
        match expression:
            case Literal():
                return expression.value
            case ColumnRef():
                return row[expression.id]
            case Call():
                return self.function(expression, row)
            case Cast():
                return self.cast(expression, self.evaluate(expression.input, row))
            case Case():
                for condition, value in expression.branches:
                    if self.is_true(condition, row):
                        return self.evaluate(value, row)
                return self.evaluate(expression.default, row)
            case Try():
                try:
                    return self.evaluate(expression.input, row)
                except ExecutionError:
                    return None
            case InList():
                return self.in_list(expression, self.evaluate(expression.input, row))
            case ScalarSubquery():
                rows = self.run(expression.plan, row)
                if len(rows) > 1:
                    raise ExecutionError("more than one row")
                return rows[0][expression.plan.schema[0].id] if rows else None
            case Exists():
                return bool(self.run(expression.plan, row))
            case QuantifiedComparison():
                return self.quantified(expression, row)
        raise TypeError(f"no expression: {expression}")

    def in_list(self, expression: InList, value: Any) -> bool | None:
        """Whether a value is one of the list."""
        return None if value is None else value in [literal.value for literal in expression.values]

    def quantified(self, expression: QuantifiedComparison, row: Row) -> bool | None:
        """A comparison with the rows of a subquery."""
        operands = [self.evaluate(operand, row) for operand in expression.operands]
        ids = [field.id for field in expression.plan.schema]
        verdicts = []
        for inner in self.run(expression.plan, row):
            pairs = zip(expression.operands, operands, (inner[identifier] for identifier in ids), strict=True)
            verdicts.append(
                all_of([self.compare(expression.comparison, each.data_type, a, b) for each, a, b in pairs])
            )
        return all_of(verdicts) if expression.is_all else any_of(verdicts)

    def function(self, call: Call, row: Row) -> Any:
        """A call; AND, OR and COALESCE, too, compute all their arguments here."""
        arguments = [self.evaluate(argument, row) for argument in call.arguments]
        match call.function:
            case "and":
                return all_of(arguments)
            case "or":
                return any_of(arguments)
            case "is_null":
                return arguments[0] is None
            case "coalesce":
                return next((argument for argument in arguments if argument is not None), None)
            case "greatest" | "least":
                choose = max if call.function == "greatest" else min
                return choose((argument for argument in arguments if argument is not None), default=None)
            case "is_distinct_from":
                return arguments[0] != arguments[1]
            case "is_not_distinct_from":
                return arguments[0] == arguments[1]
        if None in arguments:
            return None
        if call.function == "average":
            return arguments[0] / arguments[1] / 10 ** call.arguments[0].data_type.scale
        if call.function in _STRICT:
            return _STRICT[call.function](*arguments)
        return self.compare(call.function, call.arguments[0].data_type, *arguments)

    def compare(self, function: str, data_type: DataType, a: Any, b: Any) -> bool | None:
        """A comparison of two values of one type."""
        if a is None or b is None:
            return None
        return {
            "equal": a == b,
            "not_equal": a != b,
            "less": a < b,
            "less_equal": a <= b,
            "greater": a > b,
            "greater_equal": a >= b,
        }[function]

    def cast(self, cast: Cast, value: Any) -> Any:
        """A value as another type."""
        source, target = cast.input.data_type, cast.data_type
        if value is None or source == target:
            return value
        if target.is_float:
            return float(value) / 10**source.scale
        if (source.is_integer or source.is_decimal) and (target.is_integer or target.is_decimal):
            if target.scale >= source.scale:
                return value * 10 ** (target.scale - source.scale)
            divisor = 10 ** (source.scale - target.scale)
            return int(math.copysign((abs(value) + divisor // 2) // divisor, value))
        if source.is_string and target.is_string:
            return value
        raise TypeError(f"cast of {source} to {target}")


def any_of(verdicts: Iterable[bool | None]) -> bool | None:
    """OR."""
    verdicts = list(verdicts)
    if True in verdicts:
        return True
    return None if None in verdicts else False


def all_of(verdicts: Iterable[bool | None]) -> bool | None:
    """AND."""
    verdicts = list(verdicts)
    if False in verdicts:
        return False
    return None if None in verdicts else True


_STRICT: dict[str, Callable[..., Any]] = {
    "not": lambda a: not a,
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "negate": lambda a: -a,
    "abs": abs,
    "divide": lambda a, b: (
        a / b if b else (math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a))
    ),
    "modulo": lambda a, b: int(math.fmod(a, b)),
    "upper": str.upper,
    "length": len,
    "concat_operator": lambda a, b: a + b,
    "substring": lambda s, start, length: s[start - 1 : start - 1 + length],
    "like": lambda s, p: (
        re.fullmatch(re.escape(p).replace("%", ".*").replace("_", "."), s, re.DOTALL) is not None
    ),
}
