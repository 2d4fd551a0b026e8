"""Variants of a query that say the same, and for which DuckDB raises an error or not: they tell why the engines differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

from sqlglot import exp

from tqp import Error
from tqp.planner.parse import parse

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


def with_swapped_operands(sql: str) -> Iterator[str]:
    """The query with the operands of one operator exchanged; none if it cannot be parsed.

    DuckDB computes them from left to right, and no right one where the left is NULL for all rows at once.
    """
    tree = parsed(sql)
    for node in filter(_has_operands, list(tree.walk()) if tree else ()):
        copy = _swapped(node)
        node.replace(copy)
        yield text_of_tree(tree)
        copy.replace(node)


def parsed(sql: str) -> exp.Expr | None:
    """The tree of a query, in which calls stay as they were written; None if it cannot be parsed."""
    try:
        return parse(sql).tree
    except Error:
        return None


def text_of_tree(tree: exp.Expr) -> str:
    """SQL of a tree."""
    return str(tree.sql(dialect="duckdb"))


def _nodes(sql: str) -> list[exp.Expr]:
    tree = parsed(sql)
    return [] if tree is None else list(tree.walk())


def _has_operands(node: exp.Expr) -> bool:
    is_call = _is_call(node, "add", "subtract", "multiply") and len(node.expressions) == 2
    is_case = isinstance(node, exp.Case) and node.this is not None
    return type(node) in _MIRRORED or isinstance(node, exp.Between) or is_call or is_case


def _is_call(node: exp.Expr, *names: str) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() in names and bool(node.expressions)


def _swapped(node: exp.Expr) -> exp.Expr:
    if isinstance(node, exp.Anonymous):
        return exp.Anonymous(this=node.this, expressions=[each.copy() for each in node.expressions[::-1]])
    if isinstance(node, exp.Between):
        low = exp.LTE(this=node.args["low"].copy(), expression=node.this.copy())
        high = exp.GTE(this=node.args["high"].copy(), expression=node.this.copy())
        return exp.Paren(this=exp.And(this=low, expression=high))
    if isinstance(node, exp.Case):
        branches = [
            exp.If(
                this=exp.EQ(this=each.this.copy(), expression=node.this.copy()), true=each.args["true"].copy()
            )
            for each in node.args["ifs"]
        ]
        default = node.args.get("default")
        return exp.Case(ifs=branches, default=default and default.copy())
    return _MIRRORED[type(node)](this=node.expression.copy(), expression=node.this.copy())


_OPERATORS = (*_MIRRORED, exp.Mod, exp.Between, exp.In)


def with_null_guards(sql: str) -> str:
    """The query with each operator x + y as CASE WHEN x IS NULL THEN NULL ELSE x + y END; itself if it cannot be parsed.

    Row by row then, DuckDB computes no constant y after an x that is NULL. Where y is no constant the operator stays: DuckDB
    may crash where CASE joins.
    """

    def has_constant(node: exp.Expr) -> bool:
        return any(each is not node.this and not each.find(exp.Column) for each in node.iter_expressions())

    return _transformed(
        sql, lambda node: _guarded(node) if isinstance(node, _OPERATORS) and has_constant(node) else node
    )


def with_guarded_rounding(sql: str) -> str:
    """The query with NULL as what round() and trunc() make of NULL: DuckDB has 0 if no digit of a DECIMAL is left."""
    return _transformed(sql, lambda node: _guarded(node) if _is_call(node, "round", "trunc") else node)


def with_whole_parts(sql: str) -> str:
    """The query with the parts of constant dates as BIGINTs: DuckDB has DOUBLEs if the date is NULL, however that is computed."""

    def change(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Extract):
            part, date = node.this.name, node.expression
        elif _is_call(node, "date_part", "datepart") and len(node.expressions) == 2:
            part, date = node.expressions[0].name, node.expressions[1]
        else:
            return node
        is_constant = date.find(exp.Column, exp.Query) is None
        has_fraction = part.lower() in ("epoch", "julian")
        return exp.cast(node.copy(), "BIGINT") if is_constant and not has_fraction else node

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


def _guarded(node: exp.Expr) -> exp.Expr:
    first = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
    if isinstance(first, exp.Literal):
        return node
    is_null = exp.Is(this=exp.Paren(this=first.copy()), expression=exp.Null())
    case = exp.Case(ifs=[exp.If(this=is_null, true=exp.Null())], default=node.copy())
    return exp.Paren(this=case)


def _transformed(sql: str, change: Callable[[exp.Expr], exp.Expr]) -> str:
    tree = parsed(sql)
    if tree is None:
        return sql
    # from below: what is put in is not changed again
    for node in reversed(list(tree.walk())):
        new = change(node)
        if new is not node:
            node.replace(new)
    return text_of_tree(tree)


def _joins_of_first(select: exp.Select) -> list[exp.Join]:
    clause = select.args.get("from_")
    return [] if clause is None else list(clause.this.args.get("joins") or ())


#: Of how many tables a condition is asked at most.
_MAX_TABLES = 3


def with_lone_tables(sql: str) -> Iterator[str]:
    """Each subquery of FROM, and what stands on the left of each INTERSECT and EXCEPT; none if it cannot be parsed.

    Where what it is joined with decides that no row is left of it, DuckDB need not compute it.
    """
    for node in _nodes(sql):
        if isinstance(node, exp.Intersect | exp.Except | exp.CTE) or _is_table(node):
            yield f"{_ctes(sql)}{text_of_tree(node.this)}"


def with_lone_keys(sql: str) -> Iterator[str]:
    """For each condition of several tables, the question whether it is true of the rows of those tables; none if unparsed.

    In whatever order tables are joined, and whichever side is computed first: a join's keys see no more rows than these.
    Of a correlated subquery also its other conditions and items, which may be computed once and not for each row around it,
    and what is looked for in it. A condition with a subquery may be asked of one of the tables before it is joined.
    """
    for select in _selects(sql):
        own, around = _tables(select), [table for each in _around(select) for table in _tables(each)]
        conditions, keys = _conditions(select), []
        if _is_correlated(select, around):
            keys = [*conditions, *map(_question, select.expressions)]
            conditions = []
        elif len(own) > 1:
            keys = [each for each in conditions if each.find(exp.Query)]
        keys += [_question(each) for condition in _conditions(select) for each in _looked_for(condition)]
        for least, questions in ((1, keys), (2, conditions)):
            for condition in questions:
                names = {column.table for column in condition.find_all(exp.Column)}
                tables = [each for each in own if not names or names & {"", each.alias_or_name}]
                tables += [each for each in around if each.alias_or_name in names]
                for number in range(least, _MAX_TABLES + 1):
                    for few in combinations(tables, number):
                        for kind in ("CROSS JOIN", "FULL JOIN"):
                            yield from _asked(sql, few, kind, condition)


def _around(node: exp.Expr) -> Iterator[exp.Select]:
    """The queries in which it stands."""
    while node.parent is not None:
        node = node.parent
        if isinstance(node, exp.Select):
            yield node


def _is_correlated(select: exp.Select, around: list[exp.Expr]) -> bool:
    """Whether it is a subquery that is no table, or names one of the tables around."""
    if isinstance(select.parent, exp.Subquery | exp.Exists | exp.In) and not _is_table(select.parent):
        return True
    names = {column.table for column in select.find_all(exp.Column)}
    return any(table.alias_or_name in names for table in around)


def _question(value: exp.Expr) -> exp.Expr:
    """A condition that asks for the value."""
    return exp.Is(this=exp.Paren(this=value.unalias().copy()), expression=exp.Null())


def _looked_for(condition: exp.Expr) -> Iterator[exp.Expr]:
    """Of each x IN (SELECT ...) the x."""
    for node in condition.find_all(exp.In, exp.Any, exp.All):
        operand = node.this if isinstance(node, exp.In) else node.parent and node.parent.this
        if operand is not None and operand is not node:
            yield operand


def _asked(sql: str, tables: tuple[exp.Expr, ...], kind: str, condition: exp.Expr) -> Iterator[str]:
    """Rows of which one stands beside NULLs show what fails before there is a partner."""
    end = " ON FALSE" if kind == "FULL JOIN" else ""
    texts = [text_of_tree(_padded(table, kind)) for table in tables]
    source = texts[0] + "".join(f" {kind} {text}{end}" for text in texts[1:])
    for each in {text_of_tree(condition), text_of_tree(_swapped_all(condition))}:
        yield f"{_ctes(sql)}SELECT NULL FROM {source} WHERE {each}"


def _padded(table: exp.Expr, kind: str) -> exp.Expr:
    """A table with its inner joins as FULL JOIN ON FALSE, if that is the kind: all rows of all that it is made of.

    But not those with LATERAL, which cannot be FULL.
    """
    table = table.copy()
    if kind == "FULL JOIN":
        for join in table.find_all(exp.Join):
            if not join.args.get("side") and not join.find(exp.Lateral):
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


def _selects(sql: str) -> list[exp.Select]:
    return [node for node in _nodes(sql) if isinstance(node, exp.Select)]


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
    clause = next(iter(_nodes(sql))).args.get("with_")
    return "" if clause is None else text_of_tree(clause) + " "
