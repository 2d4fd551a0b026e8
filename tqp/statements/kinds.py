"""Which function executes which kind of statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tqp.planner.syntax import change_clauses, clauses
from tqp.result import Result
from tqp.statements.alter import alter
from tqp.statements.changes import delete, insert, update
from tqp.statements.comments import comment
from tqp.statements.copy import copy_from, copy_to
from tqp.statements.create import create_table, create_view
from tqp.statements.drop import drop
from tqp.statements.execution import Execution
from tqp.statements.export import export_database, import_database
from tqp.statements.indexes import create_index
from tqp.statements.macros import create_macro
from tqp.statements.maintenance import call, checkpoint, vacuum
from tqp.statements.merge import merge
from tqp.statements.pragmas import pragma
from tqp.statements.prepared import deallocate, execute_prepared, prepare
from tqp.statements.schemas import create_schema, load_extension
from tqp.statements.sequences import create_sequence
from tqp.statements.settings import reset_setting, set_setting, use
from tqp.statements.transactions import transaction
from tqp.statements.types import create_type
from tqp.statements.with_tables import with_tables

EXECUTORS: Mapping[type[Any], Callable[[Execution], Result]] = {
    clauses.CreateTable: create_table,
    clauses.CreateView: create_view,
    clauses.CreateMacro: create_macro,
    clauses.CreateType: create_type,
    clauses.CreateSequence: create_sequence,
    clauses.CreateIndex: create_index,
    clauses.Drop: drop,
    clauses.Use: use,
    clauses.Comment: comment,
    clauses.CreateSchema: create_schema,
    clauses.LoadExtension: load_extension,
    clauses.Alter: alter,
    change_clauses.Insert: insert,
    change_clauses.Update: update,
    change_clauses.Delete: delete,
    change_clauses.Merge: merge,
    change_clauses.WithTables: with_tables,
    clauses.CopyTo: copy_to,
    clauses.CopyFrom: copy_from,
    clauses.ExportDatabase: export_database,
    clauses.ImportDatabase: import_database,
    clauses.Checkpoint: checkpoint,
    clauses.Vacuum: vacuum,
    clauses.CallFunction: call,
    clauses.Set: set_setting,
    clauses.Reset: reset_setting,
    clauses.Pragma: pragma,
    clauses.Prepare: prepare,
    clauses.Execute: execute_prepared,
    clauses.Deallocate: deallocate,
    clauses.Transaction: transaction,
}
