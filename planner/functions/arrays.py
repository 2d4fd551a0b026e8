"""Functions of arrays: how near two vectors are; and the codes that stand for the categories of a model's input."""

from __future__ import annotations

from tqp.planner.functions.declaration import NullRule, ScalarFunction, scalar


def _of_pairs(names: str) -> ScalarFunction:
    return scalar(names, "ARRAY ARRAY -> similarity", null=NullRule.PROPAGATES)


ARRAYS = (
    _of_pairs("array_cosine_similarity"),
    _of_pairs("array_cosine_distance"),
    _of_pairs("array_inner_product array_dot_product"),
    _of_pairs("array_negative_inner_product array_negative_dot_product"),
    _of_pairs("array_distance"),
    scalar("array_value", is_call=True, null=NullRule.REFUSES),
    scalar("category_code"),
)
