"""Variants of a query that say the same, and to which DuckDB gives another answer: they tell why the engines differ."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from sqlglot import exp

from tests.random.engines import ANY_ORDER
from tests.random.templates import INEXACT, INEXACT_AGGREGATES
from tests.random.trees import UnwritableError, expression_of, is_call, parsed, text_of_tree

#: Aggregates that are DOUBLE, whatever they are of, and whose last digits come of the order of rows.
_MEANS = INEXACT_AGGREGATES.union("avg mean variance var_pop var_samp stddev stddev_pop stddev_samp".split())


def with_guarded_rounding(sql: str) -> str:
    """The query with NULL as what round(), round_even() and trunc() make of NULL: DuckDB has 0 if no digit of a DECIMAL is left."""
    names = ("round", "round_even", "roundbankers", "trunc")
    return transformed(sql, lambda node: _guarded(node) if is_call(node, *names) else node)


def with_null_constants(sql: str, type_of_null: Callable[[str], str | None]) -> str:
    """The query with NULL as each call and cast of constants that is the first to be NULL: DuckDB knows it before there are types.

    `type_of_null` gives the type of an expression that is NULL, None of others.
    """

    def change(node: exp.Expr) -> exp.Expr:
        is_branch = isinstance(node, exp.If) and isinstance(node.parent, exp.Case)
        if (
            not isinstance(node, exp.Func | exp.Bracket | exp.Dot)
            or is_branch
            or node.find(exp.Query, exp.Star)
            or not (
                node.find(exp.Lambda) or all(_is_left_out(each, node) for each in node.find_all(exp.Null))
            )
        ):
            return node
        constant = _without_columns(node)
        if any(not _is_parameter(each, constant) for each in constant.find_all(exp.Column)):
            return node
        null_type = type_of_null(text_of_tree(constant))
        if (
            null_type is not None and "TUPLE(" in null_type
        ):  # which has no name as a type: what it is part of may have one
            return node
        if null_type is None or null_type == "NULL":
            return node if null_type is None else exp.Null()
        return exp.cast(exp.Null(), exp.DataType.build(null_type, udt=True))

    return transformed(sql, change)


def with_computed_conditions(sql: str, value_of: Callable[[str], bool | None]) -> str:
    """The query with what each condition of CASE gives that reads no column: DuckDB knows it before there are types."""

    def change(node: exp.Expr) -> exp.Expr:
        if (
            not isinstance(node, exp.If)
            or not isinstance(node.parent, exp.Case)
            or node.parent.this is not None
        ):
            return node
        condition = node.this
        if condition.find(exp.Query, exp.Star, exp.Column) or isinstance(condition, exp.Boolean | exp.Null):
            return node
        value = value_of(text_of_tree(condition))
        new = node.copy()
        new.set("this", exp.Null() if value is None else exp.Boolean(this=value))
        return new

    return transformed(sql, change)


def _without_columns(node: exp.Expr) -> exp.Expr:
    """The node without what DuckDB knows before it knows any row: aliases of constants, names of columns' types, NULL times a column."""
    result = node.copy()
    select = node.find_ancestor(exp.Select)
    aliased = (
        {each.alias: each.this for each in select.expressions if each.alias} if select is not None else {}
    )
    for part in reversed(list(result.walk())):
        if part is result or part.find(exp.Column) is None:
            continue
        meant = (
            aliased.get(part.name) if isinstance(part, exp.Column) and not part.args.get("table") else None
        )
        if meant is not None and not meant.find(exp.Column, exp.Query):
            part.replace(exp.Paren(this=meant.copy()))
            continue
        if is_call(part, "typeof"):
            part.replace(exp.Literal.string("INTEGER"))
        elif isinstance(part, exp.Add | exp.Sub | exp.Mul | exp.Div | exp.Mod):
            nulls = (each for each in (part.this, part.expression) if _is_typed_null(each))
            null = next(nulls, None)
            if null is not None:
                part.replace(null.copy())
    return result


def _is_typed_null(node: exp.Expr) -> bool:
    return isinstance(node, exp.Cast) and isinstance(node.this, exp.Null)


