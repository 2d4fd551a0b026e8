"""A first query on a table that is not encoded: the rows it wants are found by few columns, and the others read for these rows."""

from __future__ import annotations

import numpy as np

from tqp.compiler import Compiler
from tqp.core.datatypes import BOOLEAN, TypeKind
from tqp.core.schema import Field, TableSource
from tqp.data.arrow_buffers import BoolArray
from tqp.data.sources.base import Source
from tqp.data.sources.chosen_rows import ChosenRows
from tqp.planner.algebra.logical_plan import Filter, Project
from tqp.planner.bind import BoundStatement
from tqp.planner.scan_conditions import TableConditions

#: Of so many rows, and no more, it takes less time to read a column by their numbers than to encode it: a line of the cache holds
#: four values of 16 bytes (see docs/performance.md).
_LARGEST_SHARE = 0.08
#: An estimate may be so many times too high.
_DOUBT = 1.5
_LONG = frozenset((TypeKind.DECIMAL, TypeKind.HUGEINT))


def with_wanted_rows(compiler: Compiler, table: Source, conditions: TableConditions) -> Source:
    """The table, or what has those rows only that satisfy conditions on its numbers, where they are few.

    That is of use to this one query alone: its program must not be kept, as nothing of a result is.
    """
    if not table.can_choose_rows(conditions.read):
        return table
    asked = _by_numbers(table, conditions)
    if asked is None or all(name in asked.columns or table.is_encoded(name) for name in conditions.read):
        return table
    table.encode(asked.columns)
    wanted = asked.of_rows(table)
    if wanted is None:
        return table
    plan, num_rows = compiler.optimized(wanted)
    if num_rows > _DOUBT * _LARGEST_SHARE * table.num_rows or not isinstance(plan, Filter):
        return table
    rows = np.flatnonzero(_are_wanted(compiler, plan))
    return ChosenRows(table, rows) if len(rows) <= _LARGEST_SHARE * table.num_rows else table


def is_for_one_query(table: TableSource) -> bool:
    """Whether the table is what `with_wanted_rows` has found."""
    return isinstance(table, ChosenRows)


def _by_numbers(table: Source, conditions: TableConditions) -> TableConditions | None:
    """Those on numbers of eight bytes and less; where there are none, on any numbers."""
    types = {name: table.column_type(name) for name in conditions.columns}
    numbers = {name: kind for name, kind in types.items() if kind.is_integer_like or kind.is_float}
    short = conditions.on([name for name, kind in numbers.items() if kind.kind not in _LONG])
    return conditions.on(numbers) if short is None else short


def _are_wanted(compiler: Compiler, plan: Filter) -> BoolArray:
    """Of each row, whether it satisfies the condition."""
    field = Field(max(plan.input.output_ids) + 1, "", BOOLEAN)
    told = Project(plan.input, (field,), (plan.condition,))
    [column] = compiler.program(BoundStatement(told, ("wanted",)))().columns
    assert column.values is not None
    wanted = column.values if column.validity is None else column.values & column.validity
    told_of: BoolArray = wanted.cpu().numpy()
    return told_of
