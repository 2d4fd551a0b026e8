"""Functions of the elements of lists: lambdas, list comprehensions, searches, and aggregates of one list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tqp.core.datatypes import BIGINT, BOOLEAN, INTEGER, NULL, VARCHAR, DataType, TypeKind, list_of
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.planner.algebra.element_expressions import ElementRef, OverElements, ReduceElements
from tqp.planner.algebra.expressions import (
    Call,
    ColumnRef,
    Expression,
    Literal,
    has_prediction,
    is_null_literal,
)
from tqp.planner.algebra.subquery_expressions import has_subquery
from tqp.planner.binder.expressions.aggregates.aggregates import check_constants, taken
from tqp.planner.binder.expressions.aggregates.several_values import QUANTILES, quantiles
from tqp.planner.binder.expressions.coercion import (
    as_list,
    as_text,
    cast_to,
    compare,
    condition_of,
    folded,
    null_after,
    of_type,
)
from tqp.planner.binder.expressions.collations import collated, with_collation
from tqp.planner.binder.expressions.forms.cases import make_case, null_with
from tqp.planner.binder.expressions.forms.forms import Forms, Nodes, call_of
from tqp.planner.binder.expressions.operators import apply
from tqp.planner.functions import registry as functions
from tqp.planner.functions.constants import is_constant, no_constant
from tqp.planner.functions.nested import ELEMENT_FUNCTIONS, LIST_AGGREGATES, ORDERED_OTHERWISE
from tqp.planner.functions.overloads import NoOverloadError, resolve
from tqp.planner.functions.type_rules import SourceLiteral, common_type
from tqp.planner.functions.unsupported import refuse_missing_form, refuse_missing_type
from tqp.planner.parse import Span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder


def list_operand(binder: ExpressionBinder, node: exp.Expr, shown: str) -> Expression:
    """A list, or the constant NULL."""
    return _as_list_operand(binder.bind(node), shown, span_of(node))


def _as_list_operand(value: Expression, shown: str, span: Span | None) -> Expression:
    value = as_list(value, span)
    if value.data_type.kind is not TypeKind.LIST and value.data_type != NULL:
        if value.data_type == VARCHAR:
            raise UnsupportedError(f"{shown} of {value.data_type} is not supported", span)
        raise BindError(f"{shown} takes a list, not {value.data_type}", span)
    return value


#: As many parameters as a lambda may have.
_PARAMETERS = 3


def element_of(binder: ExpressionBinder, value: Expression, name: str) -> ElementRef:
    """What stands for an element of a list, as deep within lambdas as the binder is."""
    return ElementRef(_PARAMETERS * len(binder.lambdas), value.data_type.element, name)


def refuse_arrow(written: exp.Expr, span: Span | None) -> None:
    """Raises BindError for an arrow where a lambda may stand. `span`: where it has none."""
    if isinstance(written.unnest(), exp.JSONExtract):
        raise BindError("the arrow (->) makes no lambda; write lambda x: x + 1", span_of(written) or span)


def _with_lambda(function: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """list_transform(l, lambda x: ...), list_filter(l, lambda x, i: ...)"""
    value, written = list_operand(binder, nodes[0], f"{function}()"), nodes[1]
    refuse_arrow(written, span)
    if not isinstance(written, exp.Lambda):
        raise BindError(f"{function}() takes a lambda: lambda x: x + 1", span_of(written) or span)
    return _over(function, binder, value, [each.name for each in written.expressions], written.this, span)


def _over(
    function: str,
    binder: ExpressionBinder,
    value: Expression,
    names: Sequence[str],
    written: exp.Expr,
    span: Span | None,
) -> Expression:
    """`written` for each element of `value`. Of NULL it is NULL, but is bound as of a list of NULLs."""
    if len(names) > 2:
        raise BindError(f"the lambda of {function}() has one or two parameters, not {len(names)}", span)
    is_null = value.data_type == NULL
    if is_null:
        value = Literal(None, list_of(NULL))
    element = element_of(binder, value, names[0])
    index = ElementRef(element.id + 1, BIGINT, names[1]) if names[1:] else None
    body = _body_of(binder, [element] if index is None else [element, index], written, span)
    if is_null:
        return Literal(None, NULL)
    data_type = list_of(body.data_type)
    if function == "list_filter":
        body, data_type = condition_of(body, span_of(written)), value.data_type
    return OverElements(function, value, body, element, index, data_type, span=span)


def _body_of(
    binder: ExpressionBinder, parameters: Sequence[ElementRef], written: exp.Expr, span: Span | None
) -> Expression:
    """What a lambda computes, in which its parameters may stand."""
    return _body(binder, [each.name for each in parameters], parameters, written, span)


def _body(
    binder: ExpressionBinder,
    names: Sequence[str],
    values: Sequence[Expression],
    written: exp.Expr,
    span: Span | None,
) -> Expression:
    """What a lambda computes of what its parameters stand for."""
    named = {lower_ascii(name): value for name, value in zip(names, values, strict=True)}
    if len(named) < len(names):
        twice = next(
            name for place, name in enumerate(names) if lower_ascii(name) in map(lower_ascii, names[:place])
        )
        raise BindError(f'two parameters of a lambda are called "{twice}"', span)
    binder.lambdas.append(named)
    try:
        body = binder.bind(written)
    finally:
        binder.lambdas.pop()
    if has_subquery(body):
        raise BindError("a subquery may not stand in a lambda", span_of(written) or span)
    if has_prediction(body):
        raise UnsupportedError("a model's call in a lambda is not supported", span_of(written) or span)
    return body


def _invoke(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """invoke(lambda x, y: ..., 1, 2): the body, in which the parameters stand for the arguments."""
    refuse_arrow(nodes[0], span)
    written, arguments = nodes[0], [binder.bind(node) for node in nodes[1:]]
    if not isinstance(written, exp.Lambda):
        raise BindError("invoke() takes a lambda first: invoke(lambda x: x + 1, 2)", span_of(written) or span)
    names = [each.name for each in written.expressions]
    if len(names) != len(arguments):
        raise BindError(f"the lambda has {len(names)} parameters, and {len(arguments)} arguments", span)
    return _body(binder, names, arguments, written.this, span)


def _reduce(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """list_reduce(l, lambda x, y, i: ..., initial): x is what the elements before y have come to."""
    value, written = list_operand(binder, nodes[0], "list_reduce()"), nodes[1]
    refuse_arrow(written, span)
    if not isinstance(written, exp.Lambda):
        raise BindError("list_reduce() takes a lambda: lambda x, y: x + y", span_of(written) or span)
    names = [each.name for each in written.expressions]
    if len(names) not in (2, 3):
        raise BindError(f"the lambda of list_reduce() has two or three parameters, not {len(names)}", span)
    if nodes[2:]:
        refuse_arrow(nodes[2], span)
    initial = binder.bind(nodes[2]) if nodes[2:] else None
    is_null = value.data_type == NULL
    if is_null:
        value = Literal(None, list_of(NULL))
    element = element_of(binder, value, names[1])
    reduced = ElementRef(
        element.id + 2, element.data_type if initial is None else initial.data_type, names[0]
    )
    index = ElementRef(element.id + 1, BIGINT, names[2]) if names[2:] else None
    others = (element,) if index is None else (element, index)
    body = _body_of(binder, (reduced, *others), written.this, span)
    common = _type_of_reduced(reduced, body, span)
    if common != reduced.data_type:  # of that type is then what the lambda is given, too
        reduced = replace(reduced, data_type=common)
        body = _body_of(binder, (reduced, *others), written.this, span)
        # the type of a UHUGEINT beside an integer with a sign holds neither in DuckDB, and grows each time
        may_grow = _is_untyped(common) or element.data_type.kind is TypeKind.UHUGEINT
        if may_grow and _type_of_reduced(reduced, body, span) != common:
            raise UnsupportedError(f"list_reduce() whose type grows beyond {common} is not supported", span)
    if is_null:
        return Literal(None, NULL)
    from_first = initial is None
    if initial is None:
        initial = apply("list_extract", (value, Literal(1, BIGINT)), span, "list_reduce()")
    initial, body = cast_to(initial, common, span), cast_to(body, common, span)
    return ReduceElements(value, initial, body, reduced, element, index, from_first, span)


def _type_of_reduced(reduced: ElementRef, body: Expression, span: Span | None) -> DataType:
    """What both, what the lambda gets and what it gives, may become."""
    common = common_type(reduced, of_type(body.data_type))
    if common is None:
        raise BindError(
            f"the lambda of list_reduce() gives {body.data_type}, and gets {reduced.data_type}; cast one",
            span,
        )
    return with_collation(common, reduced.data_type, body.data_type)


def _is_untyped(data_type: DataType) -> bool:
    """Is it NULL, or of such values?"""
    return data_type == NULL or any(map(_is_untyped, data_type.children))


def bind_comprehension(binder: ExpressionBinder, node: exp.Comprehension, span: Span | None) -> Expression:
    """[x + 1 FOR x IN l IF x > 1]"""
    value = list_operand(binder, node.args["iterator"], "a list comprehension")
    names = [node.expression.name]
    if node.args.get("position") is not None:
        names.append(node.args["position"].name)
    condition = node.args.get("condition")
    if condition is not None:
        if len(names) > 1:  # places are those of all elements
            holds = call_of("coalesce", exp.cast(condition.copy(), "BOOLEAN"), exp.false())
            parts = (exp.Case(ifs=[exp.If(this=holds, true=node.this.copy())]), holds)
            made = tuple(_over("list_transform", binder, value, names, part, span) for part in parts)
            return apply("list_where", made, span, "a list comprehension")
        value = _over("list_filter", binder, value, names, condition, span)
    return _over("list_transform", binder, value, names, node.this, span)


def parameter_of(binder: ExpressionBinder, name: str) -> Expression | None:
    """What a parameter of a lambda around stands for, the innermost first."""
    known = lower_ascii(name)
    return next((each[known] for each in reversed(binder.lambdas) if known in each), None)


def bind_parameter(binder: ExpressionBinder, node: exp.Identifier) -> Expression:
    """A name in the body of a lambda."""
    found = parameter_of(binder, node.name)
    return binder.bind_flexible(exp.Column(this=node.copy())) if found is None else found


def _search(function: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    return search(function, binder, binder.bind_flexible(nodes[0]), binder.bind_flexible(nodes[1]), span)


def search(
    function: str,
    binder: ExpressionBinder,
    value: Expression,
    wanted: Expression,
    span: Span | None,
    shown: str = "",
) -> Expression:
    """Whether a list holds a value, which is NULL for NULL; or the place of the first element that is equal to it.

    Where it asks whether, a text that is constant bends as one that is written, as in DuckDB.
    """
    value = as_list(value, span)
    result = BOOLEAN if function == "list_any" else INTEGER
    shown = shown or ("list_contains()" if function == "list_any" else "list_position()")
    if value.data_type == NULL:
        return Literal(None, result) if function == "list_any" else null_after(wanted, result)
    if value.data_type.kind is not TypeKind.LIST:
        raise UnsupportedError(f"{shown} of {value.data_type} is not supported", span)
    if function == "list_any" and any(map(is_null_literal, (value, wanted))):
        return Literal(None, result)  # of whatever type the other is
    bends = function == "list_any" and wanted.data_type == VARCHAR and is_constant(wanted)
    sought = SourceLiteral(None, VARCHAR) if bends else wanted
    common = common_type(of_type(value.data_type.element), sought)
    sizes = {each.size for each in (value.data_type.element, wanted.data_type) if each.kind is TypeKind.ARRAY}
    if common is None or len(sizes) > 1:
        raise BindError(
            f"{shown} does not find {wanted.data_type} in {value.data_type}; cast one of them", span
        )
    value, wanted = cast_to(value, list_of(common), span), cast_to(wanted, common, span)
    is_plain = function == "list_first_place" and common.kind not in ORDERED_OTHERWISE
    if function == "list_first_place" and is_null_literal(value):
        return null_after(wanted, result)
    if is_plain and isinstance(value, Literal) and isinstance(wanted, Literal):
        return Literal(_place_among(value.value, wanted.value), result)
    element = element_of(binder, value, "x")
    compare = "equal" if function == "list_any" else "is_not_distinct_from"
    body = Call(compare, tuple(collated((element, wanted), span)), BOOLEAN, span)
    found = OverElements(function, value, body, element, None, result, span=span)
    if function != "list_any" or (isinstance(wanted, Literal) and wanted.value is not None):
        return found
    return null_with(wanted, found, span)


def _place_among(values: Any, wanted: Any) -> int | None:
    """The place of the first of the values that is equal, counted from 1."""
    return values.index(wanted) + 1 if isinstance(values, tuple) and wanted in values else None


def _contains(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """contains(l, x), which also looks for a text in another."""
    value, wanted = (binder.bind_flexible(node) for node in nodes)
    if value.data_type.kind in (TypeKind.LIST, TypeKind.ARRAY):
        return search("list_any", binder, value, wanted, span)
    if value.data_type.kind is TypeKind.MAP:
        keys = Call("map_keys", (value,), list_of(value.data_type.element.children[0]), span)
        return search("list_any", binder, folded(keys), wanted, span, "contains()")
    return apply("contains", (value, wanted), span, "contains()")


def _aggregate(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """list_aggregate(l, 'sum')"""
    name = binder.bind(nodes[1])
    if not isinstance(name, Literal) or not isinstance(name.value, str):
        raise no_constant(name, "the aggregate of list_aggregate() is named by a constant text", span)
    word = lower_ascii(name.value)
    if functions.main_spelling(word) in QUANTILES and len(nodes) == 3 and isinstance(nodes[2], exp.Array):
        each = quantiles(call_of("list_aggregate", *nodes), 2, nodes[2].expressions)
        return binder.bind_flexible(each)
    return _aggregate_of(word, binder, (nodes[0], *nodes[2:]), span)


def _aggregate_of(name: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """An aggregate of the elements of each list."""
    value = list_operand(binder, nodes[0], f"list_{name}()")
    overloads = functions.aggregate_overloads(functions.main_spelling(name))
    if not overloads or overloads[0].canonical not in functions.AGGREGATES:
        raise UnsupportedError(f"the aggregate {name}() of a list is not supported", span)
    if value.data_type == NULL:
        return value
    element = element_of(binder, value, "x")
    if value.data_type.element.kind in functions.AGGREGATES[overloads[0].canonical].unsupported:
        raise UnsupportedError(f"list_{name}() of {value.data_type} is not supported", span)
    extra = [binder.bind(node) for node in nodes[1:]]
    refuse_missing_form(name, len(nodes), span)
    constants = tuple(each for each in extra if isinstance(each, Literal))
    if len(constants) < len(extra):
        raise UnsupportedError(f"list_{name}() with arguments that are no constants is not supported", span)
    try:
        resolution = resolve(overloads, [ColumnRef(-1, element.data_type), *constants])
    except NoOverloadError as error:
        refuse_missing_type(name, [element.data_type, *(each.data_type for each in extra)], span)
        takes = ", ".join(error.candidates[:4])
        raise BindError(
            f"list_{name}() does not take {value.data_type}; {name}() takes {takes}", span
        ) from None
    body, *others = (
        cast_to(each, target, span)
        for each, target in zip((element, *constants), resolution.argument_types, strict=True)
    )
    constants = tuple(each for each in others if isinstance(each, Literal))
    function = resolution.overload.canonical
    if function == "string_agg":  # as in DuckDB, NULL says nothing here, while string_agg(x, NULL) is NULL
        constants = tuple(Literal(",", VARCHAR) if each.value is None else each for each in constants)
    check_constants(f"list_{name}", functions.AGGREGATES[function], (body, *constants), span)
    body = taken(function, body, span)
    return OverElements(function, value, body, element, None, resolution.result, constants, span)


def _to_string(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """array_to_string(l, separator): the elements that are not NULL as text; an empty text of an empty list."""
    value, separator = binder.bind(nodes[0]), binder.bind(nodes[1])
    if separator.data_type not in (VARCHAR, NULL) and not separator.data_type.is_enum:
        raise BindError(f"the separator of array_to_string() is a text, not {separator.data_type}", span)
    _check_separator(separator, "array_to_string()", span)
    if is_null_literal(value):
        return Literal(None, VARCHAR)
    if not value.data_type.has_elements and value.data_type != VARCHAR:
        value = cast_to(value, list_of(VARCHAR), span)  # which is none, but for a NULL
    value = _as_list_operand(value, "array_to_string()", span_of(nodes[0]))
    made = elements_as_text(binder, "array_to_string()", value, separator, span)
    length = Call("list_length", (value,), BIGINT, span)
    is_empty = compare("equal", length, Literal(0, BIGINT), span)
    return make_case([is_empty], [Literal("", VARCHAR), made], span)


def _check_separator(separator: Expression, shown: str, span: Span | None) -> Literal:
    if not isinstance(separator, Literal):
        raise UnsupportedError(f"{shown} by a separator that is not constant is not supported", span)
    return separator


def elements_as_text(
    binder: ExpressionBinder, shown: str, value: Expression, separator: Expression, span: Span | None
) -> Expression:
    """The elements of a list that are not NULL as one text with separators between; NULL where there are none."""
    separator = _check_separator(separator, shown, span)
    element = element_of(binder, value, "x")
    extra = (Literal("," if separator.value is None else separator.value, VARCHAR),)
    return OverElements("string_agg", value, as_text(element, span), element, None, VARCHAR, extra, span)


#: What binds each of the functions, and how many arguments it takes, at least and at most.
_BINDERS: Forms = {
    "list_transform": (partial(_with_lambda, "list_transform"), 2, 2),
    "list_filter": (partial(_with_lambda, "list_filter"), 2, 2),
    "list_reduce": (_reduce, 2, 3),
    "invoke": (_invoke, 1, None),
    "list_any": (partial(_search, "list_any"), 2, 2),
    "list_first_place": (partial(_search, "list_first_place"), 2, 2),
    "list_aggregate": (_aggregate, 2, 9),
    "array_to_string": (_to_string, 2, 2),
}
#: The same by the names that SQL has for them.
ELEMENT_FORMS: Forms = {
    **{
        name: _BINDERS[function]
        for function, names in ELEMENT_FUNCTIONS.items()
        if function
        for name in names.split()
    },
    "invoke": _BINDERS["invoke"],
    **{f"list_{name}": (partial(_aggregate_of, name), 1, 1) for name in LIST_AGGREGATES},
    "contains": (_contains, 2, 2),
}
