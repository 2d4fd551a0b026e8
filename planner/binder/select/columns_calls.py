"""COLUMNS(...): an expression for each column whose name is meant; `* LIKE 'a%'`; and `*COLUMNS(...)`, arguments in a row."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from sqlglot import exp

from tqp.core.datatypes import TypeKind
from tqp.core.errors import BindError, ExecutionError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.core.names import DATABASE, TEMPORARY
from tqp.core.patterns import fills_pattern, groups_of_match, like_expression, like_of_glob
from tqp.planner.algebra.expressions import Expression, Literal
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.nested.lambdas import refuse_arrow
from tqp.planner.binder.expressions.scalars import ExpressionBinder
from tqp.planner.binder.scope import Scope
from tqp.planner.binder.select.output import Item
from tqp.planner.binder.select.stars import star_items, star_of
from tqp.planner.functions.constant_folding import fold
from tqp.planner.parse import Span, head_span, span_of
from tqp.planner.syntax.parser import is_columns_call, is_unpacked

_PATTERNS = (exp.Like, exp.ILike, exp.SimilarTo, exp.Glob)


class UnknownNamesError(UnsupportedError):
    """Which columns COLUMNS(`argument`) means, a query tells: of names that stand where the argument has a star, or a lambda its name."""

    def __init__(
        self, argument: exp.Expr, query: exp.Expr, names: tuple[str, ...], span: Span | None
    ) -> None:
        super().__init__("this argument of COLUMNS is not supported here", span)
        self.argument, self.query, self.names = argument, query, names


@dataclass(frozen=True, slots=True)
class _Chosen:
    """A column that is meant: the name it goes by, an expression of it, and what `\\0`, `\\1` stand for in an alias."""

    name: str
    node: exp.Expr
    groups: Sequence[str]


def expanded(context: BindContext, scope: Scope, node: exp.Expr, alias: str | None) -> list[Item] | None:
    """The items that an expression of SELECT or ORDER BY with COLUMNS(...) in it stands for; None if it has none."""
    calls = _calls(node) if _may_call(context) else []
    if not calls:
        return None
    node, calls = _unpacked(context, scope, node, calls)
    if not calls:
        return [Item(node, alias, alias, is_aliased=alias is not None)]
    items: list[Item] = []
    for tree, column in _copies(context, scope, node, calls):
        name = column.name if alias is None else _with_groups(alias, column.groups) or column.name
        items.append(Item(tree, name, name, is_aliased=alias is not None, is_of_columns=alias is None))
    return items


def expanded_condition(context: BindContext, scope: Scope, node: exp.Expr) -> exp.Expr:
    """A condition of WHERE, which with COLUMNS(...) in it holds where it holds for every column."""
    calls = _calls(node) if _may_call(context) else []
    if not calls:
        return node
    node, calls = _unpacked(context, scope, node, calls)
    if not calls:
        return node
    copies = [tree for tree, _ in _copies(context, scope, node, calls)]
    if not copies:
        raise BindError("COLUMNS(...) means none of the columns of FROM", span_of(node))
    condition = copies[0]
    for each in copies[1:]:
        condition = exp.And(this=condition, expression=each)
    return condition


def filtered_star(scope: Scope, node: exp.Expr, alias: str | None) -> list[Item] | None:
    """The columns of `* LIKE 'a%'`, and of ILIKE, SIMILAR TO and GLOB; None for anything else.

    In an alias `\\0` is the name of the column, and `\\1` a group of the expression behind SIMILAR TO.
    """
    node = node.unnest()
    star = node.this if isinstance(node, exp.Column) else node
    if isinstance(star, exp.Star) and star.args.get("ilike"):
        pattern = star.args["ilike"]
        node, plain = node.copy(), star.copy()
        plain.set("ilike", None)
        star = exp.Column(this=plain, table=node.args.get("table")) if isinstance(node, exp.Column) else plain
        predicate: exp.Expr = exp.ILike(this=star, expression=pattern)
    else:
        inner = node
        while isinstance(inner, exp.Not | exp.Escape):
            inner = inner.this
        found = star_of(inner.this) if isinstance(inner, _PATTERNS) else None
        if found is None:
            return None
        star, predicate = found, node
    said = {name for part in star.find_all(exp.Star) for name, value in part.args.items() if value}
    for clause in ("replace", "rename"):
        if clause in said:
            raise BindError(f"* with {clause.upper()} takes no pattern", span_of(predicate))
    is_searched = isinstance(predicate, exp.SimilarTo) and "except_" not in said
    pattern = _written(predicate.expression) if is_searched else None
    items: list[Item] = []
    for item in star_items(scope, star):
        assert item.name is not None
        if pattern is not None:  # as in COLUMNS(pattern): somewhere in the name
            groups: Sequence[str] | None = groups_of_match(item.name, pattern)
        else:
            groups = _itself(item.name) if _matches(predicate, item.name, _written) else None
        if groups is not None:
            name = item.name if alias is None else _with_groups(alias, groups)
            items.append(item if alias is None else replace(item, name=name, alias=name, is_aliased=True))
    if not items:
        raise BindError("no column has a name that the pattern after * matches", span_of(predicate))
    return items


def _may_call(context: BindContext) -> bool:
    """Does the text hold the word? To look through the tree of every expression would take longer."""
    return "columns" in lower_ascii(context.query)


def _calls(node: exp.Expr) -> list[exp.Anonymous]:
    """The COLUMNS(...) of an expression, those of its subqueries not."""
    if isinstance(node, exp.Query):
        return []
    if isinstance(node, exp.Dot) and is_columns_call(node.expression):
        raise BindError("no dot stands before COLUMNS(...)", head_span(node.expression))
    if is_columns_call(node):
        argument = node.expressions[0]
        if _calls(argument):
            raise BindError("COLUMNS(...) must not stand inside COLUMNS(...)", span_of(argument))
        return [node]
    return [call for part in node.iter_expressions() for call in _calls(part)]


def _unpacked(
    context: BindContext, scope: Scope, node: exp.Expr, calls: Sequence[exp.Anonymous]
) -> tuple[exp.Expr, list[exp.Anonymous]]:
    """A copy in which `*COLUMNS(...)` are their columns, in a row, and the other calls in it."""
    if any(is_unpacked(call) for call in calls) and is_columns_call(node):
        raise BindError(
            "*COLUMNS(...) stands among arguments; COLUMNS(...) is items of SELECT", span_of(node)
        )
    node = node.copy()
    rest = []
    for call in _calls(node):
        if is_unpacked(call):
            columns = [column.node for column in _chosen(context, scope, call)]
            if len(columns) != 1 and call.arg_key != "expressions":
                raise BindError(
                    "*COLUMNS(...) of any but one column stands among arguments only", head_span(call)
                )
            call.replace(columns if call.arg_key == "expressions" else columns[0])
        else:
            rest.append(call)
    return node, rest


def _copies(
    context: BindContext, scope: Scope, node: exp.Expr, calls: Sequence[exp.Anonymous]
) -> Iterator[tuple[exp.Expr, _Chosen]]:
    """The expression once for each column, which stands in place of the calls."""
    for call in calls:
        if call != calls[0]:
            raise BindError("COLUMNS(...) of one expression must all be the same", head_span(call))
        if star_of(call.expressions[0]) is not None and _orders_window(call):
            raise BindError("a window cannot be ordered by ALL", head_span(call))
    for column in _chosen(context, scope, calls[0]):
        copied = node.copy()
        for call in _calls(copied):
            if call is copied:
                copied = column.node.copy()
            else:
                call.replace(column.node.copy())
        yield copied, column


def _orders_window(node: exp.Expr) -> bool:
    """Is it a key of OVER, whole? Of an aggregate's ORDER BY it may be."""
    key = node.parent
    while isinstance(key, exp.Paren):
        key = key.parent
    return isinstance(key, exp.Ordered) and isinstance(key.find_ancestor(exp.Func, exp.Window), exp.Window)


