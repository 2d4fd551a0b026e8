"""USING KEY (a, max(b)): a row for each key, whose other columns are aggregates of all rows that there were of the key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlglot import exp

from tqp.core.datatypes import BIGINT, BOOLEAN
from tqp.core.errors import BindError, UnsupportedError, nearest
from tqp.core.keywords import lower_ascii
from tqp.planner.algebra.expressions import Call, Case, ColumnRef, Expression, Literal, conjunction
from tqp.planner.algebra.logical_plan import Join, JoinType, LogicalPlan, Project
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.coercion import cast_to
from tqp.planner.binder.expressions.forms.forms import call_of
from tqp.planner.binder.expressions.operators import apply
from tqp.planner.binder.scope import CteDefinition, Scope
from tqp.planner.binder.select.output import BoundQuery
from tqp.planner.functions import registry as functions
from tqp.planner.parse import head_span, span_of

#: Aggregates whose value for some rows, and that for later ones, make that for all by a call that is NULL where one of them is.
_PAIRED = {
    "sum": "add",
    "product": "multiply",
    "bool_and": "and",
    "bool_or": "or",
    "bit_and": "&",
    "bit_or": "|",
    "bit_xor": "xor",
}
#: Under which name the expressions of aggregates find the rows that are grouped.
_TABLE = "rows"


@dataclass(frozen=True, slots=True)
class KeyedColumns:
    """What USING KEY says of the columns of a recursion: which are keys, and the aggregates by the places of theirs."""

    names: Sequence[str]
    keys: tuple[int, ...]
    calls: Mapping[int, exp.Anonymous]

    def grouped(self, context: BindContext, plan: LogicalPlan, scope: Scope) -> LogicalPlan:
        """A row for each key: aggregates of the columns that have one, and of others the last value."""
        definition = CteDefinition(_TABLE, None, (), None, KeyedRows(plan, self.names))
        columns = [exp.column(exp.to_identifier(name, quoted=True)) for name in self.names]
        items = [
            column if place in self.keys else self.calls.get(place) or call_of("last", column)
            for place, column in enumerate(columns)
        ]
        select = exp.Select(
            expressions=[
                exp.Alias(this=item.copy(), alias=exp.to_identifier(name, quoted=True))
                for item, name in zip(items, self.names, strict=True)
            ],
            from_=exp.From(this=exp.Table(this=exp.to_identifier(_TABLE))),
            group=exp.Group(expressions=[columns[place].copy() for place in self.keys]),
        )
        return context.bind_query.bind_exact(
            select, Scope(parent=scope, ctes={**scope.ctes, _TABLE: definition})
        ).plan

    def merged(self, context: BindContext, plan: LogicalPlan, known: LogicalPlan) -> LogicalPlan:
        """Rows of keys, with what is known of their keys so far. Raises UnsupportedError where that does not say what is of all rows."""
        pairs = list(zip(map(ColumnRef.of, plan.schema), map(ColumnRef.of, known.schema), strict=True))
        same = [Call("is_not_distinct_from", pairs[place], BOOLEAN) for place in self.keys]
        mark = context.new_field("known", BOOLEAN, nullable=False)
        marked = Project(
            known, (*known.schema, mark), (*map(ColumnRef.of, known.schema), Literal(True, BOOLEAN))
        )
        joined = Join(plan, marked, JoinType.LEFT, conjunction(tuple(same)))
        outputs = [
            _merged(self.calls[place], new, old, ColumnRef.of(mark)) if place in self.calls else new
            for place, (new, old) in enumerate(pairs)
        ]
        return Project(joined, tuple(map(context.renewed, plan.schema)), tuple(outputs))


@dataclass(frozen=True, slots=True)
class KeyedRows:
    """What the name of the table means in the aggregates: the rows that are grouped."""

    plan: LogicalPlan
    names: Sequence[str]

    def reference(self) -> BoundQuery:
        """There is one."""
        return BoundQuery.exact(self.plan, self.names)


def keyed_columns(keys: Sequence[exp.Expr], names: Sequence[str]) -> KeyedColumns:
    """The columns that USING KEY names. An aggregate is of the column of its alias, or else of that which is its first argument."""
    lowered = [lower_ascii(name) for name in names]
    found: list[int] = []
    calls: dict[int, exp.Anonymous] = {}
    for key in keys:
        call = None if isinstance(key, exp.Column | exp.Identifier) else _aggregate(key)
        column = key if call is None else _column_of(key, call)
        if lower_ascii(column.name) not in lowered:
            raise BindError(
                f'USING KEY: there is no column "{column.name}"{nearest(column.name, names)}', span_of(column)
            )
        place = lowered.index(lower_ascii(column.name))
        if call is None:
            found.append(place)
        elif place in calls:
            raise BindError(f'USING KEY names the column "{column.name}" twice', span_of(column))
        else:
            calls[place] = call
    both = next((names[place] for place in found if place in calls), None)
    if both is not None:
        raise BindError(f'USING KEY has the column "{both}" as a key and in an aggregate', span_of(keys[0]))
    if not found:
        raise BindError("USING KEY needs a column that is a key", span_of(keys[0]))
    return KeyedColumns(names, tuple(dict.fromkeys(found)), calls)


def _aggregate(node: exp.Expr) -> exp.Anonymous:
    call = node.this if isinstance(node, exp.Alias) else node
    if not isinstance(call, exp.Anonymous) or not functions.aggregate_overloads(lower_ascii(call.name)):
        raise BindError("USING KEY takes names of columns, and aggregates", span_of(node))
    if any(isinstance(each, exp.Distinct) for each in call.expressions):
        raise BindError(f"{lower_ascii(call.name)}() takes no DISTINCT in USING KEY", head_span(call))
    return call


def _column_of(node: exp.Expr, call: exp.Anonymous) -> exp.Expr:
    if isinstance(node, exp.Alias):
        return node.args["alias"]  # type: ignore[no-any-return]
    first = call.expressions[0] if call.expressions else call
    if type(first) is not exp.Column:
        raise BindError(
            "an aggregate in USING KEY has a column as its first argument, or an alias", span_of(node)
        )
    return first


def _merged(call: exp.Anonymous, new: ColumnRef, old: ColumnRef, is_known: ColumnRef) -> Expression:
    """The aggregate of all rows of a key: `new` is that of the last ones, `old` that of those before, if it `is_known`."""
    function = functions.main_spelling(lower_ascii(call.name))
    data_type = new.data_type
    if function in ("min", "max"):
        return Call("least" if function == "min" else "greatest", (new, old), data_type)
    if function in ("count", "count_star"):
        before = Call("coalesce", (old, Literal(0, BIGINT)), data_type)
        return apply("add", (new, before), None, "count()")
    if function == "last":
        return new
    if function == "first":
        return Case(((is_known, old),), new, data_type)
    if function == "any_value":
        return Call("coalesce", (old, new), data_type)
    if function == "list":
        return Call("list_concat", (old, new), data_type)
    if function not in _PAIRED:
        raise UnsupportedError(
            f"{function}() in USING KEY is not supported with UNION, where its value so far does not tell the next",
            head_span(call),
        )
    both: Expression
    if _PAIRED[function] in ("and", "or"):
        both = Call(_PAIRED[function], (old, new), BOOLEAN)
    else:
        both = cast_to(apply(_PAIRED[function], (old, new), None, f"{function}()"), data_type, None)
    return Call("coalesce", (both, new, old), data_type)
