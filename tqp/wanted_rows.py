"""A first query on tables that are not encoded: the rows it wants are found by few columns, and the others read for these rows.

Only where an estimate says that they are few. The columns of simple conditions are encoded, a small program tells of each row whether
they hold, and the other columns are read for these rows (`ChosenRows`), which costs what the rows take. Tables of which few rows are
wanted restrict those that they are joined with by equal integers; where no table's own conditions leave few, they do so together with
what smaller tables tell, one after the other from the smallest on. Conditions that all chosen rows satisfy leave the plan, so that
estimates do not count them twice. The program serves this one run, as what it holds depends on the answer; a second query that wants
a column encodes it whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from tqp.compiler import Compiler
from tqp.core.datatypes import BOOLEAN, TypeKind
from tqp.core.schema import Field, TableSource
from tqp.data.arrow_buffers import BoolArray
from tqp.data.column import Column
from tqp.data.encoding.chosen_rows import rows_of_column
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
#: A table of which no more than this share is wanted tells of larger ones.
_TELLING_SHARE = 0.5
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
        return WantedRows(
            {
                table: table.restricted(asked) if table.can_be_restricted(asked.read) else table
                for table, asked in conditions.items()
            }
        )

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
        """Leave out what is not wanted of tables that are not encoded: by conditions, by what is wanted of others, or by both together."""
        if "choose_rows" in compiler.disabled_rules:
            return
        tables = {original: table for original, table in self.tables.items() if isinstance(table, Source)}
        choice = _Choice(compiler, tables, conditions)
        choice.by_own_conditions()
        choice.by_smaller_tables()
        self.tables |= choice.chosen
        self.satisfied += choice.satisfied


@dataclass(frozen=True, slots=True)
class _Asked:
    """Conditions on the columns of a table that are encoded, the filter by them, and how many rows it is expected to leave."""

    conditions: TableConditions
    filter: Filter
    num_rows: float


class _Choice:
    """The tables of a query of which rows are chosen, and conditions that all these satisfy."""

    def __init__(
        self,
        compiler: Compiler,
        tables: Mapping[TableSource, Source],
        conditions: Mapping[TableSource, TableConditions],
    ) -> None:
        self.chosen: dict[TableSource, Source] = {}
        self.satisfied: tuple[Expression, ...] = ()
        self._compiler, self._conditions = compiler, conditions
        unread = {
            original for original, table in tables.items() if table.can_choose_rows(conditions[original].read)
        }
        if not unread:
            tables = {}
        for original, table in tables.items():
            if not table.reads_rows:  # of a lazy table, only reading tells how many rows there are
                table.encode(conditions[original].read)
        self._tables = dict(sorted(tables.items(), key=lambda item: item[1].num_rows))
        self._unread = {each: table for each, table in self._tables.items() if each in unread}
        self._asked: dict[TableSource, _Asked | None] = {}
        self._satisfying: dict[TableSource, BoolArray] = {}

    def by_own_conditions(self) -> None:
        """Choose of tables of which few rows satisfy the conditions, and of those that are joined with these.

        Small tables come first, as what is wanted of them may tell of larger ones, whose conditions read more.
        """
        tell_of_larger = self._telling(self._unread)
        for original, table in self._unread.items():
            if original in self.chosen:
                continue
            asked = self._ask(original, original in tell_of_larger)
            if asked is None or asked.num_rows > _DOUBT * _LARGEST_SHARE * table.num_rows:
                continue
            if _are_few(self._satisfied_by(original, asked)):
                self._choose(original, self._satisfied_by(original, asked))

    def by_smaller_tables(self) -> None:
        """Choose of tables of which few rows are wanted by their conditions and those of smaller tables together.

        Such a table may be small, or so many of its rows may be wanted that it is read whole itself.
        """
        left = [original for original in self._unread if original not in self.chosen]
        telling = self._telling(left)
        shares: dict[TableSource, float] = {}
        for original, table in self._tables.items():
            if original in telling or original in left:
                shares[original] = self._expected_share(original, table, shares)
        targets = [
            each for each in left if shares[each] <= _DOUBT * _LARGEST_SHARE and self._has_others(each)
        ]
        telling = self._telling(targets)
        known: dict[TableSource, BoolArray] = {}
        for original in self._tables:
            if original in self.chosen or shares.get(original, 1.0) > _TELLING_SHARE:
                continue
            if original in telling or original in targets:
                wanted = self._wanted_together(original, known, shares)
                if wanted is not None:
                    known[original] = wanted
                    if original in targets and _are_few(wanted):
                        self._choose(original, wanted)

    def _telling(self, tables: Iterable[TableSource]) -> set[TableSource]:
        """Smaller tables that tables are joined with, and those that these are joined with."""
        found: set[TableSource] = set()
        asked = set(tables)
        for original in reversed(self._tables):
            if original in asked or original in found:
                found |= {each.table for each in self._smaller_partners(original)}
        return found

    def _smaller_partners(self, original: TableSource) -> list[Partner]:
        return [
            partner
            for partner in self._conditions[original].partners
            if partner.table in self._tables
            and self._tables[partner.table].num_rows < self._tables[original].num_rows
        ]

    def _has_others(self, original: TableSource) -> bool:
        """Whether columns are read of the table that do not tell which rows are wanted."""
        asked = self._asked[original]
        telling = {partner.column for partner in self._smaller_partners(original)}
        if asked is not None:
            telling |= asked.conditions.columns
        table = self._tables[original]
        return any(
            name not in telling and not table.is_encoded(name) for name in self._conditions[original].read
        )

    def _ask(self, original: TableSource, helps_others: bool) -> _Asked | None:
        """The first conditions that few rows are expected to satisfy, else the last; None where there are none, or of no use."""
        if original in self._asked:
            return self._asked[original]
        table, conditions, found = self._tables[original], self._conditions[original], None
        for quick in _quickest_first(table, conditions, helps_others):
            if not helps_others and all(
                name in quick.columns or table.is_encoded(name) for name in conditions.read
            ):
                break
            table.encode(quick.columns)
            asked = quick.safe(table)
            if asked is None:
                break
            plan, num_rows = self._compiler.optimized(asked.of_rows(table))
            if isinstance(plan, Filter):
                found = _Asked(asked, plan, num_rows)
                if num_rows <= _DOUBT * _LARGEST_SHARE * table.num_rows:
                    break
        self._asked[original] = found
        return found

    def _satisfied_by(self, original: TableSource, asked: _Asked) -> BoolArray:
        """Of each row, whether it satisfies the conditions."""
        found = self._satisfying.get(original)
        if found is None:
            plan = asked.filter
            field = Field(max(plan.input.output_ids) + 1, "", BOOLEAN)
            told = Project(plan.input, (field,), (plan.condition,))
            [column] = self._compiler.program(BoundStatement(told, ("wanted",)))().columns
            found = self._satisfying[original] = _valid(column)
        return found

    def _expected_share(
        self, original: TableSource, table: Source, shares: Mapping[TableSource, float]
    ) -> float:
        """The share of the rows that is wanted, if the conditions have nothing to do with each other."""
        if original in self.chosen:
            return self.chosen[original].num_rows / max(1, table.num_rows)
        asked = self._ask(original, True)
        own = 1.0 if asked is None else asked.num_rows / max(1, table.num_rows)
        others = {partner.table for partner in self._smaller_partners(original)}
        return own * math.prod(shares.get(other, 1.0) for other in others)

    def _wanted_together(
        self,
        original: TableSource,
        known: Mapping[TableSource, BoolArray],
        shares: Mapping[TableSource, float],
    ) -> BoolArray | None:
        """Of each row, whether it may be wanted: by the conditions, then by one smaller table after the other until few are left."""
        table, asked = self._tables[original], self._asked.get(original)
        wanted = None if asked is None else self._satisfied_by(original, asked)
        partners = sorted(self._smaller_partners(original), key=lambda each: shares[each.table])
        for partner in partners:
            if wanted is not None and _are_few(wanted):
                break
            if partner.table in self.chosen:
                keys = self.chosen[partner.table].column(partner.other_column)
            elif partner.table in known:
                rows = np.flatnonzero(known[partner.table])
                keys = rows_of_column(self._tables[partner.table].column(partner.other_column), rows)
            else:
                continue
            found = _with_partner(table, partner.column, keys)
            if found is not None:
                wanted = found if wanted is None else wanted & found
        return wanted

    def _choose(self, original: TableSource, wanted: BoolArray) -> None:
        """Choose these few rows, and of further tables that are joined with it the rows with a partner, where they are few."""
        self.chosen[original] = ChosenRows(self._tables[original], np.flatnonzero(wanted))
        if original in self._satisfying:
            asked = self._asked[original]
            assert asked is not None
            self.satisfied += asked.conditions.of_all_rows
        while more := {
            other: part
            for other in self._unread
            if other not in self.chosen
            for part in self._by_partners(other)
        }:
            self.chosen |= more

    def _by_partners(self, original: TableSource) -> list[ChosenRows]:
        """The rows that have a partner among those chosen of another table, if they are few."""
        table, conditions = self._unread[original], self._conditions[original]
        for partner in conditions.partners:
            if partner.table in self.chosen and any(
                name != partner.column and not table.is_encoded(name) for name in conditions.read
            ):
                keys = self.chosen[partner.table].column(partner.other_column)
                distinct = table.column(partner.column).estimates.distinct_count
                if distinct is not None and keys.num_rows <= _DOUBT * _LARGEST_SHARE * distinct:
                    wanted = _with_partner(table, partner.column, keys)
                    if wanted is not None and _are_few(wanted):
                        return [ChosenRows(table, np.flatnonzero(wanted))]
        return []


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


def _with_partner(table: Source, name: str, keys: Column) -> BoolArray | None:
    """Of each row, whether its value in that column is one of the keys; None where that takes too much to find out."""
    if not table.column_type(name).is_integer_like:
        return None
    column = table.column(name)
    known = column.facts.range
    if known is None:
        return None
    low, high = known
    if (
        low < 0
        or high > _MOST_ENTRIES * table.num_rows
        or column.values is None
        or keys.values is None
        or keys.values.dim() > 1
    ):
        return None
    values = keys.values.cpu().numpy()
    is_there = (values >= 0) & (values <= high)
    if keys.validity is not None:
        is_there &= keys.validity.cpu().numpy()
    is_wanted = np.zeros(high + 1, np.bool_)
    is_wanted[values[is_there]] = True
    places, found = column.values.cpu().numpy(), np.empty(table.num_rows, np.bool_)

    def look_up(start: int) -> None:
        rows = slice(start, start + _PIECE)
        is_wanted.take(places[rows], out=found[rows], mode="clip")

    share(look_up, range(0, table.num_rows, _PIECE))
    return found if column.validity is None else found & column.validity.cpu().numpy()


def _valid(column: Column) -> BoolArray:
    """Which of some truth values are true."""
    assert column.values is not None
    values: BoolArray = column.values.cpu().numpy()
    return values if column.validity is None else values & column.validity.cpu().numpy()


def _are_few(wanted: BoolArray) -> bool:
    """Whether it takes less to read their rows than all."""
    return bool(np.count_nonzero(wanted) <= _LARGEST_SHARE * len(wanted))
