"""Plans with shared sub-plans: who reads which, and rewrites that know all readers of a sub-plan before they enter it."""

from __future__ import annotations

from collections.abc import Callable

from tqp.planner.algebra.logical_plan import LogicalPlan, Shared


def readers(plan: LogicalPlan) -> list[Shared]:
    """The Shared nodes in the plan and its subqueries, not those inside of shared plans."""
    found: list[Shared] = []
    pending = [plan]
    while pending:
        node = pending.pop()
        if isinstance(node, Shared):
            found.append(node)
        else:
            pending += node.inputs + node.subqueries
    return found


def shared_inputs(plan: LogicalPlan) -> dict[int, LogicalPlan]:
    """The shared plans by identifier, each after those that it reads."""
    ordered: dict[int, LogicalPlan] = {}
    pending = [(reader, False) for reader in readers(plan)]
    while pending:
        reader, is_below_done = pending.pop()
        if is_below_done:
            ordered[reader.identifier] = reader.input
        elif reader.identifier not in ordered:
            pending.append((reader, True))
            pending += [(inner, False) for inner in readers(reader.input)]
    return ordered


def rewrite_readers_first(
    plan: LogicalPlan,
    rewrite: Callable[[LogicalPlan, int | None], LogicalPlan],
    finish: Callable[[LogicalPlan], LogicalPlan],
) -> LogicalPlan:
    """The plan (identifier None) and each shared plan by `rewrite`, which does not enter Shared nodes, put together again.

    A shared plan comes after all that read it. `finish` gets each node over its rewritten and finished inputs.
    """
    shared = shared_inputs(plan)
    rewritten: dict[int | None, LogicalPlan] = {None: rewrite(plan, None)}
    for identifier in reversed(shared):
        rewritten[identifier] = rewrite(shared[identifier], identifier)
    if not shared:
        return rewritten[None]
    finished: dict[int, LogicalPlan] = {}

    def put_together(node: LogicalPlan) -> LogicalPlan:
        if not isinstance(node, Shared):
            return finish(node.map_inputs(put_together))
        if node.identifier not in finished:
            finished[node.identifier] = put_together(rewritten[node.identifier])
        return finish(node.with_inputs((finished[node.identifier],)))

    return put_together(rewritten[None])
