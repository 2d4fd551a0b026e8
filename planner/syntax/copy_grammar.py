"""The grammar of COPY, EXPORT and IMPORT."""

from __future__ import annotations

from tqp.planner.syntax.clauses import CopyFrom, CopyOption, CopyTo, ExportDatabase, ImportDatabase
from tqp.planner.syntax.definition_grammar import DefinitionGrammar
from tqp.planner.syntax.parts import Part
from tqp.planner.syntax.words import COLUMN_NAMES, LABELS, TEXT

_PLAIN_OPTIONS = ("CSV", "HEADER", "DELIMITER", "DELIMITERS", "NULL", "QUOTE", "ESCAPE", "ENCODING", "FORCE")


class CopyGrammar(DefinitionGrammar):
    """COPY of tables and queries to files, and of files to tables; EXPORT and IMPORT of all tables."""

    def copy(self) -> CopyTo | CopyFrom:
        """COPY table TO file, COPY (query) TO file, COPY table FROM file."""
        self.expect("COPY")
        if self.kind == "FROM":
            self.lacks("COPY FROM DATABASE")
        if self.skip("("):
            query = self.part(self.query)
            self.expect(")")
            self.expect("TO")
            return CopyTo(query, None, None, self._path(), self._options())
        table = self.qualified_name("the name of a table")
        columns = self.column_names() if self.kind == "(" else None
        if self.skip("TO"):
            return CopyTo(None, table, columns, self._path(), self._options())
        self.expect("FROM")
        return CopyFrom(table, columns, self._path(), self._options())

    def export(self) -> ExportDatabase:
        """EXPORT DATABASE."""
        self.expect("EXPORT", "DATABASE")
        database = None
        if self.kind in COLUMN_NAMES:
            database = self.name("the name of a database")
            self.expect("TO")
        return ExportDatabase(database, self._folder(), self._options())

    def import_(self) -> ImportDatabase:
        """IMPORT DATABASE."""
        self.expect("IMPORT", "DATABASE")
        return ImportDatabase(self._folder())

    def _folder(self) -> Part:
        if self.kind != TEXT:
            self.refuse("the path of a folder as text")
        return self.part(self.primary)

    def _path(self) -> Part:
        if self.kind not in (TEXT, "(", "?", "$"):
            self.lacks("COPY of anything but files, which are named by a text,")
        return self.part(self.primary)

    def _options(self) -> tuple[CopyOption, ...]:
        has_with = self.skip("WITH")
        if self.kind == "(":
            return self.collected(self._option)
        self.skip("USING")
        found: list[CopyOption] = []
        while has_with or self.kind in LABELS:
            has_with = False
            found.append(self._plain_option())
            self.skip(",")
        return tuple(found)

    def _plain_option(self) -> CopyOption:
        """One of the options that need no parentheses, as in CSV HEADER DELIMITER AS '|'."""
        index = self.index
        if not any(self.word_is(word) for word in _PLAIN_OPTIONS):
            self.refuse("one of the options " + ", ".join(_PLAIN_OPTIONS))
        name = self.name_at(index)
        self.advance()
        match name.text.upper():
            case "CSV":
                return CopyOption(name._replace(text="format"), Part(index, self.index))
            case "HEADER":
                return CopyOption(name, None)
            case "FORCE":
                never_null = self.skip("NOT", "NULL")
                if not never_null:
                    self.expect("QUOTE")
                option = name._replace(text="force_not_null" if never_null else "force_quote")
                return CopyOption(option, self.part(self._columns))
        self.skip("AS")
        if self.kind != TEXT:
            self.refuse("a text")
        return CopyOption(name, self.part(self.primary))

    def _columns(self) -> None:
        if not self.skip("*"):
            self.items(self._column, lambda: self.kind in COLUMN_NAMES)

    def _column(self) -> None:
        self.name("the name of a column")

    def _option(self) -> CopyOption:
        index = self.index
        self.expect_any(LABELS, "the name of an option")
        name = self.name_at(index)
        if self.kind in (",", ")"):
            return CopyOption(name, None)
        return CopyOption(name, self.part(self._value))

    def _value(self) -> None:
        if self.kind == "*" or self.kind in LABELS and self.next_kind() in (",", ")"):
            self.advance()
        elif self.kind == "(" and self.next_kind() in LABELS and self.next_kind(2) in (",", ")"):
            self.column_names()
        else:
            self.expression()
