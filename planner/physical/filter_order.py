"""The order in which the conjuncts of a filter are evaluated, and on which rows.

Cheap and selective ones come first, and what may fail last. A conjunct runs on all rows, its mask combined with those
before, or on the rows that are left, whose numbers and values have to be gathered first.
"""

from __future__ import annotations

from collections.abc import Sequence

from tqp.planner.algebra.cardinality import Estimator
from tqp.planner.algebra.expressions import Expression, column_ids
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.may_raise import may_raise
from tqp.planner.physical.predicate_costs import MASK_COST, cost

# Nanoseconds a row on one core (docs/performance.md).
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
            everywhere += cost(part, fields) + MASK_COST
            for id in column_ids(part) - columns:
                columns.add(id)
                gathers += _GATHER_STRING if _is_text(id, fields) else _GATHER
            self._costs.append((everywhere, gathers))

    def worth_selecting(self, position: int, selectivity: float) -> bool:
        """Should the rows kept so far (an estimated share) be gathered before the conjuncts from `position` on?"""
        everywhere, gathers = self._costs[-1 - position]
        numbers = min(_MOST_ROW_NUMBERS, _FEWEST_ROW_NUMBERS + _ROW_NUMBERS * selectivity)
        return numbers + selectivity * (everywhere + gathers) < everywhere


def _is_text(id: int, fields: FieldsById) -> bool:
    """Is a column made of strings without a dictionary?"""
    field = fields.get(id)
    return field is not None and field.data_type.is_string and field.facts.dictionary_size is None