def _is_parameter(column: exp.Column, within: exp.Expr) -> bool:
    """Does it name a parameter of a lambda that stands in the expression?"""
    around = column.find_ancestor(exp.Lambda)
    while around is not None:
        if any(each.name.lower() == column.name.lower() for each in around.expressions):
            return around is within or within in _ancestors(around)
        around = around.find_ancestor(exp.Lambda)
    return False


def _ancestors(node: exp.Expr) -> Iterator[exp.Expr]:
    while node.parent is not None:
        node = node.parent
        yield node


_LEAVING_NULLS_OUT = ("concat", "concat_ws", "array_value", "list_value", "list_pack")


def _is_left_out(null: exp.Null, within: exp.Expr) -> bool:
    """Whether what reads the NULL, in a part of the query, is none for it."""
    around = null.find_ancestor(exp.Array, exp.Struct, exp.Lambda)
    if around is not None and (around is within or within in _ancestors(around)):
        return True
    return isinstance(null.parent, exp.Anonymous) and null.parent.name.lower() in _LEAVING_NULLS_OUT


def with_constant_texts(sql: str, text_of: Callable[[str], str | None]) -> str:
    """The query with the text that each call of constants gives: DuckDB knows it before it asks what a path or a pattern is.

    `text_of` gives the value of an expression that is a text, None of others.
    """

    def change(node: exp.Expr) -> exp.Expr:
        is_constant = not node.find(exp.Column, exp.Query, exp.Star, exp.Placeholder, exp.Null)
        text = text_of(text_of_tree(node)) if isinstance(node, exp.Func) and is_constant else None
        return node if text is None else exp.Literal.string(text)

    return transformed(sql, change)


def constant_parts(sql: str) -> Iterator[str]:
    """The calls, operators and casts in a query that read no column, the inner ones last."""
    tree = parsed(sql)
    for node in tree.walk() if tree is not None else ():
        is_part = isinstance(node, exp.Func | exp.Binary | exp.Unary | exp.Case)
        if is_part and not node.find(exp.Column, exp.Query, exp.Star, exp.Placeholder):
            yield text_of_tree(node)


def with_constant_keys_apart(sql: str) -> str:
    """The query with constants as group keys written in another way: what SELECT computes of one is no key's value then."""

    def change(node: exp.Expr) -> exp.Expr:
        around = node.parent.parent if isinstance(node.parent, exp.Tuple | exp.Paren) else node.parent
        if not isinstance(around, exp.Group) or isinstance(node, exp.Tuple | exp.Paren):
            return node
        place = _place(node)
        items = around.parent.expressions[place : place + 1] if place is not None else [node]
        if isinstance(node, exp.Column) and not node.table:  # perhaps the name of an item
            items = [item for item in around.parent.expressions if item.alias.lower() == node.name.lower()]
        if not items or items[0].find(exp.Column, exp.Query, exp.Star, exp.Window):
            return node
        key = items[0].unalias()
        return exp.Coalesce(this=key.copy(), expressions=[key.copy()])

    return transformed(sql, change)


def with_aliases_apart(sql: str) -> str:
    """The query with other aliases where a subquery of a grouped block names a column as one of them: DuckDB takes it for no key then."""

    def change(node: exp.Expr) -> exp.Expr:
        if not isinstance(node, exp.Select) or node.args.get("group") is None:
            return node
        queries = [query for item in node.expressions for query in item.find_all(exp.Query)]
        named = {
            column.name for query in queries for column in query.find_all(exp.Column) if not column.table
        }
        names = [item.alias_or_name for item in node.expressions]
        if named.isdisjoint(item.alias for item in node.expressions) or not all(names):
            return node
        inside = node.copy()
        for place, item in enumerate(inside.expressions):
            item.replace(exp.alias_(item.unalias(), f"apart{place}"))
        restored = [exp.alias_(exp.column(f"apart{place}"), name) for place, name in enumerate(names)]
        return exp.Select(expressions=restored).from_(inside.subquery("apart"))

    return transformed(sql, change)


