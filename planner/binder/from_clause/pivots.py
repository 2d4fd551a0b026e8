"""PIVOT: a row for each group, and for each value of a column a column with an aggregate of the group's rows that have it.

It is GROUP BY with aggregates of which each has a FILTER. Values are compared as texts, as DuckDB does: 1.0 is not 1 there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod

from sqlglot import exp

from tqp.core.datatypes import BOOLEAN, DATE, HUGEINT, VARCHAR, DataType
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import (
    FALSE,
    AggregateCall,
    Call,
    ColumnRef,
    Expression,
    Literal,
    conjunction,
    transform,
    walk,
)
from tqp.planner.algebra.logical_plan import LogicalPlan, Project
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.aggregates.aggregates import AggregateCollector
from tqp.planner.binder.expressions.coercion import as_text, cast_to, comparison
from tqp.planner.binder.expressions.scalars import ExpressionBinder
from tqp.planner.binder.scope import MergedColumn, Scope, ScopeColumn
from tqp.planner.binder.select.groups import grouped
from tqp.planner.binder.select.names import expression_name
from tqp.planner.binder.select.output import BoundQuery, exact_project
from tqp.planner.functions.constant_folding import fold
from tqp.planner.functions.registry import AGGREGATES
from tqp.planner.parse import Span, head_span, span_of
from tqp.planner.syntax.pivot_parser import OF_STATEMENT

#: DuckDB takes 100,000. Each is an aggregate of the plan, and of the program.
_MOST_COLUMNS = 4096
#: So many aggregates with a FILTER are computed over all rows; more of them over rows that are grouped before.
_MOST_FILTERS = 20


@dataclass(frozen=True, slots=True)
class _Value:
    """What a column is called after, and the texts that its rows have, one for each key of a field; NULL is None."""

    label: str
    texts: tuple[str | None, ...]


@dataclass(frozen=True, slots=True)
class _Pivoted:
    """`FOR keys IN (values)`"""

    keys: tuple[Expression, ...]
    values: tuple[_Value, ...]


@dataclass(frozen=True, slots=True)
class _Output:
    """An expression of one aggregate, `place` being where the aggregate stands in it; and its name, if it has one."""

    call: AggregateCall
    place: int
    expression: Expression
    alias: str
    text: str


def bind_pivot(context: BindContext, node: exp.Pivot, scope: Scope, plan: LogicalPlan) -> BoundQuery:
    """The groups and the columns that the values become. Raises BindError, UnsupportedError."""
    _check_columns(node)
    pivoted = [_pivoted(context, field, scope) for field in node.fields]
    try:
        outputs = _outputs(context, node.expressions, scope)
    except BindError as error:
        if all(each.values for each in pivoted):
            raise
        # without a value there is no column to compute, and DuckDB does not look at it
        raise UnsupportedError(
            f"PIVOT without values, where {error.message}, is not supported", error.span
        ) from None
    groups = _groups(node, scope)
    num_columns = prod(len(each.values) for each in pivoted) * len(outputs)
    if num_columns > _MOST_COLUMNS:
        raise UnsupportedError(
            f"PIVOT to more than {_MOST_COLUMNS} columns is not supported", head_span(node)
        )
    keys = [key for each in pivoted for key in each.keys]
    plan, keys = _with_columns(context, plan, keys)
    if num_columns > _MOST_FILTERS:
        plan, groups, keys, outputs = _grouped_before(context, plan, groups, keys, outputs)
    key_fields = {value: _field_of(context, plan, value) for _, value in groups}
    calls: dict[AggregateCall, Field] = {}
    names, values = [name for name, _ in groups], [ColumnRef.of(key_fields[value]) for _, value in groups]
    columns: list[Expression] = list(values)
    for chosen in product(*(each.values for each in pivoted)):
        texts = [text for value in chosen for text in value.texts]
        condition = conjunction(tuple(_has(key, text) for key, text in zip(keys, texts, strict=True)))
        label = "_".join([chosen[0].label or "''", *(value.label for value in chosen[1:])])
        for output in outputs:
            given = output.call.filter
            call = replace(
                output.call, filter=condition if given is None else conjunction((given, condition))
            )
            made = calls.setdefault(call, context.new_field(call.function, call.data_type))
            suffix = output.alias or (output.text if len(outputs) > 1 else "")
            names.append(f"{label}_{suffix}" if suffix else label)
            columns.append(_with(output, ColumnRef.of(made)))
    if not names:
        raise BindError("PIVOT leaves no column: there are neither groups nor values", head_span(node))
    parts = [*key_fields.values()], [*key_fields], [*calls.values()], [*calls]
    aggregate = grouped(context, plan, *parts)
    return BoundQuery.exact(exact_project(context, aggregate, columns, names), names)


def _check_columns(node: exp.Pivot) -> None:
    """Raise BindError for what DuckDB does not take in PIVOT."""
    for part in [*node.expressions, *(field.expressions[0] for field in node.fields)]:
        if part.find(exp.Query) is not None:
            raise BindError("PIVOT takes no subqueries", span_of(part))
        for column in part.find_all(exp.Column):
            if column.args.get("table"):
                raise BindError("PIVOT takes names of columns without their tables", span_of(column))


def _outputs(context: BindContext, nodes: Sequence[exp.Expr], scope: Scope) -> list[_Output]:
    """The aggregates of PIVOT, and what is computed of each."""
    collector = AggregateCollector(context)
    binder = ExpressionBinder(context, scope, "PIVOT", collector)
    outputs: list[_Output] = []
    for node in nodes:
        written, before = node.unalias(), collector.uses
        scope.uses = []
        expression = binder.bind(written)
        if scope.uses:
            raise BindError("PIVOT takes columns inside its aggregates only", scope.uses[0].span)
        if collector.uses != before + 1:
            raise BindError(
                f"an expression of PIVOT has exactly one aggregate, this has {collector.uses - before}",
                span_of(written),
            )
        ids = {part.id for part in walk(expression) if isinstance(part, ColumnRef)}
        ((call, made),) = [(call, made) for call, made in collector.calls.items() if made.id in ids]
        alias = node.alias if isinstance(node, exp.Alias) else ""
        outputs.append(_Output(call, made.id, expression, alias, expression_name(context.query, written)))
    scope.uses = None
    return outputs


def _pivoted(context: BindContext, field: exp.Expr, scope: Scope) -> _Pivoted:
    header, values = field.expressions[0], field.expressions[1:]
    if not values or not isinstance(values[0], exp.Tuple | exp.DataType):
        raise UnsupportedError(
            "PIVOT without written values is not supported here; write them: ON x IN ('a', 'b')",
            span_of(header),
        )
    is_row = isinstance(header, exp.Tuple)
    binder = ExpressionBinder(context, scope, "PIVOT")
    keys = tuple(_comparable(binder.bind(each)) for each in (header.expressions if is_row else [header]))
    if field.meta.get(OF_STATEMENT) and header.find(exp.Column) is None:
        raise BindError("PIVOT ON a constant: there is no column in it", span_of(header))
    if isinstance(values[0], exp.DataType):
        if is_row:
            raise BindError("PIVOT of several columns has its values in parentheses", span_of(header))
        return _Pivoted(keys, _values_of_type(binder, values[0], span_of(header)))
    found: dict[tuple[Expression, ...], _Value] = {}
    for node in values[0].expressions:
        written = node.unalias()
        parts = written.expressions if is_row and isinstance(written, exp.Tuple) else [written]
        if len(parts) != len(keys):
            raise BindError(
                f"this value of PIVOT has {len(parts)} parts, what it is compared with has {len(keys)}",
                span_of(written),
            )
        constants = tuple(_constant(context, part) for part in parts)
        texts = tuple(map(_text, constants, parts))
        identity = tuple(map(_identity, constants))
        if identity in found:
            raise BindError(
                f'the value "{_label(texts)}" stands twice behind IN', span_of(written) or span_of(header)
            )
        found[identity] = _Value(node.alias if isinstance(node, exp.Alias) else _label(texts), texts)
    return _Pivoted(keys, tuple(found.values()))


def _values_of_type(binder: ExpressionBinder, node: exp.DataType, span: Span | None) -> tuple[_Value, ...]:
    """The values of an ENUM, in its order."""
    data_type = binder.bind(exp.Cast(this=exp.Null(), to=node.copy())).data_type
    if not data_type.is_enum:
        raise BindError(f"PIVOT takes the values of an ENUM, not those of {data_type}", span)
    return tuple(_Value(text, (text,)) for text in data_type.categories)


def _label(texts: Sequence[str | None]) -> str:
    """`a_b`; empty texts in front leave nothing."""
    label = ""
    for text in texts:
        label += ("_" if label else "") + ("NULL" if text is None else text)
    return label


def _constant(context: BindContext, node: exp.Expr) -> Expression:
    """A value behind IN: a name stands for itself there."""
    if isinstance(node, exp.Column) and not node.args.get("table"):
        return Literal(node.name, VARCHAR)
    if node.find(exp.Query, exp.Star, exp.Column) is not None:
        raise BindError("the values of PIVOT must be constants", span_of(node))
    return ExpressionBinder(context, Scope(), "PIVOT").bind(node)


def _identity(constant: Expression) -> Expression:
    """What a value may be only once: a truth value is the same as 0 or 1, as in DuckDB, a text is not."""
    is_number = constant.data_type.is_integer or constant.data_type == BOOLEAN
    if is_number and isinstance(constant, Literal) and isinstance(constant.value, int):
        return Literal(int(constant.value), HUGEINT)
    return constant


def _text(constant: Expression, node: exp.Expr) -> str | None:
    value = fold(as_text(constant, None))
    if not isinstance(value, Literal):
        raise UnsupportedError("this value of PIVOT is not supported; write its text", span_of(node))
    return None if value.value is None else str(value.value)


def _is_exact(data_type: DataType) -> bool:
    """Whether values are equal where their texts are, and each text that a value has is the only one."""
    return data_type.is_integer or data_type in (BOOLEAN, DATE)


def _comparable(key: Expression) -> Expression:
    return key if _is_exact(key.data_type) else as_text(key, None)


def _has(key: Expression, text: str | None) -> Expression:
    """Whether a row has the value of this text."""
    if text is None:
        return Call("is_null", (key,), BOOLEAN)
    wanted = Literal(text, VARCHAR)
    if key.data_type != VARCHAR:
        value = fold(cast_to(wanted, key.data_type, None, is_try=True))
        assert isinstance(value, Literal)
        if fold(as_text(value, None)) != wanted:
            return FALSE
        wanted = value
    return comparison("is_not_distinct_from", key, wanted, None)


def _groups(node: exp.Pivot, scope: Scope) -> list[tuple[str, Expression]]:
    """The columns of GROUP BY, or all that PIVOT does not name, by their names."""
    written = node.args.get("group")
    if written is not None:
        return [_named(scope, name) for name in written.expressions]
    used = {lower_ascii(name) for name, _ in scope.used.values()}
    return [(name, scope.value_of(column)) for name, column in other_columns(scope, used)]


def other_columns(scope: Scope, used: Collection[str]) -> list[tuple[str, ScopeColumn | MergedColumn]]:
    """The columns whose names, in lower case, are not among these. Raises BindError where two have one name."""
    found: dict[str, tuple[str, ScopeColumn | MergedColumn]] = {}
    for name, column in scope.star(None):
        if lower_ascii(name) in used:
            continue
        if lower_ascii(name) in found:
            raise BindError(f'column "{name}" is ambiguous: two tables before PIVOT or UNPIVOT have one')
        found[lower_ascii(name)] = (name, column)
    return list(found.values())


def _named(scope: Scope, name: exp.Expr) -> tuple[str, Expression]:
    value = scope.resolve_here(name.name, None, head_span(name))
    if value is None:
        raise scope.unknown_column(name.name, None, head_span(name))
    return scope.display_name(name.name, None), value


def _with_columns(
    context: BindContext, plan: LogicalPlan, keys: Sequence[Expression]
) -> tuple[LogicalPlan, list[Expression]]:
    """The plan with a column for each key that is none, as it is compared with many values."""
    made = {
        key: context.new_field("pivot", key.data_type)
        for key in dict.fromkeys(keys)
        if not isinstance(key, ColumnRef)
    }
    if made:
        outputs = (*map(ColumnRef.of, plan.schema), *made)
        plan = Project(plan, (*plan.schema, *made.values()), outputs)
    return plan, [ColumnRef.of(made[key]) if key in made else key for key in keys]


def _grouped_before(
    context: BindContext,
    plan: LogicalPlan,
    groups: Sequence[tuple[str, Expression]],
    keys: Sequence[Expression],
    outputs: Sequence[_Output],
) -> tuple[LogicalPlan, list[tuple[str, Expression]], list[Expression], list[_Output]]:
    """Rows grouped by what is compared, too: of these few, a column takes the only one that has its value."""
    by = {key: _field_of(context, plan, key) for key in (*(key for _, key in groups), *keys)}
    made = {each.call: context.new_field(each.call.function, each.call.data_type) for each in outputs}
    plan = grouped(context, plan, [*by.values()], [*by], [*made.values()], [*made])
    taken: list[_Output] = []
    for each in outputs:
        data_type, of_nothing = each.call.data_type, AGGREGATES[each.call.function].of_nothing
        place = ColumnRef.of(made[each.call])
        value: Expression = place
        if of_nothing is not None:
            value = Call("coalesce", (place, Literal(of_nothing, data_type)), data_type)
        call = AggregateCall("any_value", (place,), data_type)
        taken.append(replace(each, call=call, place=place.id, expression=_with(each, value)))
    named: list[tuple[str, Expression]] = [(name, ColumnRef.of(by[key])) for name, key in groups]
    return plan, named, [ColumnRef.of(by[key]) for key in keys], taken


def _field_of(context: BindContext, plan: LogicalPlan, key: Expression) -> Field:
    """The field of a group: a column keeps its own, but where a text stands for those that are equal under a collation."""
    own = {made.id: made for made in plan.schema}
    if isinstance(key, ColumnRef) and key.id in own and not key.data_type.collation:
        return own[key.id]
    return context.new_field("group", key.data_type)


def _with(output: _Output, value: Expression) -> Expression:
    """The expression with another value in the place of its aggregate."""

    def placed(part: Expression) -> Expression:
        return value if isinstance(part, ColumnRef) and part.id == output.place else part

    return transform(output.expression, placed)
