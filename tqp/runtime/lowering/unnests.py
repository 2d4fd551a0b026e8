"""Lowering of UNNEST: a space whose rows are the elements of lists, linked to the rows that hold these."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from tqp.operators.nested import elements as element_kernels
from tqp.planner.physical import plan as physical
from tqp.runtime.lowering.keys import lower_values
from tqp.runtime.lowering.layouts import PLACE_LAYOUT, element_layout
from tqp.runtime.lowering.stream import Stream, Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.plan import PlanLowering


def lower_unnest(plan: PlanLowering, node: physical.Unnest) -> Stream:
    """Each row once for each element of its lists; no row waits for the others."""
    stream = plan.lower(node.input)
    lowering = plan.enter(stream, node)
    build = stream.builder
    lists = lower_values(lowering, node.lists)
    pairs = [(each.node, each.validity) for each in lists]
    found = build.call(element_kernels.unnested_rows, pairs, node.keeps_rows, name="unnested")
    rows, places = (
        build.call(operator.getitem, found, part, name=name) for part, name in enumerate(("rows", "places"))
    )
    made = node.fields[len(node.fields) - len(lists) - node.has_places :]
    values = [
        build.call(element_kernels.elements_at, each.node, each.validity, rows, places, name=field.name)
        for each, field in zip(lists, made, strict=False)
    ]
    stream.keep(rows)
    for each, found, field in zip(lists, values, made, strict=False):
        node_of, validity = (build.call(operator.getitem, found, part, name=field.name) for part in range(2))
        layout = element_layout(each.layout.data_type.element)
        stream.add_computed_column(field.id, field.name, Value(layout, node_of, stream.or_all_rows(validity)))
    if node.has_places:
        place = build.call(operator.add, places, 1, name="place")
        is_there = None
        if node.keeps_rows:
            is_there = build.call(element_kernels.is_in_a_list, pairs, rows, places, name="is_there")
        layout = PLACE_LAYOUT.with_nullable(node.keeps_rows)
        stream.add_computed_column(made[-1].id, made[-1].name, Value(layout, place, is_there))
    return stream
