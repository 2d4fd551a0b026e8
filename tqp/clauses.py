"""SQL of clauses, from what methods of relations take: texts, expressions, and lists of these."""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace

from tqp.core.errors import BindError
from tqp.core.keywords import closed
from tqp.expressions import Expression, Sql, col
from tqp.planner.syntax.tokens import between_commas

_COLUMN = re.compile('"(?:[^"]|"")+"')


@dataclass(frozen=True, slots=True)
class Select:
    """A SELECT of what `tables`, SQL of FROM, says; its other clauses stand in the order in which they are computed."""

    tables: str
    where: str = ""
    group: str = ""
    items: str = ""
    distinct: str = ""
    order: str = ""
    limit: str = ""

    def __str__(self) -> str:
        items = f"{self.distinct} {self.items or '*'}".lstrip()
        clauses = (
            f"FROM {self.tables}",
            self.where and f"WHERE {self.where}",
            self.group,
            self.order,
            self.limit,
        )
        return f"SELECT {items} {' '.join(filter(None, clauses))}"

    @property
    def is_bare(self) -> bool:
        """Whether it says nothing but the tables."""
        return self == Select(self.tables)

    def filled(self, **clauses: str) -> Select | None:
        """With further clauses; None where they would be computed before, or in place of, what it says already.

        Conditions come together. The keys of an order are columns of what there is before it, which a list would hide.

        >>> str(Select("t").filled(where="(a)").filled(where="(b)").filled(items="a"))
        'SELECT a FROM t WHERE (a) AND (b)'
        >>> Select("t", limit="LIMIT 1").filled(where="(a)")
        """
        names = [each.name for each in fields(self)][1:]
        first = min(map(names.index, clauses))
        if any(getattr(self, name) for name in names[first + ("where" in clauses) :]):
            return None
        if "order" in clauses and self.items:
            return None
        if self.where and "where" in clauses:
            clauses["where"] = f"{self.where} AND {clauses['where']}"
        return replace(self, **clauses)


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


def name_of_column(expression: Expression) -> str | None:
    """The name of the column that it is; None of anything else."""
    text = str(expression)
    return text[1:-1].replace('""', '"') if _COLUMN.fullmatch(text) else None


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
