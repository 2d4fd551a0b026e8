"""What is computed of the elements of lists and of the fields of structs: by the same lowering, over rows of their own.

The elements of all lists of a batch, one list after the other, are the rows of a space (see `Stream`), linked to the space
of the lists by the row that each stands in. So an expression over elements is lowered as any other is, columns that it
reads are gathered once for each element, and what comes out is cut into lists again by the lengths of these.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from torch import Tensor

from tqp.core.datatypes import VARCHAR, DataType, TypeKind
from tqp.core.frozen import dataclass
from tqp.core.schema import InnerFacts
from tqp.data.nested import count_of
from tqp.operators.groups.runs import reduce_runs
from tqp.operators.nested import elements as element_kernels
from tqp.operators.nested import maps as map_kernels
from tqp.operators.nested.lists import in_element_form, struct_extract
from tqp.operators.nested.unions import member_texts, retagged
from tqp.operators.text import nested_writing
from tqp.planner.algebra.element_expressions import OverElements
from tqp.planner.algebra.expressions import AggregateCall, Cast, ColumnRef
from tqp.planner.binder.expressions.coercion import cast_to
from tqp.planner.functions.members import cast_field, member_places
from tqp.planner.functions.registry import AGGREGATES
from tqp.planner.physical import plan as physical
from tqp.planner.physical.plan import GroupAlgorithm
from tqp.runtime.breakers.grouped_rows import GroupedRows
from tqp.runtime.breakers.reductions import Reduction
from tqp.runtime.frame import MAX_ROWS, Frame, FrameColumn
from tqp.runtime.lowering.graph_builder import NamedKernel, Node
from tqp.runtime.lowering.layouts import PLACE_LAYOUT, Form, canonical_layout, layout_of_part
from tqp.runtime.lowering.pending import Pending
from tqp.runtime.lowering.stream import Link, Space, Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering


@dataclass(frozen=True, slots=True)
class Elements:
    """The elements of lists as rows: their values, how many each list has, and which list each stands in."""

    values: Value
    lengths: Node
    rows: Node


@contextmanager
def elements_of(lowering: ExpressionLowering, lists: Value) -> Iterator[Elements]:
    """Inside of the block, rows are the elements of the lists.

    Of a list whose row does not count there are none, so that nothing computed of them raises.
    """
    stream, build = lowering.stream, lowering.stream.builder
    node = lowering.tensor(lists)
    kept = lowering.active(lowering.combine_validity(lists))
    flat = build.call(element_kernels.flatten_lists, node, kept, name="elements")
    values, validity, lengths = (build.call(operator.getitem, flat, part) for part in range(3))
    rows = build.call(element_kernels.list_rows, lengths, name="list_row")
    outside, guard = stream.space, lowering.guard
    stream.space = Space((Link(outside, rows),), build.call(count_of, values, name="num_elements"))
    lowering.guard = None
    layout = layout_of_part(lists.layout)
    yield Elements(Value(layout, values, stream.or_all_rows(validity)), lengths, rows)
    stream.space, lowering.guard = outside, guard


def as_elements(lowering: ExpressionLowering, value: Value) -> tuple[Node, Node | None]:
    """The values in the form that they have inside of nested ones, and their validity."""
    value = lowering.materialise(value)
    data_type = value.layout.data_type
    if data_type.is_string:
        return lowering.strings(value), value.validity
    node = value.node
    if value.layout.form is not Form.NESTED:
        node = lowering.stream.builder.call(in_element_form, node, data_type, name="element")
    assert node is not None
    return node, value.validity


def mapped(
    lowering: ExpressionLowering, lists: Value, element: DataType, compute: Callable[[Elements], Value]
) -> Node:
    """Lists of what is computed of each element."""
    with elements_of(lowering, lists) as elements:
        values, validity = as_elements(lowering, compute(elements))
    return lowering.stream.builder.call(
        element_kernels.lists_of, elements.lengths, values, validity, name="list"
    )


def lower_nested_cast(lowering: ExpressionLowering, cast: Cast, value: Value) -> Value:
    """A list or struct of another type: its elements or fields are cast, as columns are."""
    source, target = value.layout.data_type, cast.data_type
    value = lowering.materialise(value)
    if target.has_elements:
        node = mapped(
            lowering,
            value,
            target.element,
            lambda elements: _cast(lowering, cast, elements.values, target.element),
        )
        if target.kind is TypeKind.MAP:
            return _checked_map(lowering, cast, node, value)
        return Value(canonical_layout(target, value.layout.nullable), node, value.validity)
    if target.is_union:
        return _cast_union(lowering, cast, value)
    fields = []
    is_there = value.validity
    with lowering.only_where(None if is_there is None else lambda: [is_there]):
        for place, data_type in enumerate(target.children):
            from_place = cast_field(source, target, place)
            if from_place is None:
                found = lowering.materialise(lowering.null_of(data_type))
            else:
                found = _cast(lowering, cast, field_of(lowering, value, from_place), data_type)
            fields.append(as_elements(lowering, found))
    node = lowering.stream.builder.call(element_kernels.structs_of, *fields, name="struct")
    return Value(canonical_layout(target, value.layout.nullable), node, value.validity)


def _cast_union(lowering: ExpressionLowering, cast: Cast, value: Value) -> Value:
    """A union of more members: the tags are others, and the members are cast. TRY_CAST gives NULL where that of a member fails."""
    target, build = cast.data_type, lowering.stream.builder
    places = member_places(value.layout.data_type, target)
    tags = field_of(lowering, value, 0)
    new_places = tuple(place - 1 for place in places)
    new_tags = build.call(retagged, tags.node, new_places, target.tag_type, name="tag")
    fields: dict[int, tuple[Node, Node | None]] = {}
    validity = is_there = value.validity
    for place, of_target in enumerate(places, 1):
        member = field_of(lowering, value, place)
        with lowering.only_where(None if is_there is None else lambda: [is_there]):
            made = lowering.materialise(_cast(lowering, cast, member, target.children[of_target]))
        fields[of_target] = as_elements(lowering, made)
        if cast.is_try and made.validity is not None:
            was_null = build.call(operator.invert, lowering.validity_node(member))
            validity = lowering.all_valid(validity, build.call(operator.or_, made.validity, was_null))
    for place, data_type in enumerate(target.children[1:], 1):
        if place not in fields:
            fields[place] = as_elements(lowering, lowering.null_of(data_type))
    columns = [(new_tags, tags.validity), *(fields[place] for place in sorted(fields))]
    node = build.call(element_kernels.structs_of, *columns, name="union")
    return Value(canonical_layout(target, validity is not None), node, validity)


def _checked_map(lowering: ExpressionLowering, cast: Cast, node: Node, value: Value) -> Value:
    """Maps whose keys are cast: these may have become NULL or equal."""
    build, key_type = lowering.stream.builder, cast.data_type.element.children[0]
    if key_type == value.layout.data_type.element.children[0]:
        return Value(canonical_layout(cast.data_type, value.layout.nullable), node, value.validity)
    if cast.is_try:
        valid = build.call(map_kernels.have_distinct_keys, node, value.validity, key_type)
        return Value(canonical_layout(cast.data_type, True), node, lowering.all_valid(value.validity, valid))
    kernel = NamedKernel(map_kernels.checked_maps, "checked_map", cast.span)
    active = lowering.active(value.validity)
    node = build.call(kernel, node, validity=active, key_type=key_type, name="map")
    return Value(canonical_layout(cast.data_type, value.layout.nullable), node, value.validity)


def lower_nested_text(lowering: ExpressionLowering, value: Value) -> Value:
    """A list, struct or map as text: [a, 'b c '], {'a': 1, 'b': NULL}, {a=1}; a union as its member."""
    data_type, build = value.layout.data_type, lowering.stream.builder
    value = lowering.materialise(value)
    if data_type.has_elements:
        is_map = data_type.kind is TypeKind.MAP
        with elements_of(lowering, value) as elements:
            if is_map:
                inside = _entry_text(lowering, elements.values)
            else:  # of all that holds JSON, lists alone show it without quotes
                is_list_of_json = data_type.kind is TypeKind.LIST and data_type.element.is_json
                inside = _inner_text(lowering, elements.values, quotes=not is_list_of_json)
        node = build.call(
            nested_writing.list_texts,
            inside,
            elements.rows,
            elements.lengths,
            "{}" if is_map else "[]",
            name="text",
        )
    elif data_type.is_union:
        tag, *members = fields_of(lowering, value)
        texts = [_inner_text(lowering, member, quotes=False) for member in members]
        node = build.call(member_texts, tag.node, *texts, name="text")
    else:
        texts = [_inner_text(lowering, field) for field in fields_of(lowering, value)]
        node = build.call(nested_writing.struct_texts, data_type.names, *texts, name="text")
    node.makes_text = True
    return Value(canonical_layout(VARCHAR, value.layout.nullable), node, value.validity)


def _inner_text(lowering: ExpressionLowering, value: Value, quotes: bool = True) -> Node:
    data_type = value.layout.data_type
    if data_type.is_nested:
        text = lower_nested_text(lowering, value)
    else:
        text = lowering.materialise(cast_rows(lowering, value, VARCHAR))
    is_plain = (
        not quotes
        or data_type.is_nested
        or data_type.is_vector
        or data_type.is_numeric
        or data_type.kind is TypeKind.BOOLEAN
    )
    build, strings = lowering.stream.builder, lowering.strings(text)
    if not is_plain:
        strings = build.call(nested_writing.quoted_texts, strings, name="text")
    return build.call(nested_writing.text_or_null, strings, text.validity, "NULL", name="text")


def _entry_text(lowering: ExpressionLowering, entry: Value) -> Node:
    """key=value"""
    parts = (_inner_text(lowering, field_of(lowering, entry, place)) for place in range(2))
    return lowering.stream.builder.call(nested_writing.entry_texts, *parts, "=", name="text")


def field_of(lowering: ExpressionLowering, struct: Value, place: int) -> Value:
    """The field of a struct at a place, counted from 0; where the struct is NULL, anything."""
    build = lowering.stream.builder
    found = build.call(struct_extract, struct.node, place + 1, name="field")
    values, validity = (build.call(operator.getitem, found, part) for part in range(2))
    layout = layout_of_part(struct.layout, place)
    return Value(layout, values, lowering.stream.or_all_rows(validity))


def fields_of(lowering: ExpressionLowering, struct: Value) -> list[Value]:
    """All fields of a struct, of a union its tag and its members."""
    return [field_of(lowering, struct, place) for place in range(len(struct.layout.data_type.children))]


def _cast(lowering: ExpressionLowering, cast: Cast, value: Value, target: DataType) -> Value:
    return cast_rows(lowering, value, target, cast.is_try, cast.span)


def cast_rows(
    lowering: ExpressionLowering,
    value: Value,
    target: DataType,
    is_try: bool = False,
    span: tuple[int, int] | None = None,
) -> Value:
    """A value as another type; elements and fields are rows of columns for that."""
    column = lowering.program.hidden_id()
    lowering.stream.add_computed_column(column, "element", value)
    reference = ColumnRef(column, value.layout.data_type)
    return lowering.lower_over_rows(cast_to(reference, target, span, is_try))


def lower_over_elements(lowering: ExpressionLowering, expression: OverElements) -> Value:
    """What is computed of each element, and what becomes of it."""
    build = lowering.stream.builder
    lists = lowering.materialised(expression.input)
    function, data_type = expression.function, expression.data_type
    inner: tuple[InnerFacts, ...] = ()
    with elements_of(lowering, lists) as elements, _named_elements(lowering, expression, elements):
        if function in AGGREGATES:
            reduce = _reductions(lowering, expression, elements, lists.layout.longest)
        elif function == "list_transform":
            made = lowering.materialised(expression.body)
            low, high = made.layout.value_range or (None, None)
            inner = (InnerFacts(made.layout.nullable, low, high, made.layout.inner),)
            parts = as_elements(lowering, made)
            node = build.call(element_kernels.lists_of, elements.lengths, *parts, name="list")
        elif function == "list_filter":
            mask = lowering.condition(expression.body)
            inner = lists.layout.inner
            node = build.call(
                element_kernels.filtered_lists,
                elements.lengths,
                elements.values.node,
                elements.values.validity,
                mask,
                name="list",
            )
        elif function in _SEARCHES:
            mask = lowering.condition(expression.body)
            node = build.call(_SEARCHES[function], elements.lengths, mask)
        else:
            raise AssertionError(function)
    validity = lists.validity
    if function in AGGREGATES:
        reduced = reduce()
        validity = lowering.all_valid(validity, reduced.validity)
        return Value(reduced.layout.with_nullable(validity is not None), reduced.node, validity)
    nullable = lists.layout.nullable
    if function == "list_first_place":
        validity = lowering.all_valid(validity, build.call(operator.gt, node, 0))
        nullable = True
    layout = canonical_layout(data_type, nullable)
    if data_type.has_elements:
        layout = replace(layout, inner=inner, longest=lists.layout.longest)
    return Value(layout, node, validity)


def _reductions(
    lowering: ExpressionLowering, expression: OverElements, elements: Elements, longest: int | None
) -> Callable[[], Value]:
    """An aggregate of the elements of each list, whose result is made once rows are the lists again.

    `longest`: no list has more elements.
    """
    from tqp.runtime.lowering.aggregate_calls import AggregateCalls

    call = AggregateCall(
        expression.function,
        (expression.body, *expression.extra),
        expression.data_type,
        span=expression.span or (0, 0),
    )
    rows = physical.ValuesScan((), 1.0, MAX_ROWS if longest is None else longest, ())
    group = physical.Aggregate((), 1.0, 1, rows, GroupAlgorithm.SORT, (), (call,), None)
    outputs: list[Value] = []
    calls = AggregateCalls(lowering, group, outputs, of_frames=True)
    pending = calls.lower(call)
    assert isinstance(pending, Pending)
    build = lowering.stream.builder
    columns = [(each.node, each.validity) for each in outputs]
    nodes = []
    for reduction in (calls.reductions[number] for number in pending.reductions):
        is_fold = reduction.is_mergeable and not (reduction.distinct or reduction.order)
        of_rows = None if is_fold else elements.rows
        nodes.append(build.call(_reduce, reduction, columns, of_rows, elements.lengths, name=reduction.kind))
    return lambda: pending.finish(lowering, nodes)


def _reduce(
    reduction: Reduction, columns: Sequence[tuple[Any, Any]], rows: Tensor | None, lengths: Tensor
) -> Any:
    """A reduction of columns of the elements, for each list. `rows`: the list of each element; None for a plain fold."""
    if rows is None:
        values, validity = columns[reduction.column] if reduction.column >= 0 else (None, None)
        if not isinstance(values, Tensor) or not values.requires_grad:
            return reduce_runs(reduction.kind, values, validity, lengths)
        rows = element_kernels.list_rows(lengths)
    frame = Frame(rows.shape[0], tuple(FrameColumn(*each) for each in columns))
    return GroupedRows(frame, rows, lengths.shape[0]).reduce(reduction)


_SEARCHES: dict[str, Callable[..., Any]] = {
    "list_any": element_kernels.any_element,
    "list_first_place": element_kernels.first_place,
}


@contextmanager
def _named_elements(
    lowering: ExpressionLowering, expression: OverElements, elements: Elements
) -> Iterator[None]:
    """Inside of the block, the elements and their places are what the expression's body calls them."""
    outer, stream = lowering.element_columns, lowering.stream
    named = {expression.element.id: elements.values}
    if expression.index is not None:
        places = stream.builder.call(element_kernels.places_in_lists, elements.lengths, name="place")
        named[expression.index.id] = Value(PLACE_LAYOUT, places)
    lowering.element_columns = dict(outer)
    for id, value in named.items():
        column = lowering.element_columns[id] = lowering.program.hidden_id()
        stream.add_computed_column(column, "element", value)
    yield
    lowering.element_columns = outer
