"""Every pair of operators binds as in DuckDB: a query is parsed to the same tree as DuckDB's name of it, which has all parentheses."""

from __future__ import annotations

import itertools

import duckdb
import pytest
from sqlglot import exp

from tqp.core.errors import UnsupportedError
from tqp.planner.parse import parse

BETWEEN_OPERANDS = """
    + - * / // % ^ ** & | << >> || <-> ^@ && = == <> < >= AND OR LIKE ILIKE ~~ NOT_LIKE IS_DISTINCT_FROM
    IS_NOT_DISTINCT_FROM
    """.split()
BEFORE = ["-", "~", "NOT"]
BEHIND = ["IS NULL", "IS NOT NULL", "NOTNULL", "::INT", "IN (1)", "NOT IN (1)", "BETWEEN 1 AND 2", "[1]"]


def tree(expression: str) -> exp.Expr:
    """The tree without parentheses, negations and types written in one way."""
    root = parse(f"SELECT {expression}").tree
    for node in list(root.walk()):
        match node:
            case exp.Paren():
                node.replace(node.this)
            case exp.Is() | exp.Like() | exp.ILike() if node.args.get("negate"):
                node.replace(exp.Not(this=type(node)(this=node.this, expression=node.expression)))
            case exp.Cast():
                node.set("to", exp.DataType.build("INT"))
    return root


def expressions(first: str) -> list[str]:
    """Those in which `first` meets another operator."""
    found = [f"a {first} b {second} c" for second in BETWEEN_OPERANDS]
    found += [f"{other} a {first} b" for other in BEFORE] + [f"a {first} {other} b" for other in BEFORE]
    found += [f"a {first} b {other}" for other in BEHIND] + [f"a {other} {first} b" for other in BEHIND]
    found += [f"a BETWEEN b {first} c AND d", f"a BETWEEN b AND c {first} d"]
    return found


ROWS = {sign: expressions(sign) for sign in BETWEEN_OPERANDS} | {
    "around": [f"{first} a {second}" for first, second in itertools.product(BEFORE, BEHIND)],
    "before": [f"{first} {second} a" for first, second in itertools.product(BEFORE, BEFORE)],
    "behind": [f"a {first} {second}" for first, second in itertools.product(BEHIND, BEHIND)],
}


@pytest.mark.parametrize("sign", ROWS)
def test_operators_bind_as_in_duckdb(sign: str) -> None:
    compared = 0
    for expression in ROWS[sign]:
        expression = expression.replace("_", " ")
        try:
            name = duckdb.SQLExpression(expression).get_name()
        except duckdb.Error:
            continue
        try:
            found = tree(expression)
        except UnsupportedError:
            continue
        assert found == tree(name), (expression, name)
        compared += 1
    assert compared > 5
