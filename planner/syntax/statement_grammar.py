"""The grammar of whole texts: statements one after the other, each a query or one of the kinds in `clauses.py`."""

from __future__ import annotations

from collections.abc import Callable

from tqp.planner.syntax.clauses import (
    Argument,
    Assignment,
    Clauses,
    Conflict,
    Deallocate,
    Delete,
    Execute,
    Insert,
    Name,
    Part,
    Pragma,
    Prepare,
    Reset,
    Set,
    Transaction,
    Update,
)
from tqp.planner.syntax.copy_grammar import CopyGrammar
from tqp.planner.syntax.operand_grammar import QUERY_STARTS
from tqp.planner.syntax.query_grammar import Statement
from tqp.planner.syntax.tokens import Tokens
from tqp.planner.syntax.words import COLUMN_NAMES, END, LABELS


class StatementGrammar(CopyGrammar):
    """Statements of every kind."""

    def other_statement(self) -> Clauses | None:
        """What a statement that is no query says; None of a kind that is not read."""
        read = _READERS.get(self.kind)
        return super().other_statement() if read is None else read(self)

    # INSERT

    def _insert(self) -> Insert:
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
        by_name = False
        if columns is None and self.skip("BY"):
            by_name = self.skip("NAME")
            if not by_name and not self.word_is("POSITION"):
                self.refuse("NAME or POSITION")
            if not by_name:
                self.advance()
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

    def _conflict(self) -> Conflict:
        self.expect("ON", "CONFLICT")
        columns = self.column_names() if self.kind == "(" else None
        if self.kind == "WHERE":
            self.complain("WHERE stands behind the assignments of DO UPDATE SET")
        self.expect("DO")
        if self.skip("NOTHING"):
            return Conflict(columns, True)
        self.expect("UPDATE", "SET")
        assignments: list[Assignment] = []
        self.items(lambda: assignments.append(self._assignment()), lambda: self.kind in COLUMN_NAMES)
        condition = self.part(self.expression) if self.skip("WHERE") else None
        return Conflict(columns, False, tuple(assignments), condition)

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

    def _update(self) -> Update:
        self.expect("UPDATE")
        table, alias = self._changed_table()
        self.expect("SET")
        assignments: list[Assignment] = []
        self.items(lambda: assignments.append(self._assignment()), lambda: self.kind in COLUMN_NAMES)
        others = self.part(self.tables) if self.skip("FROM") else None
        condition = self.part(self.expression) if self.skip("WHERE") else None
        return Update(table, alias, tuple(assignments), others, condition, self._returning())

    def _changed_table(self) -> tuple[Name, Name | None]:
        table = self.qualified_name("the name of a table")
        if self.skip("AS") or self.kind in COLUMN_NAMES - {"SET"}:
            return table, self.name("an alias")
        return table, None

    def _assignment(self) -> Assignment:
        if self.kind == "(":
            self.lacks("SET of several columns at a time")
        column = self.name("the name of a column")
        self.expect("=")
        if self.skip("DEFAULT"):
            return Assignment(column, None)
        return Assignment(column, self.part(self.expression))

    def _delete(self) -> Delete:
        self.expect("DELETE", "FROM")
        table, alias = self._changed_table()
        others = self.part(self.tables) if self.skip("USING") else None
        condition = self.part(self.expression) if self.skip("WHERE") else None
        return Delete(table, alias, others, condition, self._returning())

    def _truncate(self) -> Delete:
        self.expect("TRUNCATE")
        self.skip("TABLE")
        return Delete(self.qualified_name("the name of a table"))

    # SET, RESET

    def _set(self) -> Set:
        self.expect("SET")
        is_variable = self._scope_of_setting()
        if self.skip("TIME", "ZONE"):
            name = self.name_at(self.index - 2)._replace(text="timezone")
        else:
            name = self.name("the name of a setting")
            if not self.skip_any(("=", "TO")):
                self.refuse('"=" or TO')
        if self.kind in (";", END):
            self.refuse("a value")
        value = self.part(self._setting)
        if self.kind == ",":
            self.complain("a setting has one value")
        return Set(name, value, is_variable)

    def _setting(self) -> None:
        """A value, which may be a word such as ON."""
        if self.kind in LABELS and self.next_kind() in (";", END):
            self.advance()
        else:
            self.expression()

    def _reset(self) -> Reset:
        self.expect("RESET")
        is_variable = self._scope_of_setting()
        return Reset(self.name("the name of a setting"), is_variable)

    def _pragma(self) -> Pragma:
        self.expect("PRAGMA")
        name = self.name("the name of a pragma")
        if self.kind == "(":
            return Pragma(name, self.collected(lambda: self.part(self.expression)))
        if not self.skip("="):
            return Pragma(name)
        return Pragma(name, (self.part(self._setting),), True)

    def _scope_of_setting(self) -> bool:
        """SESSION, GLOBAL and LOCAL say nothing here; whether VARIABLE stands there."""
        if self.kind in ("SESSION", "GLOBAL") and self.next_kind() in COLUMN_NAMES:
            self.advance()
        if self.kind == "VARIABLE" and self.next_kind() in COLUMN_NAMES:
            self.advance()
            return True
        return False

    # PREPARE, EXECUTE

    def _prepare(self) -> Prepare:
        self.expect("PREPARE")
        name = self.name("the name of a statement")
        self.expect("AS")
        return Prepare(name, self.part(self._prepared))

    def _prepared(self) -> None:
        if self.kind in ("PREPARE", "EXECUTE", "DEALLOCATE"):
            self.lacks(f"PREPARE of {self.kind}")
        self.statement()

    def _execute(self) -> Execute:
        self.expect("EXECUTE")
        name = self.name("the name of a prepared statement")
        if self.kind != "(":
            return Execute(name)
        if self.skip("(", ")"):
            return Execute(name)
        return Execute(name, self.collected(self._argument_of_statement))

    def _argument_of_statement(self) -> Argument:
        name = None
        if self.kind in COLUMN_NAMES and self.next_kind() in (":=", "=>"):
            name = self.name("a parameter")
            self.advance()
        return Argument(name, self.part(self.expression))

    def _deallocate(self) -> Deallocate:
        self.expect("DEALLOCATE")
        self.skip("PREPARE")
        return Deallocate(self.name("the name of a prepared statement"))

    # transactions

    def _transaction(self) -> Transaction:
        word = self.kind
        self.advance()
        self.skip_any(("WORK", "TRANSACTION"))
        if self.kind == "READ":
            self.lacks("READ ONLY or READ WRITE of a transaction")
        if word in ("BEGIN", "START"):
            return Transaction("begin")
        return Transaction("rollback" if word in ("ROLLBACK", "ABORT") else "commit")


_READERS: dict[str, Callable[[StatementGrammar], Clauses]] = {
    "CREATE": StatementGrammar.create,
    "DROP": StatementGrammar.drop,
    "ALTER": StatementGrammar.alter,
    "INSERT": StatementGrammar._insert,
    "UPDATE": StatementGrammar._update,
    "DELETE": StatementGrammar._delete,
    "TRUNCATE": StatementGrammar._truncate,
    "COPY": StatementGrammar.copy,
    "EXPORT": StatementGrammar.export,
    "IMPORT": StatementGrammar.import_,
    "SET": StatementGrammar._set,
    "RESET": StatementGrammar._reset,
    "PRAGMA": StatementGrammar._pragma,
    "PREPARE": StatementGrammar._prepare,
    "EXECUTE": StatementGrammar._execute,
    "DEALLOCATE": StatementGrammar._deallocate,
    **dict.fromkeys(("BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT"), StatementGrammar._transaction),
}


def statements(tokens: Tokens) -> list[Statement]:
    """The statements of a text, checked against DuckDB's grammar. Raises ParseError, UnsupportedError."""
    return StatementGrammar(tokens).statements()
