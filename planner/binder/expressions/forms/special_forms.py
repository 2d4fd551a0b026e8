"""Calls that are no function of their arguments' types alone: COALESCE, IF, greatest(), EXTRACT and their like."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import BIGINT, BIT, BOOLEAN, DATE, DOUBLE, JSON, NULL, UBIGINT, VARCHAR, TypeKind
from tqp.core.errors import BindError, UnsupportedError, nearest
from tqp.core.keywords import lower_ascii
from tqp.core.units import PART_NAMES
from tqp.planner.algebra.expressions import Call, Expression, Literal, is_null_literal
from tqp.planner.binder.expressions.coercion import (
    as_text,
    cast_to,
    common_type_of,
    compare,
    folded,
    null_after,
)
from tqp.planner.binder.expressions.collations import of_arguments
from tqp.planner.binder.expressions.forms.attempts import TRY_FORMS
from tqp.planner.binder.expressions.forms.cases import make_case
from tqp.planner.binder.expressions.forms.clock import CLOCK_FORMS
from tqp.planner.binder.expressions.forms.enums import ENUM_FORMS
from tqp.planner.binder.expressions.forms.forms import Forms, Nodes
from tqp.planner.binder.expressions.forms.histograms import HISTOGRAM_FORMS
from tqp.planner.binder.expressions.forms.instants import INSTANT_FORMS
from tqp.planner.binder.expressions.forms.json_forms import JSON_FORMS
from tqp.planner.binder.expressions.forms.listed_forms import LISTED_FORMS, struct_of_parts, texts_of
from tqp.planner.binder.expressions.forms.postgres_forms import POSTGRES_FORMS
from tqp.planner.binder.expressions.forms.randomness import RANDOM_FORMS, SEED_FORMS
from tqp.planner.binder.expressions.forms.sequences import SEQUENCE_FORMS
from tqp.planner.binder.expressions.forms.short_forms import SHORT_FORMS
from tqp.planner.binder.expressions.forms.type_forms import TYPE_FORMS
from tqp.planner.binder.expressions.nested.arrays import ARRAY_FORMS, bind_array_value
from tqp.planner.binder.expressions.nested.lambdas import ELEMENT_FORMS, elements_as_text
from tqp.planner.binder.expressions.nested.list_calls import LIST_CALLS
from tqp.planner.binder.expressions.nested.maps import MAP_FORMS
from tqp.planner.binder.expressions.nested.parts import NESTED_PART_FORMS
from tqp.planner.binder.expressions.nested.structs import STRUCT_FORMS
from tqp.planner.binder.expressions.nested.unions import UNION_FORMS
from tqp.planner.binder.expressions.nested.values import NESTED_VALUE_FORMS, joined, list_of_values
from tqp.planner.binder.expressions.operators import apply, bind_operator, negation
from tqp.planner.functions import registry as functions
from tqp.planner.functions.constants import constant_text, is_constant, no_constant
from tqp.planner.functions.type_rules import SourceLiteral, implicit_cast_cost, settle
from tqp.planner.parse import Span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder


def _if(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """if(condition, value, otherwise), as a CASE."""
    condition = binder.bind_condition(nodes[0])
    values = [binder.bind_flexible(node) for node in nodes[1:]]
    return make_case([condition], values, span)


def _coalesce(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    if len(nodes) == 1:
        return binder.bind_flexible(nodes[0])
    values = [binder.bind_flexible(node) for node in nodes]
    common = common_type_of(values, "coalesce()", span)
    cast = [cast_to(value, common, span) for value in values]
    rest = _that_may_be_taken(cast)
    if not rest:
        return Literal(None, common)
    if isinstance(rest[0], Literal) and not all(isinstance(value, Literal) for value in cast):
        rest = cast  # no constant, which may decide overloads and types: DuckDB folds it later
    return rest[0] if len(rest) == 1 else Call("coalesce", tuple(rest), common, span)


def _that_may_be_taken(values: Sequence[Expression]) -> list[Expression]:
    """Those up to the first constant, which is never NULL, without constants that are."""
    taken: list[Expression] = []
    for value in values:
        if is_null_literal(value):
            continue
        taken.append(value)
        if isinstance(value, Literal):
            break
    return taken


def _nullif(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    left, right = map(binder.bind_flexible, nodes)
    condition = compare("equal", left, right, span)
    return make_case([condition], [Literal(None, NULL), settle(left)], span)


def _extreme(function: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    values = [binder.bind_flexible(node) for node in nodes]
    common = common_type_of(values, f"{function}()", span)
    if common == NULL:
        return Literal(None, NULL)
    cast = tuple(cast_to(value, common, span) for value in values)
    if common.kind is TypeKind.BIT and len(cast) > 1:
        return _extreme_bits(function, cast, span)
    if common.is_composed and len(cast) > 1:
        order = (
            Literal("DESC" if function == "greatest" else "ASC", VARCHAR),
            Literal("NULLS LAST", VARCHAR),
        )
        in_order = apply("list_sort", (list_of_values(cast, span), *order), span, f"{function}()")
        return apply("list_extract", (in_order, Literal(1, BIGINT)), span, f"{function}()")
    return cast[0] if len(cast) == 1 else folded(Call(function, cast, of_arguments(common, cast, span), span))


def _extreme_bits(function: str, values: Sequence[Expression], span: Span | None) -> Expression:
    """greatest() and least() of BIT, of which DuckDB compares the stored bytes: how many bits are missing to whole bytes, these as ones, and the bits."""

    def computed(name: str, *arguments: Expression) -> Expression:
        return apply(name, arguments, span, f"{function}()")

    eight, stored = Literal(8, BIGINT), []
    for bits in values:
        rest = computed("%", computed("length", bits), eight)
        missing = computed("%", computed("subtract", eight, rest), eight)
        parts = (
            as_text(missing, span),
            computed("repeat", Literal("1", VARCHAR), missing),
            as_text(bits, span),
        )
        stored.append(
            Call("concat_operator", (Call("concat_operator", parts[:2], VARCHAR), parts[2]), VARCHAR, span)
        )
    found = folded(Call(function, tuple(stored), VARCHAR, span))
    count = cast_to(computed("left", found, Literal(1, BIGINT)), BIGINT, span)
    return cast_to(computed("substring", found, computed("add", count, Literal(2, BIGINT))), BIT, span)


def _concat(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    bound = [binder.bind_flexible(node) for node in nodes]
    if any(each.data_type.kind in (TypeKind.LIST, TypeKind.ARRAY) for each in bound):
        return joined(bound, span)
    values = tuple(as_text(each, span) for each in bound)
    return Call("concat", values, of_arguments(VARCHAR, values, span), span)


def _concat_ws(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    bound = [binder.bind_flexible(node) for node in nodes]
    if bound[0].data_type not in (VARCHAR, JSON, NULL) and not bound[0].data_type.is_enum:
        raise BindError(f"the separator of concat_ws() must be VARCHAR, not {bound[0].data_type}", span)
    for each in bound:
        if each.data_type.kind is TypeKind.LIST and each.data_type.element.kind is TypeKind.LIST:
            raise BindError("concat_ws() does not take lists of lists", span)
    values = tuple(
        elements_as_text(binder, "concat_ws() of a list", each, bound[0], span)
        if each.data_type.kind is TypeKind.LIST
        else as_text(each, span)
        for each in bound
    )
    return Call("concat_ws", values, of_arguments(VARCHAR, values, span), span)


def _printed(function: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """format() and printf(): of numbers, truth values and texts, which other values become."""
    bound = [binder.bind(node) for node in nodes]
    if implicit_cast_cost(bound[0], VARCHAR) is None:
        raise BindError(f"the format of {function}() is a text, not {bound[0].data_type}", span)
    if any(each.data_type == NULL for each in bound):
        return SourceLiteral(None, VARCHAR)
    values = [cast_to(bound[0], VARCHAR, span)]
    for each in bound[1:]:
        is_number = each.data_type.is_integer or each.data_type.kind in (TypeKind.BOOLEAN, TypeKind.UHUGEINT)
        is_fraction = each.data_type.is_float or each.data_type.is_decimal
        values.append(each if is_number else cast_to(each, DOUBLE if is_fraction else VARCHAR, span))
    if any(map(is_null_literal, values)):
        return SourceLiteral(None, VARCHAR)
    if len(values) == 1:
        return _without_places(function, values[0], span)
    return Call(function, tuple(values), of_arguments(VARCHAR, values, span), span)


def _without_places(function: str, pattern: Expression, span: Span | None) -> Expression:
    """format() or printf() of a format alone: its text, in which signs that would begin a place are written twice."""
    text = constant_text(pattern)
    if text is None:
        raise UnsupportedError(f"{function}() of a format alone that is no constant is not supported", span)
    for sign in "{}" if function == "format" else "%":
        if sign in text.replace(sign * 2, ""):
            raise BindError(f"the format of {function}() asks for arguments, and has none", span)
        text = text.replace(sign * 2, sign)
    return Literal(text, VARCHAR)


def _constant_or_null(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """constant_or_null(c, x, ...): the constant, NULL where one of the others is."""
    constant, *others = (binder.bind(node) for node in nodes)
    if any(map(is_null_literal, others)):
        return Literal(None, NULL)
    if not is_constant(constant):
        raise BindError("constant_or_null() takes a constant first", span)
    null = Literal(None, constant.data_type)
    if is_null_literal(constant):
        return null
    conditions = [folded(Call("is_null", (each,), BOOLEAN, span)) for each in others]
    return make_case(conditions, [*[null] * len(conditions), constant], span)


def _getvariable(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """getvariable('name'): what SET VARIABLE has given to it; NULL of a name without a value."""
    (node,) = nodes
    name = binder.bind(node)
    if not isinstance(name, Literal) or not isinstance(name.value, str):
        raise no_constant(name, "getvariable() takes the name of a variable, a constant text", span)
    return binder.context.catalog.lookup_variable(name.value) or Literal(None, NULL)


def _current_setting(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """current_setting('name'): what a setting is now."""
    name = binder.bind(nodes[0])
    if not isinstance(name, Literal) or not isinstance(name.value, str):
        raise no_constant(name, "current_setting() takes the name of a setting, a constant text", span)
    found = binder.context.catalog.lookup_setting(name.value)
    if found is None:
        raise BindError(
            f'there is no setting "{name.value}"{nearest(name.value, binder.context.catalog.settings())}',
            span,
        )
    return Literal(found.value, found.data_type)


def _unary_plus(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """+x: a number as it is (what abs() takes), but it no longer bends to its surroundings. Of a list, a sum of lists."""
    value = binder.bind_flexible(nodes[0])
    if value.data_type.kind in (TypeKind.LIST, TypeKind.ARRAY):
        return joined([value], span)
    call = apply("abs", [value], span, "+")
    return call.arguments[0] if isinstance(call, Call) else call


def _sum(name: str, binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """add(a, b) and subtract(a, b); of one argument they are signs."""
    if len(nodes) == 1:
        return _unary_plus(binder, nodes, span) if name == "add" else negation(binder, nodes[0], span)
    return bind_operator(binder, name, nodes, span, f"{name}()")


def _date_part(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    names = texts_of(nodes[0], "the parts of date_part()", span)
    if names is not None:
        one = partial(date_part, binder, node=nodes[1], span=span)
        return struct_of_parts(binder, names, one, nodes[1], span)
    part = binder.bind(nodes[0])
    if part.data_type.is_enum:
        part = as_text(part, span)
    if isinstance(part, Literal) and isinstance(part.value, str):
        return date_part(binder, part.value, nodes[1], span)
    if not isinstance(part, Literal) and is_constant(part):
        raise no_constant(part, "the part of a date is a constant name", span)
    return apply("date_part", (part, binder.bind_flexible(nodes[1])), span, "date_part()")


def date_part(binder: ExpressionBinder, part: str, node: exp.Expr, span: Span | None) -> Expression:
    """One part of a date, time or interval: EXTRACT and the functions named after parts."""
    name = _PART_SPELLINGS.get(lower_ascii(part))
    if name is None:
        raise BindError(f'"{part}" is not a part of a date or time{nearest(part, _PART_NAMES)}', span)
    return apply("date_part", [SourceLiteral(name, VARCHAR), binder.bind_flexible(node)], span, "date_part()")


_PART_NAMES = """
    year month day decade century millennium quarter week isodow isoyear yearweek era dow doy hour
    minute second millisecond microsecond epoch julian timezone timezone_hour timezone_minute
