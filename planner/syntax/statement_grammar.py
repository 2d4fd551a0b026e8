"""The grammar of whole texts: statements one after the other, each a query or one of the kinds in `clauses.py`."""

from __future__ import annotations

from collections.abc import Callable

from tqp.planner.syntax.change_grammar import ChangeGrammar
from tqp.planner.syntax.clauses import (
    Argument,
    CallFunction,
    Checkpoint,
    Clauses,
    Comment,
    Deallocate,
    Execute,
    LoadExtension,
    ObjectKind,
    Pragma,
    Prepare,
    Reset,
    Set,
    Transaction,
    Use,
    Vacuum,
)
from tqp.planner.syntax.parts import Name
from tqp.planner.syntax.query_grammar import Statement
from tqp.planner.syntax.sqlglot_tokens import sqlglot_tokens
from tqp.planner.syntax.tokens import Tokens
from tqp.planner.syntax.words import COLUMN_NAMES, END, FUNCTION_NAMES, LABELS, TEXT


class StatementGrammar(ChangeGrammar):
    """Statements of every kind."""

    def other_statement(self) -> Clauses | None:
        """What a statement that is no query says; None of a kind that is not read."""
        read = _READERS.get(self.kind)
        return super().other_statement() if read is None else read(self)

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
        if self.kind in ("PREPARE", "EXECUTE", "DEALLOCATE", "CALL"):
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
        if word in ("BEGIN", "START"):
            only_reads = self.skip("READ", "ONLY")
            if not only_reads and self.skip("READ"):
                self.expect_any(("WRITE",), "ONLY or WRITE")
            return Transaction("begin", only_reads)
        return Transaction("rollback" if word in ("ROLLBACK", "ABORT") else "commit")

    # COMMENT

    def _comment(self) -> Comment:
        self.expect("COMMENT", "ON")
        is_column = self.skip("COLUMN")
        if is_column:
            kind: ObjectKind = "table"
        elif self.skip_any(("MACRO", "FUNCTION")):
            self.skip("TABLE")
            kind = "macro"
        else:
            kind = self.object_kind("COMMENT ON", ("table", "view", "index"))
        name = self.qualified_name(f"the name of a {'column' if is_column else kind}", most=2 + is_column)
        column = None
        if is_column:
            if not name.qualifiers:
                self.refuse('"." and the name of a column')
            *qualifiers, table = name.qualifiers
            column, name = name._replace(qualifiers=()), Name(table, name.span, tuple(qualifiers))
        self.expect("IS")
        if self.skip("NULL"):
            return Comment(kind, name, column, None)
        text = self._text_as_name() if self.kind == TEXT else self.refuse("a text or NULL")
        return Comment(kind, name, column, text.text)

    # CHECKPOINT, VACUUM, ANALYZE, CALL

    def _force(self) -> Checkpoint | LoadExtension:
        self.expect("FORCE")
        return self._extension() if self.kind == "INSTALL" else self._checkpoint()

    def _checkpoint(self) -> Checkpoint:
        self.expect("CHECKPOINT")
        return Checkpoint(None if self.kind in (";", END) else self.name("the name of a database"))

    # LOAD, INSTALL, USE

    def _extension(self) -> LoadExtension:
        word = self.kind
        self.advance()
        name = self._text_or_name("the name of an extension")
        if word == "INSTALL" and self.skip("FROM"):
            self._text_or_name("the name of a repository")
        if word == "INSTALL" and self.word_is("VERSION"):
            self.lacks("VERSION of INSTALL")
        return LoadExtension(name)

    def _text_or_name(self, what: str) -> Name:
        return self._text_as_name() if self.kind == TEXT else self.name(what)

    def _use(self) -> Use:
        self.expect("USE")
        return Use(self.qualified_name("the name of a schema"))

    def _vacuum(self) -> Vacuum:
        self.advance()
        in_parentheses = self.skip("(")
        self.skip_any(("ANALYZE", "ANALYSE"))
        if self.kind in ("FULL", "FREEZE", "VERBOSE"):
            self.lacks(f"{self.kind} of VACUUM and ANALYZE")
        if in_parentheses:
            self.expect(")")
        if self.kind in (";", END):
            return Vacuum()
        table = self._text_as_name() if self.kind == TEXT else self.qualified_name("the name of a table")
        return Vacuum(table, self.column_names() if self.kind == "(" else ())

    def _text_as_name(self) -> Name:
        written = self.name_at(self.index)
        (token,) = sqlglot_tokens(self.tokens, self.index, self.index + 1)
        self.advance()
        return written._replace(text=token.text)

    def _call(self) -> CallFunction:
        self.expect("CALL")
        return CallFunction(self.part(self._called))

    def _called(self) -> None:
        self.expect_any(FUNCTION_NAMES | COLUMN_NAMES, "the name of a function")
        self.dotted()
        if self.kind != "(":
            self.refuse('"("')
        self.call(with_clauses=False)


_READERS: dict[str, Callable[[StatementGrammar], Clauses]] = {
    "CREATE": StatementGrammar.create,
    "DROP": StatementGrammar.drop,
    "ALTER": StatementGrammar.alter,
    "INSERT": StatementGrammar.insert,
    "UPDATE": StatementGrammar.update,
    "DELETE": StatementGrammar.delete,
    "TRUNCATE": StatementGrammar.truncate,
    "MERGE": StatementGrammar.merge,
    "COPY": StatementGrammar.copy,
    "EXPORT": StatementGrammar.export,
    "IMPORT": StatementGrammar.import_,
    "SET": StatementGrammar._set,
    "RESET": StatementGrammar._reset,
    "PRAGMA": StatementGrammar._pragma,
    "PREPARE": StatementGrammar._prepare,
    "EXECUTE": StatementGrammar._execute,
    "DEALLOCATE": StatementGrammar._deallocate,
    "FORCE": StatementGrammar._force,
    "CHECKPOINT": StatementGrammar._checkpoint,
    "COMMENT": StatementGrammar._comment,
    **dict.fromkeys(("LOAD", "INSTALL"), StatementGrammar._extension),
    "USE": StatementGrammar._use,
    **dict.fromkeys(("VACUUM", "ANALYZE", "ANALYSE"), StatementGrammar._vacuum),
    "CALL": StatementGrammar._call,
    **dict.fromkeys(("BEGIN", "START", "COMMIT", "END", "ROLLBACK", "ABORT"), StatementGrammar._transaction),
}


def statements(tokens: Tokens) -> list[Statement]:
    """The statements of a text, checked against DuckDB's grammar. Raises ParseError, UnsupportedError."""
    return StatementGrammar(tokens).statements()
