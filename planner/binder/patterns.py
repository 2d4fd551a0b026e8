"""Constant patterns are part of the query: one that is wrong is refused when bound, whatever rows there are, as in DuckDB."""

from __future__ import annotations

from collections.abc import Sequence

from tqp.core.errors import BindError, ExecutionError
from tqp.core.patterns import check_regular_expression, parse_format
from tqp.planner.algebra.expressions import Expression, Literal
from tqp.planner.functions.registry import Overload
from tqp.planner.parse import Span

#: The place of the options among the arguments, by function; the pattern is the second.
_OPTIONS = {"regexp_matches": 2, "regexp_full_match": 2, "regexp_replace": 3, "regexp_extract": 3}


def check_patterns(overload: Overload, arguments: Sequence[Expression], span: Span | None) -> None:
    """Raises ExecutionError for a regular expression or a format of dates that is none, BindError for NULL as options."""
    function = overload.canonical
    try:
        if function in _OPTIONS:
            _check_regular_expression(function, arguments, span)
        elif function in ("strftime", "strptime"):
            pattern = _text(arguments[0 if overload.swapped else 1])
            if pattern is not None:
                parse_format(pattern)
    except ExecutionError as error:
        error.span = error.span or span
        raise


def _check_regular_expression(function: str, arguments: Sequence[Expression], span: Span | None) -> None:
    place = _OPTIONS[function]
    options = arguments[place] if place < len(arguments) else None
    if isinstance(options, Literal) and options.value is None:
        raise BindError(f"the options of {function}() must not be NULL", span)
    pattern = _text(arguments[1])
    letters = "" if options is None else _text(options)
    if pattern is not None and letters is not None:
        check_regular_expression(pattern, letters)


def _text(expression: Expression) -> str | None:
    if isinstance(expression, Literal) and isinstance(expression.value, str):
        return expression.value
    return None
