"""Output column names: an unnamed expression is called by its text, written the way DuckDB writes it."""

from __future__ import annotations

from sqlglot import exp

from tqp.planner.binder.context import BindContext


def output_name(context: BindContext, node: exp.Expr | None) -> str:
    if isinstance(node, exp.Column):
        return node.name
    return node.sql("duckdb") if node is not None else ""
