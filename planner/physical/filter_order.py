"""What the conjuncts of a filter cost: the order in which they are evaluated, and on which rows.

Cheap and selective ones come first, and what may fail last. A conjunct runs on all rows, its mask combined with those
before, or on the rows that are left, whose numbers and values have to be gathered first.
"""

from __future__ import annotations

from collections.abc import Sequence

from tqp.core.datatypes import TypeKind
from tqp.planner.algebra.cardinality import Estimator
from tqp.planner.algebra.expressions import (
    Call,
    Case,
    Cast,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Parameter,
    Predict,
    PythonCall,
    column_ids,
)
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.may_raise import may_raise
from tqp.planner.algebra.value_ranges import value_range
from tqp.planner.functions.declaration import Work
from tqp.planner.functions.registry import SCALARS

# Nanoseconds a row on one core (docs/performance.md).
_COMPARISON = {1: 0.03, 2: 0.05, 4: 0.07, 8: 0.13}  # by bytes of a value
_ARITHMETIC_BYTE = 0.035  # for each byte of the result
_MASK = 0.04  # AND, OR or NOT of two masks
LOOK_UP_COST = 0.6
_CALCULATION = 0.5
_DATE_FUNCTION = 2.0
_STRING_PREDICATE = 20.0
_STRING_SEARCH = 60.0
_ELEMENT = 0.2  # of an array
_UNKNOWN_FUNCTION = 200.0
_GATHER, _GATHER_STRING = 0.55, 3.0  # strings one after the other are also read faster
_FEWEST_ROW_NUMBERS, _MOST_ROW_NUMBERS, _ROW_NUMBERS = 0.15, 0.45, 6.0  # from a mask: least, most, by share


def order_conjuncts(
    parts: Sequence[Expression], fields: FieldsById, estimator: Estimator
) -> tuple[Expression, ...]:
    """The parts by cost for each share of rows they drop; equal ranks stay in the order written.

    Parts that may raise come last, as they were written: the others keep rows from them that would make them raise.
    """
    if len(parts) < 2:
        return tuple(parts)

    def rank(part: Expression) -> tuple[bool, float]:
        if may_raise(part, fields):
            return True, 0.0
        return False, cost(part, fields) / (1.0 - min(0.999, estimator.selectivity(part, fields)))

    return tuple(sorted(parts, key=rank))


class RemainingConjuncts:
    """What the conjuncts of a filter cost from each position to the end; found once, for all positions."""

    def __init__(self, parts: Sequence[Expression], fields: FieldsById) -> None:
        self._costs = [(0.0, 0.0)]  # on all rows, and of gathering the columns for it; last position first
        everywhere = gathers = 0.0
        columns: set[int] = set()
        for part in reversed(parts):
            everywhere += cost(part, fields) + _MASK
            for id in column_ids(part) - columns:
                columns.add(id)
                gathers += _GATHER_STRING if _is_text(id, fields) else _GATHER
            self._costs.append((everywhere, gathers))

    def worth_selecting(self, position: int, share: float) -> bool:
        """Should the rows kept so far (an estimated share) be gathered before the conjuncts from `position` on?"""
        everywhere, gathers = self._costs[-1 - position]
        numbers = min(_MOST_ROW_NUMBERS, _FEWEST_ROW_NUMBERS + _ROW_NUMBERS * share)
        return numbers + share * (everywhere + gathers) < everywhere


def cost(expression: Expression, fields: FieldsById) -> float:
    """Estimated nanoseconds to evaluate the expression for one row."""
    return own_cost(expression, fields) + sum(cost(part, fields) for part in expression.inputs)


def own_cost(expression: Expression, fields: FieldsById) -> float:
    """What the outermost operation alone costs, its inputs given."""
    match expression:
        case ColumnRef() | Literal() | Parameter():
            return 0.0
        case InList(operand, values):
            one = _COMPARISON[_bytes(operand, fields)] + _MASK
            return _on_strings(operand, fields, min(LOOK_UP_COST, len(values) * one), _STRING_PREDICATE)
        case Cast() | Case():
            return _CALCULATION
        case Predict():
            return expression.model.cost
        case PythonCall():
            return expression.function.cost
        case Call():
            return _call_cost(expression, fields)
    return _UNKNOWN_FUNCTION


def _call_cost(call: Call, fields: FieldsById) -> float:
    work = SCALARS[call.function].work
    operand = next((part for part in call.arguments if not isinstance(part, Literal | Parameter)), call)
    match work:
        case Work.COMPARISON:
            one = _COMPARISON[max(_bytes(part, fields) for part in call.arguments)]
            return _on_strings(operand, fields, one, _STRING_PREDICATE)
        case Work.MASKS:
            return _MASK * max(1, len(call.arguments) - 1)
        case Work.ARITHMETIC:
            return _ARITHMETIC_BYTE * _bytes(call, fields)
        case Work.CALCULATION if not call.data_type.is_string:
            return _CALCULATION
        case Work.CALENDAR:
            return _DATE_FUNCTION
    if operand.data_type.is_string or call.data_type.is_string:
        text = _STRING_SEARCH if work is Work.SEARCH else _STRING_PREDICATE
        return _on_strings(operand, fields, LOOK_UP_COST, text)
    if operand.data_type.kind is TypeKind.ARRAY:
        return _ELEMENT * operand.data_type.size
    return _UNKNOWN_FUNCTION


def _bytes(expression: Expression, fields: FieldsById) -> int:
    """How many bytes a value has in flight."""
    if expression.data_type.kind is TypeKind.BOOLEAN:
        return 1
    if expression.data_type.kind is TypeKind.FLOAT:
        return 4
    known = value_range(expression, fields)
    if isinstance(expression, ColumnRef) and (field := fields.get(expression.id)) is not None:
        size = field.facts.dictionary_size
        known = known if size is None else (0, size)
    elif isinstance(expression, Parameter) or (
        isinstance(expression, Literal) and expression.data_type.is_string
    ):
        return 1
    if known is None:
        return 8
    return next((n for n in (1, 2, 4) if -(1 << 8 * n - 1) <= known[0] and known[1] < 1 << 8 * n - 1), 8)


def _is_text(id: int, fields: FieldsById) -> bool:
    """Is a column made of strings without a dictionary?"""
    field = fields.get(id)
    return field is not None and field.data_type.is_string and field.facts.dictionary_size is None


def _on_strings(operand: Expression, fields: FieldsById, otherwise: float, text: float) -> float:
    """What costs `text` on strings and `otherwise` on numbers: a predicate on dictionary codes is one of these."""
    if not operand.data_type.is_string:
        return otherwise
    direct = isinstance(operand, ColumnRef)
    while isinstance(operand, Call) and operand.arguments and operand.arguments[0].data_type.is_string:
        operand = operand.arguments[0]
    field = fields.get(operand.id) if isinstance(operand, ColumnRef) else None
    if field is None or field.facts.dictionary_size is None:
        return text
    return otherwise if direct else LOOK_UP_COST
