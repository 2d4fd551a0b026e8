"""Queries on a table that memory may not hold: it is read in pieces, and the query run on one after the other.

Such a query is planned anew each time, for each piece by what is known of its values. Nothing of the table is kept.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial

import torch

from tqp.compiler import Compiler
from tqp.core.datatypes import DataType
from tqp.core.definitions import ColumnDefinition, TableDefinition
from tqp.core.process.deep_recursion import call_deep
from tqp.core.process.garbage import collected_later
from tqp.core.process.memory_budget import most_of_a_file
from tqp.core.process.progress import Steps
from tqp.core.schema import TableSource
from tqp.data.column import Table
from tqp.data.sources.base import Pieces, Source
from tqp.data.sources.stored_tables import StoredTable
from tqp.planner.algebra.logical_plan import LogicalPlan, Scan
from tqp.planner.algebra.node import walk_plan
from tqp.planner.bind import BoundStatement
from tqp.planner.piecewise import Piecewise, piecewise
from tqp.planner.scan_conditions import scan_conditions
from tqp.planner.unread_table import UnreadTable
from tqp.wanted_rows import WantedRows

#: A piece takes so much of what is read of a table at once.
_PIECE = 0.125
#: Where the answer goes to a file as it comes, memory is worth saving from so many bytes on.
_LARGE = 256 << 20
#: So many rows of pieces are put together before they are merged, and more where merging leaves many.
_MERGED_ROWS, _MORE = 1 << 20, 2


class QueryInPieces:
    """A query that is ready to run, as a program is."""

    def __init__(
        self, compiler: Compiler, statement: BoundStatement, steps: Piecewise, pieces: Pieces
    ) -> None:
        self.names = statement.names
        self.types = tuple(field.data_type for field in statement.plan.schema)
        self._compiler, self._steps, self._pieces = compiler, steps, pieces

    #: A program may serve other constants.
    has_parameters = False

    def __call__(self) -> Table:
        """The whole answer."""
        tables = list(self.tables())
        if len(tables) == 1:
            return tables[0]
        rows = self._empty(self.types)
        for table in tables:
            rows = rows.with_rows(table)
        rows.encode(rows.column_names)
        return Table(self.names, tuple(map(rows.column, rows.column_names)), rows.num_rows)

    def tables(self) -> Iterator[Table]:
        """The answer's rows, some after the others; at least one table."""
        if self._steps.rest is None:
            yield from self._rows_of_pieces(self.names)
        else:
            rows = self._gathered()
            yield self._run(self._steps.of_rows(self._steps.rest, rows), self.names)

    @property
    def code(self) -> str:
        """The programs as Python: that of the first piece, and of what comes of it; those of others may differ."""
        return "\n\n".join(
            f"# {title}\n\n{self._compiler.program(each).code}" for title, each in self._statements()
        )

    def explain(self, analyze: bool) -> str:
        """The plans of the first piece, and of what comes of it; with `analyze` also what a run on all pieces took."""
        parts = [f"{title}\n\n{self._compiler.plans_text(each)}" for title, each in self._statements()]
        if analyze:
            begin = time.perf_counter()
            for _ in self.tables():
                pass
            parts.append(self._compiler.total_text(time.perf_counter() - begin))
        return "\n\n".join(parts)

    def _statements(self) -> Iterator[tuple[str, BoundStatement]]:
        """What is run, with a title: of pieces the first."""
        names = tuple(field.name for field in self._steps.schema)
        piece = BoundStatement(self._steps.of_piece(next(self._pieces())), names)
        piece.encode_columns()
        yield f"Each piece of {self._steps.table.name}", piece
        if self._steps.rest is not None:
            rows = self._empty([field.data_type for field in self._steps.schema])
            rest = self._steps.of_rows(self._steps.rest, rows.with_rows(self._run(piece.plan, names)))
            whole = BoundStatement(rest, self.names)
            whole.encode_columns()
            yield "The rows of all pieces", whole

    def _rows_of_pieces(self, names: tuple[str, ...]) -> Iterator[Table]:
        progress = Steps(f"reading {self._steps.table.name} in pieces", self._steps.table.num_rows)
        with progress:
            for piece in self._pieces():
                progress.begin(piece.num_rows)
                rows = self._rows_of(piece, names)
                del piece  # what was read of it goes before the next is read
                yield rows

    def _rows_of(self, piece: Source, names: tuple[str, ...]) -> Table:
        statement = BoundStatement(self._steps.of_piece(piece), names)
        conditions = scan_conditions(statement.plan)
        wanted = WantedRows.of(conditions)
        wanted.choose(self._compiler, conditions)
        return self._run(wanted.in_place(statement).plan, names)

    def _gathered(self) -> Source:
        """The rows that the pieces have left, merged where that can be done."""
        types = [field.data_type for field in self._steps.schema]
        rows, names = self._empty(types), tuple(field.name for field in self._steps.schema)
        most = _MERGED_ROWS
        for table in self._rows_of_pieces(names):
            rows = rows.with_rows(table)
            if self._steps.enough is not None and rows.num_rows >= self._steps.enough:
                break
            if self._steps.merge is not None and rows.num_rows > most:
                merged = self._run(self._steps.of_rows(self._steps.merge, rows), names)
                rows = self._empty(types).with_rows(merged)
                most = max(_MERGED_ROWS, _MORE * rows.num_rows)
        return rows

    def _empty(self, types: Sequence[DataType]) -> StoredTable:
        columns = tuple(ColumnDefinition(f"column{place}", each) for place, each in enumerate(types))
        return StoredTable.empty(TableDefinition("rows of pieces", columns), self._device)

    @property
    def _device(self) -> torch.device:
        return self._compiler.device

    def _run(self, plan: LogicalPlan, names: tuple[str, ...]) -> Table:
        statement = BoundStatement(plan, names)
        statement.encode_columns()
        with collected_later():
            program = call_deep(partial(self._compiler.program, statement))
        table: Table = program()
        return table


