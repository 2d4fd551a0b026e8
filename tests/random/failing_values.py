"""Queries in which other values stand for those whose computation fails: does the answer depend on them?

A query that DuckDB refuses for a value has an answer all the same if that value cannot change it: nobody reads it, its
row is dropped, or something else has decided. What fails is found by TRY around all else.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from sqlglot import exp

from tests.random.variants import parsed, text_of_tree
from tqp.planner.functions.registry import aggregate_names

_AGGREGATES = frozenset(aggregate_names())
_DISTINCT = (exp.NullSafeEQ, exp.NullSafeNEQ)
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.In, *_DISTINCT)
#: What is BOOLEAN without a cast.
_TRUTH = (
    *_COMPARISONS,
    exp.Connector,
    exp.Not,
    exp.Is,
    exp.Exists,
    exp.Like,
    exp.ILike,
    exp.Escape,
    exp.SimilarTo,
)
#: NULL of operands that are not NULL, or the other way round.
_CHOICES = (exp.Connector, exp.Case, exp.If)
_CHOICE_CALLS = frozenset(("coalesce", "ifnull", "nullif", "concat", "concat_ws", "greatest", "least"))
_NEVER = (exp.Is, exp.Dot, exp.TryCast)
#: In place of a comparison, and in place of another value: the first of these texts that its type takes. No value is NULL:
#: that what fails is not NULL may be known without computing it.
_SUBSTITUTES = (
    ("TRUE", ("0.5", "true", "2000-01-01", "12:00:00", "1 day")),
    ("FALSE", ("0", "1970-01-01", "00:00:00", "0 days")),
    ("NULL", ("7", "true", "1980-01-01", "13:00:00", "5 days")),
    ("FALSE", ("99", "true", "1900-01-01", "23:00:00", "-9 days")),
)


def with_other_values(sql: str, fails: Callable[[str], bool]) -> Iterator[str]:
    """The query with several values in place of each that fails; none if it is not found what fails.

    Of a value that is compared, the comparison has every outcome. NULL that comes of NULL remains.
    """
    tree = parsed(sql)
    if tree is None:
        return
    single = _with_single_rows(tree, "{}")
    if not fails(single):
        yield from (single, _with_single_rows(tree, "(CASE WHEN FALSE THEN {} END)"))
        return
    _divide_conditions(tree)
    _show_types(tree)
    _show_conditions(tree)
    for is_suspect in (_may_fail, _is_suspect):
        around: dict[str, set[str]] = {}
        for node in filter(is_suspect, tree.walk()):
            around.setdefault(text_of_tree(node), set()).update(map(text_of_tree, _ancestors(node)))
        if not fails(_with_tries(tree, around.keys())):
            break
    else:
        return
    failing = {
        text
        for text, outer in around.items()
        if fails(_with_tries(tree, around.keys() - outer - {text}))
        and not fails(_with_tries(tree, around.keys() - outer))
    }
    for outcome, values in _SUBSTITUTES:
        yield _substituted(tree, failing, outcome, values)


def _with_single_rows(tree: exp.Expr, form: str) -> str:
    """The query with the form in place of each subquery that is a value, of its first row: several rows are an error."""
    tree = tree.copy()
    for node in reversed(list(tree.find_all(exp.Subquery))):
        is_value = isinstance(node.parent, exp.Condition | exp.Alias | exp.Select | exp.Ordered | exp.Tuple)
        if is_value and not (isinstance(node.parent, exp.In) and node.arg_key == "query"):
            row = f"(SELECT * FROM {text_of_tree(node)} LIMIT 1)"
            node.replace(exp.Var(this=form.format(row)))
    return text_of_tree(tree)


def _divide_conditions(tree: exp.Expr) -> None:
    """Makes x BETWEEN a AND b to x >= a AND x <= b, and x IN (a, b) to x = a OR x = b, of which one may decide.

    Likewise each pair of fields of rows that are compared.
    """
    for node in reversed(list(tree.find_all(exp.In))):
        if node.expressions:
            equal = [exp.EQ(this=node.this.copy(), expression=each.copy()) for each in node.expressions]
            node.replace(exp.Paren(this=exp.or_(*equal, copy=False, wrap=False)))
    for node in reversed(list(tree.find_all(exp.EQ, exp.NEQ))):
        rows = node.this.unnest(), node.expression.unnest()
        if all(isinstance(row, exp.Tuple) for row in rows):
            pairs = zip(*(row.expressions for row in rows), strict=False)
            same = [exp.NullSafeEQ(this=one.copy(), expression=other.copy()) for one, other in pairs]
            equal = exp.Paren(this=exp.and_(*same, copy=False, wrap=False))
            node.replace(exp.Not(this=equal) if isinstance(node, exp.NEQ) else equal)
    for node in reversed(list(tree.find_all(exp.Between))):
        low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
        high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
        node.replace(exp.Paren(this=exp.And(this=low, expression=high)))


def _show_types(tree: exp.Expr) -> None:
    """Makes each value of a column of VALUES to a CASE of them all, which is of the column's type."""
    for values in list(tree.find_all(exp.Values)):
        rows = [row.expressions for row in values.expressions if isinstance(row, exp.Tuple)]
        columns = [list(column) for column in zip(*rows, strict=False)] if len(rows) > 1 else []
        for column in columns:
            no_choices = [exp.If(this=exp.Boolean(this=False), true=value.copy()) for value in column]
            for value in column:
                others = [each.copy() for each in no_choices if each.args["true"] != value]
                if others:
                    value.replace(exp.Paren(this=exp.Case(ifs=others, default=value.copy())))


