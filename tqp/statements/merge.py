"""MERGE: each branch asks one query for its rows, and the next version of the table is made of all answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from tqp.core.datatypes import BIGINT, VARCHAR, DataType
from tqp.core.errors import BindError, ConstraintError, ExecutionError, UnsupportedError
from tqp.core.keywords import in_quotes
from tqp.data.encoding.columns import encode_chunks
from tqp.data.sources.stored_tables import ROW_ID, Rows, StoredTable
from tqp.planner.parse import ParsedStatement
from tqp.planner.syntax.change_clauses import (
    DeleteRow,
    DoNothing,
    InsertRow,
    Match,
    Merge,
    MergeBranch,
    RaiseError,
    UpdateRow,
)
from tqp.planner.syntax.parts import Part
from tqp.result import Result
from tqp.statements.constraints import check_constraints
from tqp.statements.execution import Execution, counted
from tqp.statements.foreign_keys import check_referred
from tqp.statements.pieces import (
    Piece,
    aliased,
    cast,
    check_row_ids,
    others,
    places_by_name,
    places_of,
    row_ids,
    told,
    wrong_count,
)

#: What RETURNING may ask for beside the columns: what was done to the row.
_ACTION = "merge_action"
#: In DuckDB's order.
_MATCHES: Sequence[Match] = ("MATCHED", "NOT MATCHED BY SOURCE", "NOT MATCHED BY TARGET")


def merge(execution: Execution) -> Result:
    """MERGE INTO: how many rows, or what RETURNING says of them.

    Raises ExecutionError where a row of the table would be changed twice, ConstraintError where a branch says ERROR.
    """
    clauses = execution.command.clauses
    assert isinstance(clauses, Merge)
    with execution.session.catalog.writing:
        table = execution.state.stored_table(clauses.table)
        check_row_ids(table, "MERGE into")
        changes = _Merging(execution, clauses, table).changes()
        check_constraints(execution, changes.version, changes.new, changes.places)
        check_referred(execution, changes.version)
        answer: Result = counted(changes.num_rows)
        if clauses.returning is not None:
            answer = told(execution, changes.acted_on, clauses.returning, clauses.alias)
        if changes.num_rows:
            execution.session.catalog.change(lambda state: state.with_table(changes.version))
        return answer


@dataclass(slots=True)
class _Changes:
    """What branches have done so far. `rows`: a version with rows that are updated, inserted and still to be deleted."""

    table: StoredTable
    rows: StoredTable
    #: What was done to which rows of `rows`, branch by branch.
    done: list[tuple[str, Rows]] = field(default_factory=list)
    updated_places: set[int] = field(default_factory=set)

    @property
    def num_rows(self) -> int:
        return sum(len(rows) for _, rows in self.done)

    @property
    def version(self) -> StoredTable:
        """The next version of the table."""
        deleted = self._rows("DELETE")
        return self.rows.with_kept(others(self.rows, [deleted])) if len(deleted) else self.rows

    @property
    def new(self) -> StoredTable:
        """The rows whose values are new."""
        return self.rows.with_kept(self._rows("UPDATE", "INSERT"))

    @property
    def places(self) -> Sequence[int] | None:
        """The columns with new values; None for all."""
        is_inserted = self.rows.num_rows > self.table.num_rows
        return None if is_inserted or not self.updated_places else sorted(self.updated_places)

    @property
    def acted_on(self) -> StoredTable:
        """The rows with what was done to them, deleted ones as they were."""
        rows = self.rows.with_kept(self._rows("UPDATE", "INSERT", "DELETE"))
        actions = np.repeat([action for action, _ in self.done], [len(rows) for _, rows in self.done])
        texts = pa.array(actions.tolist(), pa.string())
        return rows.with_hidden({_ACTION: encode_chunks(_ACTION, [texts], VARCHAR, rows.device)})

    def _rows(self, *actions: str) -> Rows:
        return np.concatenate(
            [np.empty(0, np.int64), *(rows for action, rows in self.done if action in actions)]
        )

    def check_once(self) -> None:
        """Raises ExecutionError where a row of the table is updated or deleted more than once."""
        rows = self._rows("UPDATE", "DELETE")
        if len(np.unique(rows)) < len(rows):
            raise ExecutionError(
                "MERGE would change a row of the table more than once, as it has several partners in the source;"
                " give it one by a narrower ON or fewer rows in USING"
            )


@dataclass(frozen=True, slots=True)
class _Merging:
    """Asks for the rows of branches. A branch gets rows that earlier ones with the same match leave."""

    execution: Execution
    clauses: Merge
    table: StoredTable

    def changes(self) -> _Changes:
        """What all branches do."""
        self._check_conditions()
        found = _Changes(self.table, self.table)
        for branch in sorted(self.clauses.branches, key=lambda branch: _MATCHES.index(branch.match)):
            action = branch.action
            if isinstance(action, RaiseError):
                self._raise(branch, action)
            elif isinstance(action, DeleteRow):
                query = self._query(branch, [f"SELECT {self._name}.{ROW_ID}"])
                found.done.append(("DELETE", row_ids(self.execution.rows(query, self.execution.state))))
            elif isinstance(action, UpdateRow):
                self._update(branch, action, found)
            elif isinstance(action, InsertRow):
                self._insert(branch, action, found)
            else:
                assert isinstance(action, DoNothing)
        found.check_once()
        return found

    # queries

    @property
    def _name(self) -> str:
        alias = self.clauses.alias
        return in_quotes(self.table.name if alias is None else alias.text)

    def _from(self, match: Match) -> list[Piece]:
        """The rows of a match: where both sides have columns, those of the source stand first."""
        target, source = aliased(self.table, self.clauses.alias), self.clauses.source
        if match == "NOT MATCHED BY SOURCE":
            return [f"FROM {target} ANTI JOIN (", source, ")", self.clauses.partners]
        kind = "ANTI JOIN" if match == "NOT MATCHED BY TARGET" else "JOIN"
        return ["FROM (", source, f") {kind} {target}", self.clauses.partners]

    def _query(self, branch: MergeBranch, items: Sequence[Piece], limit: str = "") -> ParsedStatement:
        """The query for the rows of a branch."""
        conditions: list[Piece] = []
        for other in self.clauses.branches:
            if other is branch:
                break
            if other.match == branch.match and other.condition is not None:
                conditions += [" AND (", other.condition, ") IS NOT TRUE"]
        if branch.condition is not None:
            conditions += [" AND (", branch.condition, ")"]
        where: list[Piece] = ["WHERE true", *conditions] if conditions else []
        pieces = (*items, *self._from(branch.match), *where, limit)
        return self.execution.command.query(*pieces, of_rows=True)

    def _check_conditions(self) -> None:
        """Raises what is wrong with the conditions, whether their rows are asked for or not.

        Raises UnsupportedError where they or the source draw random numbers, as each query would draw its own.
        """
        for match in _MATCHES:
            branches = [branch for branch in self.clauses.branches if branch.match == match]
            items = [
                piece
                for branch in branches
                if branch.condition is not None
                for piece in (", (", branch.condition, ") IS TRUE")
            ]
            execution = self.execution
            query = execution.command.query("SELECT true", *items, *self._from(match))
            is_random = execution.session.queries.is_random(
                query, execution.state, execution.variables, execution.params
            )
            if is_random and len(self.clauses.branches) > 1:
                raise UnsupportedError(
                    "MERGE with several WHEN over random numbers in its source or conditions is not supported;"
                    " CREATE TABLE of the source draws them once"
                )

    # actions

    def _raise(self, branch: MergeBranch, action: RaiseError) -> None:
        message: list[Piece] = ["NULL"] if action.message is None else ["(", action.message, ")"]
        query = self._query(branch, ["SELECT CAST(", *message, "AS VARCHAR)"], "LIMIT 1")
        row = self.execution.rows(query, self.execution.state).fetchone()
        if row is not None:
            said = "" if action.message is None else f": {'NULL' if row[0] is None else row[0]}"
            raise ConstraintError(f"WHEN {branch.match} THEN ERROR{said}")

    def _update(self, branch: MergeBranch, action: UpdateRow, found: _Changes) -> None:
        columns, row_id = self.table.definition.columns, f"SELECT {self._name}.{ROW_ID}"
        if action.assignments is None:
            names = self._source_names(branch)
            places = self._places_from_source(names, action.by_name)

            def arranged(outputs: Sequence[str]) -> list[tuple[int | None, DataType]]:
                values = [(1 + number, columns[place].data_type) for number, place in enumerate(places)]
                return [(0, BIGINT), *values]

            query = self._query(branch, [f"{row_id}, *"])
            answer = self.execution.rows(query, self.execution.state, arranged)
        else:
            places = places_of(self.table, [assignment.column for assignment in action.assignments])
            items: list[Piece] = [row_id]
            for place, assignment in zip(places, action.assignments, strict=True):
                items += [", ", *cast(columns[place], assignment.value)]
            answer = self.execution.rows(self._query(branch, items), self.execution.state)
        rows = row_ids(answer)
        found.done.append(("UPDATE", rows))
        found.check_once()
        if len(rows):
            every = np.arange(len(rows))
            values = {
                place: self.table.chunk(place, column, every)
                for place, column in zip(places, answer._table.columns[1:], strict=True)
            }
            found.rows = found.rows.with_values(rows, values)
            found.updated_places.update(places)

    def _insert(self, branch: MergeBranch, action: InsertRow, found: _Changes) -> None:
        if action.values is None:
            answer = self._rows_of_source(branch, action.by_name)
        else:
            answer = self._rows_of_values(branch, action, action.values)
        first = found.rows.num_rows
        found.rows = found.rows.with_rows(answer._table)
        found.done.append(("INSERT", np.arange(first, found.rows.num_rows)))

    def _rows_of_values(self, branch: MergeBranch, action: InsertRow, values: Sequence[Part]) -> Result:
        columns = self.table.definition.columns
        listed = range(len(columns)) if action.columns is None else places_of(self.table, action.columns)
        if len(listed) != len(values):
            raise wrong_count(self.table, action.columns, len(listed), len(values))
        given = dict(zip(listed, values, strict=True))
        items: list[Piece] = ["SELECT"]
        for place, column in enumerate(columns):
            value = given.get(place)
            is_default = value is None or self.execution.command.source(value).upper() == "DEFAULT"
            items += [", "] * bool(place) + cast(column, None if is_default else value)
        return self.execution.rows(self._query(branch, items), self.execution.state)

    def _rows_of_source(self, branch: MergeBranch, by_name: bool) -> Result:
        """Rows of the source as rows of the table, in which columns that are not given have their defaults."""
        columns, names = self.table.definition.columns, self._source_names(branch)
        places = self._places_from_source(names, by_name)
        with_default = [place for place in range(len(columns)) if place not in places]
        items: list[Piece] = ["SELECT"]
        for place in with_default:
            items += [*cast(columns[place], None), ", "]

        def arranged(outputs: Sequence[str]) -> list[tuple[int | None, DataType]]:
            sources = {place: number for number, place in enumerate([*with_default, *places])}
            return [(sources[place], column.data_type) for place, column in enumerate(columns)]

        return self.execution.rows(self._query(branch, [*items, "*"]), self.execution.state, arranged)

    def _source_names(self, branch: MergeBranch) -> Sequence[str]:
        if branch.match == "NOT MATCHED BY SOURCE":
            raise BindError("NOT MATCHED BY SOURCE has no row of the source; write the values of the columns")
        query = self.execution.command.query("SELECT * FROM (", self.clauses.source, ")")
        execution = self.execution
        return execution.session.queries.describe(
            query, execution.state, execution.variables, execution.params
        ).names

    def _places_from_source(self, names: Sequence[str], by_name: bool) -> Sequence[int]:
        """Where the columns of the source go. Raises BindError where there are more or less of them than in the table."""
        if by_name:
            return places_by_name(self.table, names)
        count = len(self.table.definition.columns)
        if len(names) != count:
            raise wrong_count(self.table, None, count, len(names))
        return range(count)
