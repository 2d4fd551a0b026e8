"""Forms of JSON that are more than calls of a function: the arrows, and what makes arrays and objects of values."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from tqp.core.datatypes import JSON, NULL, VARCHAR, DataType, TypeKind, holds_json, list_of, struct
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.json.values import parse_json
from tqp.core.keywords import lower_ascii
from tqp.core.text.numbers import ParseFailure
from tqp.planner.algebra.expressions import Call, Cast, Expression, Literal, is_null_literal
from tqp.planner.binder.expressions.coercion import cast_to, folded, json_as, null_after
from tqp.planner.binder.expressions.forms.forms import Forms, Nodes, call_of
from tqp.planner.binder.expressions.operators import apply, bind_operator
from tqp.planner.binder.expressions.type_names import type_of_text
from tqp.planner.functions.constant_folding import fold
from tqp.planner.functions.constants import is_constant, no_constant
from tqp.planner.functions.json import MERGES
from tqp.planner.functions.type_rules import implicit_cast_cost
from tqp.planner.parse import Span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder


def bind_arrow(binder: ExpressionBinder, node: exp.JSONExtract) -> Expression:
    """`j -> path`. Though `->>` binds closer, `j -> 'a' ->> 'b'` is `(j -> 'a') ->> 'b'`, with or without parentheses."""
    path = node.expression.unnest()
    if isinstance(path, exp.JSONExtractScalar):
        part = exp.JSONExtract(this=node.this.copy(), expression=path.this.copy())
        return bind_text_arrow(binder, exp.JSONExtractScalar(this=part, expression=path.expression.copy()))
    return bind_operator(binder, "->", (node.this, node.expression), span_of(node), "->")


def bind_text_arrow(binder: ExpressionBinder, node: exp.JSONExtractScalar) -> Expression:
    """`j ->> path`"""
    return bind_operator(binder, "->>", (node.this, node.expression), span_of(node), "->>")


def _written(value: Expression, span: Span | None) -> Expression:
    """The value as JSON: a text as a string of it, and JSON without white space."""
    if value.data_type == NULL:
        return Literal(None, JSON)
    if value.data_type == VARCHAR:
        return folded(Call("json_quote", (value,), JSON, span))
    if not holds_json(value.data_type):
        return cast_to(value, JSON, span)
    made = value if value.data_type.is_json else Cast(value, JSON, span=span)
    return folded(Call("json", (made,), JSON, span))


def _to_json(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    return _written(binder.bind(nodes[0]), span)


def _of_kinds(
    name: str, kinds: tuple[TypeKind, ...], binder: ExpressionBinder, nodes: Nodes, span: Span | None
) -> Expression:
    """to_json() of lists, or of structs."""
    value = binder.bind(nodes[0])
    kind = value.data_type.kind
    if kind not in (*kinds, TypeKind.NULL) or (kind is TypeKind.STRUCT and value.data_type.is_tuple):
        wanted = " or ".join(kind.value for kind in kinds)
        raise BindError(f"{name}() takes a {wanted}, not {value.data_type}", span)
    return _written(value, span)


def _json_array(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """json_array(x, y): a row as JSON is an array."""
    if not nodes:
        return Literal("[]", JSON)
    return _written(_struct([""] * len(nodes), [binder.bind(node) for node in nodes], span), span)


def _json_object(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """json_object('a', x, 'b', y): a struct as JSON is an object; with keys that are no constants a text is put together."""
    if len(nodes) % 2:
        raise BindError("json_object() takes a key and a value in turn, an even number of arguments", span)
    if not nodes:
        return Literal("{}", JSON)
    keys = [binder.bind(node) for node in nodes[::2]]
    for key in keys:
        if key.data_type != VARCHAR:
            raise BindError(f"a key of json_object() is VARCHAR, not {key.data_type}; cast it", span)
    if not all(isinstance(key, Literal) and key.value for key in keys):
        pairs = [
            _pair(*pair, "JSON key cannot be NULL") for pair in zip(nodes[::2], nodes[1::2], strict=True)
        ]
        commas = (exp.Literal.string(",") for _ in pairs)
        _, *parts = (part for pair in zip(commas, pairs) for part in pair)
        return binder.bind(_object(_joined(*parts)))
    names = [str(key.value) for key in keys if isinstance(key, Literal)]
    return _written(_struct(names, [binder.bind(node) for node in nodes[1::2]], span), span)


def _struct(names: list[str], values: list[Expression], span: Span | None) -> Expression:
    """A struct, the names of whose fields may be equal."""
    types = tuple(value.data_type for value in values)
    data_type = DataType(TypeKind.STRUCT, children=types, names=tuple(names))
    return folded(Call("struct_pack", tuple(values), data_type, span))


def _merge(name: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """json_merge_patch(j, patch, another): one after the other; a document that is NULL is null."""
    made, *others = (_document(name, binder.bind_flexible(node), span) for node in nodes)
    null = Literal("null", JSON)
    for other in others:
        if is_null_literal(other):
            made = null_after(made, JSON)  # text that is no JSON raises nevertheless
            continue
        is_null = is_null_literal(made)
        document = null if is_null else Call("coalesce", (made, null), JSON, span)
        made = folded(Call(name, (document, other), JSON, span))
    return made


def _document(name: str, value: Expression, span: Span | None) -> Expression:
    """An argument that is JSON, or text which is."""
    if value.data_type != VARCHAR and implicit_cast_cost(value, JSON) is None:
        raise BindError(f"{name}() takes JSON, not {value.data_type}; cast it", span)
    return cast_to(value, JSON, span)


def _change(name: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """json_set(j, path, value) and its like: the value is JSON, too, and so NULL makes NULL."""
    document, path, *values = (binder.bind_flexible(node) for node in nodes)
    if implicit_cast_cost(path, VARCHAR) is None:
        raise BindError(f"the path of {name}() is VARCHAR, not {path.data_type}", span)
    arguments = (
        _document(name, document, span),
        cast_to(path, VARCHAR, span),
        *(_document(name, value, span) for value in values),
    )
    return folded(Call(name, arguments, JSON, span))


def _json_group_array(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """json_group_array(x): the list of a group as JSON."""
    if isinstance(nodes[0], exp.Distinct | exp.Order):
        raise BindError(
            "json_group_array() takes neither DISTINCT nor ORDER BY; see to_json(list(...))", span
        )
    listed = exp.Anonymous(this="list", expressions=list(nodes))
    return binder.bind(exp.Anonymous(this="to_json", expressions=[listed]))


def _json_group_structure(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """json_group_structure(j): what json_structure() says of the elements of the list of a group."""
    group = call_of("json_group_array", nodes[0])
    return binder.bind(call_of("json_extract", call_of("json_structure", group), exp.Literal.number(0)))


def _json_contains(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """json_contains(j, part): a part that is a constant is read once for all rows, also where each document is NULL."""
    document, part = (binder.bind_flexible(node) for node in nodes)
    is_null = is_null_literal(part)
    if part.data_type == VARCHAR and is_constant(part) and not is_null:
        part = folded(Call("json", (part,), JSON, span))
    return apply("json_contains", (document, part), span, "json_contains()")


def _json_group_object(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """json_group_object(k, v): an object of a group, in whose text a key may stand several times."""
    key, value = nodes
    return binder.bind(_object(_members(key, value, span)))


def _members(key: exp.Expr, value: exp.Expr, span: Span | None) -> exp.Expr:
    """The keys and values of a group, as the text of an object has them."""
    if any(isinstance(each, exp.Distinct | exp.Order) for each in (key, value)):
        raise BindError("json_group_object() takes neither DISTINCT nor ORDER BY", span)
    pair = _pair(key, value, "json_group_object key cannot be NULL")
    return call_of("string_agg", pair, exp.Literal.string(","))


def _pair(key: exp.Expr, value: exp.Expr, error: str) -> exp.Expr:
    """`"key":value`, the text of a member of an object; an error where the key is NULL."""
    refused = call_of("error", exp.Literal.string(error))
    written = call_of("to_json", call_of("coalesce", exp.cast(key.copy(), "VARCHAR"), refused))
    null = call_of(
        "coalesce", exp.cast(call_of("to_json", value.copy()), "VARCHAR"), exp.Literal.string("null")
    )
    return _joined(exp.cast(written, "VARCHAR"), exp.Literal.string(":"), null)


def _object(pairs: exp.Expr) -> exp.Expr:
    return exp.cast(_joined(exp.Literal.string("{"), pairs, exp.Literal.string("}")), "JSON")


def of_frames(window: exp.Window) -> exp.Expr | None:
    """json_group_array(x) or json_group_object(k, v) OVER a window, said by the aggregates of which they are made; None of any other call."""
    made = window.copy()
    call = made.this.this if isinstance(made.this, exp.Filter) else made.this
    arguments = call.expressions if isinstance(call, exp.Anonymous) else []
    name = lower_ascii(call.name)
    if name == "json_group_array" and len(arguments) == 1:
        if isinstance(arguments[0], exp.Order):  # which DuckDB does not follow
            raise UnsupportedError(
                "ORDER BY inside json_group_array() over a window is not supported", span_of(window)
            )
        call.replace(call_of("list", *arguments))
        return call_of("to_json", made)
    if name == "json_group_object" and len(arguments) == 2:
        key, value = arguments
        call.replace(_members(key, value, span_of(window)))
        return _object(made)
    return None


def _joined(*texts: exp.Expr) -> exp.Expr:
    first, *rest = texts
    for text in rest:
        first = exp.DPipe(this=first, expression=text)
    return exp.Paren(this=first)


def _transform(name: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """json_transform(j, '{"a": "INTEGER", "b": ["VARCHAR"]}'): the document as a value of the type of this structure.

    What does not fit is NULL; json_transform_strict() raises. Other keys of objects are left out.
    """
    document, given = binder.bind_flexible(nodes[0]), binder.bind_flexible(nodes[1])
    structure = fold(cast_to(given, VARCHAR, span))
    if not isinstance(structure, Literal):
        raise no_constant(structure, f"the structure of {name}() is a constant", span)
    if structure.value is None or is_null_literal(document):
        return Literal(None, NULL)
    try:
        target = _type_of(parse_json(str(structure.value)), span)
    except ParseFailure as failure:
        raise BindError(f"the structure of {name}() is no JSON: {failure}", span) from None
    document = _document(name, document, span)
    if target == NULL:
        return null_after(document, NULL)
    manner = "json_transform_strict" if name.endswith("_strict") else "json_transform"
    return json_as(document, target, manner, span)


def _type_of(structure: Any, span: Span | None) -> DataType:
    """An object is a STRUCT, an array of one a LIST, and a text the name of a type."""
    match structure:
        case "NULL":  # what json_structure() calls it
            return NULL
        case str():
            return type_of_text(structure, span)
        case [element] if isinstance(structure, list):
            return list_of(_type_of(element, span))
        case tuple() if structure:
            keys = {lower_ascii(key) for key, _ in structure}
            if len(keys) < len(structure):
                raise BindError("a key stands twice in a structure of JSON", span)
            return struct({key: _type_of(value, span) for key, value in structure})
    raise BindError("a structure of JSON has names of types, arrays of one and objects", span)


_TRANSFORMS = ("from_json", "from_json_strict", "json_transform", "json_transform_strict")

JSON_FORMS: Forms = {
    **{name: (partial(_transform, name), 2, 2) for name in _TRANSFORMS},
    "json_group_object": (_json_group_object, 2, 2),
    "json_contains": (_json_contains, 2, 2),
    "json_quote": (_to_json, 1, 1),
    "array_to_json": (partial(_of_kinds, "array_to_json", (TypeKind.LIST, TypeKind.ARRAY)), 1, 1),
    "row_to_json": (partial(_of_kinds, "row_to_json", (TypeKind.STRUCT,)), 1, 1),
    **{name: (partial(_merge, name), 2, 2 if name == "json_merge_patch_diff" else None) for name in MERGES},
    **{name: (partial(_change, name), 3, 3) for name in ("json_set", "json_insert", "json_replace")},
    "json_remove": (partial(_change, "json_remove"), 2, 2),
    "json_group_structure": (_json_group_structure, 1, 1),
    "json_array": (_json_array, 0, None),
    "json_object": (_json_object, 0, None),
    "json_group_array": (_json_group_array, 1, 1),
}
