"""UNPIVOT: each row once for each of some columns, with the column's name and its value.

It is an unnest of the list of the values, so that the rows come in the order of the table; the place in it tells the name. Rows
with a NULL among their values go, unless these are included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sqlglot import exp

from tqp.core.datatypes import BIGINT, BOOLEAN, VARCHAR
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.planner.algebra.expressions import Call, Case, ColumnRef, Expression, Literal, conjunction
from tqp.planner.algebra.logical_plan import Filter, LogicalPlan, Unnest
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.nested.parts import extract
from tqp.planner.binder.expressions.nested.values import list_of_values
from tqp.planner.binder.expressions.scalars import ExpressionBinder
from tqp.planner.binder.from_clause.pivots import other_columns
from tqp.planner.binder.scope import Scope
from tqp.planner.binder.select.output import BoundQuery, Item, exact_project
from tqp.planner.binder.select.select_list import expand_items
from tqp.planner.parse import head_span, span_of

_MOST_CHOICES = 16


@dataclass(frozen=True, slots=True)
class _Entry:
    """A name, and a value for each column of values; `columns` are the names, in lower case, of those that it reads."""

    name: str
    values: tuple[Expression, ...]
    columns: frozenset[str]


def bind_unpivot(context: BindContext, node: exp.Pivot, scope: Scope, plan: LogicalPlan) -> BoundQuery:
    """The other columns, that of names, and those of values. Raises BindError, UnsupportedError."""
    name, *written = node.fields
    value_names = [each.name for each in node.expressions]
    entries = [entry for each in written for entry in _entries(context, scope, each)]
    for entry in entries:
        if len(entry.values) != len(value_names):
            raise BindError(
                f"UNPIVOT has {len(value_names)} names for values, and {len(entry.values)} values for each",
                head_span(node),
            )
    used = {column for entry in entries for column in entry.columns}
    others = [(each, scope.value_of(column)) for each, column in other_columns(scope, used)]
    names = [*(each for each, _ in others), name.name, *value_names]
    include_nulls = bool(node.args.get("include_nulls"))
    aliases = node.alias_column_names
    if (
        aliases
    ):  # the first of them name the values, too, which DuckDB shows where they are fewer than the columns
        names[-len(value_names) :] = [*aliases[: len(value_names)], *value_names[len(aliases) :]]
    elif not include_nulls:
        _check_names(node, names, len(value_names))
    span = head_span(node)
    lists = tuple(list_of_values(each, span) for each in zip(*(entry.values for entry in entries)))
    fields = tuple(
        context.new_field(each, made.data_type.element) for each, made in zip(value_names, lists, strict=True)
    )
    place = context.new_field("place", BIGINT, nullable=False)
    unnested: LogicalPlan = Unnest(plan, lists, fields, (place,))
    if not include_nulls:
        missing = (Call("is_null", (ColumnRef.of(each),), BOOLEAN) for each in fields)
        unnested = Filter(unnested, conjunction(tuple(Call("not", (each,), BOOLEAN) for each in missing)))
    label = _name_at(ColumnRef.of(place), [Literal(entry.name, VARCHAR) for entry in entries])
    values = [*(value for _, value in others), label, *map(ColumnRef.of, fields)]
    return BoundQuery.exact(exact_project(context, unnested, values, names), names)


def _name_at(place: Expression, names: Sequence[Expression]) -> Expression:
    """The name at a place, from 1: a choice of few is found faster than an element of a list."""
    if len(names) > _MOST_CHOICES:
        return extract(list_of_values(names, None), place, None, "UNPIVOT")
    *others, last = names
    conditions = (Call("equal", (place, Literal(number, BIGINT)), BOOLEAN) for number in range(1, len(names)))
    return Case(tuple(zip(conditions, others, strict=True)), last, VARCHAR) if others else last


def _check_names(node: exp.Pivot, names: Sequence[str], num_values: int) -> None:
    """Refuse names of which DuckDB looks for NULLs in another column."""
    lowered = [lower_ascii(each) for each in names]
    if any(each in lowered[:place] for place, each in enumerate(lowered) if place >= len(names) - num_values):
        raise UnsupportedError(
            "values of UNPIVOT under the name of another column are not supported", head_span(node)
        )


def _entries(context: BindContext, scope: Scope, node: exp.Expr) -> list[_Entry]:
    """What an item stands for: a star and COLUMNS(...) for several, `(a, b)` for one with two values."""
    written = node.unalias()
    if isinstance(written, exp.Tuple):
        if not written.expressions:
            raise BindError("UNPIVOT of no column", span_of(node))
        parts = [
            _entry(context, scope, item) for item in expand_items(context, scope, list(written.expressions))
        ]
        name = node.alias or "_".join(part.name for part in parts)
        values = tuple(value for part in parts for value in part.values)
        return [_Entry(name, values, frozenset().union(*(part.columns for part in parts)))]
    return [_entry(context, scope, item) for item in expand_items(context, scope, [node])]


def _entry(context: BindContext, scope: Scope, item: Item) -> _Entry:
    if item.node is None:
        assert item.column is not None
        name = item.column.name
        return _Entry(item.name or name, (scope.value_of(item.column),), frozenset((lower_ascii(name),)))
    written = item.node
    if written.find(exp.Query) is not None:
        raise BindError("UNPIVOT takes no subqueries", span_of(written))
    if isinstance(written, exp.Literal) and written.is_string:  # the name of a column
        written = exp.column(exp.to_identifier(written.name, quoted=True))
        written.this.meta.update(item.node.meta)
    columns = list(written.find_all(exp.Column))
    if len(columns) != 1:
        raise BindError(
            f"UNPIVOT takes expressions of exactly one column, this has {len(columns)}", span_of(written)
        )
    value = ExpressionBinder(context, scope, "UNPIVOT").bind(written)
    name = scope.display_name(columns[0].name, None)
    label = item.alias if item.is_aliased and item.alias else name
    return _Entry(label, (value,), frozenset((lower_ascii(name),)))
