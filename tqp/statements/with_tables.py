"""WITH before a change, and changes inside WITH.

The common tables that are queries go as text before each query that the statements behind them ask. A change is made once, in its
turn, and its name stands for what it answers: a table like any that a query is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tqp.core.errors import BindError
from tqp.core.keywords import lower_ascii
from tqp.core.schema import TableSource
from tqp.data.sources.stored_tables import table_of_rows
from tqp.planner.syntax.change_clauses import CommonTable, Delete, Insert, Merge, Update, WithTables
from tqp.planner.syntax.parts import Part
from tqp.result import Result
from tqp.statements.changes import delete, insert, update
from tqp.statements.execution import Execution
from tqp.statements.merge import merge
from tqp.statements.pieces import Piece

_EXECUTORS: Mapping[type[Any], Callable[[Execution], Result]] = {
    Insert: insert,
    Update: update,
    Delete: delete,
    Merge: merge,
}


def with_tables(execution: Execution) -> Result:
    """What the statement behind WITH answers. The changes are made whole, or not at all."""
    clauses = execution.command.clauses
    assert isinstance(clauses, WithTables)
    _check_names(clauses)
    command = execution.command
    with execution.session.catalog.whole():
        for table in clauses.tables:
            if table.change is None:
                word = ", " if command.common_tables else "WITH RECURSIVE" if clauses.is_recursive else "WITH"
                pieces: tuple[Piece, ...] = (*command.common_tables, word, table.definition)
                command = replace(command, common_tables=pieces)
                continue
            change = replace(command, clauses=table.change, word=table.word)
            answer = _EXECUTORS[type(table.change)](replace(execution, command=change))
            command = replace(command, inputs={**command.inputs, **_answered(execution, table, answer)})
        if isinstance(clauses.statement, Part):
            query = command.query(clauses.statement)
            return execution.rows(query, execution.state)
        command = replace(command, clauses=clauses.statement, word=clauses.word)
        return _EXECUTORS[type(clauses.statement)](replace(execution, command=command))


def _check_names(clauses: WithTables) -> None:
    """Raises BindError where WITH defines a name twice, or one that is to be changed."""
    seen = set[str]()
    for table in clauses.tables:
        name = lower_ascii(table.name.text)
        if name in seen:
            raise BindError(f'WITH defines "{table.name.text}" twice', table.name.span)
        seen.add(name)
    for change in (*(table.change for table in clauses.tables), clauses.statement):
        target = change.table if isinstance(change, Update | Delete | Merge) else None
        if target is not None and not target.qualifiers and lower_ascii(target.text) in seen:
            raise BindError(f'"{target.text}" is what WITH defines, which cannot be changed', target.span)


def _answered(execution: Execution, table: CommonTable, answer: Result) -> Mapping[str, TableSource]:
    """What a change answers, under the names that WITH gives it."""
    names = [column.text for column in table.columns]
    if len(names) > len(answer.columns):
        raise BindError(
            f'"{table.name.text}" has {len(answer.columns)} columns, and {len(names)} names are given',
            table.name.span,
        )
    names += answer.columns[len(names) :]
    rows = table_of_rows(table.name.text, names, answer.types, answer._table, execution.session.device)
    return {lower_ascii(table.name.text): rows}
