"""Lowering of what decides between values: AND, OR, CASE and COALESCE, and what guards an expression against raising.

Every part is computed for every row, but for text that has to be made: that is made for the rows which ask for it.
Where a part may raise, a guard says which these are: those for which nothing earlier has decided.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from tqp.core.datatypes import BOOLEAN
from tqp.operators.nested import layout as nested_layout
from tqp.operators.numbers import elementwise, logic
from tqp.operators.rows.selection import row_indices
from tqp.operators.strings import layout as string_layout
from tqp.planner.algebra.expressions import Call, Case, Cast, Expression, walk
from tqp.planner.algebra.outcomes import null_rejected_columns
from tqp.runtime.lowering.expressions.domain import domain_of
from tqp.runtime.lowering.expressions.kernel_calls import makes_text
from tqp.runtime.lowering.expressions.value_forms import common_dictionary
from tqp.runtime.lowering.graph_builder import GraphBuilder, Node
from tqp.runtime.lowering.layouts import Form, Layout, canonical_layout
from tqp.runtime.lowering.stream import Link, Space, Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering

#: Makes the bool tensor of the rows that count, once a checking kernel asks for it.
Guard = Callable[[], Node]
#: Makes bool tensors of which all have to be true.
Masks = Callable[[], Iterable[Node]]


def all_of(build: GraphBuilder, masks: Sequence[Node]) -> Node:
    """The AND of one or more bool tensors."""
    return _combined(build, masks, operator.and_, elementwise.all_of)


def _any_of(build: GraphBuilder, masks: Sequence[Node]) -> Node:
    return _combined(build, masks, operator.or_, elementwise.any_of)


def _combined(
    build: GraphBuilder, masks: Sequence[Node], two: Callable[..., Any], many: Callable[..., Any]
) -> Node:
    if len(masks) > 2:
        return build.call(many, list(masks), name="mask")
    return masks[0] if len(masks) == 1 else build.call(two, *masks, name="mask")


def lower_condition(lowering: ExpressionLowering, call: Call) -> Node:
    """A bool tensor that is True where AND or OR is true: an argument that is NULL decides as little, or as much, as one that is false."""
    build = lowering.stream.builder
    is_and = call.function == "and"
    masks: list[Node] = []
    for argument in call.arguments:
        with lowering.only_where(_undecided(build, masks, None, is_and)):
            masks.append(lowering.condition(argument))
    return (all_of if is_and else _any_of)(build, masks)


def lower_connective(lowering: ExpressionLowering, call: Call) -> Value:
    """and / or of any number of conditions, three-valued; what decides a row protects it from the later conditions."""
    build = lowering.stream.builder
    is_and = call.function == "and"
    masks: list[Node] = []  # of the conditions that are never NULL
    result: Value | None = None  # of the others
    for argument in call.arguments:
        with lowering.only_where(_undecided(build, masks, result, is_and)):
            value = lowering.lower(argument)
        value = Value(value.layout, lowering.tensor(value), lowering.combine_validity(value))
        if value.validity is None:
            assert value.node is not None
            masks.append(value.node)
        else:
            result = value if result is None else _kleene(build, is_and, result, value)
    if masks:
        layout = canonical_layout(BOOLEAN, False)
        certain = Value(layout, (all_of if is_and else _any_of)(build, masks))
        result = certain if result is None else _kleene(build, is_and, certain, result)
    assert result is not None
    return result


def _kleene(build: GraphBuilder, is_and: bool, a: Value, b: Value) -> Value:
    kernel = logic.kleene_and if is_and else logic.kleene_or
    pair = build.call(kernel, a.node, a.validity, b.node, b.validity)
    values, validity = (build.call(operator.getitem, pair, i) for i in (0, 1))
    return Value(b.layout.with_nullable(True), values, validity)


def _undecided(
    build: GraphBuilder, masks: Sequence[Node], earlier: Value | None, is_and: bool
) -> Masks | None:
    """The rows where the earlier conditions are NULL, or true of AND and false of OR."""

    def undecided() -> Iterator[Node]:
        if masks:
            yield all_of(build, masks) if is_and else build.call(operator.invert, _any_of(build, masks))
        if earlier is not None:
            node = earlier.node if is_and else build.call(operator.invert, earlier.node)
            # `a >= b` of bools is `a OR NOT b`
            yield build.call(operator.ge, node, earlier.validity)

    return undecided if masks or earlier is not None else None


def lower_case(lowering: ExpressionLowering, case: Case) -> Value:
    """Per row the value of the first branch whose condition is true."""
    conditions: list[Node] = []
    values: list[Value] = []
    build = lowering.stream.builder
    for condition, result in case.branches:
        with lowering.only_where(_in_branch(build, conditions)):
            node = lowering.condition(condition)
        present = lowering.present
        lowering.present |= null_rejected_columns(condition, lowering.stream.fields)
        with lowering.only_where(_in_branch(build, conditions, node)):
            values.append(_lower_choice(lowering, result))
        lowering.present = present
        conditions.append(node)
    with lowering.only_where(_in_branch(build, conditions)):
        values.append(_lower_choice(lowering, case.default))
    values = _as_codes(lowering, values)
    layout = lowering.common_layout(values, case.data_type)
    made = _choose_made(lowering, conditions, values, layout)
    node = _choose(lowering, conditions, values, layout, "case") if made is None else made
    validity = None
    if layout.nullable:
        validity = build.call(
            logic.choose,
            conditions,
            [lowering.validity_node(value) for value in values[:-1]],
            lowering.validity_node(values[-1]),
            name="case_valid",
        )
    return Value(layout, node, validity)


def _lower_choice(lowering: ExpressionLowering, expression: Expression) -> Value:
    """What is chosen in the rows of the guard; text that has to be made is made for these rows alone."""
    guard, stream, build = lowering.guard, lowering.stream, lowering.stream.builder
    if guard is None or not _makes_strings(expression) or domain_of(lowering, expression) is not None:
        return lowering.lower(expression)
    everywhere = stream.space
    rows = build.call(row_indices, guard(), name="rows")
    stream.space, lowering.guard = Space((Link(everywhere, rows),)), None
    value = lowering.lower(expression)
    node, validity = None if value.is_constant else lowering.strings(value), value.validity
    stream.space, lowering.guard = everywhere, guard
    if node is None:
        return value
    spread = build.call(string_layout.spread, node, rows, stream.num_rows(), name="spread")
    if validity is not None:
        validity = build.call(logic.spread, validity, rows, stream.num_rows(), name="spread_valid")
    return Value(canonical_layout(value.layout.data_type, value.layout.nullable), spread, validity)


def _makes_strings(expression: Expression) -> bool:
    """Is it a string that has to be made, or be made of one?"""
    return expression.data_type.is_string and any(
        isinstance(part, Call | Cast) and makes_text(part) for part in walk(expression)
    )


def _as_codes(lowering: ExpressionLowering, values: list[Value]) -> list[Value]:
    """Texts as codes into one dictionary, if there is one that has them all; values of other types as they are."""
    is_text = all(value.layout.data_type.is_string for value in values)
    dictionary = common_dictionary(lowering.program, values) if is_text else None
    if dictionary is None:
        return values
    return [lowering.in_dictionary(value, dictionary) for value in values]


def _choose(
    lowering: ExpressionLowering, conditions: list[Node], values: list[Value], layout: Layout, name: str
) -> Node:
    """Per row the value of the first true condition, or else the last value, stored as `layout` says."""
    build = lowering.stream.builder
    if layout.form in (Form.NUMBER, Form.CODES):
        if len(conditions) > 1:
            return _choose_among(lowering, conditions, values, layout, name)
        chosen = lowering.number(values[-1], layout.dtype)
        for condition, value in zip(reversed(conditions), reversed(values[:-1]), strict=True):
            given = lowering.number(value, layout.dtype)
            chosen = build.call(elementwise.choose, condition, given, chosen, layout.dtype, name=name)
        assert isinstance(chosen, Node)
        return chosen
    *given, other = [lowering.in_layout(value, layout).node for value in values]
    choose = _CHOOSE.get(layout.form, logic.choose)
    chosen = build.call(choose, conditions, given, other, name=name)
    chosen.makes_text = layout.form is Form.STRINGS
    return chosen


def _choose_made(
    lowering: ExpressionLowering, conditions: list[Node], values: list[Value], layout: Layout
) -> Node | None:
    """As `_choose`, where some texts were made for the rows of their branch alone: these are put there. None where none was."""
    if layout.form is not Form.STRINGS:
        return None
    nodes = [lowering.in_layout(value, layout).node for value in values]
    parts = [
        node.arguments[:2] if isinstance(node, Node) and node.target is string_layout.spread else (node, None)
        for node in nodes
    ]
    if all(rows is None for _, rows in parts):
        return None
    stream = lowering.stream
    chosen = stream.builder.call(string_layout.choose_made, conditions, parts, stream.num_rows(), name="case")
    chosen.makes_text = True
    return chosen


#: CASE of what is no single tensor.
_CHOOSE: dict[Form, Callable[..., Any]] = {
    Form.STRINGS: string_layout.choose,
    Form.NESTED: nested_layout.choose,
}


def _choose_among(
    lowering: ExpressionLowering, conditions: list[Node], values: list[Value], layout: Layout, name: str
) -> Node:
    """`_choose` by masks of which one is true in each row; what is zero needs none."""
    build = lowering.stream.builder
    chosen: Node | None = None
    left: Node | None = None  # rows that no condition so far is true of
    for condition, value in zip([*conditions, None], values, strict=True):
        mask = condition
        if left is not None:
            mask = left if condition is None else build.call(operator.and_, condition, left, name="mask")
        if condition is not None:
            # of bools, `a > b` is `a AND NOT b`
            left = (
                build.call(operator.invert, condition)
                if left is None
                else build.call(operator.gt, left, condition)
            )
        given = lowering.number(value, layout.dtype)
        if isinstance(given, Node) or given != 0 or math.copysign(1, given) < 0:
            chosen = build.call(elementwise.put_where, chosen, mask, given, layout.dtype, name=name)
    if chosen is None:
        chosen = build.call(elementwise.put_where, None, conditions[0], 0, layout.dtype, name=name)
    return chosen


def choices(build: GraphBuilder, node: Node) -> list[tuple[Node, Any]]:
    """What a CASE of numbers chooses from: bool tensors, one of them at most true in each row, and the tensor or number chosen there.

    Where none is true, the result is zero. Empty if the node is not a CASE.
    """
    if node.target is elementwise.choose:
        condition, value, otherwise, _ = node.arguments
        return [(condition, value), (build.call(operator.invert, condition), otherwise)]
    found: list[tuple[Node, Any]] = []
    chosen: Node | None = node
    while chosen is not None and chosen.target is elementwise.put_where:
        others, condition, value, _ = chosen.arguments
        found.append((condition, value))
        chosen = others
    return found[::-1] if chosen is None else []


def _in_branch(build: GraphBuilder, earlier: Sequence[Node], *own: Node) -> Masks | None:
    """The rows of a CASE branch: its own condition true, none of the earlier ones."""
    if not earlier and not own:
        return None
    return lambda: [*(build.call(operator.invert, node) for node in earlier), *own]


def lower_coalesce(lowering: ExpressionLowering, call: Call) -> Value:
    """Per row the first argument that is not NULL; what it protects the later ones from, they do not raise."""
    values: list[Value] = []
    conditions: list[Node] = []
    for argument in call.arguments:
        with lowering.only_where(_in_branch(lowering.stream.builder, conditions)):
            values.append(_lower_choice(lowering, argument) if conditions else lowering.lower(argument))
        if not values[-1].layout.nullable:
            break
        conditions.append(lowering.validity_node(values[-1]))
    if len(values) == 1:
        return values[0]
    return _first_valid(lowering, call, values)


def _first_valid(lowering: ExpressionLowering, call: Expression, values: list[Value]) -> Value:
    build = lowering.stream.builder
    nullable = all(value.layout.nullable for value in values)
    values = _as_codes(lowering, values)
    layout = lowering.common_layout(values, call.data_type).with_nullable(nullable)
    conditions = [lowering.validity_node(value) for value in values[:-1]]
    node = _choose(lowering, conditions, values, layout, "coalesce")
    validity = None
    if layout.nullable:
        validity = lowering.validity_node(values[0])
        for value in values[1:]:
            validity = build.call(operator.or_, validity, lowering.validity_node(value))
    return Value(layout, node, validity)