def _place(key: exp.Expr) -> int | None:
    """The place, from 0, of the item that a number as a key names: `2`, `- -2`."""
    plain, negations = key.unnest(), 0
    while isinstance(plain, exp.Neg):
        plain, negations = plain.this.unnest(), negations + 1
    is_number = isinstance(plain, exp.Literal) and not plain.is_string and plain.name.isdigit()
    return int(plain.name) - 1 if is_number and negations % 2 == 0 else None


def with_other_floats(sql: str) -> Iterator[str]:
    """The query with what inexact functions give a bit larger, a bit smaller, rounded, with sums in other orders, and other signs of NaNs.

    SQL does not determine an answer that hinges on that.
    """

    def moved(node: exp.Expr, direction: int, inexact: frozenset[str]) -> exp.Expr:
        call = node.this if isinstance(node, exp.Filter) else node
        if isinstance(node.parent, exp.Filter) or not isinstance(call, exp.Anonymous):
            return node
        name = call.name.lower()
        if name.startswith("array_") and name != "array_value":
            factor = f"CAST({1 + direction * 2.0**-23!r} AS FLOAT)"
        elif name in inexact:
            factor = f"CAST({1 + direction * 2.0**-52!r} AS DOUBLE)"
            if name == "sum":  # one of integers stays as it is
                factor = f"IF(typeof({text_of_tree(node)}) = 'DOUBLE', {factor}, 1)"
        else:
            return node
        return exp.Paren(this=exp.Mul(this=node.copy(), expression=expression_of(factor)))

    def in_order(node: exp.Expr, *, descending: bool) -> exp.Expr:
        if not is_call(node, "sum", *_MEANS) or isinstance(node.expressions[0], exp.Distinct):
            return node
        added = node.expressions[0]
        keys = [exp.Ordered(this=added.copy(), desc=descending, nulls_first=False)]
        return exp.Anonymous(this=node.name, expressions=[exp.Order(this=added.copy(), expressions=keys)])

    def rounded(node: exp.Expr) -> exp.Expr:
        """Of what cancels out, nothing is left but what the order of rows made."""
        if isinstance(node.parent, exp.Filter) or not is_call(
            node.this if isinstance(node, exp.Filter) else node, *INEXACT_AGGREGATES
        ):
            return node
        return exp.Anonymous(this="round", expressions=[node.copy(), exp.Literal.number(12)])

    yield transformed(sql, rounded)
    # What is multiplied is a DOUBLE: integers are summed in the variants where no sum is.
    for inexact in (INEXACT | _MEANS, INEXACT | _MEANS | {"sum"}):
        for direction in (1, -1, 8, -8):  # gamma() is as far off as that
            yield transformed(sql, partial(moved, direction=direction, inexact=inexact))
    for descending in (False, True):
        yield transformed(sql, partial(in_order, descending=descending))
    yield transformed(sql, lambda node: _of_other_nan(node) if is_call(node, "signbit") else node)


def with_ordered_limits(sql: str) -> str:
    """The query with an order for each LIMIT in a recursive CTE: DuckDB counts too few rows of a FULL JOIN in one without."""

    def change(node: exp.Expr) -> exp.Expr:
        around = node.find_ancestor(exp.With)
        if (
            not isinstance(node, exp.Select)
            or node.args.get("limit") is None
            or node.args.get("order") is not None
            or around is None
            or not around.recursive
        ):
            return node
        new = node.copy()
        new.set("order", exp.Order(expressions=[exp.Ordered(this=exp.Var(this="ALL"), nulls_first=False)]))
        return new

    return transformed(sql, change)


def with_plain_sums(sql: str) -> str:
    """The query with sum() and avg() in place of those that compensate: in DuckDB these are NaN behind an infinity."""
    plain = {"fsum": "sum", "kahan_sum": "sum", "sumkahan": "sum", "favg": "avg"}

    def change(node: exp.Expr) -> exp.Expr:
        if not is_call(node, *plain):
            return node
        first = node.expressions[0]
        of = first.this if isinstance(first, exp.Order) else first
        of_doubles = of if isinstance(of, exp.Distinct) else exp.cast(of.copy(), "DOUBLE")
        return exp.Anonymous(this=plain[node.name.lower()], expressions=[of_doubles])

    return transformed(sql, change)


