"""Queries in which other values stand for those whose computation fails: does the answer depend on them?

A query that DuckDB refuses for a value has an answer all the same if that value cannot change it: nobody reads it, its
row is dropped, or something else has decided. So each expression X that may fail becomes coalesce(TRY([X]), [v])[1], which
is v in the rows where X fails and X in all others, NULL of no failure included. Of a comparison v is every outcome, of
another value one of a few of its type, but never NULL: that what fails is not NULL may be known without computing it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from random import Random

from sqlglot import exp

from tests.random.variants import parsed
from tests.random.variants import text_of_tree as _text
from tqp.planner.functions.registry import aggregate_names

_AGGREGATES = frozenset(aggregate_names())
_COMPARISONS = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ)
#: What is BOOLEAN without a cast.
_TRUTH = (
    *_COMPARISONS,
    exp.Connector,
    exp.Not,
    exp.In,
    exp.Is,
    exp.Exists,
    exp.Like,
    exp.ILike,
    exp.Escape,
    exp.SimilarTo,
)
#: Not all of their operands are read in every row.
_CHOICES = (exp.Connector, exp.Case, exp.If)
_CHOICE_CALLS = frozenset(("coalesce", "ifnull"))
#: These compute nothing themselves that may fail.
_NEVER = (exp.Connector, exp.Not, exp.Paren, exp.Is, exp.Dot, exp.TryCast, exp.Array, exp.AggFunc, exp.Exists)
#: In place of a value: the first of these texts that its type takes.
_SUBSTITUTES = (
    ("0.5", "true", "2000-01-01", "12:00:00", "1 day"),
    ("0", "1970-01-01", "00:00:00", "0 days"),
    ("7", "true", "1980-01-01", "13:00:00", "5 days"),
    ("99", "1900-01-01", "23:00:00", "-9 days"),
)
_NUM_VARIANTS = 8


def with_first_rows(sql: str) -> list[str]:
    """The query with the first row of each subquery that is a value, and with NULL: several rows are an error."""
    tree = parsed(sql)
    return (
        []
        if tree is None
        else [_with_first_rows(tree, "{}"), _with_first_rows(tree, "(CASE WHEN FALSE THEN {} END)")]
    )


def with_other_values(sql: str, thorough: bool) -> Iterator[str]:
    """The query with several values in place of each that fails; none if it cannot be parsed.

    Unless they are `thorough`, they leave out what seldom fails and is slow or impossible to replace in some places:
    comparisons of two columns, what is computed of aggregates and subqueries, and a column that is looked up.
    """
    tree = parsed(sql)
    if tree is None:
        return
    _divide_conditions(tree)
    _show_looked_up(tree, thorough)
    _show_types(tree)
    _show_conditions(tree)
    literals = tuple(dict.fromkeys(each.name for each in tree.find_all(exp.Literal)))
    for number in range(_NUM_VARIANTS):
        yield _text(_Substitution(number, literals, thorough).value(tree))


def _with_first_rows(tree: exp.Expr, form: str) -> str:
    tree = tree.copy()
    for node in reversed(list(tree.find_all(exp.Subquery))):
        is_value = isinstance(node.parent, exp.Condition | exp.Alias | exp.Select | exp.Ordered | exp.Tuple)
        if is_value and not (isinstance(node.parent, exp.In) and node.arg_key == "query"):
            row = f"(SELECT * FROM {_text(node)} LIMIT 1)"
            node.replace(exp.Var(this=form.format(row)))
    return _text(tree)


def _divide_conditions(tree: exp.Expr) -> None:
    """Makes x BETWEEN a AND b to x >= a AND x <= b, and x IN (a, b) to x = a OR x = b, of which one may decide.

    Likewise each pair of fields of rows that are compared; they stay fields, as their types are not those of values. And
    CASE x WHEN a to CASE WHEN x = a.
    """
    for node in reversed(list(tree.find_all(exp.In))):
        if node.expressions:
            equal = [exp.EQ(this=node.this.copy(), expression=each.copy()) for each in node.expressions]
            node.replace(exp.Paren(this=exp.or_(*equal, copy=False, wrap=False)))
    for node in reversed(list(tree.find_all(exp.EQ, exp.NEQ, exp.NullSafeEQ, exp.NullSafeNEQ))):
        rows = node.this.unnest(), node.expression.unnest()
        if all(isinstance(row, exp.Tuple) for row in rows):
            pairs = zip(*([_row(each) for each in row.expressions] for row in rows), strict=False)
            same = [exp.NullSafeEQ(this=one, expression=other) for one, other in pairs]
            equal = exp.Paren(this=exp.and_(*same, copy=False, wrap=False))
            is_same = isinstance(node, exp.EQ | exp.NullSafeEQ)
            node.replace(equal if is_same else exp.Paren(this=exp.Not(this=equal)))
    for node in reversed(list(tree.find_all(exp.Between))):
        low = exp.GTE(this=node.this.copy(), expression=node.args["low"].copy())
        high = exp.LTE(this=node.this.copy(), expression=node.args["high"].copy())
        node.replace(exp.Paren(this=exp.And(this=low, expression=high)))
    for node in reversed(list(tree.find_all(exp.Case))):
        if node.this is not None:
            for each in node.args["ifs"]:
                each.set("this", exp.EQ(this=node.this.copy(), expression=each.this.copy()))
            node.set("this", None)


def _show_looked_up(tree: exp.Expr, thorough: bool) -> None:
    """Makes x < ANY (SELECT y) to TRUE = ANY (SELECT x < y), and x IN (SELECT y) to TRUE = ANY (SELECT x = y).

    Columns and literals only if `thorough`: they fail only where they cannot be compared.
    """
    for node in reversed([each for each in tree.walk() if _is_looked_up(each)]):
        looked_up = node.this.unnest()
        if isinstance(looked_up, exp.Tuple) or (
            isinstance(looked_up, exp.Column | exp.Literal) and not thorough
        ):
            continue
        rows = exp.Any(this=node.args["query"]) if isinstance(node, exp.In) else node.expression
        compare = exp.EQ if isinstance(node, exp.In) else type(node)
        names = exp.TableAlias(this=exp.to_identifier("rows_of_it"), columns=[exp.to_identifier("found")])
        found = exp.select(compare(this=node.this.copy(), expression=exp.column("found")))
        source = exp.Subquery(this=rows.this.unnest().copy(), alias=names)
        new_rows = type(rows)(this=exp.Subquery(this=found.from_(source)))
        node.replace(exp.EQ(this=exp.Boolean(this=True), expression=new_rows))


def _row(field: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this="row", expressions=[field.copy()])


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
        parent = node.parent
        is_condition = (
            isinstance(parent, exp.Connector | exp.Not)
            or (isinstance(parent, exp.Where | exp.Having | exp.If) and node.arg_key == "this")
            or (isinstance(parent, exp.Join) and node.arg_key == "on")
        )
        if is_condition and not isinstance(node.unnest(), (*_TRUTH, exp.Boolean, exp.Null, exp.Subquery)):
            node.replace(exp.cast(node.copy(), "BOOLEAN"))


@dataclass(frozen=True)
class _Substitution:
    """One choice of values for what fails: all comparisons true, all false, or each by a random number of its own."""

    number: int
    #: Of the query, as it may compare with them.
    literals: tuple[str, ...]
    thorough: bool

    def value(self, node: exp.Expr) -> exp.Expr:
        """The node with each value within that fails replaced."""
        if isinstance(node, exp.Limit | exp.Offset):
            return node.copy()
        if not self._is_place(node):
            return _mapped(node, self.value)
        return self._hoisted(node, self._comparison if isinstance(node, _COMPARISONS) else self._other)

    def _other(self, node: exp.Expr) -> str:
        random, text = self._random(node), _text(_copied(node))
        own = [each.name for each in node.find_all(exp.Literal)]  # those of an ENUM
        values = [random.choice(self.literals or ("",)), *random.choice(_SUBSTITUTES), *own]
        # a list of the type of the node casts what is added to it
        lists = [
            f"TRY(list_resize(CASE WHEN FALSE THEN [{text}] ELSE [] END, 1, {_text(exp.Literal.string(each))}))"
            for each in values
        ]
        return f"coalesce(TRY([{_text(_mapped(node, self.value))}]), {', '.join(lists)})[1]"

    def _comparison(self, node: exp.Expr) -> str:
        """An operand that is NULL decides, whatever the other one is."""
        left, right = (_text(self.value(_field(each))) for each in (node.this, node.expression))
        outcome, either = self._outcome(node), _text(_mapped(node, self.value))
        with_null = f"TRY([CASE WHEN ({left}) IS NULL OR ({right}) IS NULL THEN {either} ELSE {outcome} END])"
        return f"coalesce(TRY([{self._raw(node)}]), {with_null}, [{outcome}])[1]"

    def _raw(self, node: exp.Expr) -> str:
        """The node, which fails where one of its operands does, but for those within that only some rows read."""
        return _text(self._with_raw_operands(node))

    def _with_raw_operands(self, node: exp.Expr) -> exp.Expr:
        return self.value(node) if _is_choice(node) else _copied(node, self._with_raw_operands)

    def _hoisted(self, node: exp.Expr, form: Callable[[exp.Expr], str]) -> exp.Expr:
        """What `form` makes of the node, with aggregates and subqueries taken out, as TRY refuses them."""
        parts: dict[str, str] = {}
        node = _without_parts(node, parts, self.value)
        if not parts:
            return exp.Var(this=form(node))
        fields = ", ".join(f"'{name}': {text}" for text, name in parts.items())
        return exp.Var(this=f"list_transform([{{{fields}}}], lambda z: {form(node)})[1]")

    def _outcome(self, node: exp.Expr) -> str:
        return ("TRUE", "FALSE")[self.number if self.number < 2 else self._random(node).randrange(2)]

    def _random(self, node: exp.Expr) -> Random:
        """The same for the same text, which has the same value."""
        return Random(f"{self.number} {node}")

    def _is_place(self, node: exp.Expr) -> bool:
        parent = node.parent
        if (
            isinstance(node, _NEVER)
            or not isinstance(node, exp.Binary | exp.Unary | exp.Func)
            or (isinstance(parent, exp.Table | exp.From | exp.Join) and node.arg_key == "this")
            or (isinstance(parent, exp.Case | exp.Escape) and isinstance(node, exp.If | exp.Like | exp.ILike))
            or (isinstance(node, exp.Anonymous) and node.name.lower() in ("row", *_AGGREGATES))
            or (isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal))
            or _is_looked_up(node)
        ):
            return False
        is_bare = not self.thorough and isinstance(node, _COMPARISONS)
        if is_bare and all(isinstance(each, exp.Column) for each in (node.this, node.expression)):
            return False
        has_parts = any(map(_is_part, node.walk()))
        return not has_parts or (self.thorough and not _is_choice(node))


def _mapped(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """The node with its children as `change` makes them."""

    def changed(value: object) -> object:
        if isinstance(value, list):
            return [changed(each) for each in value]
        return change(value) if isinstance(value, exp.Expr) else value

    return type(node)(**{key: changed(value) for key, value in node.args.items()})


def _copied(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr] | None = None) -> exp.Expr:
    """`_mapped`, with constants that are negated hidden: DuckDB computes them to find the type, and no TRY helps."""
    new = _mapped(node, change or _copied)
    if isinstance(node, exp.Neg) and not node.find(exp.Column) and not isinstance(node.this, exp.Literal):
        return exp.Var(this=f"list_transform([{_text(new.this)}], lambda x: -x)[1]")
    return new


def _without_parts(node: exp.Expr, parts: dict[str, str], change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """A copy with the field of a row in place of each aggregate and subquery; `parts` gets the fields' names by text."""
    if _is_part(node):
        name = parts.setdefault(_text(change(node)), f"p{len(parts)}")
        return exp.Var(this=f"z['{name}']")
    return _mapped(node, lambda each: _without_parts(each, parts, change))


def _is_part(node: exp.Expr) -> bool:
    is_aggregate = isinstance(node, exp.Anonymous) and node.name.lower() in _AGGREGATES
    is_subquery = isinstance(node, exp.Query | exp.Exists) or _is_looked_up(node)
    return is_aggregate or is_subquery or isinstance(node, exp.AggFunc | exp.Filter | exp.WithinGroup)


def _is_looked_up(node: exp.Expr) -> bool:
    """Whether it is x IN (SELECT ...), or x compared with ANY or ALL."""
    has_rows = isinstance(node, exp.Binary) and isinstance(node.expression, exp.Any | exp.All)
    return has_rows or (isinstance(node, exp.In) and node.args.get("query") is not None)


def _is_choice(node: exp.Expr) -> bool:
    is_call = isinstance(node, exp.Anonymous) and node.name.lower() in _CHOICE_CALLS
    return isinstance(node, _CHOICES) or is_call


def _field(node: exp.Expr) -> exp.Expr:
    """The value of a row of one field."""
    is_row = isinstance(node, exp.Anonymous) and node.name == "row"
    return node.expressions[0] if is_row else node