def _show_conditions(tree: exp.Expr) -> None:
    """Makes each condition that is no BOOLEAN to a cast, which may fail."""
    for node in reversed(list(tree.walk())):
        inner = node.unnest()
        parent = node.parent
        is_condition = (
            isinstance(parent, exp.Connector | exp.Not)
            or (isinstance(parent, exp.Where | exp.Having | exp.If) and node.arg_key == "this")
            or (isinstance(parent, exp.Join) and node.arg_key == "on")
        )
        is_value = isinstance(parent, exp.If) and isinstance(parent.parent, exp.Case) and parent.parent.this
        if (
            is_condition
            and not is_value
            and not isinstance(inner, (*_TRUTH, exp.Boolean, exp.Null, exp.Subquery))
        ):
            node.replace(exp.cast(node.copy(), "BOOLEAN"))


def _may_fail(node: exp.Expr) -> bool:
    """Whether TRY may stand around it: there is no aggregate and no subquery within."""
    if isinstance(node, _NEVER) or not isinstance(
        node, exp.Binary | exp.Neg | exp.Not | exp.Func | exp.In | exp.Case
    ):
        return False
    if isinstance(node.parent, exp.Case | exp.Escape) and isinstance(node, exp.If | exp.Like | exp.ILike):
        return False  # part of it
    return not any(
        isinstance(each, exp.Query | exp.AggFunc)
        or (isinstance(each, exp.Anonymous) and each.name.lower() in _AGGREGATES)
        for each in node.walk()
    )


def _is_suspect(node: exp.Expr) -> bool:
    """What may fail, and comparisons of subqueries and aggregates, which have to go as a whole."""
    return _may_fail(node) or isinstance(node, _COMPARISONS)


def _is_condition(node: exp.Expr) -> bool:
    return isinstance(node, _COMPARISONS) or (isinstance(node, exp.Cast) and node.is_type("BOOLEAN"))


def _is_choice(node: exp.Expr) -> bool:
    return (
        isinstance(node, _CHOICES) or isinstance(node, exp.Anonymous) and node.name.lower() in _CHOICE_CALLS
    )