def in_pieces(compiler: Compiler, statement: BoundStatement, is_stored: bool = False) -> QueryInPieces | None:
    """The query in pieces of its largest table; None where memory holds it, or it cannot be computed so.

    `is_stored`: the answer goes to a file as it comes.
    """
    most = most_of_a_file()
    if "in_pieces" in compiler.disabled_rules or most is None:
        return None
    if is_stored:
        most = min(most, _LARGE)
    table, columns = _largest(statement.plan, most)
    pieces = None if table is None else table.pieces(columns, int(_PIECE * most))
    if table is None or pieces is None:
        return None
    unread = UnreadTable(table)
    whole = statement.over({table: unread})
    whole.encode_columns()
    optimized, _ = call_deep(lambda: compiler.optimized(whole.plan))
    if not any(isinstance(node, Scan) and node.table is unread for node in walk_plan(optimized)):
        return None  # some condition is false
    steps = call_deep(lambda: piecewise(compiler.without_subqueries(whole.plan), unread))
    return None if steps is None else QueryInPieces(compiler, statement, steps, pieces)


def _largest(plan: LogicalPlan, most: int) -> tuple[Source | None, Sequence[str]]:
    """The table, with the columns that are read, of which more than so many bytes are yet to be read."""
    scans = [node for node in walk_plan(plan, into_subqueries=True) if isinstance(node, Scan)]
    times: Counter[TableSource] = Counter(scan.table for scan in scans)
    sizes = [
        (scan.table.unread_bytes(scan.columns), scan.table, scan.columns)
        for scan in scans
        if isinstance(scan.table, Source) and times[scan.table] == 1
    ]
    size, table, columns = max(sizes, key=lambda each: each[0], default=(0, None, ()))
    return (table, columns) if size > most else (None, ())
