"""histogram(t, x) and histogram_values(t, x): how many values of a table lie in each bin, as rows of a query that is made here."""

from __future__ import annotations

from sqlglot import exp

from tqp.core.datatypes import BIGINT, DOUBLE, NULL, TIMESTAMP, DataType
from tqp.core.errors import BindError, Error, UnsupportedError
from tqp.core.keywords import lower_ascii, quoted
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.coercion import of_type
from tqp.planner.binder.from_clause.constant_arguments import (
    constant_argument,
    constant_text,
    integer_of,
)
from tqp.planner.binder.scope import Scope
from tqp.planner.binder.select.output import BoundQuery
from tqp.planner.functions import registry as functions
from tqp.planner.functions.type_rules import implicit_cast_cost
from tqp.planner.parse import Span, parse, span_of, without_places

HISTOGRAMS = ("histogram", "histogram_values")
_PARAMETERS = ("source", "col_name", "bin_count", "technique")
_TECHNIQUES = ("auto", "sample", "equi-height", "equi-width", "equi-width-nice")
_DEFAULT_COUNT = 10
#: The bins and the counts of the query, of a "%rows" that has the values.
_COUNTED = """
    WITH "%rows"("%value") AS ({rows}),
    "%bins" AS (SELECT {bins} AS "%bins" FROM "%rows"),
    "%counts" AS (SELECT {counts}("%value", "%bins") AS "%map" FROM "%rows", "%bins")
    SELECT unnest(map_keys("%map")) AS bin, unnest(map_values("%map")) AS count FROM "%counts"
"""
_SHOWN = """
    SELECT
        CASE WHEN is_histogram_other_bin(bin) THEN '(other values)' ELSE {bin} END AS bin,
        count,
        bar(count, 0, max(count) OVER ()) AS bar
    FROM ({counted})
"""
_RANGE = """
    CASE WHEN row_number() OVER () = 1 THEN 'x <= ' ELSE concat(lag(bin::VARCHAR) OVER (), ' < x <= ') END || bin::VARCHAR
"""


def bind_histogram(
    context: BindContext, call: exp.Anonymous, siblings: Scope, span: Span | None
) -> BoundQuery:
    """The rows: `bin`, `count`, and of histogram() a `bar`. Raises BindError, UnsupportedError, and the errors of table and values."""
    name = lower_ascii(call.name)
    named = [each for each in call.expressions if isinstance(each, exp.PropertyEQ | exp.Kwarg)]
    arguments = dict(zip(_PARAMETERS, call.expressions[: len(call.expressions) - len(named)]))
    arguments |= {lower_ascii(each.this.name): each.expression for each in named}
    is_complete = {*_PARAMETERS[:2]} <= arguments.keys() <= {*_PARAMETERS}
    if len(arguments) < len(call.expressions) or not is_complete:
        raise BindError(
            f"{name}() takes a table and values of it, and may take bin_count and technique by name", span
        )
    rows, siblings = _rows(context, name, arguments), Scope(ctes=siblings.ctes)  # it is not LATERAL
    try:
        [column] = context.bind_query.bind_exact(rows.copy(), siblings).columns
    except Error as error:
        raise type(error)(error.message, error.span or span) from None
    data_type = column.field().data_type
    if data_type == NULL:
        raise UnsupportedError(f"{name}() of NULLs without a type is not supported; cast them", span)
    count, technique = _DEFAULT_COUNT, "auto"
    if "bin_count" in arguments:
        bound = constant_argument(context, arguments["bin_count"], name)
        count = integer_of(bound, name, span, "a number of bins") or 0
    if "technique" in arguments:
        technique = constant_text(context, arguments["technique"], name, "a technique as text")
    if technique not in _TECHNIQUES:
        raise BindError(f"{name}() has no technique {technique!r}; it has {', '.join(_TECHNIQUES)}", span)
    if count < 1:
        raise BindError(f"{name}() has one bin at least", span)
    if technique == "auto":
        technique = "equi-width-nice" if _has_order(data_type) else "sample"
    counts = "histogram_exact" if technique == "sample" else "histogram"
    text = _COUNTED.format(rows="SELECT 1", bins=_bins(technique, count), counts=counts)
    if name == "histogram":
        text = _SHOWN.format(bin="bin::VARCHAR" if technique == "sample" else _RANGE, counted=text)
    tree = without_places(parse(text).tree)
    [table] = [each for each in tree.find_all(exp.CTE) if each.alias == "%rows"]
    table.set("this", rows)
    return context.bind_query.bind_exact(tree, siblings)


def _rows(context: BindContext, name: str, arguments: dict[str, exp.Expr]) -> exp.Expr:
    """The query of the values."""
    source, value = (arguments[each] for each in _PARAMETERS[:2])
    for node in value.find_all(exp.Query, exp.Window, exp.Anonymous):
        if not isinstance(node, exp.Anonymous) or functions.aggregate_overloads(lower_ascii(node.name)):
            raise BindError(f"{name}() takes values of single rows", span_of(node))
    source = source.unnest()
    if isinstance(source, exp.Column):
        parts = [part.name for part in source.parts]
    else:
        parts = [constant_text(context, source, name, "the name of a table")]
    tree = without_places(parse(f"SELECT 1 FROM {'.'.join(map(quoted, parts))}").tree)
    tree.set("expressions", [value.copy()])
    return tree


def _has_order(data_type: DataType) -> bool:
    """Whether bins of equal width can be made of values of the type."""
    targets = (BIGINT, DOUBLE, TIMESTAMP)
    return any(implicit_cast_cost(of_type(data_type), target) is not None for target in targets)


def _bins(technique: str, count: int) -> str:
    """What makes the list of bins of all values."""
    if technique == "sample":
        return f'approx_top_k("%value", {count})'
    if technique == "equi-height":
        fractions = ", ".join(f"{number} / {count}::DOUBLE" for number in range(1, count + 1))
        return f'quantile("%value", [{fractions}])'
    is_nice = technique == "equi-width-nice"
    return f'equi_width_bins(min("%value"), max("%value"), {count}, {str(is_nice).lower()})'
