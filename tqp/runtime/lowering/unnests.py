"""Lowering of UNNEST: a space whose rows are the elements of lists, linked to the rows that hold these."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tqp.operators.nested import elements as element_kernels
from tqp.planner.physical import plan as physical
from tqp.runtime.lowering.graph_builder import Node
from tqp.runtime.lowering.keys import lower_values
from tqp.runtime.lowering.layouts import PLACE_LAYOUT, layout_of_part
from tqp.runtime.lowering.stream import Stream, Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.plan import PlanLowering


def lower_unnest(plan: PlanLowering, node: physical.Unnest) -> Stream:
    """Each row once for each element of its lists; no row waits for the others."""
    stream = plan.lower(node.input)
    lists = lower_values(plan.enter(stream, node), node.lists)
    made = node.fields[len(node.fields) - len(lists) - node.has_places :]
    unnested = _elements_of_one if len(lists) == 1 and not node.keeps_rows else _elements_of_several
    values, place = unnested(stream, node, lists, [field.name for field in made])
    for each, (values_node, validity), field in zip(lists, values, made, strict=False):
        layout = layout_of_part(each.layout).with_nullable(field.nullable)
        value = Value(layout, values_node, stream.or_all_rows(validity) if field.nullable else None)
        stream.add_computed_column(field.id, field.name, value)
    if place is not None:
        stream.add_computed_column(made[-1].id, made[-1].name, place)
    return stream


def _elements_of_one(
    stream: Stream, node: physical.Unnest, lists: Sequence[Value], names: Sequence[str]
) -> tuple[list[tuple[Node, Node]], Value | None]:
    """The elements of one list, as they stand there, and their places; the stream's rows become theirs."""
    build = stream.builder
    flat = build.call(element_kernels.flatten_lists, lists[0].node, lists[0].validity, name="elements")
    values, validity, lengths, num_rows = (
        build.call(operator.getitem, flat, part, name=name)
        for part, name in enumerate((names[0], names[0], "lengths", "num_rows"))
    )
    stream.keep(build.call(element_kernels.list_rows, lengths, name="rows"), num_rows)
    if not node.has_places:
        return [(values, validity)], None
    place = build.call(element_kernels.places_in_lists, lengths, name="place")
    return [(values, validity)], Value(PLACE_LAYOUT, place)


def _elements_of_several(
    stream: Stream, node: physical.Unnest, lists: Sequence[Value], names: Sequence[str]
) -> tuple[list[tuple[Node, Node]], Value | None]:
    """As `_elements_of_one`, of several lists, which end with the longest, or with rows that are kept without an element."""
    build = stream.builder
    pairs = [(each.node, each.validity) for each in lists]
    found = build.call(element_kernels.unnested_rows, pairs, node.keeps_rows, name="unnested")
    rows, places = (
        build.call(operator.getitem, found, part, name=name) for part, name in enumerate(("rows", "places"))
    )
    taken = [
        build.call(element_kernels.elements_at, each.node, each.validity, rows, places, name=name)
        for each, name in zip(lists, names, strict=False)
    ]
    stream.keep(rows)
    values = [
        (build.call(operator.getitem, each, 0, name=name), build.call(operator.getitem, each, 1, name=name))
        for each, name in zip(taken, names, strict=False)
    ]
    if not node.has_places:
        return values, None
    is_there = None
    if node.keeps_rows:
        is_there = build.call(element_kernels.is_in_a_list, pairs, rows, places, name="is_there")
    place = build.call(operator.add, places, 1, name="place")
    return values, Value(PLACE_LAYOUT.with_nullable(node.keeps_rows), place, is_there)
