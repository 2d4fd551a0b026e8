"""The keys of GROUP BY: expressions, places in SELECT and aliases; what is bound is found by the other clauses of the block."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sqlglot import exp

from tqp.core.keywords import lower_ascii
from tqp.planner.algebra.expressions import Cast, ColumnRef, Expression, column_ids
from tqp.planner.algebra.subquery_expressions import has_subquery
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.scalars import Aliases, ExpressionBinder
from tqp.planner.binder.scope import ColumnUse, Scope
from tqp.planner.binder.select.grouping import is_of_all
from tqp.planner.binder.select.grouping_sets import (
    Element,
    GroupingSet,
    bind_grouping_sets,
    has_sets,
    keys_apart,
    named_first,
)
from tqp.planner.binder.select.names import Names
from tqp.planner.binder.select.ordinals import ordinal
from tqp.planner.binder.select.output import Item
from tqp.planner.binder.select.written import Written
from tqp.planner.binder.unsupported_clauses import check_understood
from tqp.planner.functions.type_rules import settle


@dataclass(slots=True)
class GroupKeys:
    """Binds the keys of one GROUP BY. `binder`: for expressions that may name these aliases.

    `bound_items` and `written_keys` are the block's, in which the keys are remembered.
    """

    context: BindContext
    scope: Scope
    group: exp.Group
    items: Sequence[Item]
    aliases: Aliases
    binder: Callable[[Aliases], ExpressionBinder]
    bound_items: dict[int, tuple[Expression, Sequence[ColumnUse]]]
    written_keys: Written[Expression]

    def sets(self) -> list[GroupingSet]:
        """The keys of each set; one set without keys for GROUP BY ALL, whose keys the other clauses tell."""
        group = self.group
        check_understood(group)
        if is_of_all(group):
            return [()]
        if not has_sets(group):
            return bind_grouping_sets(group, self._key)
        keys: dict[Element, Expression] = {}
        written: dict[Element, exp.Expr | None] = {}

        def key_of(node: exp.Expr) -> Expression:
            element = self._element(node)
            if element not in keys:
                keys[element] = self._key(node)
                written[element] = node if element.place is None else self.items[element.place].node
            return keys[element]

        sets = bind_grouping_sets(group, key_of)
        apart = keys_apart(keys)
        if apart == keys:
            return sets
        first = named_first(apart)
        for element, key in apart.items():
            if element.place is not None:
                if first[element.place] != element:
                    continue  # nothing means it
                item = self.items[element.place]
                self.bound_items[id(item.node or item)] = key, ()
            node = written[element]
            if node is not None and not isinstance(keys[element], ColumnRef):
                self.written_keys.add(node, key, again=True)
        return bind_grouping_sets(group, lambda node: apart[self._element(node)])

    def _element(self, node: exp.Expr) -> Element:
        text = lower_ascii(Names(self.context.query).text(node))
        place = ordinal(node, len(self.items), "GROUP BY")
        aliased = self._aliased(node)
        if aliased is not None:
            place = next((number for number, each in enumerate(self.items) if each is aliased), None)
        return Element(text, place)

    def _aliased(self, node: exp.Expr) -> Item | None:
        """The item whose alias the key is; a column of that name comes first."""
        named = node.unnest()
        if not isinstance(named, exp.Column):
            return None
        is_column = bool(named.table) or self.scope.has_column(named.name, None)
        if is_column and not self.scope.says_alias(named):
            return None
        return self.aliases.get(lower_ascii(named.name))

    def remember(self, node: exp.Expr, key: Expression) -> Expression:
        """The same text means this key wherever it stands, or one before: a subquery bound once more would be another one.

        `coalesce(a)` is `a`, but grouping by it does not make `a` a key. A constant is NULL in the rows of a set without it.
        """
        if isinstance(node.unnest(), exp.Column) and isinstance(key, ColumnRef):
            return key
        is_constant = not column_ids(key) and not has_subquery(key)
        stands = isinstance(key, Cast) and key.input.data_type == key.data_type  # for what it casts, as below
        if isinstance(key, ColumnRef) or (is_constant and not stands and has_sets(self.group)):
            key = Cast(key, key.data_type)
            self.bound_items[id(node)] = key, ()
        self.written_keys.add(node, key)
        return key

    def _key(self, node: exp.Expr) -> Expression:
        place = ordinal(node, len(self.items), "GROUP BY")
        is_name = isinstance(node.unnest(), exp.Column)
        binder = self.binder(self.aliases if is_name else {})  # an alias may be a key, and no part of one
        if place is not None:
            item = self.items[place]
            if item.node is None:
                assert item.column is not None
                return self.scope.value_of(item.column)
            key = self.remember(item.node, settle(binder.bind_once(item.node)))
            if has_subquery(key) and has_sets(
                self.group
            ):  # bound one by one they are not equal, as `keys_apart` asks
                return self.written_keys.find(item.node) or key
            return key
        aliased = self._aliased(node)
        if aliased is not None:
            return self.remember(aliased.node or node, binder.bind(node))
        key = self.remember(node, binder.bind(node))
        return self.written_keys.find(node) or key
