"""The logical optimizer: an ordered tuple of rewrite rules, whose outcome is verified.

A rule is a function `rule(plan, context) -> plan` that keeps the rows (as a multiset; their order too where a Sort
says so) and the output schema. Rules not in `REQUIRED` may be switched off one by one without changing any answer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tqp.core.datatypes import TypeKind
from tqp.core.schema import Schema
from tqp.planner.algebra.logical_plan import LogicalPlan
from tqp.planner.algebra.node import walk_plan
from tqp.planner.algebra.verify import PlanVerifier
from tqp.planner.rules.aggregate_partitions import aggregate_partitions
from tqp.planner.rules.choices_by_groups import choices_by_groups
from tqp.planner.rules.coarser_from_finer import coarser_from_finer
from tqp.planner.rules.columns import restore_schema
from tqp.planner.rules.common_subplans import common_subplans
from tqp.planner.rules.constant_conditions import constant_conditions
from tqp.planner.rules.context import OptimizerContext
from tqp.planner.rules.distinct_as_groups import distinct_as_groups
from tqp.planner.rules.fields_of_structs import fields_of_structs
from tqp.planner.rules.group_by_columns_first import group_by_columns_first
from tqp.planner.rules.group_by_order_keys import group_by_order_keys
from tqp.planner.rules.group_by_units import group_by_units
from tqp.planner.rules.group_in_two_steps import group_in_two_steps
from tqp.planner.rules.histograms_of_groups import histograms_of_groups
from tqp.planner.rules.inline_ctes import inline_ctes
from tqp.planner.rules.instant_differences import extremes_of_differences
from tqp.planner.rules.joins.attempt_before_join import attempt_before_join
from tqp.planner.rules.joins.expand_asof_joins import expand_asof_joins
from tqp.planner.rules.joins.group_before_join import group_before_join
from tqp.planner.rules.joins.match_once import match_once
from tqp.planner.rules.joins.remove_joins import remove_joins
from tqp.planner.rules.joins.reorder_joins import reorder_joins
from tqp.planner.rules.models.compare_scores import compare_scores
from tqp.planner.rules.models.ignore_unread_inputs import ignore_unread_inputs
from tqp.planner.rules.models.place_predictions import place_predictions
from tqp.planner.rules.models.predict_after_limit import predict_after_limit
from tqp.planner.rules.models.restrict_models import restrict_models
from tqp.planner.rules.prune_columns import prune_columns
from tqp.planner.rules.push_down_predicates import push_down_predicates
from tqp.planner.rules.reduce_group_keys import reduce_group_keys
from tqp.planner.rules.remove_redundant import remove_redundant
from tqp.planner.rules.simplify_expressions import simplify_expressions
from tqp.planner.rules.subqueries.exists_not_equal_to_min_max import exists_not_equal_to_min_max
from tqp.planner.rules.subqueries.unnest_subqueries import unnest_subqueries
from tqp.planner.rules.sums_of_shifted_values import sums_of_shifted_values

Rule = Callable[[LogicalPlan, OptimizerContext], LogicalPlan]

#: In the order in which they run.
RULES: tuple[tuple[str, Rule], ...] = (
    ("expand_asof_joins", expand_asof_joins),
    ("coarser_from_finer", coarser_from_finer),
    ("inline_ctes", inline_ctes),
    ("unnest_subqueries", unnest_subqueries),
    ("ignore_unread_inputs", ignore_unread_inputs),
    ("simplify_expressions", simplify_expressions),
    ("push_down_predicates", push_down_predicates),
    ("aggregate_partitions", aggregate_partitions),
    ("match_once", match_once),
    ("exists_not_equal_to_min_max", exists_not_equal_to_min_max),
    ("remove_redundant", remove_redundant),
    ("reduce_group_keys", reduce_group_keys),
    ("group_by_units", group_by_units),
    ("extremes_of_differences", extremes_of_differences),
    ("choices_by_groups", choices_by_groups),
    ("histograms_of_groups", histograms_of_groups),
    ("group_in_two_steps", group_in_two_steps),
    ("group_by_columns_first", group_by_columns_first),
    ("distinct_as_groups", distinct_as_groups),
    ("sums_of_shifted_values", sums_of_shifted_values),
    ("group_before_join", group_before_join),
    ("group_by_order_keys", group_by_order_keys),
    ("fields_of_structs", fields_of_structs),
    ("remove_joins", remove_joins),
    ("attempt_before_join", attempt_before_join),
    ("reorder_joins", reorder_joins),
    ("restrict_models", restrict_models),
    ("compare_scores", compare_scores),
    ("predict_after_limit", predict_after_limit),
    ("place_predictions", place_predictions),
    ("constant_conditions", constant_conditions),
    ("common_subplans", common_subplans),
    ("prune_columns", prune_columns),
)

#: So many of them leave joins in place of subqueries.
_FIRST_RULES = 4

#: Rules without which a plan cannot be executed; these cannot be switched off.
REQUIRED = frozenset(
    {"expand_asof_joins", "inline_ctes", "unnest_subqueries", "group_by_order_keys", "prune_columns"}
)

#: Rules for plans with calls of models, and with columns of some types, which others need not wait for.
_OF_TYPES = {TypeKind.STRUCT: "fields_of_structs", TypeKind.INTERVAL: "extremes_of_differences"}
_OF_MODELS = frozenset(
    "ignore_unread_inputs restrict_models compare_scores predict_after_limit place_predictions".split()
)


def without_subqueries(plan: LogicalPlan, context: OptimizerContext) -> LogicalPlan:
    """What the first rules make of a bound plan: joins only. To be optimized with a context of its own."""
    schema = plan.schema
    context.avoid(walk_plan(plan, into_subqueries=True))
    for name, rule in RULES[:_FIRST_RULES]:
        if name not in context.disabled_rules:
            context.rewritten.clear()
            plan = restore_schema(rule(plan, context), schema)
    return plan


def optimize(plan: LogicalPlan, context: OptimizerContext | None = None) -> LogicalPlan:
    """Apply every rule that is on, in order.

    Raises UnsupportedError for a correlated subquery that cannot be unnested, AssertionError (with the rule's name)
    for a plan that a rule broke.
    """
    context = context or OptimizerContext()
    schema = plan.schema
    stages = [("binder", plan)]  # what made each plan
    nodes = list(walk_plan(plan, into_subqueries=True))
    context.avoid(nodes)
    unneeded = frozenset[str]() if any(node.scorings for node in nodes) else _OF_MODELS
    kinds = {field.data_type.kind for node in nodes for field in node.created_fields}
    unneeded |= {name for kind, name in _OF_TYPES.items() if kind not in kinds}
    try:
        for name, rule in RULES:
            if name in context.disabled_rules and name not in REQUIRED:
                continue
            if name in unneeded:
                continue
            context.rewritten.clear()
            changed = rule(plan, context)
            if changed is not plan:
                plan = restore_schema(changed, schema)
                stages.append((name, plan))
        _verify(stages[-1:], schema)
    except Exception:
        _verify(stages, schema)  # an earlier one may be to blame
        raise
    return plan


def _verify(stages: Sequence[tuple[str, LogicalPlan]], schema: Schema) -> None:
    """Raise AssertionError for the first plan that is not well formed or has other columns."""
    verifier = PlanVerifier()
    before_unnesting = {"binder", *(name for name, _ in RULES[: _FIRST_RULES - 1])}
    for name, plan in stages:
        verifier.allow_subqueries = name in before_unnesting
        verifier.verify(plan, name)
        verifier.verify_schema(plan, schema, name)
