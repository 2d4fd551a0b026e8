"""A first query on tables that are not encoded: the rows it wants are found by few columns, and the others read for these rows.

Only where an estimate says that they are few. The columns of simple conditions are encoded, a small program tells of each row whether
they hold, and the other columns are read for these rows (`ChosenRows`), which costs what the rows take. Tables of which few rows are
wanted restrict those that they are joined with by equal integers. Conditions that all chosen rows satisfy leave the plan, so that
estimates do not count them twice. The program serves this one run, as what it holds depends on the answer; a second query that wants
a column encodes it whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tqp.compiler import Compiler
from tqp.core.datatypes import BOOLEAN, TypeKind
from tqp.core.schema import Field, TableSource
from tqp.data.arrow_buffers import AnyArray, BoolArray
from tqp.data.column import Column
from tqp.data.sharing import share
from tqp.data.sources.base import Source
from tqp.data.sources.chosen_rows import ChosenRows
from tqp.planner.algebra.expressions import Expression
from tqp.planner.algebra.logical_plan import Filter, Project
from tqp.planner.bind import BoundStatement
from tqp.planner.scan_conditions import Partner, TableConditions

#: Of so many rows, and no more, it takes less time to read a column by their numbers than to encode it: a line of the cache holds
#: four values of 16 bytes (see docs/performance.md).
_LARGEST_SHARE = 0.08
#: An estimate may be so many times too high.
_DOUBT = 1.5
_LONG = frozenset((TypeKind.DECIMAL, TypeKind.HUGEINT))
#: Values that rows of another table may have are marked in a table over all that there could be, of so many entries for each row.
_MOST_ENTRIES = 8
#: Rows that one thread looks up at a time.
_PIECE = 262_144


@dataclass(slots=True)
class WantedRows:
    """Tables by what they stand for, some of them with the rows only that a query wants, and conditions that all these satisfy.

    With such rows it is of use to this one query alone: its program must not be kept, as nothing of a result is.
    """

    tables: dict[TableSource, TableSource]
    satisfied: tuple[Expression, ...] = ()

    @staticmethod
    def of(conditions: Mapping[TableSource, TableConditions]) -> WantedRows:
        """Tables without the row groups that the conditions of a query rule out."""
        return WantedRows({table: table.restricted(asked) for table, asked in conditions.items()})

    def in_place(self, statement: BoundStatement) -> BoundStatement:
        """The statement over what is wanted of its tables."""
        return statement.over(self.smaller, self.satisfied) if self.smaller else statement

    @property
    def smaller(self) -> dict[TableSource, TableSource]:
        """The tables of which something is left out."""
        return {table: part for table, part in self.tables.items() if part is not table}

    @property
    def are_chosen(self) -> bool:
        """Whether there are rows left out."""
        return any(isinstance(table, ChosenRows) for table in self.tables.values())

    def choose(self, compiler: Compiler, conditions: Mapping[TableSource, TableConditions]) -> None:
        """Leave out what is not wanted of tables that are not encoded: by conditions, or by what is wanted of others.

        Small tables come first, as what is wanted of them may tell of larger ones, whose conditions read more.
        """
        if "choose_rows" in compiler.disabled_rules:
            return
        left = {
            original: table
            for original, table in self.tables.items()
            if isinstance(table, Source) and table.can_choose_rows(conditions[original].read)
        }
        tell_of_larger = {
            partner.table
            for original in left
            for partner in conditions[original].partners
            if original.num_rows > partner.table.num_rows
        }
        chosen: dict[TableSource, Source] = {}
        for original in sorted(left, key=lambda table: table.num_rows):
            if original in chosen:
                continue
            helps = original in tell_of_larger
            found = _by_conditions(compiler, left[original], conditions[original], helps)
            if found is not None:
                rows, holds = found
                chosen[original] = ChosenRows(left[original], rows)
                self.satisfied += holds.of_all_rows
                _add_partners(chosen, left, conditions)
        self.tables |= chosen


def _by_conditions(
    compiler: Compiler, table: Source, conditions: TableConditions, helps_others: bool
) -> tuple[AnyArray, TableConditions] | None:
    """The rows that satisfy some conditions, ascending, and these; None where they are many, or there is no use of them."""
    for quick in _quickest_first(table, conditions, helps_others):
        if not helps_others and all(
            name in quick.columns or table.is_encoded(name) for name in conditions.read
        ):
            return None
        table.encode(quick.columns)
        asked = quick.safe(table)
        if asked is None:
            return None
        plan, num_rows = compiler.optimized(asked.of_rows(table))
        if num_rows <= _DOUBT * _LARGEST_SHARE * table.num_rows and isinstance(plan, Filter):
            rows = _few(_satisfy(compiler, plan))
            return None if rows is None else (rows, asked)
    return None


def _quickest_first(
    table: Source, conditions: TableConditions, helps_others: bool
) -> Iterator[TableConditions]:
    """Those on numbers of eight bytes and less, or on any numbers where there are no such; all, where larger tables may gain by it."""
    types = {name: table.column_type(name) for name in conditions.columns}
    numbers = {name: kind for name, kind in types.items() if kind.is_integer_like or kind.is_float}
    asked = conditions.on([name for name, kind in numbers.items() if kind.kind not in _LONG])
    if asked is None:
        asked = conditions.on(numbers)
    if asked is not None:
        yield asked
    if helps_others:
        every = conditions.on(types)
        if every is not None and (asked is None or every.columns > asked.columns):
            yield every


def _satisfy(compiler: Compiler, plan: Filter) -> BoolArray:
    """Of each row, whether it satisfies the condition."""
    field = Field(max(plan.input.output_ids) + 1, "", BOOLEAN)
    told = Project(plan.input, (field,), (plan.condition,))
    [column] = compiler.program(BoundStatement(told, ("wanted",)))().columns
    return _valid(column)


def _add_partners(
    chosen: dict[TableSource, Source],
    tables: Mapping[TableSource, Source],
    conditions: Mapping[TableSource, TableConditions],
) -> None:
    """Choose of further tables, and of those that are joined with these, the rows with a partner, where they are few."""
    more = dict(chosen)
    while more:
        more = {
            original: part
            for original, table in tables.items()
            if original not in chosen
            for part in _by_partners(table, conditions[original], chosen)
        }
        chosen |= more


def _by_partners(
    table: Source, conditions: TableConditions, chosen: Mapping[TableSource, Source]
) -> list[ChosenRows]:
    """The rows that have a partner among those chosen of another table, if they are few."""
    for partner in conditions.partners:
        if partner.table in chosen and any(
            name != partner.column and not table.is_encoded(name) for name in conditions.read
        ):
            rows = _with_partner(table, partner, chosen[partner.table])
            if rows is not None:
                return [ChosenRows(table, rows)]
    return []


def _with_partner(table: Source, partner: Partner, other: Source) -> AnyArray | None:
    if not table.column_type(partner.column).is_integer_like:
        return None
    keys, column = other.column(partner.other_column), table.column(partner.column)
    distinct, known = column.estimates.distinct_count, column.facts.range
    if known is None or distinct is None or other.num_rows > _DOUBT * _LARGEST_SHARE * distinct:
        return None
    low, high = known
    if low < 0 or high > _MOST_ENTRIES * table.num_rows or column.values is None or keys.values is None:
        return None
    values = keys.values.cpu().numpy()
    is_there = (values >= 0) & (values <= high)
    if keys.validity is not None:
        is_there &= keys.validity.cpu().numpy()
    is_wanted = np.zeros(high + 1, np.bool_)
    is_wanted[values[is_there]] = True
    places, wanted = column.values.cpu().numpy(), np.empty(table.num_rows, np.bool_)

    def look_up(start: int) -> None:
        rows = slice(start, start + _PIECE)
        is_wanted.take(places[rows], out=wanted[rows], mode="clip")

    share(look_up, range(0, table.num_rows, _PIECE))
    return _few(wanted if column.validity is None else wanted & column.validity.cpu().numpy())


def _valid(column: Column) -> BoolArray:
    """Which of some truth values are true."""
    assert column.values is not None
    values: BoolArray = column.values.cpu().numpy()
    return values if column.validity is None else values & column.validity.cpu().numpy()


def _few(wanted: BoolArray) -> AnyArray | None:
    """The numbers of the rows, int64; None where they are many."""
    if np.count_nonzero(wanted) > _LARGEST_SHARE * len(wanted):
        return None
    rows: AnyArray = np.flatnonzero(wanted)
    return rows
