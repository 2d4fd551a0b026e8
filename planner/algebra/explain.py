"""Plans as text: EXPLAIN, and EXPLAIN ANALYZE with what was measured. Each node says itself what its line is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tqp.planner.algebra import logical_plan
from tqp.planner.algebra.expression_text import Names
from tqp.planner.algebra.expressions import ColumnRef, walk
from tqp.planner.algebra.logical_plan import LogicalPlan
from tqp.planner.algebra.node import Node, walk_plan
from tqp.planner.algebra.node_text import count_text
from tqp.planner.physical import plan as physical
from tqp.planner.physical.plan import PhysicalPlan


def explain_logical(plan: LogicalPlan, names: Names | None = None) -> str:
    """The plan as an indented tree, one node a line, inputs below their parent with the estimated rows."""
    from tqp.planner.algebra.cardinality import Estimator

    estimator = Estimator()
    shown = _display_names(plan) if names is None else names

    def line(node: LogicalPlan) -> list[str]:
        return [node.describe(shown), f"~{count_text(estimator.rows(node))} rows"]

    return "\n".join(_tree(plan, line, 0, set()))


def explain_physical(plan: PhysicalPlan, annotations: Mapping[int, str] | None = None) -> str:
    """The plan as an indented tree, one node a line; `annotations[id(node)]` (what was measured) ends its line."""
    names = _display_names(plan)
    measured = annotations or {}

    def line(node: PhysicalPlan) -> list[str]:
        parts = [node.describe(names), f"~{count_text(node.estimated_rows)} rows"]
        return [*parts, measured[id(node)]] if id(node) in measured else parts

    return "\n".join(_tree(plan, line, 0, set()))


def _tree(node: Any, describe: Callable[[Any], list[str]], depth: int, shown: set[int]) -> Iterator[str]:
    """Lines of the plan; the input of Shared nodes stands below the first of them only."""
    yield "  " * depth + "  ".join(part for part in describe(node) if part)
    if isinstance(node, logical_plan.Shared | physical.Shared):
        if node.identifier in shown:
            return
        shown.add(node.identifier)
    for child in node.inputs:
        yield from _tree(child, describe, depth + 1, shown)


def _display_names(plan: Node[Any]) -> Names:
    """A name for each column id: `name`, or `name#id` where several columns have that name."""
    names: dict[int, str] = {}
    for node in walk_plan(plan):
        for field in node.created_fields:
            names.setdefault(field.id, field.name or f"#{field.id}")
        # A column that is pruned right after it was used is in no field list, but in an expression.
        for expression in node.expressions:
            for part in walk(expression):
                if isinstance(part, ColumnRef):
                    names.setdefault(part.id, part.name or f"#{part.id}")
    counts = Counter(names.values())
    return {
        identifier: name if counts[name] == 1 or name == f"#{identifier}" else f"{name}#{identifier}"
        for identifier, name in names.items()
    }
