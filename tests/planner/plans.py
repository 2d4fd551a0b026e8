"""Small tables and short-cuts from SQL to plans, for tests of rewrite rules."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from tests.planner.binding import NoTables
from tests.reference_plan import MemoryTable
from tqp.planner.algebra.logical_plan import Join, JoinType, LogicalPlan
from tqp.planner.algebra.node import walk_plan
from tqp.planner.bind import bind
from tqp.planner.optimizer import optimize
from tqp.planner.rules.context import OptimizerContext


class Catalog(NoTables):
    """The tables of a test, by name."""

    def __init__(self, tables: Sequence[MemoryTable]) -> None:
        self.tables = {table.name: table for table in tables}

    def lookup(self, name: str, schemas: tuple[str, ...] = ()) -> MemoryTable | None:
        return self.tables.get(name.lower())

    def table_names(self) -> Sequence[str]:
        return tuple(self.tables)


def example_tables(seed: int) -> list[MemoryTable]:
    """t, u, v with a unique key k and columns a, b with NULLs and duplicates, and e without rows."""
    generator = random.Random(seed)

    def table(name: str, rows: int) -> MemoryTable:
        keys = sorted(generator.sample(range(8), rows))
        values = [[generator.choice((None, 0, 1, 1, 2, 3)) for _ in keys] for _ in range(2)]
        return MemoryTable(name, {"k": keys, "a": values[0], "b": values[1]})

    return [table("t", 7), table("u", 6), table("v", 5), table("e", 0)]


def bound(query: str, catalog: Catalog) -> LogicalPlan:
    """The logical plan of a query before optimization."""
    return bind(query, catalog).plan


def optimized(query: str, tables: Sequence[MemoryTable], *disabled: str) -> LogicalPlan:
    """The logical plan of a query after optimization, without the rules named."""
    return optimize(bound(query, Catalog(tables)), OptimizerContext(disabled_rules=frozenset(disabled)))


def join_types(plan: LogicalPlan) -> list[JoinType]:
    """The types of all joins, those above first."""
    return [node.join_type for node in walk_plan(plan) if isinstance(node, Join)]


def kinds(plan: LogicalPlan) -> Counter[type[LogicalPlan]]:
    """How many nodes of each class a plan has."""
    return Counter(type(node) for node in walk_plan(plan))
