"""One look at a table for several parts of a plan that want the same few of its rows: those of one runtime filter."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from tqp.planner.algebra.expressions import ColumnRef
from tqp.planner.algebra.join_keys import JoinKeys
from tqp.planner.algebra.node import transform_plan, walk_plan
from tqp.planner.physical.plan import Filter, PhysicalPlan, RuntimeFilter, Shared, TableScan
from tqp.planner.physical.runtime_filters import inner_join_on
from tqp.planner.rules.columns import NewIds

#: Rows are stored once and read by each part; beyond this share of the table that costs more than it saves.
_LARGEST_SHARE = 0.15


def filter_as_build_side(keys: JoinKeys, probed: PhysicalPlan, built: PhysicalPlan) -> PhysicalPlan:
    """The probe side of an inner join, its table under the filter that the build side has on the same table, if any.

    All build rows have been through the join that filter belongs to, by the key of this join: no other row matches.
    """
    if len(keys.left) != 1 or keys.null_equal[0]:
        return probed
    (left,), (right,) = keys.left, keys.right
    scan = probed.input if isinstance(probed, Filter) else probed
    if not isinstance(left, ColumnRef) or not isinstance(right, ColumnRef) or not isinstance(scan, TableScan):
        return probed
    join, own_column = inner_join_on(built, right.id), _name(scan, left.id)
    if join is None:
        return probed
    for node, built_scan, column in _filters_of_scans(built):
        if node.join == join.identifier and built_scan.table is scan.table and column == own_column:
            share = node.estimated_rows / max(1.0, scan.estimated_rows)
            filtered = dataclasses.replace(
                node, fields=scan.fields, max_rows=scan.max_rows, input=scan, keys=keys.left
            )
            if not isinstance(probed, Filter):
                return filtered
            rows = probed.estimated_rows * share
            return dataclasses.replace(probed, input=filtered, estimated_rows=rows)
    return probed


def share_filtered_scans(plan: PhysicalPlan, new: NewIds) -> PhysicalPlan:
    """Equal runtime filters right above scans of one table become one, whose rows are stored for all who read them."""
    groups: dict[tuple[int, str, int], list[tuple[RuntimeFilter, TableScan]]] = {}
    for node, scan, column in _filters_of_scans(plan):
        groups.setdefault((id(scan.table), column, node.join), []).append((node, scan))
    found: dict[int, PhysicalPlan] = {}
    for group in groups.values():
        if len(group) > 1:
            found.update(_shared(group, new))
    return transform_plan(plan, lambda node: found.get(id(node), node)) if found else plan


def _shared(uses: list[tuple[RuntimeFilter, TableScan]], new: NewIds) -> dict[int, PhysicalPlan]:
    """What stands for each filter of a group, by its id()."""
    first, scan = uses[0]
    fields = dict(zip(scan.columns, scan.fields, strict=True))
    for _, other in uses[1:]:
        for name, field in zip(other.columns, other.fields, strict=True):
            if name not in fields:
                fields[name] = new.renewed(field)
    schema = tuple(fields.values())
    below = dataclasses.replace(scan, fields=schema, columns=tuple(fields))
    common = dataclasses.replace(first, fields=schema, input=below)
    identifier = new.new_shared()
    found: dict[int, PhysicalPlan] = {}
    for node, use in uses:
        own = dict(zip(use.columns, use.fields, strict=True))
        outputs = tuple(own[name] if name in own else new.renewed(field) for name, field in fields.items())
        found[id(node)] = Shared(outputs, node.estimated_rows, node.max_rows, common, identifier)
    return found


def _filters_of_scans(plan: PhysicalPlan) -> Iterator[tuple[RuntimeFilter, TableScan, str]]:
    """The filters right above scans that keep few rows, each with its scan and the table column that is its only key."""
    for node in walk_plan(plan):
        match node:
            case RuntimeFilter(input=TableScan() as scan, keys=(ColumnRef() as key,)):
                column = _name(scan, key.id)
                if column is not None and node.estimated_rows <= _LARGEST_SHARE * scan.estimated_rows:
                    yield node, scan, column


def _name(scan: TableScan, id: int) -> str | None:
    pairs = zip(scan.fields, scan.columns, strict=True)
    return next((name for field, name in pairs if field.id == id), None)