""".split()
_PART_SPELLINGS = {**{name: name for name in _PART_NAMES}, **PART_NAMES}


def bind_extract(binder: ExpressionBinder, node: exp.Extract) -> Expression:
    """EXTRACT(part FROM x)."""
    return date_part(binder, node.this.name, node.expression, span_of(node))


def bind_position(binder: ExpressionBinder, node: exp.StrPosition) -> Expression:
    """POSITION(needle IN s), strpos and instr."""
    return bind_operator(binder, "strpos", (node.this, node.args["substr"]), span_of(node), "position()")


def _hash(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """hash(x, ...): a number of 64 bits for values of any types, NULL too."""
    return Call("hash", tuple(binder.bind(node) for node in nodes), UBIGINT, span)


def _error(binder: ExpressionBinder, nodes: Nodes, span: Span | None) -> Expression:
    """error('message'): NULL of no type, but for a message that is NULL, never."""
    message = settle(binder.bind_flexible(nodes[0]))
    if message.data_type not in (NULL, VARCHAR):
        raise BindError(f"error() takes a text, not {message.data_type}", span)
    return null_after(Call("error", (cast_to(message, VARCHAR, span),), VARCHAR, span), NULL)


#: By name, what is bound otherwise than by its overloads, and how many arguments it takes: at least, at most.
SPECIAL_FORMS: Forms = {
    **NESTED_VALUE_FORMS,
    **NESTED_PART_FORMS,
    **STRUCT_FORMS,
    **UNION_FORMS,
    **LIST_CALLS,
    **ARRAY_FORMS,
    **MAP_FORMS,
    **ELEMENT_FORMS,
    **CLOCK_FORMS,
    **SHORT_FORMS,
    **TYPE_FORMS,
    **POSTGRES_FORMS,
    **LISTED_FORMS,
    **JSON_FORMS,
    **INSTANT_FORMS,
    **RANDOM_FORMS,
    **SEED_FORMS,
    **SEQUENCE_FORMS,
    **ENUM_FORMS,
    **HISTOGRAM_FORMS,
    **TRY_FORMS,
    "coalesce": (_coalesce, 1, None),
    "ifnull": (_coalesce, 1, None),
    "nullif": (_nullif, 2, 2),
    "if": (_if, 3, 3),
    "greatest": (partial(_extreme, "greatest"), 1, None),
    "least": (partial(_extreme, "least"), 1, None),
    "concat": (_concat, 1, None),
    "concat_ws": (_concat_ws, 2, None),
    "format": (partial(_printed, "format"), 1, None),
    "printf": (partial(_printed, "printf"), 1, None),
    "error": (_error, 1, 1),
    "hash": (_hash, 1, None),
    "getvariable": (_getvariable, 1, 1),
    "current_setting": (_current_setting, 1, 1),
    "constant_or_null": (_constant_or_null, 2, None),
    "date": (lambda binder, nodes, span: cast_to(binder.bind_flexible(nodes[0]), DATE, span), 1, 1),
    "date_add": (
        lambda binder, nodes, span: bind_operator(binder, "add", nodes, span, "date_add()"),
        2,
        2,
    ),
    "date_part": (_date_part, 2, 2),
    "pi": (lambda *_: Literal(math.pi, DOUBLE), 0, 0),
    "+": (_unary_plus, 1, 1),
    "add": (partial(_sum, "add"), 0, None),
    "subtract": (partial(_sum, "subtract"), 0, None),
    "array_value": (
        lambda binder, nodes, span: bind_array_value([binder.bind(node) for node in nodes], span),
        0,
        None,
    ),
}


def bind_special_form(
    binder: ExpressionBinder, name: str, nodes: Nodes, span: Span | None
) -> Expression | None:
    """The call, if it is one of these. Raises BindError for a wrong number of arguments."""
    form = SPECIAL_FORMS.get(name) or SPECIAL_FORMS.get(functions.main_spelling(name))
    if form is None:
        return None
    bind, least, most = form
    if len(nodes) < least or (most is not None and len(nodes) > most):
        takes = f"{'' if most == least else 'at least '}{least or 'no'} argument{'' if least == 1 else 's'}"
        raise BindError(f"{name}{'()' if name.isidentifier() else ''} takes {takes}, not {len(nodes)}", span)
    return bind(binder, nodes, span)
