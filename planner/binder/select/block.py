"""One SELECT ... FROM ... WHERE ... GROUP BY ... HAVING ... ORDER BY ... LIMIT block.

Plan: FROM -> Filter (WHERE) -> Aggregate -> Filter (HAVING) -> Window -> Filter (QUALIFY) -> Project -> Aggregate (DISTINCT) -> Sort -> Limit ->
Project (without the columns that only ORDER BY needed).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain

from sqlglot import exp

from tqp.core.errors import BindError
from tqp.core.keywords import lower_ascii
from tqp.planner.algebra.expressions import ColumnRef, Expression, Literal, walk
from tqp.planner.algebra.logical_plan import Aggregate, Filter, LogicalPlan, Project, Sort, Values
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.aggregates.aggregates import AggregateCollector
from tqp.planner.binder.expressions.aggregates.windows import WindowCollector
from tqp.planner.binder.expressions.forms.randomness import with_row_numbers
from tqp.planner.binder.expressions.forms.sequences import refuse_drawn
from tqp.planner.binder.expressions.scalars import Aliases, ExpressionBinder
from tqp.planner.binder.from_clause.tables import bind_from
from tqp.planner.binder.scope import ColumnUse, MergedColumn, Scope
from tqp.planner.binder.select.columns_calls import expanded_condition
from tqp.planner.binder.select.group_keys import GroupKeys
from tqp.planner.binder.select.grouping import (
    GroupedRewriter,
    check_uses,
    is_of_all,
    keys_of_all,
    keys_of_having,
)
from tqp.planner.binder.select.grouping_sets import (
    GroupingSet,
    aggregate_sets,
)
from tqp.planner.binder.select.groups import grouped
from tqp.planner.binder.select.limits import bind_limit
from tqp.planner.binder.select.named_windows import check_definitions
from tqp.planner.binder.select.names import expression_name
from tqp.planner.binder.select.order_by import SortBinder, Sorting, sort_keys
from tqp.planner.binder.select.output import BoundQuery, Branch, Item, distinct, exact_project, lazy_project
from tqp.planner.binder.select.row_numbers import first_of_each
from tqp.planner.binder.select.select_list import expand_items
from tqp.planner.binder.select.unnests import UnnestCollector, is_unnest
from tqp.planner.binder.select.written import Qualified, Written
from tqp.planner.functions.type_rules import settle
from tqp.planner.parse import OF_ROWS, span_of

#: Clauses that may unnest lists: after window functions, but for keys before they are grouped by.
_HOLD_UNNESTS = ("SELECT", "GROUP BY", "ORDER BY")
#: Clauses that are computed after window functions, or hold them.
_HOLD_WINDOWS = ("SELECT", "QUALIFY", "ORDER BY")


@dataclass(slots=True)
class _Columns:
    """What SELECT puts out: for each item its expression, the columns that it names, and whether it holds aggregates and windows."""

    items: list[Item] = field(default_factory=list)
    values: list[Expression | None] = field(default_factory=list)
    uses: list[list[ColumnUse]] = field(default_factory=list)
    aggregates: list[bool] = field(default_factory=list)
    windows: list[bool] = field(default_factory=list)


@dataclass(slots=True)
class SelectBlock:
    """Binds one block; made for one use."""

    context: BindContext
    select: exp.Select
    scope: Scope
    lazy: bool  # a derived table, or EXISTS: stars need only produce what is referred to
    around: tuple[exp.Expr, ...]  # parentheses, whose ORDER BY and LIMIT follow the block's own
    bound_items: dict[int, tuple[Expression, Sequence[ColumnUse]]] = field(default_factory=dict)
    written_keys: Written[Expression] = field(init=False)
    windows: WindowCollector = field(init=False)
    unnests: UnnestCollector = field(init=False)
    key_unnests: UnnestCollector = field(init=False)  # lists whose elements are grouped by

    def __post_init__(self) -> None:
        self.written_keys = Written(self.context.query, self.scope)
        self.unnests, self.key_unnests = UnnestCollector(self.context), UnnestCollector(self.context)
        definitions = self.select.args.get("windows") or ()
        self.windows = WindowCollector(
            self.context, definitions, self.unnests, OF_ROWS not in self.select.meta
        )
        check_definitions(self.windows.definitions)

    def bind(self) -> BoundQuery:
        select = self.select
        tree = bind_from(self.context, select, self.scope)
        plan: LogicalPlan = Values(((),), ())
        if tree is not None:
            plan = tree.plan
            self.scope.relations = tree.relations
            self.scope.merged = tree.merged
        plan = with_row_numbers(self.context, self.scope, plan, select)
        nodes = expand_items(self.context, self.scope, select.expressions)
        aliases = self.scope.aliases = {
            lower_ascii(item.alias): item for item in nodes if item.is_aliased and item.alias
        }
        where = select.args.get("where")
        if where is not None:
            written = expanded_condition(self.context, self.scope, where.this)
            condition = self.binder("WHERE", None, aliases).bind_condition(written)
            plan = Filter(plan, condition)
        return self._outputs(plan, nodes, aliases)

    def binder(
        self, clause: str, aggregates: AggregateCollector | None, aliases: Aliases
    ) -> ExpressionBinder:
        """For the expressions of one clause of this block."""
        shared = self.bound_items, self.written_keys
        windows = self.windows if clause in (*_HOLD_WINDOWS, self.select.meta.get(OF_ROWS)) else None
        held = self.key_unnests if clause == "GROUP BY" else self.unnests
        unnests = held if clause in _HOLD_UNNESTS else None
        return ExpressionBinder(
            self.context, self.scope, clause, aggregates, windows, aliases, *shared, unnests=unnests
        )

    def _outputs(self, plan: LogicalPlan, nodes: Sequence[Item], aliases: Aliases) -> BoundQuery:
        select = self.select
        group = select.args.get("group")
        collector = AggregateCollector(self.context)
        group_keys = None if group is None else self._group_keys(group, nodes, aliases)
        sets = [()] if group_keys is None else group_keys.sets()
        keys = list(dict.fromkeys(chain(*sets)))
        collector.keys = None if group is None else keys
        self.scope.open_aggregates = (
            collector  # subqueries of the clauses below may hold aggregates of this block
        )
        distinct_clause = select.args.get("distinct")
        lazy = self.lazy and group is None and distinct_clause is None
        uses: list[ColumnUse] = []
        self.scope.uses = uses
        of_all = group is not None and is_of_all(group)
        columns = self._bind_items(nodes, collector, aliases, uses, lazy)
        if of_all:
            kept = set(map(id, columns.items))
            for item in nodes:
                if id(item) not in kept or (self.unnests.lists and _holds_unnest(item)):
                    raise BindError(
                        "unnest() cannot be combined with GROUP BY ALL; unnest in a subquery",
                        span_of(item.node),
                    )
        nodes, bound = columns.items, columns.values
        having = select.args.get("having")
        before = len(uses)
        condition = self._having(having, collector, aliases, keys) if having is not None else None
        if of_all:
            assert group_keys is not None
            values = [self.forced(value, item) for value, item in zip(bound, nodes)]
            keys_by_item = keys_of_all(
                values, columns.uses, columns.aggregates, columns.windows, self.scope.outer_ids()
            )
            keys = list(dict.fromkeys((*keys_by_item, *keys_of_having(uses[before:]))))
            sets = [tuple(keys)]
            for value, item in zip(values, nodes):
                if item.node is not None and value in keys:
                    group_keys.remember(item.node, value)
            uses.clear()
        qualify = select.args.get("qualify")
        if of_all and qualify is not None:
            raise BindError("QUALIFY does not go with GROUP BY ALL; write the keys", span_of(qualify))
        qualification = None if qualify is None else self._qualification(qualify, collector, aliases)
        sort = SortBinder(self, nodes, bound, collector, aliases, keys_by_item if of_all else None)
        sorts = [sort.bind(query.args.get("order")) for query in (select, *self.around)]
        distinct_keys = self._distinct_keys(bound)
        if distinct_keys:  # they mean what they mean in ORDER BY
            keys_of_rows = [exp.Ordered(this=node) for node in distinct_keys]
            sorts.append(sort.bind(exp.Order(expressions=keys_of_rows)))
        self.scope.uses = None
        if collector.calls or having is not None or (bool(keys) if of_all else group is not None):
            check_uses(uses, () if of_all else keys)
            plan, rewriter = self._aggregate(self.key_unnests.over(plan), sets, keys, collector, of_all)
            bound = [rewriter.rewrite(self.forced(value, item)) for value, item in zip(bound, nodes)]
            if condition is not None:
                plan = Filter(plan, rewriter.rewrite(condition))
            sorts = [
                [
                    (rewriter.rewrite(key) if isinstance(key, Expression) else key, descending, nulls_first)
                    for key, descending, nulls_first in keys_of_sort
                ]
                for keys_of_sort in sorts
            ]
            if qualification is not None:
                qualification = rewriter.rewrite(qualification)
            self.windows.rewritten(rewriter)
            self.unnests.rewritten(rewriter.rewrite)
            lazy = False
        plan = self.windows.over(plan)
        if qualification is not None:
            plan = Filter(plan, qualification)
        if self.unnests.lists and self.context.drawn:
            refuse_drawn(
                (part for value in bound if value is not None for part in walk(value)), "beside unnest()"
            )
        plan = self.unnests.over(plan)
        return self._finish(plan, nodes, bound, sorts, lazy, bool(distinct_keys))

    def _distinct_keys(self, values: Sequence[Expression | None]) -> Sequence[exp.Expr]:
        """What tells rows apart for DISTINCT ON, and, where a collation does, for DISTINCT."""
        clause = self.select.args.get("distinct")
        if clause is None:
            return ()
        if clause.args.get("on") is not None:
            return list(clause.args["on"].expressions)
        if not any(value is not None and value.data_type.holds_collation for value in values):
            return ()
        return [exp.Literal.number(place) for place in range(1, len(values) + 1)]

    def _bind_items(
        self,
        nodes: Sequence[Item],
        collector: AggregateCollector,
        aliases: Aliases,
        uses: list[ColumnUse],
        lazy: bool,
    ) -> _Columns:
        """The items of SELECT; `uses` gets the columns that they name."""
        statement = self.select.meta.get(OF_ROWS)
        clause, held = ("SELECT", collector) if statement is None else (statement, None)
        defined: Aliases = {}  # an item may name the aliases before its own
        columns = _Columns()
        for item in nodes:
            before, aggregates_before, windows_before = len(uses), collector.uses, self.windows.uses
            for column, value in self._bind_item(item, self.binder(clause, held, defined), lazy):
                columns.items.append(column)
                columns.values.append(value)
                columns.uses.append(uses[before:])
                columns.aggregates.append(collector.uses > aggregates_before)
                columns.windows.append(self.windows.uses > windows_before)
            alias = "" if item.alias is None else lower_ascii(item.alias)
            if aliases.get(alias) is item:
                defined = {**defined, alias: item}
        return columns

    def _having(
        self, having: exp.Having, collector: AggregateCollector, aliases: Aliases, keys: list[Expression]
    ) -> Expression:
        binder = self.binder("HAVING", collector, aliases)
        binder.keys_before_aliases = keys
        # where an alias goes before a column of the key, the same text means another thing
        columns = {lower_ascii(key.name) for key in keys if isinstance(key, ColumnRef)}
        columns |= {
            name
            for name in self.scope.merged.keys() & set(aliases)
            if any(merged.expression() in keys for merged in self.scope.merged[name])
        }
        binder.written_keys = self.written_keys.where_hidden(set(aliases) - columns)
        condition = binder.bind_condition(having.this)
        if self.windows.is_in(condition):
            raise BindError("an alias of a window function is not allowed in HAVING", span_of(having.this))
        return condition

    def _qualification(
        self, qualify: exp.Qualify, collector: AggregateCollector, aliases: Aliases
    ) -> Expression:
        condition = self.binder("QUALIFY", collector, aliases).bind_condition(qualify.this)
        if not self.windows.calls:
            raise BindError(
                "QUALIFY needs a window function, in SELECT or in its condition", span_of(qualify)
            )
        return condition

    def forced(self, value: Expression | None, item: Item) -> Expression:
        """The value of an item, which may be a column of a star that nobody has asked for yet."""
        if value is not None:
            return value
        assert item.column is not None
        return self.scope.value_of(item.column)

    def _bind_item(
        self, item: Item, binder: ExpressionBinder, lazy: bool
    ) -> Sequence[tuple[Item, Expression | None]]:
        """The item and its expression, which is None for a column of a star that nobody may ever ask for.

        unnest() of structs makes several of one, which no alias stands for.
        """
        known = self.bound_items.get(id(item))
        if known is not None:
            return [(item, known[0])]
        if item.column is not None:
            is_open = lazy and not isinstance(item.column, MergedColumn)
            return [(item, None if is_open else self.scope.value_of(item.column))]
        assert item.node is not None
        call = item.node.unnest()
        is_bound = self.bound_items.get(id(item.node)) or self.written_keys.find(call)
        if not is_unnest(call) or binder.unnests is None or is_bound:
            return [(item, settle(binder.bind_once(item.node)))]
        uses = self.scope.uses or []
        before = len(uses)
        columns = self.unnests.columns(binder, call)
        if columns[0][0] is None:
            value = columns[0][1]
            self.bound_items[id(item.node)] = value, tuple(uses[before:])
            return [(item, value)]
        return [(Item(_field_of(call, name), name), value) for name, value in columns]

    # ---- GROUP BY ----

    def _group_keys(self, group: exp.Group, nodes: Sequence[Item], aliases: Aliases) -> GroupKeys:
        def binder(aliases: Aliases) -> ExpressionBinder:
            made = self.binder("GROUP BY", None, aliases)
            made.written_keys = None  # a key is no part of another
            return made

        known = self.bound_items, self.written_keys
        return GroupKeys(self.context, self.scope, group, nodes, aliases, binder, *known)

    def _aggregate(
        self,
        plan: LogicalPlan,
        sets: Sequence[GroupingSet],
        keys: Sequence[Expression],
        collector: AggregateCollector,
        of_all: bool,
    ) -> tuple[LogicalPlan, GroupedRewriter]:
        """The groups of all sets; `keys`: those that any set has, each once. GROUP BY ALL minds no collation, as in DuckDB."""
        own = {made.id: made for made in plan.schema if not made.data_type.collation}
        own = own if len(sets) == 1 else {}
        fields = {
            key: own[key.id]
            if isinstance(key, ColumnRef) and key.id in own
            else self.context.new_field(_key_name(key), key.data_type)
            for key in keys
        }
        calls, groupings = collector.calls, collector.groupings
        passed = {made.id for key, made in fields.items() if isinstance(key, ColumnRef) and key.id == made.id}
        passed.update(made.id for made in (*calls.values(), *groupings.values()))
        others = {key: ColumnRef.of(made) for key, made in fields.items() if made.id not in passed}
        rewriter = GroupedRewriter(self.scope, frozenset(passed), others)
        if not keys and not calls and self.select.args.get("having") is None:
            sets = sets[:1]  # DuckDB has one row of constants, however many sets without a key there are
        if len(sets) != 1:
            return aggregate_sets(self.context, plan, sets, fields, calls, groupings), rewriter
        parts = tuple(fields.values()), tuple(keys), tuple(calls.values()), tuple(calls)
        aggregated = Aggregate(plan, *parts) if of_all else grouped(self.context, plan, *parts)
        if not groupings:
            return aggregated, rewriter
        constants = [Literal(grouping.number(keys), made.data_type) for grouping, made in groupings.items()]
        outputs = (*map(ColumnRef.of, aggregated.schema), *constants)
        return Project(aggregated, (*aggregated.schema, *groupings.values()), outputs), rewriter

    # ---- SELECT list, DISTINCT, ORDER BY, LIMIT ----

    def _finish(
        self,
        plan: LogicalPlan,
        nodes: Sequence[Item],
        bound: Sequence[Expression | None],
        sorts: Sequence[Sorting],
        lazy: bool,
        has_keys: bool,
    ) -> BoundQuery:
        """`has_keys`: DISTINCT keeps the first row of each value of the last of `sorts`."""
        names = [self._name(item) for item in nodes]
        clause = self.select.args.get("distinct")
        if lazy:
            return self._finish_lazily(plan, nodes, names, bound, sorts)
        visible = len(bound)
        values = [value for value in bound if value is not None]
        places: dict[Expression, int] = {}
        expressions = [key for sort in sorts for key, _, _ in sort if isinstance(key, Expression)]
        if expressions:
            for position, value in enumerate(values):
                places.setdefault(value, position)
        for key in expressions:
            if places.setdefault(key, len(values)) == len(values):
                values.append(key)
        hidden_names = [_key_name(value) for value in values[visible:]]
        project = exact_project(self.context, plan, values, [*names, *hidden_names])
        fields = project.fields
        result: LogicalPlan = project

        def column_of(key: Expression | int) -> ColumnRef:
            return ColumnRef.of(fields[places[key] if isinstance(key, Expression) else key])

        if has_keys:
            order, keys = sort_keys(sorts[0], column_of), sort_keys(sorts[-1], column_of)
            sorts = sorts[:-1]
            result = first_of_each(self.context, project, [key.expression for key in keys], order)
        elif clause is not None:  # a row is sorted by what ORDER BY gives for any of its copies
            hidden = [self.context.new_field(made.name, made.data_type) for made in fields[visible:]]
            fields = (*fields[:visible], *hidden)
            result = distinct(project, visible, hidden)
        result = self._sorted_and_limited(result, sorts, column_of, lazy=False)
        fields = fields[:visible]
        if len(result.schema) > visible:
            result = Project(result, fields, tuple(map(ColumnRef.of, fields)))
        return BoundQuery.exact(result, names, [Branch(names, lambda: self._texts(nodes))])

    def _texts(self, nodes: Sequence[Item]) -> list[tuple[str, str]]:
        """How each item is written, and how with the tables of its columns."""
        written: Written[None] = Written(self.context.query, Scope())
        qualified = Qualified(self.context.query, self.scope)
        texts: list[tuple[str, str]] = []
        for item in nodes:
            if item.node is not None:
                texts.append((written.text(item.node), qualified.text(item.node)))
            elif item.column is not None:
                texts.append((qualified.name_of(item.column),) * 2)
        return texts

    def _name(self, item: Item) -> str:
        if item.name is not None:
            return item.name
        assert item.node is not None
        node = item.node.unnest()
        if isinstance(node, exp.Column):
            table = node.args.get("table")
            return self.scope.display_name(node.name, table.name if table is not None else None)
        if isinstance(node, exp.PositionalColumn):
            return self.scope.column_at(int(node.name), span_of(node)).name
        return expression_name(self.context.query, node)

    def _finish_lazily(
        self,
        plan: LogicalPlan,
        nodes: Sequence[Item],
        names: Sequence[str],
        bound: Sequence[Expression | None],
        sorts: Sequence[Sorting],
    ) -> BoundQuery:
        """A derived table: sort below the projection, which gains outputs as they are referred to."""

        def expression_of(key: Expression | int) -> Expression:
            return key if isinstance(key, Expression) else self.forced(bound[key], nodes[key])

        plan = self._sorted_and_limited(plan, sorts, expression_of, lazy=True)
        return lazy_project(self.context, plan, nodes, names, bound)

    def _sorted_and_limited(
        self,
        plan: LogicalPlan,
        sorts: Sequence[Sorting],
        expression_of: Callable[[Expression | int], Expression],
        lazy: bool,
    ) -> LogicalPlan:
        """The block's ORDER BY and LIMIT, then those of the parentheses around it."""
        for query, sort in zip((self.select, *self.around), sorts, strict=True):
            if sort:
                plan = Sort(plan, sort_keys(sort, expression_of))
            plan = bind_limit(self.context, query, plan, self.scope, lazy=lazy)
        return plan


def _field_of(call: exp.Expr, name: str | None) -> exp.Expr:
    return exp.Anonymous(this="struct_extract", expressions=[call.copy(), exp.Literal.string(name)])


def _key_name(key: Expression) -> str:
    """A display name for a key."""
    if isinstance(key, ColumnRef):
        return key.name
    function = getattr(key, "function", None)
    return str(function) if function else lower_ascii(type(key).__name__)


def _holds_unnest(item: Item) -> bool:
    return item.node is not None and any(map(is_unnest, item.node.walk()))
