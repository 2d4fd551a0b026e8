"""What stands inside the parentheses of a call beside its arguments: DISTINCT, ORDER BY, IGNORE NULLS; and WITHIN GROUP."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.planner.algebra.element_expressions import ElementRef
from tqp.planner.algebra.expressions import Expression, Literal, SortKey, walk
from tqp.planner.binder.directions import direction_of
from tqp.planner.binder.expressions.collations import compared
from tqp.planner.binder.unsupported_clauses import check_understood
from tqp.planner.parse import head_span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder
    from tqp.planner.parse import Span

#: Aggregates with WITHIN GROUP, by the name that they have with the column as their first argument, and how many
#: arguments stand in their parentheses.
_OF_ORDERED_GROUPS = {
    "percentile_cont": ("quantile_cont", 1),
    "percentile_disc": ("quantile_disc", 1),
    "mode": ("mode", 0),
}
_PERCENTILES = frozenset(name for name, num_arguments in _OF_ORDERED_GROUPS.values() if num_arguments)


@dataclass(frozen=True, slots=True)
class Written:
    """A call as it is written, its name in lower case.

    `order`: the keys of ORDER BY in its parentheses; `group_order`: those of WITHIN GROUP, of which the first is an argument, too.
    """

    name: str
    node: exp.Anonymous
    arguments: Sequence[exp.Expr]
    distinct: bool = False
    order: Sequence[exp.Ordered] = ()
    ignores_nulls: bool = False
    #: IGNORE NULLS or RESPECT NULLS is said.
    says_nulls: bool = False
    group_order: Sequence[exp.Ordered] = ()

    @property
    def percentile_order(self) -> exp.Ordered | None:
        """The one key of a percentile, whose fraction counts from the greatest value where it is DESC."""
        keys = self.group_order or self.order
        return keys[0] if len(keys) == 1 and self.name in _PERCENTILES else None


def written(node: exp.Expr) -> Written | None:
    """The parts of `f(DISTINCT x, y ORDER BY z)`, of `f(y) WITHIN GROUP (ORDER BY x)`; None of what is no call by name."""
    if isinstance(node, exp.WithinGroup):
        return _within_group(node)
    if not isinstance(node, exp.Anonymous):
        return None
    arguments: list[exp.Expr] = list(node.expressions)
    order: Sequence[exp.Ordered] = ()
    distinct = ignores = says_nulls = False
    if arguments and isinstance(arguments[-1], exp.IgnoreNulls | exp.RespectNulls):  # behind ORDER BY
        says_nulls, ignores = True, isinstance(arguments[-1], exp.IgnoreNulls)
        arguments[-1] = arguments[-1].this
    if arguments and isinstance(arguments[-1], exp.Order):  # around the last argument, or around DISTINCT
        order = arguments[-1].expressions
        arguments[-1:] = [arguments[-1].this] if arguments[-1].this is not None else []
    if arguments and isinstance(arguments[0], exp.Distinct):
        distinct, arguments = True, [*arguments[0].expressions]
    for place, argument in enumerate(arguments):
        if isinstance(argument, exp.IgnoreNulls | exp.RespectNulls):
            says_nulls, ignores = True, isinstance(argument, exp.IgnoreNulls)
            arguments[place] = argument.this
    if distinct and any(isinstance(key.this, exp.Collate) for key in order):
        raise UnsupportedError(
            "ORDER BY with COLLATE beside DISTINCT inside an aggregate is not supported", head_span(node)
        )
    if len(order) == 1 and (lower_ascii(node.name), len(arguments)) in _OF_ORDERED_GROUPS.values():
        raise UnsupportedError(
            f"{lower_ascii(node.name)}() of what its ORDER BY says is not supported; write WITHIN GROUP (ORDER BY ...)",
            head_span(node),
        )
    return Written(lower_ascii(node.name), node, arguments, distinct, order, ignores, says_nulls)


def _within_group(node: exp.WithinGroup) -> Written | None:
    call = node.this
    if not isinstance(call, exp.Anonymous):
        return None
    name, count = _OF_ORDERED_GROUPS.get(lower_ascii(call.name), (None, 0))
    if name is None:
        raise BindError(
            f"{lower_ascii(call.name)}() does not take WITHIN GROUP; write ORDER BY inside its parentheses",
            head_span(call),
        )
    order: Sequence[exp.Ordered] = node.expression.expressions
    if len(order) != 1:
        raise BindError("WITHIN GROUP takes one key of ORDER BY", span_of(node.expression))
    if len(call.expressions) != count:
        takes = "one argument" if count else "no argument"
        raise BindError(
            f"{lower_ascii(call.name)}() takes {takes} where WITHIN GROUP follows", head_span(call)
        )
    arguments: list[exp.Expr] = [order[0].this, *call.expressions]
    own_order = () if name in _PERCENTILES else order  # of a percentile it is its argument's alone
    return Written(name, call, arguments, order=own_order, group_order=order)


def sort_keys(binder: ExpressionBinder, nodes: Sequence[exp.Ordered], what: str) -> Iterator[SortKey]:
    """The keys of ORDER BY inside `what`, each once; constants order nothing."""
    seen: set[Expression] = set()
    for node in nodes:
        check_understood(node)
        if isinstance(node.this, exp.Var) and node.this.name.upper() == "ALL":
            raise BindError(f"{what} cannot be ordered by ALL", span_of(node))
        key = sort_key(binder, node)
        if key.expression not in seen and not isinstance(key.expression, Literal):
            seen.add(key.expression)
            yield key


def sort_key(binder: ExpressionBinder, node: exp.Ordered) -> SortKey:
    """A key of ORDER BY, which may be a constant."""
    key = compared(binder.bind(node.this), span_of(node))
    return SortKey(key, *direction_of(node, binder.context.catalog))


def refuse_parameters(
    binder: ExpressionBinder, parts: Iterable[Expression], name: str, span: Span | None
) -> None:
    """Raise BindError for parameters of lambdas around: what is computed of many rows knows no element of one."""
    if binder.lambdas and any(
        isinstance(inner, ElementRef) and inner.id < 2 * len(binder.lambdas)
        for part in parts
        for inner in walk(part)
    ):
        raise BindError(f"{name}() in a lambda may not use the parameters of the lambda", span)
