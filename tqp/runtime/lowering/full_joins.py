"""Lowering of what a FULL JOIN adds to a LEFT one, and a RIGHT one to an INNER one: build rows that no probe row has met come after all pairs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import torch

from tqp.core.datatypes import BIGINT
from tqp.planner.algebra.expressions import Literal
from tqp.planner.physical import plan as physical
from tqp.runtime.breakers.collect import CollectAndMeet
from tqp.runtime.lowering.expressions.scalars import ExpressionLowering
from tqp.runtime.lowering.join_builds import JoinSlot
from tqp.runtime.lowering.layouts import Form, Layout
from tqp.runtime.lowering.stream import Link, Space, Stream, Value
from tqp.runtime.lowering.unions import Branch, one_after_the_other

if TYPE_CHECKING:
    from tqp.runtime.lowering.plan import PlanLowering


def with_unmet_rows(
    plan: PlanLowering, probe: ExpressionLowering, node: physical.Join, slot: JoinSlot, build_space: Space
) -> Stream:
    """The rows of a full or right join: the pairs of `probe`, which of a full one are padded where a probe row has no partner. They
    end here, and after them come the rows that these have not met of the build side, whose space is `build_space` there.
    """
    unmet = plan.program.slot("unmet")
    probe.stream.settle()  # of a right join a filter may be the last that has pairs dropped
    rows = probe.stream.rows_of(build_space)
    assert rows is not None, "pairs of a join know their build rows"
    met = Value(Layout(BIGINT, Form.NUMBER, torch.int64, False), rows[0])
    pairs = [probe.stream.column(field.id) for field in node.fields]

    stream, own_space = Stream(unmet), Space()
    stream.needs |= plan.needs
    lowering = plan.enter(stream, node)
    stream.link(Link(own_space, stream.source_values("build_rows", unmet, 0)))
    slot.add_columns(stream, own_space)
    built = {field.id for field in node.build.fields}
    padded = [
        stream.column(field.id) if field.id in built else lowering.lower(Literal(None, field.data_type))
        for field in node.fields
    ]
    collect = partial(CollectAndMeet, build_rows=slot.payload, unmet=unmet)
    branches = [Branch(probe, pairs, [met], collect), Branch(lowering, padded)]
    return one_after_the_other(plan, branches, node, "joined", f"{node.join_type.value} join")
