"""Functions that are short for an expression of others, as DuckDB has them: each is bound as that expression."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import (
    BIGINT,
    BOOLEAN,
    INTERVAL,
    NULL,
    UBIGINT,
    VARCHAR,
    TypeKind,
    list_of,
    struct,
)
from tqp.core.dialect import VERSION
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.core.names import DATABASE, MAIN, TEMPORARY
from tqp.planner.algebra.expressions import (
    FALSE,
    Call,
    Case,
    Expression,
    Literal,
    conjunction,
    is_null_literal,
)
from tqp.planner.binder.expressions.aggregates.several_values import of_single_values
from tqp.planner.binder.expressions.coercion import as_text, cast_to, compare
from tqp.planner.binder.expressions.forms.forms import Forms, Nodes, call_of
from tqp.planner.binder.expressions.nested.lambdas import parameter_of
from tqp.planner.binder.expressions.nested.parts import field_of
from tqp.planner.binder.expressions.nested.values import concatenated, list_of_values
from tqp.planner.binder.expressions.operators import apply
from tqp.planner.catalog_protocol import Catalog
from tqp.planner.functions.constant_folding import fold
from tqp.planner.parse import Span

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder


#: What the words say that are functions with parentheses and without, unless there is such a column.
SESSION_WORDS: Mapping[str, Callable[[Catalog], str]] = {
    "current_schema": lambda catalog: catalog.search_path()[0],
    "current_catalog": lambda _: DATABASE,
    **dict.fromkeys(("user", "current_user", "session_user", "current_role"), lambda _: "duckdb"),
}


def _chain(names: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """The functions one around the other, the outermost first."""
    *outer, innermost = names.split()
    call = call_of(innermost, *nodes)
    for name in reversed(outer):
        call = call_of(name, call)
    return binder.bind_flexible(call)


def _constant(text: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    return Literal(text, VARCHAR)


def _of_session(
    tell: Callable[[Catalog], str], binder: ExpressionBinder, nodes: Nodes, span: Span | None
) -> Expression:
    return Literal(tell(binder.context.catalog), VARCHAR)


def _current_schemas(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """current_schemas(true): the schemas that were set, and, if that is wanted, those that are searched besides."""
    wanted = fold(cast_to(binder.bind_flexible(nodes[0]), BOOLEAN, span))
    if not isinstance(wanted, Literal):
        raise BindError("current_schemas() takes a constant", span)
    path = binder.context.catalog.search_path()
    of_user = () if tuple(path) == (MAIN,) else tuple(path)
    names = (MAIN, *of_user, MAIN, MAIN, "pg_catalog") if wanted.value else of_user
    if wanted.value is None or not names:
        return Literal(None if wanted.value is None else (), list_of(VARCHAR))
    return list_of_values([Literal(name, VARCHAR) for name in names], span)


def _transaction(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """txid_current(): a number that all of a transaction has, and no later one: when it began."""
    return Literal(binder.context.catalog.query_time(), UBIGINT)


def _current_query(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """current_query(): the text that asks."""
    binder.context.catalog.never_kept()
    return Literal(binder.context.query, VARCHAR)


def _alias(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """alias(column): its name, or that of a lambda's parameter."""
    node = nodes[0].unnest()
    if isinstance(node, exp.Column | exp.Identifier) and parameter_of(binder, node.name) is not None:
        return Literal(node.name, VARCHAR)
    if not isinstance(node, exp.Column) or not binder.scope.has_column(node.name, node.table or None):
        raise UnsupportedError("alias() of what is no column is not supported", span)
    binder.bind(node)
    return Literal(binder.scope.display_name(node.name, node.table or None), VARCHAR)


