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
from tqp.core.schema import ColumnStatistics
from tqp.planner.algebra.expressions import (
    AggregateCall,
    Call,
    Case,
    Cast,
    ColumnRef,
    Exists,
    Expression,
    InList,
    Literal,
    QuantifiedComparison,
    ScalarSubquery,
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

    def column_type(self, name: str) -> DataType:
        return self.types.get(name, BIGINT)

    def encode(self, names: Iterable[str]) -> None:
        return

    def column_nullable(self, name: str) -> bool:
        return None in self.columns[name]

    def column_statistics(self, name: str) -> ColumnStatistics:
        values = [value for value in self.columns[name] if value is not None]
        numbers = values if values and all(isinstance(value, int) for value in values) else []
        return ColumnStatistics(
            minimum=min(numbers, default=None),
            maximum=max(numbers, default=None),
            distinct_count=float(len(set(values))),
            is_unique=len(set(values)) == len(values),
        )

    def dictionary_encode(self, name: str) -> int:
        return len(set(self.columns[name]))


def rows_of(plan: LogicalPlan) -> list[tuple[Any, ...]]:
    """The plan's output rows, in order of its columns."""
    ids = [field.id for field in plan.schema]
    return [tuple(row[identifier] for identifier in ids) for row in run(plan, {})]


def sorted_rows(plan: LogicalPlan) -> list[tuple[Any, ...]]:
    """The output as a multiset: sorted, NULLs first."""
    return sorted(
        rows_of(plan), key=lambda row: tuple((value is not None, value or 0, str(value)) for value in row)
    )


def run(plan: LogicalPlan, outer: Row) -> list[Row]:
    """The plan's rows, its correlated columns read from `outer`."""
    match plan:
        case Scan():
            assert isinstance(plan.table, MemoryTable)
            columns = [plan.table.columns[name] for name in plan.columns]
            ids = [field.id for field in plan.fields]
            return [
                {i: column[row] for i, column in zip(ids, columns, strict=True)}
                for row in range(plan.table.num_rows)
            ]
        case Values():
            ids = [field.id for field in plan.fields]
            return [dict(zip(ids, [evaluate(e, outer) for e in row], strict=True)) for row in plan.rows]
        case Filter():
            return [row for row in run(plan.input, outer) if evaluate(plan.condition, outer | row) is True]
        case Project():
            pairs = list(zip(plan.fields, plan.outputs, strict=True))
            return [{f.id: evaluate(e, outer | row) for f, e in pairs} for row in run(plan.input, outer)]
        case Join():
            return _join(plan, outer)
        case Aggregate():
            return _aggregate(plan, outer)
        case Sort():
            return _sort(plan, outer)
        case Limit():
            stop = None if plan.limit is None else plan.offset + plan.limit
            return run(plan.input, outer)[plan.offset : stop]
        case UnionAll():
            return [row for branch in plan.branches for row in _renamed(branch, plan, outer)]
        case Shared():
            return _renamed(plan.input, plan, outer)
    raise TypeError(f"no plan: {plan}")


def _renamed(source: LogicalPlan, target: LogicalPlan, outer: Row) -> list[Row]:
    pairs = [(a.id, b.id) for a, b in zip(source.schema, target.schema, strict=True)]
    return [{new: row[old] for old, new in pairs} for row in run(source, outer)]


def _join(plan: Join, outer: Row) -> list[Row]:
    left_rows = run(plan.left, outer)
    left_nulls = {field.id: None for field in plan.left.schema}
    right_nulls = {field.id: None for field in plan.right.schema}
    dependent = plan.join_type is not JoinType.FULL
    fixed = [] if dependent else run(plan.right, outer)
    met: set[int] = set()
    result = []
    for left in left_rows:
        right_rows = run(plan.right, outer | left) if dependent else fixed
        verdicts = [evaluate(plan.condition, outer | left | right) for right in right_rows]
        matches = [right for right, verdict in zip(right_rows, verdicts, strict=True) if verdict is True]
        met.update(i for i, verdict in enumerate(verdicts) if verdict is True)
        match plan.join_type:
            case JoinType.INNER:
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
                result.append(left | {plan.mark.id: _any(verdicts)})
    if plan.join_type is JoinType.FULL:
        result += [left_nulls | right for i, right in enumerate(fixed) if i not in met]
    return result


def _any(verdicts: Iterable[bool | None]) -> bool | None:
    verdicts = list(verdicts)
    if True in verdicts:
        return True
    return None if None in verdicts else False


def _aggregate(plan: Aggregate, outer: Row) -> list[Row]:
    groups: dict[tuple[Any, ...], list[Row]] = {} if plan.keys else {(): []}
    for row in run(plan.input, outer):
        groups.setdefault(tuple(evaluate(key, outer | row) for key in plan.keys), []).append(row)
    result = []
    for key, rows in groups.items():
        values = [_call(call, rows, outer) for call in plan.aggregates]
        result.append(dict(zip((field.id for field in plan.schema), (*key, *values), strict=True)))
    return result


def _call(call: AggregateCall, rows: list[Row], outer: Row) -> Any:
    if call.filter is not None:
        rows = [row for row in rows if evaluate(call.filter, outer | row) is True]
    if call.function == "count_star":
        return len(rows)
    values = [value for row in rows if (value := evaluate(call.arguments[0], outer | row)) is not None]
    if call.distinct:
        values = list(dict.fromkeys(values))
    if call.function == "count":
        return len(values)
    if not values:
        return None
    functions: dict[str, Callable[[list[Any]], Any]] = {
        "sum": sum,
        "min": min,
        "max": max,
        "any_value": lambda values: values[0],
        "bool_and": all,
        "bool_or": any,
        "avg": lambda values: sum(values) / len(values) / 10 ** call.arguments[0].data_type.scale,
    }
    return functions[call.function](values)


def _sort(plan: Sort, outer: Row) -> list[Row]:
    rows = run(plan.input, outer)
    for key in reversed(plan.keys):

        def compare(
            a: Any, b: Any, descending: bool = key.descending, nulls_first: bool = key.nulls_first
        ) -> int:
            if a is None or b is None:
                return ((a is not None) - (b is not None)) * (1 if nulls_first else -1)
            return ((a > b) - (a < b)) * (-1 if descending else 1)

        expression = key.expression
        rows = sorted(
            rows,
            key=cmp_to_key(
                lambda a, b, c=compare, e=expression: c(evaluate(e, outer | a), evaluate(e, outer | b))
            ),  # type: ignore[misc]
        )
    return rows


def evaluate(expression: Expression, row: Row) -> Any:
    """An expression's value on a row that holds every column it reads, outer ones too."""
    match expression:
        case Literal():
            return expression.value
        case ColumnRef():
            return row[expression.id]
        case Call():
            return _function(expression, row)
        case Cast():
            return _cast(evaluate(expression.input, row), expression.input.data_type, expression.data_type)
        case Case():
            for condition, value in expression.branches:
                if evaluate(condition, row) is True:
                    return evaluate(value, row)
            return evaluate(expression.default, row)
        case InList():
            value = evaluate(expression.input, row)
            return None if value is None else value in [literal.value for literal in expression.values]
        case ScalarSubquery():
            rows = run(expression.plan, row)
            if len(rows) > 1:
                raise ExecutionError("more than one row")
            return rows[0][expression.plan.schema[0].id] if rows else None
        case Exists():
            return bool(run(expression.plan, row))
        case QuantifiedComparison():
            return _quantified(expression, row)
    raise TypeError(f"no expression: {expression}")


def _quantified(expression: QuantifiedComparison, row: Row) -> bool | None:
    operands = [evaluate(operand, row) for operand in expression.operands]
    ids = [field.id for field in expression.plan.schema]
    verdicts = []
    for inner in run(expression.plan, row):
        pairs = zip(operands, (inner[identifier] for identifier in ids), strict=True)
        verdicts.append(_all([_compare(expression.comparison, a, b) for a, b in pairs]))
    return _all(verdicts) if expression.is_all else _any(verdicts)


def _all(verdicts: Iterable[bool | None]) -> bool | None:
    verdicts = list(verdicts)
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _compare(function: str, a: Any, b: Any) -> bool | None:
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


def _function(call: Call, row: Row) -> Any:
    arguments = [evaluate(argument, row) for argument in call.arguments]
    match call.function:
        case "and":
            return _all(arguments)
        case "or":
            return _any(arguments)
        case "is_null":
            return arguments[0] is None
        case "coalesce":
            return next((argument for argument in arguments if argument is not None), None)
        case "is_distinct_from":
            return arguments[0] != arguments[1]
        case "is_not_distinct_from":
            return arguments[0] == arguments[1]
    if None in arguments:
        return None
    if call.function in _STRICT:
        return _STRICT[call.function](*arguments)
    return _compare(call.function, *arguments)


def _cast(value: Any, source: DataType, target: DataType) -> Any:
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
