"""DESCRIBE, SHOW, SUMMARIZE and pragma_table_info() in FROM: what the columns of a query are, and what is in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from tqp.core.arguments import unique_names
from tqp.core.datatypes import BOOLEAN, INTEGER, VARCHAR, DataType, TypeKind
from tqp.core.definitions import ColumnDefinition, TableDefinition
from tqp.core.errors import BindError, Error
from tqp.core.keywords import in_quotes, in_quotes_joined, lower_ascii, quoted_text
from tqp.core.names import DATABASE, MAIN, TEMPORARY
from tqp.planner.algebra.expressions import Literal, Value
from tqp.planner.algebra.logical_plan import Values
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.from_clause.constant_arguments import constant_text
from tqp.planner.binder.scope import Scope
from tqp.planner.binder.select.output import BoundQuery
from tqp.planner.parse import Span, parse, span_of, without_parentheses
from tqp.planner.syntax.description_parser import Kind

#: Functions that tell of the table whose name they are given.
TABLE_DESCRIPTIONS = ("pragma_table_info", "pragma_show")
_TABLE_INFO = {
    "cid": INTEGER,
    "name": VARCHAR,
    "type": VARCHAR,
    "notnull": BOOLEAN,
    "dflt_value": VARCHAR,
    "pk": BOOLEAN,
}
_DESCRIPTION = ("column_name", "column_type", "null", "key", "default", "extra")
#: What SUMMARIZE calls the rows that it reads.
_ALL = '"%all"'
_TABLES, _BY_NAME = (
    "SELECT table_name AS name FROM information_schema.tables WHERE",
    "ORDER BY lower(name), name",
)
_LISTS: dict[Kind, str] = {
    Kind.TABLES: f"{_TABLES} in_search_path(table_catalog, table_schema) {_BY_NAME}",
    Kind.ALL_TABLES: """
        SELECT
            database_name AS database, schema_name AS schema, table_name AS name,
            list(column_name ORDER BY column_index) AS column_names,
            list(data_type ORDER BY column_index) AS column_types,
            database_name = 'temp' AS temporary
        FROM duckdb_columns()
        GROUP BY ALL ORDER BY ALL
    """,
    Kind.DATABASES: "SELECT current_database() AS database_name",
    Kind.VARIABLES: "SELECT name, value, type FROM duckdb_variables() ORDER BY name",
    Kind.SCHEMAS: """
        SELECT database_name, schema_name, schema_name = current_schema() AS current
        FROM duckdb_schemas() WHERE database_name = current_database() AND (NOT internal OR schema_name = 'main')
        ORDER BY ALL
    """,
}


def bind_description(context: BindContext, node: exp.Describe, siblings: Scope) -> BoundQuery:
    """The rows that tell of the query in the node, which is bound and not run, or run by SUMMARIZE alone."""
    kind: Kind = node.args["kind"]
    if node.expressions:
        names = [each.name for each in node.expressions]
        [*_, schema] = context.catalog.schemas_named(names, span_of(node))
        database, schema = (TEMPORARY, MAIN) if schema == TEMPORARY else (DATABASE, schema)
        text = f"{_TABLES} table_catalog = {quoted_text(database)}"
        if lower_ascii(names[0]) != database or len(names) > 1:
            text += f" AND lower(table_schema) = {quoted_text(schema)}"
        return context.bind_query.bind_exact(parse(f"{text} {_BY_NAME}").tree, siblings)
    if kind in _LISTS:
        return context.bind_query.bind_exact(parse(_LISTS[kind]).tree, siblings)
    if kind is Kind.SUMMARY:
        summary = _summary(node.this, _columns(context, node.this, siblings))
        return context.bind_query.bind_exact(summary, siblings)
    try:
        return _described(context, node.this, siblings)
    except BindError:
        setting = _setting(context, node.this)
        if setting is None:
            raise
        return setting


def _setting(context: BindContext, query: exp.Expr) -> BoundQuery | None:
    """The value of the setting that is named where a table would be."""
    table = query.args["from_"].this if isinstance(query, exp.Select) and query.args.get("from_") else None
    if not isinstance(table, exp.Table) or not table.name or len(table.parts) > 1:
        return None
    text = f"SELECT current_setting({quoted_text(table.name)}) AS {in_quotes(table.name)}"
    try:
        return context.bind_query.bind_exact(parse(text).tree, Scope())
    except Error:
        return None


def bind_table_description(context: BindContext, call: exp.Anonymous, span: Span | None) -> BoundQuery:
    """pragma_table_info('t') and pragma_show('t') of a table or view, whose name may also stand there without quotes."""
    name = lower_ascii(call.name)
    if len(call.expressions) != 1:
        raise BindError(f"{name}() takes the name of a table", span)
    [node] = call.expressions
    if isinstance(node, exp.Column):
        named = ".".join(part.name for part in node.parts)
    else:
        named = constant_text(context, node, name, "the name of a table as text")
    try:
        query = parse(f"FROM {'.'.join(map(in_quotes, named.split('.')))}").tree
        if name == "pragma_show":
            return _described(context, query, Scope())
        columns, definition = _defined_columns(context, query, Scope())
    except Error as error:
        raise type(error)(error.message, span) from None
    rows = [
        (place, each.name, type_name(each.data_type), not each.nullable, each.default)
        + (_key(definition, each.name) == "PRI",)
        for place, each in enumerate(columns)
    ]
    return _table(context, _TABLE_INFO, rows)


def bind_summary_function(
    context: BindContext, call: exp.Anonymous, siblings: Scope, span: Span | None
) -> BoundQuery:
    """summary((query)): the rows of a query, each behind the text of all its values."""
    if len(call.expressions) != 1 or not isinstance(call.expressions[0], exp.Subquery):
        raise BindError("summary() takes a query in parentheses", span)
    query = call.expressions[0]
    texts = [
        f"coalesce(CAST({in_quotes(column.name)} AS VARCHAR), 'NULL')"
        for column in _columns(context, query.this.copy(), siblings)
    ]
    text = " || ', ' || ".join(texts)
    summary = parse(f"SELECT '[' || {text} || ']' AS summary, * FROM t").tree
    assert isinstance(summary, exp.Select)
    summary.args["from_"].set("this", exp.Subquery(this=query.this))
    return context.bind_query.bind_exact(summary, siblings)


def _described(context: BindContext, query: exp.Expr, siblings: Scope) -> BoundQuery:
    """A row for each column of a query, as DESCRIBE has it."""
    columns, definition = _defined_columns(context, query, siblings)
    rows = [
        (each.name, type_name(each.data_type), "YES" if each.nullable else "NO", _key(definition, each.name))
        + (each.default, None)
        for each in columns
    ]
    return _table(context, dict.fromkeys(_DESCRIPTION, VARCHAR), rows)


def _defined_columns(
    context: BindContext, query: exp.Expr, siblings: Scope
) -> tuple[Sequence[ColumnDefinition], TableDefinition | None]:
    """The columns of a query, as a statement has made them where it is all of a table."""
    columns = _columns(context, query, siblings)
    definition = _definition(context, query, siblings)
    return (columns, None) if definition is None else (definition.all_columns, definition)


def _columns(context: BindContext, query: exp.Expr, siblings: Scope) -> list[ColumnDefinition]:
    return [
        ColumnDefinition(column.name, column.field().data_type)
        for column in context.bind_query.bind_exact(query, siblings).columns
    ]


def _table(
    context: BindContext, types: Mapping[str, DataType], rows: Sequence[Sequence[Value]]
) -> BoundQuery:
    """Rows of constants."""
    fields = tuple(context.new_field(name, data_type) for name, data_type in types.items())
    values = tuple(tuple(map(Literal, row, types.values())) for row in rows)
    return BoundQuery.exact(Values(values, fields), tuple(types))


def _definition(context: BindContext, query: exp.Expr, siblings: Scope) -> TableDefinition | None:
    """How the table was made of which the query is all, if it was made by a statement."""
    query = without_parentheses(query)
    if not isinstance(query, exp.Select) or query.args.get("from_") is None:
        return None
    table: exp.Expr = query.args["from_"].this
    is_all = isinstance(table, exp.Table) and all(
        isinstance(each, exp.Star) and not any(each.args.values()) for each in query.expressions
    )
    if not is_all or query.args.get("joins") or table.args.get("joins"):
        return None
    assert isinstance(table, exp.Table)
    if not isinstance(table.this, exp.Identifier):
        return None
    name = lower_ascii(table.name)
    qualifiers = [table.args[part].name for part in ("catalog", "db") if table.args.get(part) is not None]
    if not qualifiers and (name in siblings.ctes or name in context.inputs):
        return None
    catalog = context.catalog
    return catalog.lookup_definition(name, catalog.schemas_named(qualifiers, None))


def _key(definition: TableDefinition | None, name: str) -> str | None:
    for key in () if definition is None else definition.keys:
        if name in key.columns:
            return "PRI" if key.is_primary else "UNI"
    return None


def type_name(data_type: DataType) -> str:
    """The type as DuckDB names it where it describes a column."""
    return '"NULL"' if data_type.kind is TypeKind.NULL else str(data_type)


def _summary(query: exp.Expr, columns: Sequence[ColumnDefinition]) -> exp.Expr:
    """The query for a row of each column."""
    aliases = unique_names([each.name for each in columns])
    rows = (
        _summary_row(each.name, in_quotes(alias), each.data_type)
        for each, alias in zip(columns, aliases, strict=True)
    )
    text = f"WITH {_ALL}({in_quotes_joined(aliases)}) AS (SELECT 1) {' UNION ALL '.join(rows)}"
    tree = parse(text).tree
    [table] = tree.args["with_"].expressions
    table.set("this", query)
    return tree


def _summary_row(name: str, column: str, data_type: DataType) -> str:
    """Quantiles are of all values, and the number of distinct ones is exact."""
    kind = data_type.kind
    is_date = data_type.is_timestamp or kind in (TypeKind.DATE, TypeKind.TIME)
    of = f"CAST({column} AS DOUBLE)" if kind in (TypeKind.FLOAT, TypeKind.UHUGEINT) else column
    values = {
        "min": f"CAST(min({column}) AS VARCHAR)",
        "max": f"CAST(max({column}) AS VARCHAR)",
        "approx_unique": f"count(DISTINCT {column})",
        "avg": _text(f"avg({column})", data_type.is_numeric or is_date or kind is TypeKind.TIME_TZ),
        "std": _text(f"stddev({column})", data_type.is_numeric),
    }
    for percent in (25, 50, 75):
        quantile = f"approx_quantile({of}, {percent / 100})"
        values[f"q{percent}"] = _text(quantile, data_type.is_numeric or is_date)
    values["count"] = "count(*)"
    missing = f"100.0 * (count(*) - count({column})) / nullif(count(*), 0)"
    values["null_percentage"] = f"CAST({missing} AS DECIMAL(9, 2))"
    described = {"column_name": quoted_text(name), "column_type": quoted_text(type_name(data_type))}
    items = (f"{value} AS {in_quotes(key)}" for key, value in {**described, **values}.items())
    return f"SELECT {', '.join(items)} FROM {_ALL}"


def _text(expression: str, there_is: bool) -> str:
    return f"CAST({expression} AS VARCHAR)" if there_is else "NULL"