def with_grades_by_place(sql: str) -> str:
    """The query with the place of each element behind it where list_grade_up() sorts: of equal ones, DuckDB has any first."""

    def change(node: exp.Expr) -> exp.Expr:
        if not is_call(node, "list_grade_up", "array_grade_up", "grade_up"):
            return node
        elements, *words = node.expressions
        sign = "-" if any(word.name.upper() == "DESC" for word in words) else ""
        text = text_of_tree(elements)
        with_places = expression_of(f"list_zip({text}, range(0, {sign}len({text}), {sign}1))")
        return exp.Anonymous(this=node.this, expressions=[with_places, *words])

    return transformed(sql, change)


def with_random_ties(sql: str) -> str:
    """The query with a random order of the rows that tie where it matters: in windows by numbers of rows, and in texts put together."""
    return transformed(sql, lambda node: _window_with_random_ties(_text_of_any_order(node)))


def _text_of_any_order(node: exp.Expr) -> exp.Expr:
    is_text = is_call(node, "string_agg", "group_concat", "listagg") and node.expressions
    if not is_text or any(each.find(exp.Order, exp.Distinct) for each in node.expressions):
        return node
    new = node.copy()
    new.append("expressions", exp.Order(expressions=[_in_any_order(node.expressions[0])]))
    return new


def _window_with_random_ties(node: exp.Expr) -> exp.Expr:
    if not isinstance(node, exp.Window) or node.args.get("alias") is not None:
        return node
    called = node.this.this if isinstance(node.this, exp.Filter) else node.this
    frame, order = node.args.get("spec"), node.args.get("order")
    is_by_rows = is_call(called, "ntile", "lead", "lag") or called.name.lower() == "row_number"
    is_by_rows = is_by_rows or (frame is not None and frame.args.get("kind") == "ROWS")
    if not is_by_rows:
        return node
    new = node.copy()
    keys = list(order.expressions) if order is not None else []
    seen = next((key for key in (*keys, *node.args["partition_by"]) if key.find(exp.Column)), None)
    if seen is None:
        return node
    keys.append(_in_any_order(seen.this if isinstance(seen, exp.Ordered) else seen))
    new.set("order", exp.Order(expressions=[key.copy() for key in keys]))
    return new


def _in_any_order(seen: exp.Expr) -> exp.Ordered:
    """A key of rows that is random, though it reads something."""
    number = exp.Anonymous(this="hash", expressions=[seen.copy()])
    return exp.Ordered(this=exp.Anonymous(this=ANY_ORDER, expressions=[number]))


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

    return transformed(sql, change)


def _of_other_nan(signbit: exp.Expr) -> exp.Expr:
    is_nan = exp.Anonymous(this="isnan", expressions=[signbit.expressions[0].copy()])
    case = exp.Case(ifs=[exp.If(this=is_nan, true=exp.Not(this=signbit.copy()))], default=signbit.copy())
    return exp.Paren(this=case)


def _guarded(node: exp.Expr) -> exp.Expr:
    first = node.expressions[0] if isinstance(node, exp.Anonymous) else node.this
    if isinstance(first, exp.Literal):
        return node
    is_null = exp.Is(this=exp.Paren(this=first.copy()), expression=exp.Null())
    case = exp.Case(ifs=[exp.If(this=is_null, true=exp.Null())], default=node.copy())
    return exp.Paren(this=case)


def transformed(sql: str, change: Callable[[exp.Expr], exp.Expr]) -> str:
    tree = parsed(sql)
    if tree is None:
        return sql
    try:
        # from below: what is put in is not changed again
        for node in reversed(list(tree.walk())):
            new = change(node)
            if new is not node:
                tree = new if node is tree else tree
                node.replace(new)
        return text_of_tree(tree)
    except UnwritableError:
        return sql