def _with_groups(alias: str, groups: Sequence[str]) -> str:
    return re.sub(r"\\(\d)", lambda found: "".join(groups[int(found[1]) :][:1]), alias)


def _chosen(context: BindContext, scope: Scope, call: exp.Anonymous) -> list[_Chosen]:
    """The columns that COLUMNS(...) means, in the order of FROM. Raises BindError if there are none."""
    argument = call.expressions[0]
    span = span_of(argument) or head_span(call)
    star = star_of(argument)
    refuse_arrow(argument, span)
    meant: Callable[
        [str], Sequence[str] | None
    ]  # by the name: what the groups of an alias are, None if not meant
    if star is not None:
        meant = _itself
    elif isinstance(argument, exp.Lambda):
        meant = _by_lambda(context, argument)
    elif argument.find(exp.Star, exp.Comprehension) or _is_computed_list(context, argument):
        raise _unknown(scope, argument, argument, span)
    elif isinstance(argument, exp.Array):
        meant = _listed(context, scope, argument.expressions)
    else:
        pattern = _text(context, argument)
        try:
            groups_of_match("", pattern)
        except ExecutionError as error:
            raise BindError(error.message, span) from None

        def meant(name: str) -> Sequence[str] | None:
            return groups_of_match(name, pattern)

    chosen = []
    for item in star_items(scope, star or exp.Star().update_positions(call)):
        assert item.name is not None
        try:
            groups = meant(item.name)
        except UnsupportedError:
            filtered = exp.Anonymous(this="list_filter", expressions=[exp.Star(), argument])
            raise _unknown(scope, argument, filtered, span) from None
        if groups is not None:
            chosen.append(_Chosen(item.name, _node_of(scope, item, call), groups))
    if not chosen and star is None:
        raise BindError("COLUMNS(...) means none of the columns of FROM", span)
    return chosen


