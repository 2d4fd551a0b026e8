"""Stars of SELECT, written out: `*`, `t.*` and `s.*` of a struct, with EXCLUDE, REPLACE and RENAME."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Sequence

from sqlglot import exp

from tqp.core.datatypes import TypeKind
from tqp.core.errors import BindError, UnsupportedError, nearest
from tqp.core.keywords import lower_ascii
from tqp.planner.binder.scope import MergedColumn, Scope, ScopeColumn
from tqp.planner.binder.select.output import Item
from tqp.planner.binder.unsupported_clauses import check_understood
from tqp.planner.parse import Span, head_span, span_of


def star_of(node: exp.Expr) -> exp.Expr | None:
    """`*` or `t.*` without the parentheses around it; None for anything else, `* ILIKE 'a%'` included."""
    node = node.unnest()
    star = node.this if isinstance(node, exp.Column) else node
    return node if isinstance(star, exp.Star) and not star.args.get("ilike") else None


def star_items(scope: Scope, node: exp.Expr) -> Iterator[Item]:
    """The columns of what `star_of` gives, an item for each."""
    star = node if isinstance(node, exp.Star) else node.this
    table = node.args.get("table")
    qualifier = table.name if table is not None else None
    span = head_span(table) if table is not None else head_span(star)
    here = scope
    if qualifier is not None:
        scope = _owner(scope, qualifier)
    if not scope.relations and (qualifier is None or scope.parent is None):
        raise BindError("* without FROM: there are no columns", span)
    check_understood(star)
    if not any(relation.is_named(qualifier) for relation in scope.relations):
        assert qualifier is not None
        yield from _fields_of_struct(here, star, qualifier, span)
        return
    excluded = _excluded(scope, star, qualifier)
    replaced = _by_name("REPLACE", [(each.alias, each) for each in star.args.get("replace") or ()])
    renamed = _by_name("RENAME", [(each.this.name, each) for each in star.args.get("rename") or ()])
    if replaced and scope is not here:
        raise UnsupportedError("* REPLACE of a table of an enclosing query is not supported", span)
    for name, written in replaced.items():
        _check_known(scope, name, qualifier, written)
    for name, written in renamed.items():
        _check_known(scope, name, _table_of(written.this) or qualifier, written)
    _check_apart(("EXCLUDE", {name for _, name in excluded}), ("REPLACE", replaced), ("RENAME", renamed))
    for name, column in scope.star(qualifier, span, excluded):
        replacement = replaced.get(lower_ascii(name))
        label = _label(scope, renamed.get(lower_ascii(name)), column)
        is_renamed = label is not None
        label = label or name
        if replacement is not None:
            yield Item(replacement.this, replacement.alias, replacement.alias)
        elif scope is not here:
            node = exp.column(name, table=qualifier, quoted=True)
            yield Item(node, label if is_renamed else None, label, is_aliased=is_renamed)
        else:
            yield Item(None, label, label, column, is_renamed)


def _fields_of_struct(scope: Scope, star: exp.Expr, column: str, span: Span | None) -> Iterator[Item]:
    """The fields of a column of structs, by their names."""
    struct = scope.resolve_here(column, None, span)
    if struct is None:
        raise scope.unknown_column("*", column, span)
    if struct.data_type.kind is not TypeKind.STRUCT or struct.data_type.is_tuple:
        raise BindError(f'"{column}" is no struct, whose fields {column}.* would stand for', span)
    names = struct.data_type.names
    excluded = {lower_ascii(node.name): node for node in star.args.get("except_") or ()}
    replaced = _by_name("REPLACE", [(each.alias, each) for each in star.args.get("replace") or ()])
    renamed = _by_name("RENAME", [(each.this.name, each) for each in star.args.get("rename") or ()])
    known = {lower_ascii(name) for name in names}
    for name, node in (*excluded.items(), *replaced.items(), *renamed.items()):
        if name not in known:
            raise BindError(f'"{column}" has no field "{name}"{nearest(name, names)}', span_of(node))
    _check_apart(("EXCLUDE", excluded), ("REPLACE", replaced), ("RENAME", renamed))
    for name in names:
        lowered = lower_ascii(name)
        if lowered in replaced:
            yield Item(replaced[lowered].this, replaced[lowered].alias, replaced[lowered].alias)
        elif lowered not in excluded:
            label = renamed[lowered].alias if lowered in renamed else None
            node = exp.column(name, table=column, quoted=True)
            yield Item(node, label or name, label, is_aliased=label is not None)


def _label(scope: Scope, rename: exp.Expr | None, column: ScopeColumn | MergedColumn) -> str | None:
    """The name that RENAME gives the column; None if it means none, or one of another table."""
    if rename is None:
        return None
    table = _table_of(rename.this)
    part = column.parts[0] if isinstance(column, MergedColumn) else column
    is_meant = not table or any(
        relation.is_named(table) and part in relation.columns for relation in scope.relations
    )
    return rename.alias if is_meant else None


def _check_apart(*lists: tuple[str, Collection[str]]) -> None:
    """A column stands in one of EXCLUDE, REPLACE and RENAME at most."""
    for (keyword, names), (other, others) in itertools.combinations(lists, 2):
        for name in names:
            if name in others:
                raise BindError(f'column "{name}" stands in both {keyword} and {other}')


def _owner(scope: Scope, qualifier: str) -> Scope:
    """The nearest query with a table of that name, for a star; the scope itself if there is none."""
    owner: Scope | None = scope
    while owner is not None:
        if any(relation.is_named(qualifier) for relation in owner.relations):
            return owner
        owner = owner.parent
    return scope


def _table_of(node: exp.Expr) -> str:
    """The table that is written before a column; none where a text names it: EXCLUDE ('a')."""
    return node.table if isinstance(node, exp.Column) else ""


def _excluded(scope: Scope, star: exp.Star, qualifier: str | None) -> set[tuple[str, str]]:
    """The columns of EXCLUDE: table, or "" if it is left open, and name, in lower case."""
    excluded: set[tuple[str, str]] = set()
    for node in star.args.get("except_") or ():
        table, name = lower_ascii(_table_of(node)), lower_ascii(node.name)
        if any(name == other and (table == of or not table or not of) for of, other in excluded):
            raise BindError(f'column "{node.name}" stands twice in EXCLUDE', span_of(node))
        if table and qualifier is not None and table != lower_ascii(qualifier):
            raise BindError(f'"{qualifier}.*" has no column of "{_table_of(node)}"', span_of(node))
        if table and not scope.has_column(name, table):
            raise scope.unknown_column(node.name, _table_of(node), span_of(node))
        _check_known(scope, name, qualifier, node)
        excluded.add((table, name))
    return excluded


def _check_known(scope: Scope, name: str, qualifier: str | None, node: exp.Expr) -> None:
    names = [
        column.name
        for relation in scope.relations
        if relation.is_named(qualifier)
        for column in relation.columns
    ]
    if lower_ascii(name) not in [lower_ascii(each) for each in names]:
        raise BindError(f'* has no column "{name}"{nearest(name, names)}', span_of(node))


def _by_name(keyword: str, entries: Sequence[tuple[str, exp.Expr]]) -> dict[str, exp.Expr]:
    found: dict[str, exp.Expr] = {}
    for name, node in entries:
        if lower_ascii(name) in found:
            raise BindError(f'column "{name}" stands twice in {keyword}', span_of(node))
        found[lower_ascii(name)] = node
    return found
