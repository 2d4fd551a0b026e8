"""USING and NATURAL: the columns of a name that both sides of a join have become one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tqp.core.errors import BindError, nearest
from tqp.core.keywords import lower_ascii
from tqp.planner.algebra.expressions import Expression, conjunction
from tqp.planner.algebra.logical_plan import JoinType
from tqp.planner.binder.expressions.coercion import compare
from tqp.planner.binder.scope import MergedColumn
from tqp.planner.parse import Span

if TYPE_CHECKING:
    from tqp.planner.binder.from_clause.tables import FromTree


def natural_names(left: FromTree, right: FromTree, span: Span | None) -> list[tuple[str, Span | None]]:
    """The columns of both sides, by name in lower case. Raises BindError where there is none.

    As in DuckDB, those of the right side may be hidden.
    """
    names = {lower_ascii(column.name) for relation in left.relations for column in relation.columns}
    common = [(name, span) for relation in right.relations for name in relation.by_name if name in names]
    if not common:
        raise BindError("NATURAL JOIN: the tables have no column in common; use ON, or CROSS JOIN", span)
    return common


def merged_columns(
    left: FromTree,
    right: FromTree,
    names: Sequence[tuple[str, Span | None]],
    join_type: JoinType,
    side: str,
) -> tuple[Expression, dict[str, tuple[MergedColumn]]]:
    """USING: the equalities, and for each name the one column that both become."""
    conditions: list[Expression] = []
    merged: dict[str, tuple[MergedColumn]] = {}
    for name, span in names:
        left_column = _using_column(left, name, span, "left")
        right_column = _using_column(right, name, span, "right")
        conditions.append(compare("equal", left_column.expression(), right_column.expression(), span))
        kept = right_column if side == "RIGHT" else left_column
        parts = left_column.parts
        if join_type not in (JoinType.SEMI, JoinType.ANTI):
            parts += right_column.parts
        primary = None if join_type is JoinType.FULL else kept.primary
        merged[name] = (MergedColumn(left_column.name, parts, primary, span),)
    return conjunction(tuple(conditions)), merged


def _using_column(tree: FromTree, name: str, span: Span | None, where: str) -> MergedColumn:
    merged = tree.merged.get(name, ())
    if len(merged) == 1:
        return merged[0]
    found = [relation.by_name[name] for relation in tree.relations if name in relation.by_name]
    if not found:
        names = [column.name for relation in tree.relations for column in relation.columns]
        raise BindError(f'USING: the {where} side has no column "{name}"{nearest(name, names)}', span)
    if len(found) > 1:
        raise BindError(f'USING: column "{name}" is ambiguous on the {where} side; use ON', span)
    column = found[0]
    return MergedColumn(column.name, (column,), column, span)
