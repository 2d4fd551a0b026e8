"""The SELECT list: stars written out, with EXCLUDE and REPLACE; names where they are given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from sqlglot import exp

from tqp.core.errors import BindError, UnsupportedError, nearest
from tqp.planner.binder.scope import Scope
from tqp.planner.binder.select.output import Item
from tqp.planner.binder.unsupported_clauses import check_understood
from tqp.planner.parse import head_span, span_of


def expand_items(scope: Scope, nodes: Sequence[exp.Expr]) -> list[Item]:
    """One item for each output column."""
    items: list[Item] = []
    for written in nodes:
        alias, node = (written.alias, written.this) if isinstance(written, exp.Alias) else (None, written)
        star = star_of(node)
        if star is not None:
            plain = star if isinstance(star, exp.Star) else star.this
            columns = _star(scope, plain, star.args.get("table"))
            # an alias of a star is the name of each of its columns
            if alias:
                columns = (replace(item, name=alias, alias=alias, is_aliased=True) for item in columns)
            items += columns
        elif isinstance(node, exp.Aliases):
            raise UnsupportedError("several aliases for one expression are not supported", span_of(node))
        else:
            name = node.name if isinstance(written, exp.Column) else alias
            items.append(Item(node, alias, name, is_aliased=alias is not None))
    if not items:
        raise BindError("SELECT without anything to select")
    return items


def star_of(node: exp.Expr) -> exp.Expr | None:
    """`*` or `t.*` without the parentheses around it; None for anything else."""
    node = node.unnest()
    return node if isinstance(node.this if isinstance(node, exp.Column) else node, exp.Star) else None


def _star(scope: Scope, star: exp.Star, table: exp.Identifier | None) -> Iterator[Item]:
    qualifier = table.name if table is not None else None
    span = head_span(table) if table is not None else head_span(star)
    here = scope
    if qualifier is not None:
        scope = _owner(scope, qualifier)
    if not scope.relations and (qualifier is None or scope.parent is None):
        raise BindError("* without FROM: there are no columns", span)
    if not any(relation.is_named(qualifier) for relation in scope.relations):
        raise here.unknown_column("*", qualifier, span)
    check_understood(star)
    excluded = _excluded(scope, star, qualifier)
    replaced = _by_name("REPLACE", [(each.alias, each) for each in star.args.get("replace") or ()])
    if replaced and scope is not here:
        raise UnsupportedError("* REPLACE of a table of an enclosing query is not supported", span)
    for name, node in replaced.items():
        if any(name == each for _, each in excluded):
            raise BindError(f'column "{name}" stands in both EXCLUDE and REPLACE', span_of(node))
        _check_known(scope, name, qualifier, node)
    kept = list(scope.star(qualifier, span, excluded))
    if not kept:
        raise BindError("* EXCLUDE leaves no column", span)
    for name, column in kept:
        replacement = replaced.get(name.lower())
        if replacement is not None:
            yield Item(replacement.this, name, name)
        elif scope is not here:
            yield Item(exp.column(name, table=qualifier, quoted=True), None, name)
        else:
            yield Item(None, name, name, column)


def _owner(scope: Scope, qualifier: str) -> Scope:
    """The nearest query with a table of that name, for a star; the scope itself if there is none."""
    owner: Scope | None = scope
    while owner is not None:
        if any(relation.is_named(qualifier) for relation in owner.relations):
            return owner
        owner = owner.parent
    return scope


def _excluded(scope: Scope, star: exp.Star, qualifier: str | None) -> set[tuple[str, str]]:
    """The columns of EXCLUDE: table, or "" if it is left open, and name, in lower case."""
    excluded: set[tuple[str, str]] = set()
    for node in star.args.get("except_") or ():
        table, name = node.table.lower(), node.name.lower()
        if any(name == other and (table == of or not table or not of) for of, other in excluded):
            raise BindError(f'column "{node.name}" stands twice in EXCLUDE', span_of(node))
        if table and qualifier is not None and table != qualifier.lower():
            raise BindError(f'"{qualifier}.*" has no column of "{node.table}"', span_of(node))
        if table and not scope.has_column(name, table):
            raise scope.unknown_column(node.name, node.table, span_of(node))
        _check_known(scope, name, qualifier, node)
        excluded.add((table, name))
    return excluded


def _check_known(scope: Scope, name: str, qualifier: str | None, node: exp.Expr) -> None:
    if not scope.has_column(name, qualifier):
        names = [
            column.name
            for relation in scope.relations
            if relation.is_named(qualifier)
            for column in relation.columns
        ]
        raise BindError(f'* has no column "{name}"{nearest(name, names)}', span_of(node))


def _by_name(keyword: str, entries: Sequence[tuple[str, exp.Expr]]) -> dict[str, exp.Expr]:
    found: dict[str, exp.Expr] = {}
    for name, node in entries:
        if name.lower() in found:
            raise BindError(f'column "{name}" stands twice in {keyword}', span_of(node))
        found[name.lower()] = node
    return found
