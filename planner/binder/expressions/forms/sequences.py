"""nextval(), currval() and setval(): a number for each row, drawn from a sequence when the row is computed, or set.

A call of nextval() is a function of the numbers of the rows, which gives each number one of the sequence (see
`tqp.catalog.sequences`). So a query with one is planned each time, as one that asks for random numbers is.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tqp.core.datatypes import BIGINT, BOOLEAN, NULL, VARCHAR
from tqp.core.errors import BindError, UnsupportedError, nearest
from tqp.planner.algebra.expressions import (
    Call,
    Expression,
    Literal,
    PythonCall,
    has_side_effects,
    is_null_literal,
)
from tqp.planner.algebra.logical_plan import LogicalPlan
from tqp.planner.algebra.node import walk_plan
from tqp.planner.algebra.recursive import Recursive
from tqp.planner.binder.expressions.coercion import cast_to, null_after
from tqp.planner.binder.expressions.forms.forms import Forms, Nodes
from tqp.planner.binder.expressions.forms.randomness import number_of_row
from tqp.planner.catalog_protocol import NumberSequence
from tqp.planner.functions.constants import no_constant
from tqp.planner.parse import Span
from tqp.planner.syntax.tokens import dotted_names

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder


def _nextval(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    sequence = _sequence(binder, nodes, "nextval", span)
    if sequence is None:
        return Literal(None, BIGINT)
    number = number_of_row(binder, "nextval", span)
    call = PythonCall(sequence.values(), (number,), span)
    binder.context.drawn.append((sequence, call))
    return call


def _currval(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """What the query draws for the same row before it, in the order in which the calls are written. Else a constant: what was drawn last before
    the query. Where nothing was, computing it raises: a default may name it before."""
    sequence = _sequence(binder, nodes, "currval", span)
    if sequence is None:
        return Literal(None, BIGINT)
    drawn = [call for of, call in binder.context.drawn if of is sequence]
    if drawn:
        number, *others = drawn[-1].arguments
        if number == number_of_row(binder, "currval", span) and all(
            each == _IS_CALLED for each in others[1:]
        ):
            return drawn[-1]
        raise UnsupportedError(
            "currval() of a number that is drawn in another part of the query is not supported", span
        )
    if sequence.last is None:
        message = Literal("currval: nextval() has not given a number of this sequence yet", VARCHAR)
        return null_after(Call("error", (message,), VARCHAR, span), BIGINT)
    return Literal(sequence.last, BIGINT)


def _setval(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """The number that it sets, as the one that was drawn last, or where the third argument is false as the next one."""
    sequence = _sequence(binder, nodes, "setval", span)
    value = binder.bind(nodes[1])
    is_text = isinstance(value, Literal) and value.data_type == VARCHAR
    if not (value.data_type.is_integer or value.data_type == NULL or is_text):
        raise BindError(f"setval() takes a BIGINT, not {value.data_type}", span)
    is_called = binder.bind(nodes[2]) if len(nodes) > 2 else Literal(True, BOOLEAN)
    if is_called.data_type not in (BOOLEAN, NULL):
        raise BindError(f"the third argument of setval() is a BOOLEAN, not {is_called.data_type}", span)
    if sequence is None:
        return Literal(None, BIGINT)
    number = number_of_row(binder, "setval", span)
    arguments = (number, cast_to(value, BIGINT, span), cast_to(is_called, BOOLEAN, span))
    call = PythonCall(sequence.setter(), arguments, span)
    binder.context.drawn.append((sequence, call))
    return call


#: What setval() sets is drawn.
_IS_CALLED = Literal(True, BOOLEAN)


def _sequence(binder: ExpressionBinder, nodes: Nodes, name: str, span: Span | None) -> NumberSequence | None:
    """The sequence that a call names; None of NULL."""
    given, catalog = binder.bind(nodes[0]), binder.context.catalog
    if given.data_type == NULL or is_null_literal(given):
        return None
    if not isinstance(given, Literal) or not isinstance(given.value, str):
        raise no_constant(given, f"{name}() takes the name of a sequence, a constant text", span)
    catalog.never_kept()
    names = dotted_names(given.value)
    if names is None:
        raise BindError(f'"{given.value}" is no name of a sequence', span)
    sequence = catalog.lookup_sequence(names[-1], catalog.schemas_named(names[:-1], span))
    if sequence is None:
        raise BindError(
            f'there is no sequence "{given.value}"{nearest(given.value, catalog.sequence_names())}', span
        )
    return sequence


def check_drawn(plan: LogicalPlan) -> None:
    """Raises UnsupportedError where numbers are drawn in a part that is computed again and again, whose rows have the same numbers each time."""
    for node in walk_plan(plan, into_subqueries=True):
        again = [node.step] if isinstance(node, Recursive) else []
        again += [part for part in (*node.inputs, *node.subqueries) if part.free_ids]
        for part in again:
            for inner in walk_plan(part, into_subqueries=True):
                refuse_drawn(inner.parts, "in a query that is computed for each row of another")


def refuse_drawn(parts: Iterable[Expression], where: str) -> None:
    """Raises UnsupportedError for the first call of nextval() or setval() among expressions."""
    for part in parts:
        if has_side_effects([part]):
            name = part.function.name if isinstance(part, PythonCall) else "nextval"
            raise UnsupportedError(f"{name}() {where} is not supported", getattr(part, "span", None))


SEQUENCE_FORMS: Forms = {
    "nextval": (_nextval, 1, 1),
    "currval": (_currval, 1, 1),
    "setval": (_setval, 2, 3),
}
