"""Functions that DuckDB defines as macros: assert_true(), and what programs ask a Postgres database about its catalog."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.planner.algebra.expressions import Expression
from tqp.planner.binder.expressions.forms.forms import Form, Forms, Nodes, filled
from tqp.planner.parse import Span, parse, without_places

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder

#: How Postgres calls the types that it has, too.
_PG_TYPES = """
CASE upper(logical_type) WHEN 'FLOAT' THEN 'float4' WHEN 'DOUBLE' THEN 'float8' WHEN 'DECIMAL' THEN 'numeric' WHEN 'ENUM' THEN
lower(type_name) WHEN 'BLOB' THEN 'bytea' WHEN 'TIMESTAMP WITH TIME ZONE' THEN 'timestamptz' WHEN 'TIME WITH TIME ZONE' THEN 'timetz'
WHEN 'SMALLINT' THEN 'int2' WHEN 'INTEGER' THEN 'int4' WHEN 'BIGINT' THEN 'int8' WHEN 'BOOLEAN' THEN 'bool' ELSE lower(logical_type) END
"""
#: A name, the parameters of each of its forms, and the expression that it stands for.
_MACROS: Sequence[tuple[str, Sequence[str], str]] = (
    (
        "assert_true",
        ("condition message",),
        "CASE WHEN condition THEN NULL ELSE error(coalesce('Assertion: ' || message, 'Assertion failed')) END",
    ),
    ("assert_true", ("condition",), "CASE WHEN condition THEN NULL ELSE error('Assertion failed') END"),
    ("format_pg_type", ("logical_type type_name",), _PG_TYPES),
    (
        "format_type",
        ("type_oid typemod",),
        """(SELECT format_pg_type(logical_type, type_name) FROM duckdb_types() AS t WHERE t.type_oid = type_oid)
        || CASE WHEN typemod > 0 THEN concat('(', typemod // 1000, ',', typemod % 1000, ')') ELSE '' END""",
    ),
    ("pg_get_expr", ("pg_node_tree relation_oid",), "pg_node_tree"),
    *((f"{name}_description", ("a b",), "NULL") for name in ("col", "obj", "shobj")),
    *((f"inet_{name}", ("",), "NULL") for name in "client_addr client_port server_addr server_port".split()),
    *((f"pg_{name}_time", ("",), "current_timestamp") for name in ("conf_load", "postmaster_start")),
    ("pg_my_temp_schema", ("",), "0"),
    ("pg_is_other_temp_schema", ("a",), "false"),
    ("pg_has_role", ("a b", "a b c"), "true"),
    *(
        (f"pg_{what}_is_visible", ("a",), "true")
        for what in """collation conversion function opclass operator opfamily table ts_config ts_dict ts_parser ts_template
        type""".split()
    ),
    *(
        (f"has_{what}_privilege", ("a b", "a b c"), "true")
        for what in """any_column database foreign_data_wrapper function language schema sequence server table
        tablespace""".split()
    ),
    ("has_column_privilege", ("a b c", "a b c d"), "true"),
)


def _forms() -> Forms:
    by_name: dict[str, dict[int, tuple[tuple[str, ...], str]]] = {}
    for name, forms, text in _MACROS:
        for parameters in forms:
            names = tuple(parameters.split())
            by_name.setdefault(name, {})[len(names)] = names, text
    return {name: _form(forms) for name, forms in by_name.items()}


def _form(forms: Mapping[int, tuple[tuple[str, ...], str]]) -> Form:
    return partial(_expanded, forms), min(forms), max(forms)


def _expanded(
    forms: Mapping[int, tuple[tuple[str, ...], str]],
    binder: ExpressionBinder,
    nodes: Nodes,
    span: Span | None,
) -> Expression:
    names, text = forms[len(nodes)]
    body = filled(_expression(text).copy(), dict(zip(names, nodes, strict=True)), is_table=False)
    return binder.bind_flexible(body)


@lru_cache(maxsize=len(_MACROS))
def _expression(text: str) -> exp.Expr:
    return without_places(exp.Paren(this=parse(f"SELECT {text}").tree.expressions[0].unalias().copy()))


POSTGRES_FORMS = _forms()
