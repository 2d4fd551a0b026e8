"""Random logical plans over three tiny tables: joins, aggregates and subqueries correlated at any depth.

All columns are BIGINT or BOOLEAN. Deterministic for a seed.
"""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import count

from tests.reference_plan import MemoryTable
from tqp.core.datatypes import BIGINT, BOOLEAN, HUGEINT
from tqp.core.schema import Field, Schema
from tqp.planner.algebra.expressions import (
    TRUE,
    AggregateCall,
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    InList,
    Literal,
    conjunction,
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
    Sort,
    SortKey,
    UnionAll,
)
from tqp.planner.algebra.subquery_expressions import Exists, QuantifiedComparison, ScalarSubquery
from tqp.planner.rules.columns import reference

COMPARISONS = ("equal", "equal", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal")


def plan_size(plan: LogicalPlan) -> int:
    """The number of nodes, those of subqueries too: the reference needs time exponential in their nesting."""
    return 1 + sum(map(plan_size, plan.inputs + plan.subqueries))


class PlanGenerator:
    """One random query after another, from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.ids = count()
        self.tables = [self.table(f"t{i}") for i in range(3)]

    def table(self, name: str) -> MemoryTable:
        rows = self.random.choice((0, 1, 3, 5))
        share = self.random.choice((0.0, 0.0, 0.3))

        def value() -> int | None:
            return None if self.random.random() < share else self.random.randrange(4)

        keys = self.random.sample(range(6), rows)
        return MemoryTable(name, {"k": keys, "a": [value() for _ in keys], "b": [value() for _ in keys]})

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def field(self, name: str, data_type=BIGINT, nullable: bool = True) -> Field:  # type: ignore[no-untyped-def]
        return Field(next(self.ids), name, data_type, nullable)

    def scan(self) -> Scan:
        table = self.random.choice(self.tables)
        fields = tuple(
            Field(
                next(self.ids),
                name,
                BIGINT,
                table.column_nullable(name),
                table.column_facts(name),
                table.column_estimates(name),
            )
            for name in table.column_names
        )
        return Scan(table, table.name, tuple(table.column_names), fields)

    def query(self, depth: int, outer: Schema = ()) -> LogicalPlan:
        """A plan whose first column is BIGINT; it may read the `outer` columns."""
        plan = self.source(depth, outer)
        if self.chance(0.8):
            parts = tuple(
                self.predicate(plan.schema, outer, depth) for _ in range(self.random.choice((1, 1, 2, 3)))
            )
            plan = Filter(plan, conjunction(parts))
        if self.chance(0.3):
            plan = self.aggregate(plan, outer, depth)
            if self.chance(0.3):
                plan = Filter(plan, self.predicate(plan.schema, outer, depth - 1))
        if self.chance(0.5):
            plan = self.project(plan, outer, depth)
        if self.chance(0.1):
            plan = self.union(plan, outer, depth)
        if self.chance(0.1):
            plan = Aggregate(plan, plan.schema, tuple(map(reference, plan.schema)), (), ())
        return plan

    def source(self, depth: int, outer: Schema) -> LogicalPlan:
        plan: LogicalPlan = self.scan()
        while self.chance(0.35):
            join_type = self.random.choice(
                (JoinType.INNER, JoinType.INNER, JoinType.INNER, JoinType.LEFT, JoinType.LEFT, JoinType.FULL)
            )
            if depth > 0 and self.chance(0.3):
                lateral = join_type is not JoinType.FULL and self.chance(0.6)
                right = self.query(depth - 1, outer + plan.schema if lateral else outer)
            else:
                right = self.scan()
            condition: Expression = TRUE
            if self.chance(0.8):
                depth_here = depth - 1 if join_type is JoinType.INNER else 0
                condition = self.predicate(plan.schema + right.schema, outer, depth_here)
            plan = Join(plan, right, join_type, condition)
        return plan

    def aggregate(self, plan: LogicalPlan, outer: Schema, depth: int) -> LogicalPlan:
        fields = self.numbers(plan.schema)
        keys = tuple(self.random.sample(fields, self.random.choice((0, 0, 1, min(2, len(fields))))))
        calls, names = [], []
        for _ in range(self.random.choice((1, 2))):
            function = self.random.choice(("count_star", "count", "sum", "min", "max"))
            arguments = () if function == "count_star" else (self.number(plan.schema, outer, depth - 1),)
            filtered = self.predicate(plan.schema, outer, depth - 1) if self.chance(0.15) else None
            data_type = HUGEINT if function == "sum" else BIGINT
            calls.append(AggregateCall(function, arguments, data_type, filter=filtered))
            names.append(self.field(function, data_type))
        grouped = Aggregate(plan, keys, tuple(map(reference, keys)), tuple(names), tuple(calls))
        outputs: list[Expression] = [
            reference(f) if f.data_type == BIGINT else Cast(reference(f), BIGINT) for f in grouped.schema
        ]
        fields_out = tuple(f if f.data_type == BIGINT else self.field(f.name) for f in grouped.schema)
        return Project(grouped, fields_out, tuple(outputs))

    def project(self, plan: LogicalPlan, outer: Schema, depth: int) -> LogicalPlan:
        fields, outputs = [], []
        for _ in range(self.random.choice((1, 2))):
            output: Expression = self.number(plan.schema, outer, depth)
            if isinstance(output, ColumnRef):  # a column of the input would have to keep its id
                output = Call("add", (output, Literal(0, BIGINT)), BIGINT)
            fields.append(self.field("computed"))
            outputs.append(output)
        for kept in self.random.sample(plan.schema, min(2, len(plan.schema))):
            fields.append(kept)
            outputs.append(reference(kept))
        return Project(plan, tuple(fields), tuple(outputs))

    def union(self, plan: LogicalPlan, outer: Schema, depth: int) -> LogicalPlan:
        other = self.query(depth - 1, outer)
        first = self.numbers(plan.schema)
        second = self.numbers(other.schema)
        width = min(len(first), len(second), 2)
        branches = tuple(
            Project(branch, tuple(fields[:width]), tuple(map(reference, fields[:width])))
            for branch, fields in ((plan, first), (other, second))
        )
        return UnionAll(branches, tuple(self.field("united") for _ in range(width)))

    def numbers(self, fields: Schema) -> list[Field]:
        return [field for field in fields if field.data_type == BIGINT]

    def number(self, fields: Schema, outer: Schema, depth: int) -> Expression:
        if depth > 0 and self.chance(0.15):
            return self.scalar(fields, outer, depth)
        choice = self.random.random()
        if choice < 0.2:
            function = self.random.choice(("add", "subtract", "coalesce"))
            return Call(function, (self.number(fields, outer, 0), self.number(fields, outer, 0)), BIGINT)
        if choice < 0.25:
            branch = (self.predicate(fields, outer, depth - 1), self.number(fields, outer, 0))
            return Case((branch,), self.number(fields, outer, 0), BIGINT)
        if choice < 0.35:
            return Literal(self.random.randrange(4), BIGINT)
        return self.column(fields, outer)

    def column(self, fields: Schema, outer: Schema) -> Expression:
        candidates = self.numbers(outer) if outer and self.chance(0.3) else self.numbers(fields)
        if not candidates:
            return Literal(1, BIGINT)
        return reference(self.random.choice(candidates))

    def scalar(self, fields: Schema, outer: Schema, depth: int) -> Expression:
        plan = self.query(depth - 1, outer + fields)
        column = self.random.choice(self.numbers(plan.schema))
        function = self.random.choice(("min", "max", "count", "count_star"))
        arguments = () if function == "count_star" else (reference(column),)
        field = self.field(function)
        plan = Aggregate(plan, (), (), (field,), (AggregateCall(function, arguments, BIGINT),))
        if self.chance(0.3):
            computed = self.field("computed")
            plan = Project(plan, (computed,), (self.number(plan.schema, outer + fields, 0),))
        if self.chance(0.1):
            plan = Filter(plan, self.predicate(plan.schema, outer + fields, 0))
        return ScalarSubquery(plan, BIGINT)

    def predicate(self, fields: Schema, outer: Schema, depth: int) -> Expression:
        if depth > 0 and self.chance(0.4):
            return self.subquery_predicate(fields, outer, depth)
        choice = self.random.random()
        if choice < 0.15:
            function = self.random.choice(("and", "or", "or"))
            parts = tuple(self.predicate(fields, outer, depth - 1) for _ in range(2))
            return Call(function, parts, BOOLEAN)
        if choice < 0.2:
            return Call("not", (self.predicate(fields, outer, depth - 1),), BOOLEAN)
        if choice < 0.27:
            return Call("is_null", (self.column(fields, outer),), BOOLEAN)
        if choice < 0.35:
            values = tuple(Literal(value, BIGINT) for value in self.random.sample(range(5), 2))
            return InList(self.column(fields, outer), values)
        sides = (self.column(fields, outer), self.number(fields, outer, depth - 1))
        return Call(self.random.choice(COMPARISONS), sides, BOOLEAN)

    def subquery_predicate(self, fields: Schema, outer: Schema, depth: int) -> Expression:
        plan = self.query(depth - 1, outer + fields)
        choice = self.random.random()
        if choice < 0.4:
            result: Expression = Exists(plan)
        else:
            column = self.random.choice(self.numbers(plan.schema))
            plan = Project(plan, (column,), (reference(column),))
            comparison = "equal" if self.chance(0.6) else self.random.choice(COMPARISONS)
            operand = self.number(fields, outer, 0)
            result = QuantifiedComparison(comparison, self.chance(0.3), (operand,), plan)
        return Call("not", (result,), BOOLEAN) if self.chance(0.4) else result

    def top(self, depth: int) -> LogicalPlan:
        """A whole query; sometimes ordered by all its columns and cut."""
        plan = self.query(depth)
        if self.chance(0.15):
            plan = Limit(
                Sort(plan, tuple(SortKey(reference(f)) for f in plan.schema)), self.random.choice((1, 2, 5))
            )
        return replace(plan)
