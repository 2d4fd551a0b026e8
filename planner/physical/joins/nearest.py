"""ASOF joins by search: build rows sorted by key and value as one word, in which each probe row finds its nearest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tqp.planner.algebra.field_facts import join_fields
from tqp.planner.algebra.join_keys import JoinKeys, is_word
from tqp.planner.algebra.logical_plan import AsofJoin
from tqp.planner.physical.joins.packing import pack_join_keys
from tqp.planner.physical.plan import Bound, Join, JoinAlgorithm, PhysicalPlan
from tqp.planner.physical.runtime_filters import Requests, columns_of, pass_operator, place, split
from tqp.planner.rules.joins.expand_asof_joins import expanded

if TYPE_CHECKING:
    from tqp.planner.physical.planner import Planner


def plan_nearest(
    planner: Planner,
    dictionaries: Mapping[int, int],
    plan: AsofJoin,
    required: frozenset[int],
    requests: Requests,
) -> PhysicalPlan:
    """The search, or where the keys are not one word, both sides sorted together. See `Planner.plan`."""
    packing = pack_join_keys(plan.keys, plan.left.field_facts, plan.right.field_facts, dictionaries, None)
    is_found = packing is not None or not plan.left_keys or _is_word(plan.keys)
    if not is_found or not planner.is_on("nearest_join"):
        return planner.plan(expanded(plan, planner.new_ids), required, requests)
    into_probe, here = ((), requests) if plan.keeps_right else split(requests, plan.left.output_ids)
    required |= columns_of(here)
    identifier = planner.new_join()
    of_probe, of_build = plan.needs(required)
    probed = planner.plan(plan.left, frozenset(of_probe), pass_operator(into_probe))
    built = planner.plan(plan.right, frozenset(of_build), ())
    left, right = probed.field_facts, built.field_facts
    known = join_fields(
        left,
        right,
        plan.join_type,
        plan.keys,
        left_once=True,
        right_once=False,
        keeps_left_order=not plan.keeps_right,
    )
    joined = Join(
        tuple(field for field in known.values() if field.id in required),
        planner.rows(plan, (plan.left, probed)),
        plan.max_rows,
        identifier,
        probed,
        built,
        plan.join_type,
        JoinAlgorithm.NEAREST,
        plan.left_keys,
        plan.right_keys,
        plan.keys.null_equal,
        (),
        packing,
        bounds=(Bound(plan.comparison, plan.left_value, plan.right_value),),
    )
    return place(joined, here)


def _is_word(keys: JoinKeys) -> bool:
    """Is there one key, which is found by itself without a hash?"""
    return len(keys.left) == 1 and is_word(keys.left[0].data_type)
