"""Operators and functions by their overloads: the one that fits is chosen, arguments cast, constants folded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import BIGINT, HUGEINT, INTEGER, NULL, SMALLINT, TINYINT, VARCHAR
from tqp.core.errors import BindError, ExecutionError, UnsupportedError
from tqp.planner.algebra.expressions import Call, Expression, Literal, column_ids, is_null_literal
from tqp.planner.algebra.may_raise import null_beside
from tqp.planner.binder.expressions.coercion import cast_to, folded
from tqp.planner.binder.expressions.collations import collated, compared, of_arguments
from tqp.planner.functions import registry as functions
from tqp.planner.functions.constants import no_constant
from tqp.planner.functions.declaration import ConstantCheck
from tqp.planner.functions.overloads import NoOverloadError, Overload, choose, finish, null_type
from tqp.planner.functions.type_rules import SourceLiteral
from tqp.planner.functions.unsupported import refuse_missing_type
from tqp.planner.parse import Span

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder


def bind_operator(
    binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], span: Span | None, shown: str
) -> Expression:
    """An operator that is a function of the table under `name`."""
    return apply(name, [binder.bind_flexible(node) for node in nodes], span, shown)


def negation(binder: ExpressionBinder, node: exp.Expr, span: Span | None) -> Expression:
    """-x; the negation of a constant that is its type's smallest value has the next wider type."""
    operand = binder.bind_flexible(node)
    if isinstance(operand, Literal) and operand.data_type in _WIDER:
        value = operand.value
        if value == operand.data_type.bounds[0] and isinstance(value, int):
            return Literal(-value, _WIDER[operand.data_type])
    return apply("-", [operand], span, "-")


_WIDER = {TINYINT: SMALLINT, SMALLINT: INTEGER, INTEGER: BIGINT, BIGINT: HUGEINT}


def apply(name: str, arguments: Sequence[Expression], span: Span | None, shown: str) -> Expression:
    """The call of the overload of `name` that fits, its arguments cast, folded if they are literals.

    A NULL that comes of a constant NULL is a constant, too; as text it mostly bends, as a constant text does.
    """
    overloads = functions.scalar_overloads(name)
    assert overloads is not None
    try:
        overload = choose(overloads, arguments)
        function = functions.SCALARS[overload.canonical]
        _check(function.check_types, overload, arguments, span)
        if function.computes_all or not (function.is_null_for_null and any(map(_is_null, arguments))):
            _check(function.check, overload, arguments, span)
        knows_null = function.knows_null or not any(map(column_ids, arguments))
        null = null_type(overload, arguments, computes_all=function.computes_all) if knows_null else None
        if null is not None:
            value = null_beside(overload.canonical, arguments, null)
            bends = function.bends and null == VARCHAR and isinstance(value, Literal)
            return SourceLiteral(None, null) if bends else value
        if function.takes_digits and len(arguments) > 1 and arguments[0].data_type.is_decimal:
            arguments = (arguments[0], _digits(arguments[1], span, shown))
        resolution = finish(overload, arguments)
    except NoOverloadError as error:
        refuse_missing_type(name, [argument.data_type for argument in arguments], span)
        raise no_overload(error, arguments, span, shown) from None
    values = tuple(
        cast_to(argument, target, span) for argument, target in zip(arguments, resolution.argument_types)
    )
    if overload.swapped:
        values = values[::-1]
    if overload.constant is not None:
        values = (Literal(overload.constant, VARCHAR), *values)
    if values and values[0].data_type.children and values[0].data_type.holds_collation and name in _SORTING:
        return _sorted_by_collation(name, values, span)
    if name in _COMPARING:
        values = tuple(collated(values, span))
    if name in _GRADING:
        values = (compared(values[0], span), *values[1:])
    result = resolution.result if name == "split_part" else of_arguments(resolution.result, values, span)
    return folded(Call(resolution.overload.canonical, values, result, span))


#: Functions that put lists in order.
_SORTING = frozenset(("list_sort", "array_sort", "list_reverse_sort", "array_reverse_sort"))
#: Those that say which that is.
_GRADING = frozenset(("list_grade_up", "array_grade_up", "grade_up"))


def _sorted_by_collation(name: str, values: Sequence[Expression], span: Span | None) -> Expression:
    """A list in the order of what is compared in the place of its texts."""
    if "reverse" in name:
        raise UnsupportedError(
            f"{name}() of texts with a collation is not supported; use list_sort(x, 'DESC')", span
        )
    places = apply("list_grade_up", values, span, f"{name}()")
    return apply("list_select", (values[0], places), span, f"{name}()")


#: Functions that search a text for another, both under their collation.
_COMPARING = frozenset(
    "~~ ~~* ~~~ ^@ contains starts_with strpos instr like_escape not_like_escape ilike_escape not_ilike_escape".split()
)


def _is_null(argument: Expression) -> bool:
    return argument.data_type == NULL or is_null_literal(argument)


def _check(
    check: ConstantCheck | None, overload: Overload, arguments: Sequence[Expression], span: Span | None
) -> None:
    """Constant patterns are part of the query: one that is wrong is refused, whatever rows there are, as in DuckDB."""
    if check is None:
        return
    try:
        check(arguments[::-1] if overload.swapped else arguments)
    except (ExecutionError, BindError, UnsupportedError) as error:
        error.span = error.span or span
        raise


def _digits(digits: Expression, span: Span | None, shown: str) -> Literal:
    """The number of digits to round a DECIMAL to, which decides its type."""
    digits = cast_to(digits, INTEGER, span)
    if isinstance(digits, Literal) and digits.value is not None:
        return digits
    raise no_constant(
        digits, f"the number of digits of {shown} of a DECIMAL must be a constant, and not NULL", span
    )


def no_overload(
    error: NoOverloadError, arguments: Sequence[Expression], span: Span | None, shown: str
) -> BindError:
    """The error of a call that no overload takes, or several: what was given, and what there is."""
    types = ", ".join(_type_shown(argument) for argument in arguments)
    candidates = ", ".join(error.candidates[:4]) + (", ..." if len(error.candidates) > 4 else "")
    if error.ambiguous:
        return BindError(f"{shown} on ({types}) may mean {candidates}; cast the text explicitly", span)
    return BindError(
        f"{shown} does not take ({types}); it takes {candidates}; cast the arguments to fit", span
    )


def _type_shown(argument: Expression) -> str:
    return (
        "text"
        if isinstance(argument, SourceLiteral) and isinstance(argument.value, str)
        else str(argument.data_type)
    )