def _unknown(scope: Scope, argument: exp.Expr, names: exp.Expr, span: Span | None) -> UnknownNamesError:
    known: list[str] = []

    def without_star(part: exp.Expr) -> exp.Expr:
        star = star_of(part)
        if star is None:
            return part
        found = [item.name for item in star_items(scope, star) if item.name is not None]
        known.extend(found)
        return exp.Array(expressions=[*map(exp.Literal.string, found)])

    made = exp.Anonymous(this="unnest", expressions=[names.transform(without_star, copy=True)])
    return UnknownNamesError(argument, exp.Select(expressions=[made]), tuple(known), span)


def _is_computed_list(context: BindContext, node: exp.Expr) -> bool:
    """Whether it is a list that a function makes of constants."""
    if not isinstance(node, exp.Anonymous) or node.find(exp.Column, exp.Query):
        return False
    return ExpressionBinder(context, Scope(), "COLUMNS").bind(node).data_type.kind is TypeKind.LIST


def _itself(name: str) -> Sequence[str]:
    return (name,)


def _node_of(scope: Scope, item: Item, call: exp.Anonymous) -> exp.Expr:
    """A column of a star as it may be written."""
    if item.node is not None:
        return exp.Paren(this=item.node.copy())
    assert item.column is not None
    owner = next((each for each in scope.relations if item.column in each.columns), None)
    parts = [owner.alias] if owner is not None and owner.alias else []
    if owner is not None and owner.schema is not None:
        is_shared = sum(each.is_named(owner.alias) for each in scope.relations) > 1
        if owner.schema != TEMPORARY and is_unpacked(call):
            parts = [DATABASE, owner.schema, owner.alias]  # as the name of what is called shows them
        elif is_shared:
            parts = [owner.schema, owner.alias]
    return exp.column(
        exp.to_identifier(item.column.name, quoted=True).update_positions(call),
        *[exp.to_identifier(part, quoted=True) for part in reversed(parts)],
    )


def _constant(context: BindContext, node: exp.Expr) -> Expression:
    """What an expression comes to that names no columns."""
    return fold(ExpressionBinder(context, Scope(), "COLUMNS").bind(node))


