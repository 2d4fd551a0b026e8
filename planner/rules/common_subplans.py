"""Compute equal sub-plans that contain a join, an aggregate or window functions once."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace

from tqp.core.schema import Field
from tqp.planner.algebra.expressions import ColumnRef, Expression
from tqp.planner.algebra.logical_plan import Aggregate, Filter, Join, LogicalPlan, Scan, Shared, Window
from tqp.planner.rules.columns import fresh_copy
from tqp.planner.rules.context import OptimizerContext


def common_subplans(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """Replace sub-plans that are equal up to column ids by Shared nodes with one identifier.

    Only the largest equal ones: what is inside them is computed once anyway.
    """
    scans = _repeated_scans(plan)
    if not scans or not _are_repeated(plan):
        return plan
    # Scans that differ only in the columns they read are made alike; what is not read is pruned again.
    widened = _widened(plan, scans, context)
    shapes = _Shapes()
    places: dict[int, int] = {}
    _count_places(widened, shapes, places, set())
    repeated = {shape for shape, count in places.items() if count > 1}
    return _Sharing(shapes, repeated, context).share(widened) if repeated else plan


def _repeated_scans(plan: LogicalPlan) -> dict[str, list[Scan]]:
    """Scans by table, of the tables that are read more than once; a node counts in each place where it stands."""
    scans: dict[str, list[Scan]] = {}
    shared: set[int] = set()
    stack = [plan]
    while stack:
        node = stack.pop()
        if isinstance(node, Scan):
            scans.setdefault(node.table_name, []).append(node)
        if isinstance(node, Shared):
            if node.identifier in shared:
                continue
            shared.add(node.identifier)
        stack.extend(node.inputs)
    return {table: found for table, found in scans.items() if len(found) > 1}


def _are_repeated(plan: LogicalPlan) -> bool:
    """May two sub-plans be equal? Most plans that read a table twice read other tables with it, by other nodes."""
    seen: set[int] = set()
    shared: set[int] = set()
    is_repeated = False

    def contents(node: LogicalPlan) -> int:
        """A number for the nodes and tables below, whatever their order: equal sub-plans have equal ones."""
        nonlocal is_repeated
        if isinstance(node, Shared):
            if node.identifier not in shared:
                shared.add(node.identifier)
                contents(node.input)
            return hash((Shared, node.identifier))
        found = hash(node.table_name if isinstance(node, Scan) else type(node))
        found += sum(map(contents, node.inputs))
        if isinstance(node, Join | Aggregate | Window):
            is_repeated |= found in seen
            seen.add(found)
        return found

    contents(plan)
    return is_repeated


def _widened(plan: LogicalPlan, scans: dict[str, list[Scan]], context: OptimizerContext) -> LogicalPlan:
    """The plan with every scan of a table reading the columns that any of them reads, in one order."""
    columns: dict[str, dict[str, Field]] = {}
    for table, found in scans.items():
        all_fields = (pair for scan in found for pair in zip(scan.columns, scan.fields, strict=True))
        columns[table] = dict(sorted(dict(all_fields).items()))

    def widen(node: LogicalPlan) -> LogicalPlan:
        if not isinstance(node, Scan):
            return context.rewrite_inputs(node, widen)
        wanted = columns.get(node.table_name)
        if wanted is None or tuple(wanted) == node.columns:
            return node
        own = dict(zip(node.columns, node.fields, strict=True))
        fields = tuple(own[name] if name in own else context.renewed(field) for name, field in wanted.items())
        return replace(node, columns=tuple(wanted), fields=fields)

    result = widen(plan)
    context.rewritten.clear()
    return result


class _Shapes:
    """Numbers plans so that those equal up to ids get one number; columns are told apart by position."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        self._known: dict[int, tuple[LogicalPlan, int]] = {}

    def of(self, plan: LogicalPlan) -> int:
        known = self._known.get(id(plan))
        if known is None:
            known = self._known[id(plan)] = (plan, self._number(self._describe(plan)))
        return known[1]

    def _number(self, description: Hashable) -> int:
        return self._numbers.setdefault(description, len(self._numbers))

    def _describe(self, plan: LogicalPlan) -> Hashable:
        if isinstance(plan, Shared):
            return Shared, plan.identifier, len(plan.fields)
        below = tuple(self.of(child) for child in plan.inputs)
        positions = {
            field.id: (i, j) for i, child in enumerate(plan.inputs) for j, field in enumerate(child.schema)
        }
        types = tuple([field.data_type for field in plan.created_fields])
        mark_is_nullable = isinstance(plan, Join) and plan.mark is not None and plan.mark.nullable
        return (
            below,
            types,
            mark_is_nullable,
            plan.shape(lambda expression: _described(expression, positions)),
        )


def _described(expression: Expression, positions: dict[int, tuple[int, int]]) -> Expression | Hashable:
    """The expression with columns as positions."""
    if isinstance(expression, ColumnRef):
        return positions.get(expression.id, expression.id)
    inputs = expression.inputs
    if not inputs:
        return expression
    stripped = expression.with_inputs(tuple(ColumnRef(-1, child.data_type) for child in inputs))
    return stripped, tuple(_described(child, positions) for child in inputs)


def _count_places(plan: LogicalPlan, shapes: _Shapes, places: dict[int, int], shared: set[int]) -> None:
    """Count how often each shape that may be shared occurs, what is inside of repeated ones only once."""
    if isinstance(plan, Shared):
        if plan.identifier in shared:
            return
        shared.add(plan.identifier)
    if _is_worthwhile(plan):
        shape = shapes.of(plan)
        places[shape] = places.get(shape, 0) + 1
        if places[shape] > 1:
            return
    for child in plan.inputs:
        _count_places(child, shapes, places, shared)


class _Sharing:
    def __init__(self, shapes: _Shapes, repeated: set[int], context: OptimizerContext) -> None:
        self.shapes = shapes
        self.repeated = repeated
        self.context = context
        self.made: dict[int, tuple[LogicalPlan, int]] = {}

    def share(self, plan: LogicalPlan) -> LogicalPlan:
        if isinstance(plan, Shared):
            return self.context.rewrite_inputs(plan, self.share)
        shape = self.shapes.of(plan)
        if shape not in self.repeated:
            return plan.map_inputs(self.share)
        fields = plan.schema
        if shape not in self.made:
            # The one that is computed gets ids of its own: those of the first place stay with that place.
            copy, _ = fresh_copy(plan.map_inputs(self.share), self.context)
            self.made[shape] = copy, self.context.new_shared()
        copy, identifier = self.made[shape]
        return Shared(copy, identifier, fields)


def _is_worthwhile(plan: LogicalPlan) -> bool:
    """True for joins, aggregates, windows and filters of them; a project or an order is cheaper done again than kept."""
    while isinstance(plan, Filter):
        plan = plan.input
    return isinstance(plan, Join | Aggregate | Window)
