"""random() and uuid(): a number for each row, mixed from the number of the row and one that each call draws for itself.

So a value that several places read is the same in all of them, whatever a rule makes of the expression. A query that asks for
random numbers is planned each time, as one that asks for the time is.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import BIGINT, DOUBLE, NULL, UUID
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.planner.algebra.expressions import Call, Cast, Expression, Literal
from tqp.planner.algebra.logical_plan import LogicalPlan
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.coercion import cast_to
from tqp.planner.binder.expressions.forms.forms import Forms, Nodes
from tqp.planner.binder.scope import Scope
from tqp.planner.binder.select.row_numbers import numbered
from tqp.planner.functions.constant_folding import fold
from tqp.planner.parse import Span

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder

#: What draws a number for each call, of all connections of the process.
_GENERATOR = Random()
#: Of 62 random bits those that a DOUBLE has no place for.
_SPARE_BITS = 62 - 53


def with_row_numbers(
    context: BindContext, scope: Scope, plan: LogicalPlan, select: exp.Select
) -> LogicalPlan:
    """The plan of FROM with the numbers of its rows, if the clauses over it draw something for each."""
    query = lower_ascii(context.query)
    if (
        not any(word in query for word in ("random", "uuid", "nextval", "setval"))
        and not context.catalog.macro_names()
    ):
        return plan
    clauses = [*select.expressions, select.args.get("where"), select.args.get("group")]
    nodes = (node for clause in clauses if clause is not None for node in clause.walk(prune=_is_query))
    if not any(isinstance(node, exp.Anonymous) and lower_ascii(node.name) in DRAWING for node in nodes):
        return plan
    made, scope.row_number = numbered(context, plan)
    return made


def _is_query(node: exp.Expr) -> bool:
    return isinstance(node, exp.Query)


def number_of_row(binder: ExpressionBinder, name: str, span: Span | None) -> Expression:
    """The number of the row for which something is drawn; `name`: the function that asks."""
    if binder.lambdas:
        raise UnsupportedError(f"{name}() inside a lambda is not supported", span)
    is_of_rows = binder.inside_aggregate or binder.clause in ("WHERE", "GROUP BY")
    if binder.clause == "VALUES":  # each expression stands for one row
        return Literal(1, BIGINT)
    if binder.windows is not None and not is_of_rows and not binder.windows.is_inside:
        number: Expression = binder.windows.bind(
            binder, exp.Window(this=exp.Anonymous(this="row_number", expressions=[]), over="OVER")
        )
    elif binder.scope.row_number is not None and is_of_rows:
        number = binder.scope.row_number
        binder.scope.used[binder.scope.row_number.id] = f"{name}()", span
    else:
        raise UnsupportedError(f"{name}() in {binder.clause} is not supported; draw it in a subquery", span)
    return number


def _drawn(binder: ExpressionBinder, name: str, span: Span | None) -> Expression:
    """From 0 to below 2**62; `name`: the function that asks."""
    number = number_of_row(binder, name, span)
    binder.context.catalog.never_kept()
    return Call("seeded_number", (number, Literal(_GENERATOR.getrandbits(62), BIGINT)), BIGINT, span)


def _set_seed(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """setseed(x): NULL; what is drawn after it is the same each time, though not what DuckDB draws."""
    seed = fold(cast_to(binder.bind_flexible(nodes[0]), DOUBLE, span))
    if not isinstance(seed, Literal):
        raise UnsupportedError("setseed() of what is no constant is not supported", span)
    if isinstance(seed.value, float):
        if not -1 <= seed.value <= 1:
            raise BindError("setseed() takes a number from -1 to 1", span)
        _GENERATOR.seed(seed.value)
        binder.context.catalog.never_kept()
    return Literal(None, NULL)


def _random(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """From 0 to below 1."""
    drawn = _drawn(binder, "random", span)
    bits = Call("shift_right", (drawn, Literal(_SPARE_BITS, BIGINT)), BIGINT, span)
    return Call("multiply", (Cast(bits, DOUBLE), Literal(2.0**-53, DOUBLE)), DOUBLE, span)


def _uuid(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """Of version 4, which is random but for six bits."""
    numbers = tuple(_drawn(binder, "uuid", span) for _ in range(2))
    return Call("random_uuid", numbers, UUID, span)


def _time_ordered(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """Of version 7, which begins with the time."""
    numbers = tuple(_drawn(binder, "uuidv7", span) for _ in range(2))
    milliseconds = Literal(binder.context.catalog.query_time() // 1000, BIGINT)
    return Call("time_ordered_uuid", (*numbers, milliseconds), UUID, span)


RANDOM_FORMS: Forms = {
    "random": (_random, 0, 0),
    **dict.fromkeys(("uuid", "gen_random_uuid", "uuidv4"), (_uuid, 0, 0)),
    "uuidv7": (_time_ordered, 0, 0),
}

#: What draws something for each row.
DRAWING = frozenset((*RANDOM_FORMS, "nextval", "setval"))
#: What says what is drawn.
SEED_FORMS: Forms = {"setseed": (_set_seed, 1, 1)}
