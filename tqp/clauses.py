"""SQL of clauses, from what methods of relations take: texts, expressions, and lists of these."""

from __future__ import annotations

import re

from tqp.core.errors import BindError
from tqp.core.keywords import closed
from tqp.expressions import Expression, Sql, col
from tqp.planner.syntax.tokens import between_commas

_COLUMN = re.compile('"(?:[^"]|"")+"')


def condition_text(condition: object) -> str:
    """SQL of a condition that was given as text or as an expression. Raises BindError for anything else."""
    return closed(_checked(condition))


def selected(items: object) -> str:
    """SQL of what a SELECT lists, given as texts, expressions, and lists of these."""
    return ", ".join(item.named if isinstance(item, Expression) else closed(item) for item in _flat(items))


def ordered(items: object) -> str:
    """SQL of the keys of an order, given in the same way."""
    return ", ".join(item.as_key if isinstance(item, Expression) else closed(item) for item in _flat(items))


def grouped(items: object) -> str:
    """SQL of the keys of groups, given in the same way: without their names."""
    return ", ".join(map(closed, _flat(items)))


def parts(items: Sql) -> list[str]:
    """The expressions of a list, which SQL text may be, each as SQL."""
    return [str(items)] if isinstance(items, Expression) else [*map(closed, between_commas(items))]


def is_column(expression: Expression) -> bool:
    """Whether it is the name of a column, and nothing else."""
    return _COLUMN.fullmatch(str(expression)) is not None


class Side:
    """One of the relations of a join, in a condition that is a function: its columns, as attributes or by their names."""

    def __init__(self, alias: str) -> None:
        self._alias = alias

    def __getitem__(self, column: str) -> Expression:
        return col(self._alias, column)

    def __getattr__(self, column: str) -> Expression:
        if column.startswith("_"):
            raise AttributeError(column)
        return col(self._alias, column)


def _flat(items: object) -> list[Sql]:
    if isinstance(items, (list, tuple)):
        return [each for item in items for each in _flat(item)]
    return [_checked(items)]


def _checked(item: object) -> Sql:
    if not isinstance(item, (str, Expression)):
        raise BindError(
            f"{item!r} is neither SQL text nor an expression; tqp.lit(value) makes an expression of a value"
        )
    return item