def _ancestors(node: exp.Expr) -> Iterator[exp.Expr]:
    while node.parent is not None:
        node = node.parent
        yield node


def _try(node: exp.Expr) -> exp.Expr:
    return exp.Try(this=node.copy()) if _may_fail(node) else exp.cast(exp.Null(), "BOOLEAN")


def _with_tries(tree: exp.Expr, texts: Collection[str]) -> str:
    return _replaced(tree, lambda node, text: _try(node) if text in texts else node)


def _replaced(tree: exp.Expr, change: Callable[[exp.Expr, str], exp.Expr]) -> str:
    """The tree with each node as `change` makes it of the node and the text that it had at first."""
    tree = tree.copy()
    # from below: what is put in is not changed again
    for node, text in reversed([(node, text_of_tree(node)) for node in tree.walk() if _is_suspect(node)]):
        new = change(node, text)
        if new is node:
            continue
        if node is tree:
            tree = new
        else:
            node.replace(new)
    return text_of_tree(tree)


def _substituted(tree: exp.Expr, failing: Collection[str], outcome: str, values: Collection[str]) -> str:
    places: dict[str, exp.Expr] = {}
    for node in tree.walk():
        if _is_suspect(node) and text_of_tree(node) in failing:
            place = _compared(node)
            failed = _has_failed(place if _may_fail(place) else node, failing)
            known = places.get(text_of_tree(place))
            places[text_of_tree(place)] = failed if known is None else exp.or_(known, failed)

    def change(node: exp.Expr, text: str) -> exp.Expr:
        if text not in places:
            return node
        value = exp.Var(this=outcome) if _is_condition(node) else _value(node, values)
        case = exp.Case(ifs=[exp.If(this=places[text].copy(), true=value)])
        case.set("default", _try(node) if _may_fail(node) else node.copy())
        return exp.Paren(this=case)

    return _replaced(tree, change)


def _compared(node: exp.Expr) -> exp.Expr:
    """The comparison of which the node is an operand or part of one, if each operation on the way is computed; else itself."""
    for each in (node, *_ancestors(node)):
        if _is_condition(each):
            return each
        if _is_choice(each) or not (isinstance(each, exp.Paren) or _may_fail(each)):
            break
    return node


def _has_failed(node: exp.Expr, failing: Collection[str]) -> exp.Expr:
    """Whether the node is NULL though no operand is, but one that has failed itself."""
    if not _may_fail(node):
        return exp.Boolean(this=True)
    conditions: list[exp.Expr] = [_is_null(_try(node))]
    if not isinstance(node, _DISTINCT) and not _is_choice(node):
        for operand in _operands(node):
            if isinstance(operand, exp.Literal):
                continue
            there: exp.Expr = exp.Not(this=_is_null(exp.Try(this=operand.copy())))
            if any(_may_fail(each) and text_of_tree(each) in failing for each in operand.walk()):
                there = exp.Paren(this=exp.Or(this=there, expression=_has_failed(operand.unnest(), failing)))
            conditions.append(there)
    return exp.Paren(this=exp.and_(*conditions, wrap=True))


def _operands(node: exp.Expr) -> list[exp.Expr]:
    if isinstance(node, exp.Cast):
        return [node.this]
    return [each for each in node.iter_expressions() if isinstance(each, exp.Condition)]


def _is_null(node: exp.Expr) -> exp.Expr:
    return exp.Paren(this=exp.Is(this=exp.Paren(this=node), expression=exp.Null()))


def _value(node: exp.Expr, texts: Collection[str]) -> exp.Expr:
    """The first of the texts that the type of the node takes, else NULL."""
    choices = [
        _try(
            exp.Case(
                ifs=[exp.If(this=exp.Boolean(this=False), true=node.copy())],
                default=exp.Literal.string(text),
            )
        )
        for text in texts
    ]
    return exp.Coalesce(this=exp.Null(), expressions=choices)
