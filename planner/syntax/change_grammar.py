"""The grammar of statements that change rows: INSERT, UPDATE, DELETE, TRUNCATE and MERGE, and of WITH around them."""

from __future__ import annotations

from collections.abc import Callable

from tqp.planner.syntax.change_clauses import (
    Assignment,
    Change,
    CommonTable,
    Conflict,
    Delete,
    DeleteRow,
    DoNothing,
    Insert,
    InsertRow,
    Match,
    Merge,
    MergeAction,
    MergeBranch,
    RaiseError,
    Update,
    UpdateRow,
    WithTables,
)
from tqp.planner.syntax.copy_grammar import CopyGrammar
from tqp.planner.syntax.operand_grammar import NAMES_OR_TEXT, QUERY_STARTS
from tqp.planner.syntax.parts import Name, Part
from tqp.planner.syntax.query_grammar import CHANGES
from tqp.planner.syntax.words import COLUMN_NAMES, END


class ChangeGrammar(CopyGrammar):
    """Statements that change the rows of a table."""

    # WITH

    def statement_with_tables(self) -> WithTables | None:
        """A change behind WITH, or a query behind a WITH that holds changes; None of any other query."""
        self.expect("WITH")
        is_recursive = self.skip("RECURSIVE")
        tables: list[CommonTable] = []
        self.items(lambda: tables.append(self._common_table_or_change()), lambda: self.kind in NAMES_OR_TEXT)
        has_changes = any(table.change is not None for table in tables)
        if is_recursive and has_changes:
            self.complain("WITH RECURSIVE holds no changes")
        if self.kind == "WITH":
            self.refuse("a query")
        word = self.kind
        if word in CHANGES:
            return WithTables(is_recursive, tuple(tables), self._change(), word)
        query = self.part(self.query)
        return WithTables(is_recursive, tuple(tables), query, word) if has_changes else None

    def _common_table_or_change(self) -> CommonTable:
        start, stop = self.head_of_common_table()
        name, columns = self.name_at(start), tuple(map(self.name_at, range(start + 2, stop - 1, 2)))
        word = self.kind
        change: Change | None = None
        if word != "MERGE" and word in (*CHANGES, "TRUNCATE"):
            change = self._change()
        else:
            self.query_of_common_table()
        self.expect(")")
        return CommonTable(name, columns, Part(start, self.index), change, word)

    def _change(self) -> Change:
        readers: dict[str, Callable[[], Change]] = {
            "INSERT": self.insert,
            "UPDATE": self.update,
            "DELETE": self.delete,
            "TRUNCATE": self.truncate,
            "MERGE": self.merge,
        }
        return readers[self.kind]()

    # INSERT

    def insert(self) -> Insert:
        """INSERT INTO table, of rows or a query."""
        self.expect("INSERT")
        conflict = None
        if self.skip("OR"):
            ignores = self.skip("IGNORE")
            if not ignores:
                self.expect("REPLACE")
            conflict = Conflict(None, ignores)
        self.expect("INTO")
        table = self.qualified_name("the name of a table")
        alias = self.name("an alias") if self.skip("AS") else None
        columns = self.column_names() if self.kind == "(" and self._is_list_of_names() else None
        by_name = columns is None and self._is_by_name()
        rows: tuple[tuple[Part, ...], ...] | None = None
        query: Part | None = None
        if self.kind == "VALUES" and not by_name:
            rows, query = self._rows()
        elif not self.skip("DEFAULT", "VALUES"):
            query = self.part(self.query)
        if self.kind == "ON":
            if conflict is not None:
                self.complain("OR REPLACE or OR IGNORE and ON CONFLICT do not go together")
            conflict = self._conflict()
        return Insert(table, alias, columns, by_name, rows, query, conflict, self._returning())

    def _is_by_name(self) -> bool:
        """BY NAME or BY POSITION, if it is there."""
        if not self.skip("BY") or self.skip("NAME"):
            return self.kinds[self.index - 1] == "NAME"
        if not self.word_is("POSITION"):
            self.refuse("NAME or POSITION")
        self.advance()
        return False

    def _conflict(self) -> Conflict:
        self.expect("ON", "CONFLICT")
        columns = self.column_names() if self.kind == "(" else None
        if self.kind == "WHERE":
            self.complain("WHERE stands behind the assignments of DO UPDATE SET")
        self.expect("DO")
        if self.skip("NOTHING"):
            return Conflict(columns, True)
        self.expect("UPDATE", "SET")
        assignments = self._assignments()
        condition = self.part(self.expression) if self.skip("WHERE") else None
        return Conflict(columns, False, assignments, condition)

    def _is_list_of_names(self) -> bool:
        """Whether the parentheses hold names of columns, and not the query whose rows are to be inserted."""
        return self.next_kind() not in (*QUERY_STARTS, "(")

    def _rows(self) -> tuple[tuple[tuple[Part, ...], ...] | None, Part | None]:
        """The rows of VALUES, or the query of which VALUES is only the beginning."""
        start, rows = self.index, list[tuple[Part, ...]]()
        self.expect("VALUES")
        self.items(
            lambda: rows.append(self.collected(lambda: self.part(self.expression))), lambda: self.kind == "("
        )
        if self.kind in ("RETURNING", "ON", ";", END):
            return tuple(rows), None
        self.go_back(start)
        return None, self.part(self.query)

    def _returning(self) -> Part | None:
        return self.part(self.targets) if self.skip("RETURNING") else None

    # UPDATE, DELETE, TRUNCATE

    def update(self) -> Update:
        """UPDATE table SET ... FROM ... WHERE"""
        self.expect("UPDATE")
        table, alias = self._changed_table()
        self.expect("SET")
        assignments = self._assignments()
        others = self.part(self.tables) if self.skip("FROM") else None
        condition = self.part(self.expression) if self.skip("WHERE") else None
        return Update(table, alias, assignments, others, condition, self._returning())

    def _changed_table(self) -> tuple[Name, Name | None]:
        table = self.qualified_name("the name of a table")
        if self.skip("AS") or self.kind in COLUMN_NAMES - {"SET"}:
            return table, self.name("an alias")
        return table, None

    def _assignments(self) -> tuple[Assignment, ...]:
        """column = value, (column, column) = (value, value); one value is that of each of the columns."""
        found: list[Assignment] = []

        def assignment() -> None:
            start = self.index
            columns = self.column_names() if self.kind == "(" else (self.name("the name of a column"),)
            self.expect("=")
            values = self._row() if self.kinds[start] == "(" else (self._assigned(),)
            if len(values) not in (1, len(columns)):
                self.complain(f"{len(columns)} columns cannot be set to {len(values)} values")
            each = values * len(columns) if len(values) == 1 else values
            found.extend(map(Assignment, columns, each))

        self.items(assignment, lambda: self.kind in COLUMN_NAMES or self.kind == "(")
        return tuple(found)

    def _row(self) -> tuple[Part | None, ...]:
        """The values of a row that is written out; anything else is one value."""
        start = self.index
        self.skip("ROW")
        if self.kind == "(" and self.next_kind() not in QUERY_STARTS:
            values = self.collected(self._assigned)
            if self.kind in (",", "FROM", "WHERE", "WHEN", "RETURNING", ")", ";", END):
                return values
        self.go_back(start)
        return (self._assigned(),)

    def _assigned(self) -> Part | None:
        return None if self.skip("DEFAULT") else self.part(self.expression)

    def delete(self) -> Delete:
        """DELETE FROM table USING ... WHERE"""
        self.expect("DELETE", "FROM")
        table, alias = self._changed_table()
        others = self.part(self.tables) if self.skip("USING") else None
        condition = self.part(self.expression) if self.skip("WHERE") else None
        return Delete(table, alias, others, condition, self._returning())

    def truncate(self) -> Delete:
        """TRUNCATE table"""
        self.expect("TRUNCATE")
        self.skip("TABLE")
        return Delete(self.qualified_name("the name of a table"))

    # MERGE

    def merge(self) -> Merge:
        """MERGE INTO table USING source ON ... WHEN ..."""
        self.expect("MERGE", "INTO")
        table = self.qualified_name("the name of a table")
        alias = None
        if self.skip("AS") or self.kind in COLUMN_NAMES:
            alias = self.name("an alias")
        self.expect("USING")
        source = self.part(self.table)
        partners = self.part(self.join_condition)
        branches: list[MergeBranch] = []
        while self.kind == "WHEN":
            branches.append(self._branch(branches))
        if not branches:
            self.refuse("WHEN")
        return Merge(table, alias, source, partners, tuple(branches), self._returning())

    def _branch(self, earlier: list[MergeBranch]) -> MergeBranch:
        self.expect("WHEN")
        match: Match = "NOT MATCHED BY TARGET" if self.skip("NOT") else "MATCHED"
        self.expect("MATCHED")
        if match != "MATCHED" and self.skip("BY"):
            if self.kind == "SOURCE":
                match = "NOT MATCHED BY SOURCE"
            self.expect_any(("SOURCE", "TARGET"), "SOURCE or TARGET")
        if any(branch.match == match and branch.condition is None for branch in earlier):
            self.complain(
                "an earlier WHEN of this kind has no condition, so that no row would reach this one"
            )
        condition = self.part(self.expression) if self.skip("AND") else None
        self.expect("THEN")
        if match == "NOT MATCHED BY TARGET" and self.kind in ("UPDATE", "DELETE"):
            self.complain(
                "a row that is NOT MATCHED has no row in the table; MATCHED or NOT MATCHED BY SOURCE do"
            )
        return MergeBranch(match, condition, self._merge_action())

    def _merge_action(self) -> MergeAction:
        if self.skip("DO"):
            self.expect("NOTHING")
            return DoNothing()
        if self.skip("DELETE"):
            return DeleteRow()
        if self.skip("UPDATE"):
            return self._update_row()
        if self.skip("INSERT"):
            return self._insert_row()
        self.expect_any(("ERROR",), "UPDATE, INSERT, DELETE, DO NOTHING or ERROR")
        has_message = self.kind not in ("WHEN", "RETURNING", ";", END)
        return RaiseError(self.part(self.expression) if has_message else None)

    def _update_row(self) -> UpdateRow:
        if not self.skip("SET"):
            return UpdateRow(None, self._is_by_name())
        if self.skip("*"):
            return UpdateRow(None)
        return UpdateRow(self._assignments())

    def _insert_row(self) -> InsertRow:
        if self.skip("DEFAULT", "VALUES"):
            return InsertRow((), ())
        columns = self.column_names() if self.kind == "(" else None
        if columns is not None or self.kind == "VALUES":
            self.expect("VALUES")
            return InsertRow(columns, self.collected(lambda: self.part(self.expression)))
        by_name = self._is_by_name()
        self.skip("*")
        return InsertRow(None, None, by_name)
