"""ORDER BY of a SELECT block: which keys are places in SELECT, and what the others are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.keywords import lower_ascii
from tqp.planner.algebra.expressions import Expression, Literal
from tqp.planner.algebra.logical_plan import SortKey
from tqp.planner.binder.expressions.aggregates.aggregates import AggregateCollector
from tqp.planner.binder.expressions.collations import compared
from tqp.planner.binder.expressions.scalars import Aliases
from tqp.planner.binder.select.limits import keys_of
from tqp.planner.binder.select.ordinals import ordinal
from tqp.planner.binder.select.output import Item
from tqp.planner.binder.select.select_list import expand_items
from tqp.planner.parse import span_of

if TYPE_CHECKING:
    from tqp.planner.binder.select.block import SelectBlock

#: The keys of one ORDER BY: a position in SELECT or an expression, whether it descends, and whether NULLs come first.
Sorting = Sequence[tuple[Expression | int, bool, bool]]


def sort_keys(sort: Sorting, expression_of: Callable[[Expression | int], Expression]) -> tuple[SortKey, ...]:
    """As the plan has them; `expression_of` a key as it is here."""
    return tuple(
        SortKey(expression_of(key), descending, nulls_first) for key, descending, nulls_first in sort
    )


@dataclass(slots=True)
class SortBinder:
    """ORDER BY of a block: ordinals and aliases are positions in SELECT, the rest are expressions."""

    block: SelectBlock
    nodes: Sequence[Item]
    bound: Sequence[Expression | None]
    collector: AggregateCollector
    aliases: Aliases
    keys: Sequence[Expression] | None  # the items that are keys of GROUP BY ALL

    def bind(self, order: exp.Order | None) -> Sorting:
        """The keys of one ORDER BY, none for None."""
        if order is None:
            return []
        binder = self.block.binder("ORDER BY", self.collector, self.aliases)
        result: list[tuple[Expression | int, bool, bool]] = []
        for node, descending, nulls_first in keys_of(order, self.block.context.catalog):
            position = None if node is None else self._position(node)
            if node is None or position is not None:
                places = range(len(self.nodes)) if position is None else [position]
                result += [(self._value_at(place), descending, nulls_first) for place in places]
                continue
            # a star next to other keys: the columns of FROM
            for item in expand_items(self.block.context, self.block.scope, [node]):
                before = len(self.block.scope.uses or ())
                value = binder.bind_item(item, span_of(node)) if item.node is None else binder.bind(item.node)
                if self.keys is not None:
                    self._note_uses(item.node, value, self.keys, before)
                if not isinstance(value, Literal):  # a constant orders nothing
                    result.append((compared(value, span_of(node)), descending, nulls_first))
        return result

    def _value_at(self, position: int) -> Expression | int:
        """What orders an item of SELECT: its place, or what is compared in the place of its texts."""
        value = self.block.forced(self.bound[position], self.nodes[position])
        key = compared(value)
        return position if key is value else key

    def _note_uses(
        self, node: exp.Expr | None, value: Expression, keys: Sequence[Expression], before: int
    ) -> None:
        """With GROUP BY ALL, a key of ORDER BY is a whole item of SELECT, or uses columns inside aggregates only."""
        uses = self.block.scope.uses
        assert uses is not None
        is_column = node is None or isinstance(node.unnest(), exp.Column)
        is_written = node is not None and self.block.written_keys.find(node) is not None
        if is_written or (is_column and value in keys):
            del uses[before:]
        else:
            uses += self.block.scope.uses_in(value)

    def _position(self, node: exp.Expr) -> int | None:
        place = ordinal(node, len(self.nodes), "ORDER BY")
        if place is not None:
            return place
        if isinstance(node, exp.Column) and (
            node.args.get("table") is None or self.block.scope.says_alias(node)
        ):
            lowered = lower_ascii(node.name)
            places = [
                index
                for index, item in enumerate(self.nodes)
                if item.alias is not None and lower_ascii(item.alias) == lowered
            ]
            # the last alias, COLUMNS(...) too, goes before the first column of the name
            items = [(index, self.nodes[index]) for index in places]
            aliased = [index for index, item in items if item.is_aliased or item.is_of_columns]
            return aliased[-1] if aliased else places[0] if places else None
        return None
