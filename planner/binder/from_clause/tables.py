"""The FROM clause: tables, derived tables, VALUES, CTE references and joins, as one plan and the names it offers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from sqlglot import exp

from tqp.core.datatypes import BIGINT, BOOLEAN
from tqp.core.errors import BindError, UnsupportedError, nearest
from tqp.core.keywords import lower_ascii
from tqp.core.names import MAIN, SYSTEM_SCHEMAS
from tqp.core.schema import Field, TableSource
from tqp.planner.algebra.expressions import (
    TRUE,
    Call,
    Expression,
    SortKey,
    conjunction,
    conjuncts,
)
from tqp.planner.algebra.logical_plan import (
    Join,
    JoinType,
    LogicalPlan,
    Scan,
    Sort,
)
from tqp.planner.algebra.node import grow
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.scalars import ExpressionBinder
from tqp.planner.binder.from_clause.asof import asof_join
from tqp.planner.binder.from_clause.ctes import bind_reference
from tqp.planner.binder.from_clause.descriptions import (
    TABLE_DESCRIPTIONS,
    bind_description,
    bind_summary_function,
    bind_table_description,
)
from tqp.planner.binder.from_clause.files import (
    FILE_FUNCTIONS,
    bind_file_function,
    file_named,
    relation_name,
    with_types,
)
from tqp.planner.binder.from_clause.histograms import HISTOGRAMS, bind_histogram
from tqp.planner.binder.from_clause.json_rows import bind_json_rows
from tqp.planner.binder.from_clause.model_tables import bind_table_function
from tqp.planner.binder.from_clause.ordinality import with_ordinality
from tqp.planner.binder.from_clause.pivots import bind_pivot
from tqp.planner.binder.from_clause.query_functions import QUERY_FUNCTIONS, bind_query_function
from tqp.planner.binder.from_clause.recursive import recurring_name
from tqp.planner.binder.from_clause.repeats import REPEATS, bind_repeat
from tqp.planner.binder.from_clause.samples import sampled
from tqp.planner.binder.from_clause.series import SERIES, bind_series
from tqp.planner.binder.from_clause.unnests import bind_unnest
from tqp.planner.binder.from_clause.unpivots import bind_unpivot
from tqp.planner.binder.from_clause.using import merged_columns, natural_names
from tqp.planner.binder.from_clause.values import bind_values
from tqp.planner.binder.from_clause.views import bind_view
from tqp.planner.binder.scope import (
    MergedColumn,
    MergedColumns,
    Relation,
    Scope,
    ScopeColumn,
    both_merged,
)
from tqp.planner.binder.select.output import BoundQuery, Item, lazy_project
from tqp.planner.binder.select.row_numbers import numbered
from tqp.planner.binder.unsupported_clauses import check_understood
from tqp.planner.catalog_protocol import View
from tqp.planner.functions.json import ROW_FUNCTIONS
from tqp.planner.parse import Span, head_span, span_of


@dataclass(slots=True)
class FromTree:
    """A plan and the relations it offers, in order."""

    plan: LogicalPlan
    relations: list[Relation]
    merged: MergedColumns = field(default_factory=dict)
    #: The tables before the comma are part of the plan, for a condition that reads them; their names stay apart.
    holds_earlier: bool = False
    #: What follows the comma is joined for each row by itself, where a condition there reads these tables.
    stays_outside: bool = False


def bind_from(context: BindContext, select: exp.Select, outer: Scope) -> FromTree | None:
    """FROM with all its joins; None for SELECT without FROM."""
    clause = select.args.get("from_")
    if clause is None:
        return None
    first = _bind_table(context, clause.this, outer, outer)
    tree = _joined(context, first, select.args.get("joins"), outer)
    tree.plan = sampled(context, tree.plan, select.args.get("sample"))
    return tree


def _joined(
    context: BindContext, first: FromTree, joins: Sequence[exp.Join] | None, outer: Scope
) -> FromTree:
    """A list of comma-separated join chains: each chain is a tree of its own, and the trees are crossed."""
    joins = joins or ()
    done: FromTree | None = None
    tree = first
    for index, join in enumerate(joins):
        if _is_comma(join):
            done = tree if done is None else _cross(done, tree)
            done.stays_outside = _keeps_right_rows(joins[index + 1 :])
            tree = _bind_table(context, join.this, outer, _siblings(outer, done))
        elif isinstance(join.this, exp.Pivot):
            tree = _pivoted(context, tree, join, outer)
        else:
            tree = _bind_join(context, tree, join, outer, done)
    return tree if done is None else _cross(done, tree)


def _pivoted(context: BindContext, tree: FromTree, join: exp.Join, outer: Scope) -> FromTree:
    """PIVOT or UNPIVOT of the tables before it, up to the comma."""
    node = join.this
    if tree.holds_earlier:
        raise UnsupportedError(
            f"{join.args['method']} of a join that reads tables before the comma is not supported",
            head_span(node),
        )
    scope = Scope(tree.relations, outer.parent, outer.ctes, tree.merged)
    bind = bind_unpivot if node.unpivot else bind_pivot
    bound = bind(context, node, scope, tree.plan)
    return _under_alias(node, bound)


def _keeps_right_rows(joins: Sequence[exp.Join]) -> bool:
    """Whether there is a RIGHT or FULL JOIN before the next comma."""
    chain = itertools.takewhile(lambda join: not _is_comma(join), joins)
    return any(str(join.args.get("side") or "").upper() in ("RIGHT", "FULL") for join in chain)


def _is_comma(join: exp.Join) -> bool:
    arguments = join.args
    return not any(arguments.get(key) for key in ("kind", "side", "method", "on", "using"))


def _cross(left: FromTree, right: FromTree) -> FromTree:
    plan = right.plan if right.holds_earlier else Join(left.plan, right.plan, JoinType.INNER)
    return FromTree(plan, left.relations + right.relations, both_merged(left.merged, right.merged))


def _siblings(outer: Scope, *trees: FromTree | None) -> Scope:
    """What a derived table may refer to: the tables before it (it is then LATERAL), then the enclosing query."""
    known = [tree for tree in trees if tree is not None]
    if not known:
        return outer
    scope = Scope(parent=outer.parent, ctes=outer.ctes)
    for tree in known:
        scope.relations += tree.relations
        scope.merged = both_merged(scope.merged, tree.merged)
    return scope


# ---- joins ----

_SIDES = {"": JoinType.INNER, "LEFT": JoinType.LEFT, "RIGHT": JoinType.LEFT, "FULL": JoinType.FULL}
_KINDS = {"SEMI": JoinType.SEMI, "ANTI": JoinType.ANTI}


def _bind_join(
    context: BindContext, left: FromTree, join: exp.Join, outer: Scope, before: FromTree | None
) -> FromTree:
    check_understood(join)
    method = str(join.args.get("method") or "").upper()
    side = str(join.args.get("side") or "").upper()
    kind = str(join.args.get("kind") or "").upper()
    span = head_span(join)
    if method not in ("", "NATURAL", "POSITIONAL", "ASOF") or kind not in (
        "",
        "INNER",
        "OUTER",
        "CROSS",
        "SEMI",
        "ANTI",
    ):
        raise UnsupportedError(f"{method or kind} JOIN is not supported", span)
    join_type = _KINDS.get(kind) or _SIDES[side]
    siblings = _siblings(outer, before, left)
    right = _bind_table(context, join.this, outer, siblings)
    if (
        join_type not in (JoinType.INNER, JoinType.LEFT)
        or side == "RIGHT"
        or method in ("POSITIONAL", "ASOF")
    ):
        _check_independent(left, siblings, f"{side or kind or method} JOIN")
    names: list[tuple[str, Span | None]] = []  # of USING, in lower case
    both = FromTree(
        left.plan,
        left.relations + right.relations,
        both_merged(left.merged, right.merged),
        left.holds_earlier,
    )
    if method == "POSITIONAL":
        for relation in both.relations:
            relation.is_padded = True
        both.plan = _by_position(context, left.plan, right.plan)
        return both
    condition: Expression = TRUE
    on, using = join.args.get("on"), join.args.get("using")
    if on is not None:
        earlier = None if before is None else _siblings(outer, before)
        scope = Scope(both.relations, earlier or outer.parent, outer.ctes, both.merged)
        condition = ExpressionBinder(context, scope, "ON").bind_condition(on)
        is_apart = before is not None and not before.stays_outside and not left.holds_earlier
        if before is not None and earlier is not None and earlier.used and is_apart:
            left.plan = Join(before.plan, left.plan, JoinType.INNER)
            left.holds_earlier = both.holds_earlier = True
    elif using or method == "NATURAL":
        names = (
            [(lower_ascii(each.name), head_span(each)) for each in using]
            if using
            else natural_names(left, right, span)
        )
        condition, merged = merged_columns(left, right, names, join_type, side)
        both.merged = {**both.merged, **merged}
    elif kind != "CROSS" and (side or kind in _KINDS or method == "ASOF"):
        raise BindError("this join needs ON or USING", span)
    if method == "ASOF":
        if names:  # the last column of USING is the one by which the nearest row is found
            *equal, last = conjuncts(condition)
            assert isinstance(last, Call)
            condition = conjunction((*equal, replace(last, function="greater_equal")))
        is_filter = kind in _KINDS  # which looks for any row that may be the nearest
        asof_type = JoinType.RIGHT if side == "RIGHT" else JoinType.INNER if is_filter else join_type
        earlier_ids = () if before is None else [field.id for field in before.plan.schema]
        both.plan = asof_join(left.plan, right.plan, condition, asof_type, earlier_ids, span)
        if not is_filter:
            return _padded(both, left, right, side)
    if join_type in (JoinType.SEMI, JoinType.ANTI):
        kept = {**left.merged, **{name: both.merged[name] for name, _ in names}}
        plan = Join(left.plan, right.plan, join_type, condition)
        return FromTree(plan, left.relations, kept, both.holds_earlier)
    if side == "RIGHT":
        both.plan = Join(right.plan, left.plan, JoinType.LEFT, condition)
    else:
        both.plan = Join(left.plan, right.plan, join_type, condition)
    return _padded(both, left, right, side)


def _padded(both: FromTree, left: FromTree, right: FromTree, side: str) -> FromTree:
    """The joined relations, with a note of those whose rows an outer join may pad."""
    for relation in {"": (), "LEFT": right.relations, "RIGHT": left.relations}.get(side, both.relations):
        relation.is_padded = True
    return both


def _by_position(context: BindContext, left: LogicalPlan, right: LogicalPlan) -> LogicalPlan:
    """The first rows beside each other, then the second ones, and so on; NULLs where a side has no more."""
    (left, mine), (right, theirs) = numbered(context, left), numbered(context, right)
    joined = Join(left, right, JoinType.FULL, Call("equal", (mine, theirs), BOOLEAN))
    return Sort(joined, (SortKey(Call("coalesce", (mine, theirs), BIGINT)),))


def _check_independent(left: FromTree, siblings: Scope, shown: str) -> None:
    """Refuse a right side that reads columns of the left one where rows without a partner are asked for.

    Raises BindError, as DuckDB does; UnsupportedError for a POSITIONAL JOIN, which DuckDB answers.
    """
    error = UnsupportedError if shown.startswith("POSITIONAL") else BindError
    own = {field.id for field in left.plan.schema}
    for id, (name, span) in siblings.used.items():
        if id in own:
            raise error(
                f'the right side of this {shown} reads "{name}" of its left side (LATERAL); '
                "only JOIN, LEFT JOIN and CROSS JOIN may do so",
                span,
            )


# ---- single relations ----

#: Table functions whose arguments are constants, which say all of their rows and columns.
_OF_CONSTANTS: Mapping[str, Callable[[BindContext, exp.Anonymous, Span | None], BoundQuery]] = {
    **dict.fromkeys(REPEATS, bind_repeat),
    **dict.fromkeys(TABLE_DESCRIPTIONS, bind_table_description),
}


def _bind_table(context: BindContext, node: exp.Expr, outer: Scope, siblings: Scope) -> FromTree:
    """One relation; `siblings` holds the tables before it."""
    tree = _bind_whole_table(context, node, outer, siblings)
    tree.plan = sampled(context, tree.plan, node.args.get("sample"))
    return _joined(context, tree, node.args.get("joins"), outer)


def _bind_whole_table(context: BindContext, node: exp.Expr, outer: Scope, siblings: Scope) -> FromTree:
    """One relation without its sample, and without the joins in its parentheses."""
    check_understood(node)
    if isinstance(node, exp.Table):
        return _bind_named_table(context, node, outer, siblings)
    if isinstance(node, exp.Subquery):
        return _bind_derived(context, node, siblings, outer)
    if isinstance(node, exp.Values):
        return _under_alias(node, bind_values(context, node, siblings))
    if isinstance(node, exp.Unnest):
        return _table_function(node, bind_unnest(context, node, siblings), "unnest")
    if isinstance(node, exp.Describe):
        return _under_alias(node, bind_description(context, node, siblings))
    if isinstance(node, exp.Lateral):
        inner = node.this
        if isinstance(inner, exp.Subquery):
            return _under_alias(node, context.bind_query.bind_lazy(inner.this, siblings))
        if isinstance(inner, exp.Unnest):
            return _table_function(node, bind_unnest(context, inner, siblings), "unnest")
        if isinstance(inner, exp.Anonymous) and lower_ascii(inner.name) in ROW_FUNCTIONS:
            return _under_alias(node, bind_json_rows(context, inner, siblings), inner.name)
        if isinstance(inner, exp.Anonymous) and lower_ascii(inner.name) in SERIES:
            return _table_function(node, bind_series(context, inner, siblings, head_span(node)), inner.name)
        raise UnsupportedError("LATERAL over a function is not supported", span_of(node))
    raise UnsupportedError(f"{type(node).__name__.upper()} in FROM is not supported", span_of(node))


def _bind_named_table(context: BindContext, node: exp.Table, outer: Scope, siblings: Scope) -> FromTree:
    if isinstance(node.this, exp.Identifier):
        return _bind_table_name(context, node, node.this.name, outer)
    if isinstance(node.this, exp.Values):  # the first of the tables in parentheses
        return _under_alias(node, bind_values(context, node.this, siblings))
    name = lower_ascii(node.this.name)
    schema = node.args.get("db")
    if schema is not None and lower_ascii(schema.name) != MAIN:
        raise BindError(f'there is no table function "{schema.name}.{node.this.name}"', head_span(node))
    bound, shown = _bind_function(context, node, name, siblings)
    if node.args.get("ordinality"):
        bound = with_ordinality(context, bound, node.this)
    return (_table_function if name in SERIES else _under_alias)(node, bound, shown)


#: Pragmas that tell of the engine, as tables.
_PRAGMAS = tuple(f"pragma_{name}" for name in ("version", "database_size", "platform", "user_agent"))


def _bind_function(
    context: BindContext, node: exp.Table, name: str, siblings: Scope
) -> tuple[BoundQuery, str]:
    """What a table function gives, and what it is called."""
    span, shown = head_span(node), node.this.name
    if name in SERIES:
        return bind_series(context, node.this, siblings, span), shown
    if name in _OF_CONSTANTS:
        return _OF_CONSTANTS[name](context, node.this, span), shown
    if (name.startswith("duckdb_") or name in _PRAGMAS) and not node.this.expressions:
        return _scan_system_table(context, f"{name}()", (), span), name
    if name in FILE_FUNCTIONS:
        table, wanted = bind_file_function(context, node.this, span)
        return with_types(context, _scan(context, table, table.name), wanted), shown
    if name in ROW_FUNCTIONS:
        return bind_json_rows(context, node.this, siblings), shown
    if name == "summary":
        return bind_summary_function(context, node.this, siblings, span), shown
    bind = bind_query_function if name in QUERY_FUNCTIONS else bind_table_function
    bind = bind_histogram if name in HISTOGRAMS else bind
    return bind(context, node.this, siblings, span), ""


def _bind_table_name(context: BindContext, node: exp.Table, name: str, outer: Scope) -> FromTree:
    span = head_span(node)
    qualifiers = [node.args[part].name for part in ("catalog", "db") if node.args.get(part) is not None]
    definition = None
    if not qualifiers:
        definition = outer.ctes.get(lower_ascii(name))
    elif lower_ascii(qualifiers[-1]) == "recurring":
        definition = outer.ctes.get(recurring_name(name))
    if definition is not None:
        bound = bind_reference(context, definition)
        # as in DuckDB, more names than there are columns are left out
        renamed = _relation(name, bound.columns, definition.columns[: len(bound.columns)], span)
        return _under_alias(node, replace(bound, columns=renamed.columns), name)
    catalog, relation = context.catalog, name
    schemas = catalog.schemas_named(qualifiers, span) if qualifiers else ()
    table = None if qualifiers else context.inputs.get(lower_ascii(name))
    table = table or catalog.lookup(name, schemas) or catalog.lookup_view(name, schemas)
    if isinstance(table, View):
        return _under_alias(node, bind_view(context, table, span), name, table.place.schema)
    if SYSTEM_SCHEMAS.issuperset(schemas) and schemas:
        return _under_alias(node, _scan_system_table(context, name, schemas, span), name, *schemas)
    if table is None and lower_ascii(name).startswith(("pg_", "sqlite_")):
        table = catalog.lookup(name, ("pg_catalog",))
    if table is None and lower_ascii(name) in _SYSTEM_VIEWS:
        table = catalog.lookup(f"{lower_ascii(name)}()")
    if table is None and not qualifiers:
        table, relation = file_named(context, name, span), relation_name(name)
    if table is None:
        known = [*context.inputs, *catalog.table_names(), *(each.name for each in outer.ctes.values())]
        hint = nearest(name, known) or (f" (tables: {', '.join(list(known)[:12])})" if known else "")
        raise BindError(f'there is no table "{".".join((*qualifiers, name))}"{hint}', span)
    return _under_alias(node, _scan(context, table, name), relation, table.place.schema)


#: Functions that tell of the catalog, and are views as well.
_SYSTEM_VIEWS = frozenset(
    f"duckdb_{each}" for each in "columns constraints databases indexes schemas tables types views".split()
)


def _scan_system_table(
    context: BindContext, name: str, schemas: tuple[str, ...], span: Span | None
) -> BoundQuery:
    """What tells about the catalog itself."""
    table = context.catalog.lookup(name, schemas)
    if table is None:
        raise UnsupportedError(f"{'.'.join((*schemas, name))} is not supported", span)
    return _scan(context, table, name.removesuffix("()"))


def _scan(context: BindContext, table: TableSource, name: str) -> BoundQuery:
    """A scan that gains a column when one is first referred to.

    The node is frozen for everyone else; while binding, `fields` and `columns` grow together, because only the whole
    statement shows what the query reads.
    """
    scan = Scan(table, name, (), ())

    def make(column: str) -> Field:
        made = context.new_field(column, table.column_type(column))
        grow(scan, columns=(*scan.columns, column), fields=(*scan.fields, made))
        return made

    visible = [ScopeColumn(column, partial(make, column)) for column in table.column_names]
    hidden = [ScopeColumn(column, partial(make, column), is_hidden=True) for column in table.hidden_names]
    return BoundQuery(scan, [*visible, *hidden])


def _bind_derived(context: BindContext, node: exp.Subquery, scope: Scope, outer: Scope) -> FromTree:
    inner = node.this
    is_table = _is_table(inner)
    if not is_table:
        bound = context.bind_query.bind_lazy(node if node.args.get("with_") else inner, scope)
        tree = _under_alias(node, bound)
    else:
        tree = _bind_table(context, inner, outer, scope)
    if node.alias and is_table:
        parts = list(Scope(tree.relations, merged=tree.merged).star(None))
        joined = lazy_project(
            context,
            tree.plan,
            [Item(None, name, name, column) for name, column in parts],
            [name for name, _ in parts],
            [column.expression() if isinstance(column, MergedColumn) else None for _, column in parts],
        )
        tree = _under_alias(node, joined)
    return tree


def _is_table(node: exp.Expr) -> bool:
    """Whether parentheses hold tables, not a query: FROM (a JOIN b ON ...), FROM ((SELECT 1) a JOIN b ON ...)."""
    while isinstance(node, exp.Subquery):
        if node.args.get("alias") or node.args.get("joins"):
            return True
        node = node.this
    return isinstance(node, (exp.Table, exp.Join))


def _under_alias(node: exp.Expr, bound: BoundQuery, name: str = "", schema: str | None = None) -> FromTree:
    """The query as a relation that is called by the node's alias, or, if it has none, by `name`, which may stand behind that of its schema."""
    relation = _relation(node.alias or name, bound.columns, node.alias_column_names, head_span(node))
    relation.schema = None if node.alias else schema
    return FromTree(bound.plan, [relation])


def _table_function(node: exp.Expr, bound: BoundQuery, name: str) -> FromTree:
    """A table whose first column is named after it, where its columns get no names; the name it had may be written, too.

    In DuckDB one of other tables' columns WITH ORDINALITY keeps its names.
    """
    columns = list(bound.columns)
    if node.alias and not node.alias_column_names and not (len(columns) > 1 and bound.plan.free_ids):
        first = columns[0]
        former = ScopeColumn(first.name, first.field, is_hidden=True)
        columns[0] = first.renamed(node.alias)
        columns += [former] if lower_ascii(former.name) != lower_ascii(node.alias) else []
    return _under_alias(node, replace(bound, columns=columns), name)


def _relation(
    alias: str, columns: Sequence[ScopeColumn], names: Sequence[str], span: Span | None
) -> Relation:
    """The columns under an alias list, which may be shorter than they are."""
    num_columns = sum(not column.is_hidden for column in columns)
    if len(names) > num_columns:
        raise BindError(f'"{alias}" has {num_columns} columns, and {len(names)} names are given', span)
    renamed = [column.renamed(name) for column, name in zip(columns, names)]
    return Relation(alias, [*renamed, *columns[len(names) :]])