def _in_search_path(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """in_search_path(database, schema): NULL where one is."""
    database, schema = (as_text(binder.bind(node), span) for node in nodes)
    searched = dict.fromkeys((*binder.context.catalog.search_path(), MAIN))
    found = []
    for names in ((TEMPORARY, MAIN), *((DATABASE, each) for each in searched)):
        is_database, is_schema = (
            compare("equal", given, Literal(name, VARCHAR), span)
            for given, name in zip((database, schema), names, strict=True)
        )
        found.append(conjunction((is_database, is_schema)))
    nothing = Call("or", tuple(Call("is_null", (name,), BOOLEAN) for name in (database, schema)), BOOLEAN)
    return Case(((nothing, Literal(None, BOOLEAN)),), Call("or", tuple(found), BOOLEAN), BOOLEAN)


def _fmod(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """fmod(x, y): x - y * floor(x / y)."""
    dividend, divisor = (binder.bind_flexible(node) for node in nodes)
    quotient = apply("/", (dividend, divisor), span, "fmod(), with its /,")
    whole = apply("floor", (quotient,), span, "fmod()")
    product = apply("multiply", (divisor, whole), span, "fmod(), with its *,")
    return apply("subtract", (dividend, product), span, "fmod(), with its -,")


def _fdiv(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """fdiv(x, y): floor(x / y)."""
    quotient = apply("/", [binder.bind_flexible(node) for node in nodes], span, "fdiv(), with its /,")
    return apply("floor", (quotient,), span, "fdiv()")


def _ago(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """ago(i): now() - i."""
    width = cast_to(binder.bind_flexible(nodes[0]), INTERVAL, span)
    return apply("subtract", (binder.bind(call_of("now")), width), span, "ago(), with its -,")


def _make_date(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """make_date(year, month, day), of the number of a day, or of a struct of the three."""
    values = [binder.bind_flexible(node) for node in nodes]
    if len(values) > 1 or values[0].data_type.kind is not TypeKind.STRUCT:
        return apply("make_date", values, span, "make_date()")
    parts = ("year", "month", "day")
    if len(values[0].data_type.children) != len(parts):
        raise BindError(f"make_date() takes a struct of year, month and day, not {values[0].data_type}", span)
    date = cast_to(values[0], struct(dict.fromkeys(parts, BIGINT)), span)
    return apply("make_date", [field_of(date, name, span) for name in parts], span, "make_date()")


def _geometric_mean(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """geomean(x): exp(avg(ln(x)))."""
    return _chain("exp avg ln", binder, nodes, span)


def _weighted_average(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """weighted_avg(x, w): the sum of x * w by the sum of the weights of values that are not NULL."""
    value, weight = nodes
    is_there = exp.Is(this=value, expression=exp.Null(), negate=True)
    weights = exp.Case(ifs=[exp.If(this=is_there, true=weight)], default=exp.Literal.number(0))
    product = exp.Mul(this=value, expression=weight.copy())
    return binder.bind_flexible(exp.Div(this=call_of("sum", product), expression=call_of("sum", weights)))


def _negated(name: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    return binder.bind_flexible(exp.Not(this=call_of(name, *nodes)))


def _of_path(name: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """parse_filename() and its kin: an option that is NULL says nothing."""
    path, *options = (binder.bind_flexible(node) for node in nodes)
    options = [as_text(each, span) if each.data_type.is_enum else each for each in options]
    for place, option in enumerate(options):
        is_trimmed = option.data_type == BOOLEAN or (option.data_type == NULL and place + 1 < len(options))
        default = FALSE if is_trimmed else Literal("both_slash", VARCHAR)
        is_null = is_null_literal(option)
        if option.data_type == NULL or (is_null and option.data_type == default.data_type):
            options[place] = default
        elif not isinstance(option, Literal) and option.data_type == default.data_type:
            options[place] = Call("coalesce", (option, default), option.data_type, span)
    return apply(name, (path, *options), span, f"{name}()")


#: Of an option of parse_path(): what separates the parts, as a regular expression has it; of any other, both.
_SEPARATORS = {"forward_slash": "/", "system": "/", "backslash": "\\\\"}


def _parse_path(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """parse_path(p): what stands between separators, and before it the one that the path begins with."""
    path = binder.bind_flexible(nodes[0])
    option = binder.bind(nodes[1]) if nodes[1:] else Literal(None, NULL)
    option = as_text(option, span) if option.data_type.is_enum else option
    if option.data_type not in (VARCHAR, NULL):
        raise BindError(f"the separator of parse_path() is a text, not {option.data_type}", span)
    if not isinstance(option, Literal):
        raise UnsupportedError("parse_path() by a separator that is no constant is not supported", span)
    separator = _SEPARATORS.get(str(option.value), "/\\\\")

    def found(pattern: str) -> Expression:
        arguments = (path, Literal(pattern, VARCHAR))
        return apply("regexp_extract_all", arguments, span, "parse_path()")

    return concatenated(found(f"^[{separator}]"), found(f"[^{separator}]+"), span)


def _subscripts(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """generate_subscripts(l, 1): a row for each place of the list."""
    value, dimension = nodes
    if not isinstance(dimension, exp.Literal) or dimension.this != "1":
        raise UnsupportedError("generate_subscripts() of another dimension than 1 is not supported", span)
    places = call_of("generate_series", exp.Literal.number(1), call_of("len", value.copy()))
    return binder.bind(call_of("unnest", places))


def _split_to_rows(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """regexp_split_to_table(text, pattern): a row for each piece."""
    return binder.bind(call_of("unnest", call_of("regexp_split_to_array", *nodes)))


def _top_k(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """approx_top_k(x, k), exactly."""
    listed = of_single_values(call_of("approx_top_k", *nodes))
    if listed is None:
        raise BindError("approx_top_k() takes values and how many of them are wanted", span)
    return binder.bind(listed)


def _switch(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """switch(value, cases, default), where a map says which value has which result; without a value its keys are conditions."""
    has_value = len(nodes) == 3 or _entries(nodes[0]) is None
    entries = _entries(nodes[has_value]) if len(nodes) > has_value else None
    if entries is None or any(part.find(exp.Column, exp.Query) for entry in entries for part in entry):
        raise BindError("switch() takes a map of constants, MAP {1: 'a', ...}, for its cases", span)
    keys = [key for key, _ in entries]
    if not keys or any(isinstance(key, exp.Null) for key in keys) or len(set(keys)) < len(keys):
        raise BindError("the map of switch() has keys, each of which is there once and is not NULL", span)
    value = nodes[0] if has_value else None
    branches = [exp.If(this=key, true=result) for key, result in entries]
    return binder.bind_flexible(
        exp.Case(this=value, ifs=branches, default=(*nodes[has_value + 1 :], None)[0])
    )


def _entries(node: exp.Expr) -> list[tuple[exp.Expr, exp.Expr]] | None:
    """Keys and values of a map that is written out."""
    if not isinstance(node, exp.Anonymous) or lower_ascii(node.name) != "map":
        return None
    if not node.expressions:
        return []
    lists = [part.unnest() for part in node.expressions]
    if len(lists) != 2 or not all(isinstance(part, exp.Array) for part in lists):
        return None
    return list(zip(*(part.expressions for part in lists), strict=False))


SHORT_FORMS: Forms = {
    "switch": (_switch, 1, 3),
    "approx_top_k": (_top_k, 1, 2),
    "generate_subscripts": (_subscripts, 2, 2),
    "regexp_split_to_table": (_split_to_rows, 2, 2),
    "parse_path": (_parse_path, 1, 2),
    "fmod": (_fmod, 2, 2),
    "fdiv": (_fdiv, 2, 2),
    "ago": (_ago, 1, 1),
    "days_in_month": (partial(_chain, "day last_day"), 1, 1),
    "pg_typeof": (partial(_chain, "lower typeof"), 1, 1),
    "pg_size_pretty": (partial(_chain, "format_bytes"), 1, 1),
    "parse_filename": (partial(_of_path, "parse_filename"), 1, 3),
    **{name: (partial(_of_path, name), 1, 2) for name in ("parse_dirname", "parse_dirpath")},
    "not_like_escape": (partial(_negated, "like_escape"), 3, 3),
    "not_ilike_escape": (partial(_negated, "ilike_escape"), 3, 3),
    "make_date": (_make_date, 1, 3),
    "geomean": (_geometric_mean, 1, 1),
    "geometric_mean": (_geometric_mean, 1, 1),
    "weighted_avg": (_weighted_average, 2, 2),
    "wavg": (_weighted_average, 2, 2),
    "version": (partial(_constant, VERSION), 0, 0),
    "txid_current": (_transaction, 0, 0),
    "current_query": (_current_query, 0, 0),
    "alias": (_alias, 1, 1),
    "in_search_path": (_in_search_path, 2, 2),
    "current_schemas": (_current_schemas, 1, 1),
    "current_database": (partial(_constant, DATABASE), 0, 0),
    **{word: (partial(_of_session, tell), 0, 0) for word, tell in SESSION_WORDS.items()},
}
