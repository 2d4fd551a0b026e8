"""Arguments with which any aggregate can be called: a column, and what else its declaration asks for."""

from __future__ import annotations

from tqp.core.datatypes import DataType, TypeKind
from tqp.planner.functions.registry import aggregate_overloads


def aggregate_arguments(name: str, number: str, boolean: str) -> str:
    """The arguments of a call, of a column of numbers or of booleans; a fraction or bounds where these are asked for."""
    overloads = aggregate_overloads(name)
    assert overloads
    parameters = overloads[0].parameters
    if not parameters:
        return ""
    first = boolean if parameters[0] == DataType(TypeKind.BOOLEAN) else number
    if "quantile" in name:
        return f"{first}, 0.25"
    if name == "bitstring_agg":
        return f"{first}, 0, 9"
    if name == "histogram_exact":
        return f"{first}, [{number}]"
    return ", ".join([first, *[number] * (len(parameters) - 1)])