def _text(context: BindContext, node: exp.Expr) -> str:
    """A constant text."""
    value = None
    if node.find(exp.Column, exp.Query) is None:
        value = _constant(context, node)
    if not isinstance(value, Literal) or not isinstance(value.value, str):
        raise BindError(
            "COLUMNS takes *, a regular expression, a list of names or a lambda of a name", span_of(node)
        )
    return value.value


def _listed(
    context: BindContext, scope: Scope, nodes: Sequence[exp.Expr]
) -> Callable[[str], Sequence[str] | None]:
    names = {}
    for node in nodes:
        name = _text(context, node)
        if not scope.has_column(name, None):
            raise scope.unknown_column(name, None, span_of(node))
        names[lower_ascii(name)] = name
    return lambda name: (name,) if lower_ascii(name) in names else None


def _by_lambda(context: BindContext, node: exp.Lambda) -> Callable[[str], Sequence[str] | None]:
    names = [each.name for each in node.expressions]
    if len(names) != 1:
        raise BindError("the lambda in COLUMNS takes one name", span_of(node))
    parameter = lower_ascii(names[0])

    def is_parameter(part: exp.Expr) -> bool:
        return isinstance(part, exp.Identifier | exp.Column) and lower_ascii(part.name) == parameter

    def holds(part: exp.Expr, name: str) -> bool | None:
        part = part.unnest()
        if isinstance(part, exp.Not):
            inner = holds(part.this, name)
            return None if inner is None else not inner
        if isinstance(part, exp.And | exp.Or):
            sides = (holds(part.this, name), holds(part.expression, name))
            decisive = isinstance(part, exp.Or)
            return decisive if decisive in sides else None if None in sides else not decisive
        is_pattern = isinstance(part, (*_PATTERNS, exp.Escape)) and is_parameter(_subject(part))
        written = part.transform(
            lambda each: exp.Literal.string(name) if is_parameter(each) else each, copy=True
        )
        if is_pattern:
            return _matches(written, name, partial(_computed, context))
        value = _constant(context, written)
        if not isinstance(value, Literal):
            raise UnsupportedError("this lambda in COLUMNS is not supported", span_of(node))
        return None if value.value is None else bool(value.value)

    return lambda name: (name,) if holds(node.this, name) else None


def _subject(node: exp.Expr) -> exp.Expr:
    inner: exp.Expr = node.this if isinstance(node, exp.Escape) else node
    subject: exp.Expr = inner.this
    return subject


def _matches(node: exp.Expr, name: str, text_of: Callable[[exp.Expr], str | None]) -> bool | None:
    """Whether a name has the pattern that stands in the predicate, which may be negated; None for a NULL there."""
    if isinstance(node, exp.Not):
        inner = _matches(node.this, name, text_of)
        return None if inner is None else not inner
    escape: str | None = ""
    if isinstance(node, exp.Escape):
        escape, node = text_of(node.expression), node.this
    pattern = text_of(node.expression)
    if pattern is None or escape is None:
        return None
    if isinstance(node, exp.Glob):
        like = like_of_glob(pattern)
        if like is None:
            raise UnsupportedError("GLOB by any pattern but a text with * is not supported", span_of(node))
        pattern, escape = like, "\\"
    expression = pattern if isinstance(node, exp.SimilarTo) else like_expression(pattern, escape)
    found = fills_pattern(name, expression, ignore_case=isinstance(node, exp.ILike))
    return found != bool(node.args.get("negate"))


def _written(node: exp.Expr) -> str | None:
    """The text of a literal: behind a star nothing else may stand."""
    inner = node.unnest()
    if isinstance(inner, exp.Null):
        return None
    if not inner.is_string:
        raise BindError("the pattern for names of columns must be a constant text", span_of(node))
    return str(inner.name)


def _computed(context: BindContext, node: exp.Expr) -> str | None:
    """The text that a constant expression comes to."""
    value = _constant(context, node)
    if not isinstance(value, Literal):
        raise UnsupportedError("this pattern for names of columns is not supported", span_of(node))
    return None if value.value is None else str(value.value)
