"""Variants of a query that say the same, and for which DuckDB raises an error or not: they tell why the engines differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

import sqlglot
from sqlglot import exp

_MIRRORED: dict[type[exp.Expr], type[exp.Binary]] = {
    exp.Add: exp.Add,
    exp.Mul: exp.Mul,
    exp.Sub: exp.Sub,
    exp.EQ: exp.EQ,
    exp.NEQ: exp.NEQ,
    exp.LT: exp.GT,
    exp.LTE: exp.GTE,
    exp.GT: exp.LT,
    exp.GTE: exp.LTE,
}
_FUNCTIONS = ("add", "subtract", "multiply")


def with_swapped_operands(sql: str) -> Iterator[str]:
    """The query with the operands of one operator exchanged; none if it cannot be parsed.

    DuckDB computes them from left to right, and no right one where the left is NULL for all rows at once.
    """
    count = sum(map(_has_operands, _nodes(sql)))
    for position in range(count):
        tree = sqlglot.parse_one(sql, read="duckdb")
        yield _replaced(tree, [node for node in tree.walk() if _has_operands(node)][position], _swapped)


def _nodes(sql: str) -> list[exp.Expr]:
    try:
        return list(sqlglot.parse_one(sql, read="duckdb").walk())
    except sqlglot.ParseError:
        return []


def _replaced(tree: exp.Expr, node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> str:
    new = change(node)
    if node is tree:
        tree = new
    elif new is not node:
        node.replace(new)
    return tree.sql(dialect="duckdb")


def _has_operands(node: exp.Expr) -> bool:
    is_call = isinstance(node, exp.Anonymous) and node.name.lower() in _FUNCTIONS
    return (
        type(node) in _MIRRORED or isinstance(node, exp.Between) or (is_call and len(node.expressions) == 2)
    )


def _swapped(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Anonymous):
        return exp.Anonymous(this=node.this, expressions=[each.copy() for each in node.expressions[::-1]])
    if isinstance(node, exp.Between):
        low = exp.LTE(this=node.args["low"].copy(), expression=node.this.copy())
        high = exp.GTE(this=node.args["high"].copy(), expression=node.this.copy())
        return exp.Paren(this=exp.And(this=low, expression=high))
    return _MIRRORED[type(node)](this=node.expression.copy(), expression=node.this.copy())


_OPERATORS = (
    exp.Add,
    exp.Sub,
    exp.Mul,
    exp.EQ,
    exp.NEQ,
    exp.LT,
    exp.LTE,
    exp.GT,
    exp.GTE,
    exp.Mod,
    exp.Between,
)


def with_null_cases(sql: str) -> str:
    """The query with each left operand x as CASE WHEN x IS NULL THEN NULL ELSE x END; it itself if it cannot be parsed.

    Where x is NULL for all rows, that is one NULL for DuckDB, which then computes no right operand.
    """

    def change(node: exp.Expr) -> exp.Expr:
        first = node.parent is not None and (
            node.arg_key == "this"
            and isinstance(node.parent, _OPERATORS)
            or isinstance(node.parent, exp.Anonymous)
            and node is node.parent.expressions[0]
            and len(node.parent.expressions) > 1
        )
        if not first or isinstance(node, exp.Literal):
            return node
        is_null = exp.Is(this=exp.Paren(this=node.copy()), expression=exp.Null())
        case = exp.Case(ifs=[exp.If(this=is_null, true=exp.Null())], default=node.copy())
        return exp.Paren(this=case)

    return _transformed(sql, change)


def with_null_guards(sql: str) -> str:
    """The query with each operator x + y as CASE WHEN x IS NULL THEN NULL ELSE x + y END; itself if it cannot be parsed.

    Row by row then, DuckDB computes no constant y after an x that is NULL.
    """

    def change(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, _OPERATORS) or isinstance(node.this, exp.Literal):
            return node
        is_null = exp.Is(this=exp.Paren(this=node.this.copy()), expression=exp.Null())
        case = exp.Case(ifs=[exp.If(this=is_null, true=exp.Null())], default=node.copy())
        return exp.Paren(this=case)

    return _transformed(sql, change)


def with_nulls_apart(sql: str) -> str:
    """The query with = for IS NOT DISTINCT FROM: the same where a side is never NULL; itself if it cannot be parsed."""

    def change(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.NullSafeEQ):
            return node
        return exp.EQ(this=node.this.copy(), expression=node.expression.copy())

    return _transformed(sql, change)


def with_text_compared(sql: str, *, of_subqueries: bool) -> str:
    """The query with the left side of each ANY and ALL as VARCHAR, or what their subqueries give; itself if unparsed.

    DuckDB refuses it unless that is text or an ENUM.
    """

    def change(node: exp.Expr) -> exp.Expr:
        if not isinstance(node.args.get("expression"), exp.Any | exp.All):
            return node
        new = node.copy()
        select = new.expression.find(exp.Select)
        if select is None:
            return node
        old = select.expressions[0].unalias() if of_subqueries else new.this
        null = exp.If(this=exp.Boolean(this=False), true=exp.cast(exp.Null(), "VARCHAR"))
        old.replace(exp.Paren(this=exp.Case(ifs=[null], default=old.copy())))
        return new

    return _transformed(sql, change)


def with_inlined_ctes(sql: str) -> str:
    """The query with NOT MATERIALIZED in each CTE; it itself if it cannot be parsed.

    Of one that it materialises DuckDB computes columns that nobody reads.
    """
    try:
        tree = sqlglot.parse_one(sql, read="duckdb")
    except sqlglot.ParseError:
        return sql
    for definition in tree.find_all(exp.CTE):
        definition.set("materialized", False)
    return str(tree.sql(dialect="duckdb"))


def with_shields(sql: str) -> str:
    """The query with each AND and OR as a CASE whose first condition may decide; it itself if it cannot be parsed.

    DuckDB computes all conditions of those that do not stand in WHERE or ON themselves. In WHERE and ON, NULL decides, too.
    """
    return _transformed(sql, _shielded)


def _shielded(node: exp.Expr) -> exp.Expr:
    if not isinstance(node, exp.And | exp.Or):
        return node
    first, decided = exp.Paren(this=node.this.copy()), isinstance(node, exp.Or)
    if not decided and (isinstance(node.parent, exp.Where) or node.arg_key == "on"):
        second = exp.Paren(this=node.expression.copy())
        case = exp.Case(ifs=[exp.If(this=first, true=second)], default=exp.Boolean(this=False))
        return exp.Paren(this=case)
    case = exp.Case(
        ifs=[
            exp.If(
                this=exp.Is(this=first, expression=exp.Boolean(this=decided)), true=exp.Boolean(this=decided)
            )
        ]
    )
    case.set("default", node.copy())
    return exp.Paren(this=case)


def with_late_conditions(sql: str) -> str:
    """The query with what stands in ON of inner joins as conditions of WHERE; it itself if it cannot be parsed.

    A condition on one side then sees only the rows that have found a partner, if nothing is optimized.
    """

    def late(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Select):
            return node
        joins = [*(node.args.get("joins") or ()), *_joins_of_first(node)]
        conditions = []
        for join in joins:
            if join.args.get("on") is not None and not join.args.get("side") and join.kind in ("", "INNER"):
                conditions.append(join.args["on"])
                join.set("on", exp.Boolean(this=True))
        for condition in conditions:
            node = node.where(condition, copy=False)
        return node

    return _transformed(sql, late)


def _joins_of_first(select: exp.Select) -> list[exp.Join]:
    clause = select.args.get("from_")
    return [] if clause is None else list(clause.this.args.get("joins") or ())


def _transformed(sql: str, change: Callable[[exp.Expr], exp.Expr]) -> str:
    try:
        tree = sqlglot.parse_one(sql, read="duckdb")
    except sqlglot.ParseError:
        return sql
    # from below: what is put in is not changed again
    for node in reversed(list(tree.walk())):
        new = change(node)
        if new is not node:
            if node is tree:
                tree = new
            else:
                node.replace(new)
    return str(tree.sql(dialect="duckdb"))


#: Of how many tables a condition is asked at most.
_MAX_TABLES = 3
#: Any type takes one of them.
_TEXTS = ("'0.1'", "'true'", "'2000-01-01'", "'12:00:00'", "'1 day'")


def with_lone_operands(sql: str) -> Iterator[str]:
    """What stands on the left of each INTERSECT and EXCEPT; none if it cannot be parsed.

    Where the other side decides that no row is left of it, DuckDB need not compute it.
    """
    for node in _nodes(sql):
        if isinstance(node, exp.Intersect | exp.Except):
            yield f"{_ctes(sql)}{node.this.sql(dialect='duckdb')}"


def with_lone_keys(sql: str) -> Iterator[str]:
    """For each condition of several tables, the question whether it is true of the rows of those tables; none if unparsed.

    In whatever order tables are joined, and whichever side is computed first: a join's keys see no more rows than these.
    Of a correlated subquery also its other conditions, which may be computed once and not for each row around it.
    """
    for select in _selects(sql):
        tables = _tables(select)
        is_inner = isinstance(select.parent, exp.Subquery | exp.Exists | exp.In) and not _is_table(
            select.parent
        )
        for condition in _conditions(select):
            for number in range(1 if is_inner else 2, _MAX_TABLES + 1):
                for few in combinations(tables, number):
                    for kind in ("CROSS JOIN", "FULL JOIN"):
                        yield from _asked(sql, few, kind, condition)


def _asked(sql: str, tables: tuple[exp.Expr, ...], kind: str, condition: exp.Expr) -> Iterator[str]:
    """Rows of which one stands beside NULLs show what fails before there is a partner."""
    end = " ON FALSE" if kind == "FULL JOIN" else ""
    texts = [_padded(table, kind).sql(dialect="duckdb") for table in tables]
    source = texts[0] + "".join(f" {kind} {text}{end}" for text in texts[1:])
    for each in {condition.sql(dialect="duckdb"), _swapped_all(condition).sql(dialect="duckdb")}:
        yield f"{_ctes(sql)}SELECT NULL FROM {source} WHERE {each}"


def _padded(table: exp.Expr, kind: str) -> exp.Expr:
    """A table with its inner joins as FULL JOIN ON FALSE, if that is the kind: all rows of all that it is made of."""
    table = table.copy()
    if kind == "FULL JOIN":
        for join in table.find_all(exp.Join):
            if not join.args.get("side"):
                join.set("kind", None)
                join.set("side", "FULL")
                join.set("on", exp.Boolean(this=False))
    return table


def _swapped_all(condition: exp.Expr) -> exp.Expr:
    tree = exp.Paren(this=condition.copy())
    for node in reversed(list(tree.walk())):
        if type(node) in _MIRRORED:
            node.replace(_swapped(node))
    return tree


def without_condition(sql: str) -> Iterator[str]:
    """The query without one of its WHERE clauses, or with one ON TRUE; none if it cannot be parsed."""
    for position, select in enumerate(_selects(sql)):
        if select.args.get("where") is not None:
            tree = sqlglot.parse_one(sql, read="duckdb")
            list(tree.find_all(exp.Select))[position].set("where", None)
            yield tree.sql(dialect="duckdb")
    for position, join in enumerate(each for each in _nodes(sql) if isinstance(each, exp.Join)):
        if join.args.get("on") is not None:
            tree = sqlglot.parse_one(sql, read="duckdb")
            joins = [each for each in tree.walk() if isinstance(each, exp.Join)]
            joins[position].set("on", exp.Boolean(this=True))
            yield tree.sql(dialect="duckdb")


def with_other_items(sql: str) -> Iterator[tuple[str, list[str]]]:
    """The query with one item of a subquery in FROM as NULL, and as constants that are not NULL.

    Where the answer stays the same nobody reads the item.
    """
    for position, select in enumerate(_selects(sql)):
        if not (isinstance(select.parent, exp.CTE) or _is_table(select.parent)):
            continue
        for number, item in enumerate(select.expressions):
            if isinstance(item, exp.Column | exp.Star):
                continue
            texts = []
            for value in ("NULL", *_TEXTS):
                tree = sqlglot.parse_one(sql, read="duckdb")
                old = list(tree.find_all(exp.Select))[position].expressions[number].unalias()
                for part in _arguments(old) or [old]:
                    case = exp.Case(ifs=[exp.If(this=exp.Boolean(this=False), true=part.copy())])
                    case.set("default", sqlglot.parse_one(value, read="duckdb"))
                    part.replace(exp.Paren(this=case))
                texts.append(tree.sql(dialect="duckdb"))
            yield texts[0], texts[1:]


def _arguments(item: exp.Expr) -> list[exp.Expr]:
    """Of the aggregates in an item."""
    sets = [each.this for each in item.find_all(exp.AggFunc)]
    return [each.expressions[0] if isinstance(each, exp.Distinct) else each for each in sets if each]


def _selects(sql: str) -> list[exp.Select]:
    try:
        return list(sqlglot.parse_one(sql, read="duckdb").find_all(exp.Select))
    except sqlglot.ParseError:
        return []


def _is_table(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Subquery) and isinstance(node.parent, exp.From | exp.Join)


def _tables(select: exp.Select) -> list[exp.Expr]:
    """What stands in FROM, without the joins between."""
    clause = select.args.get("from_")
    if clause is None:
        return []
    joins = [*_joins_of_first(select), *(select.args.get("joins") or ())]
    tables = [clause.this.copy(), *(join.this.copy() for join in joins)]
    for table in tables:
        table.set("joins", None)
    return tables


def _conditions(select: exp.Select) -> list[exp.Expr]:
    joins = [*_joins_of_first(select), *(select.args.get("joins") or ())]
    whole = [join.args["on"] for join in joins if join.args.get("on") is not None]
    if select.args.get("where") is not None:
        whole.append(select.args["where"].this)
    return [part for each in whole for part in (each.flatten() if isinstance(each, exp.And) else [each])]


def _ctes(sql: str) -> str:
    clause = sqlglot.parse_one(sql, read="duckdb").args.get("with_")
    return "" if clause is None else clause.sql(dialect="duckdb") + " "
