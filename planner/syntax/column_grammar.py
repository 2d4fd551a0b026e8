"""The grammar of columns and constraints, as CREATE TABLE and ALTER TABLE have them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from tqp.planner.syntax.clauses import ColumnClause, ForeignKeyClause, KeyClause
from tqp.planner.syntax.parts import Name, Part
from tqp.planner.syntax.query_grammar import QueryGrammar
from tqp.planner.syntax.words import COLUMN_NAMES, LABELS

Item = TypeVar("Item")

#: What constraints of a table begin with.
CONSTRAINTS = frozenset("CONSTRAINT PRIMARY UNIQUE CHECK FOREIGN".split())


@dataclass(slots=True)
class Constraints:
    """Those of a table that have been read, also of its columns."""

    keys: list[KeyClause] = field(default_factory=list)
    foreign_keys: list[ForeignKeyClause] = field(default_factory=list)
    checks: list[Part] = field(default_factory=list)

    @property
    def are_said(self) -> bool:
        """Whether there are any."""
        return bool(self.keys or self.foreign_keys or self.checks)


class ColumnGrammar(QueryGrammar):
    """Names, columns and constraints."""

    # pieces

    def name(self, what: str) -> Name:
        """A name."""
        index = self.index
        self.expect_name(COLUMN_NAMES, what)
        return self.name_at(index)

    def name_at(self, index: int) -> Name:
        """The name that a token is."""
        return Name(self.tokens.name(index), (self.tokens.starts[index], self.tokens.stops[index]))

    def qualified_name(self, what: str, most: int = 2) -> Name:
        """A name, perhaps behind those of a schema and a database, or as many others as `most` says."""
        found = self.name(what)
        while self.skip("."):
            index = self.index
            self.expect_any(LABELS, what)
            found = self.name_at(index)._replace(qualifiers=(*found.qualifiers, found.text))
            if len(found.qualifiers) > most:
                self.complain("before a name stand those of a schema and a database at most")
        return found

    def part(self, read: Callable[[], object]) -> Part:
        """The tokens that `read` moves over."""
        start = self.index
        read()
        return Part(start, self.index)

    def collected(self, read: Callable[[], Item]) -> tuple[Item, ...]:
        """Items in parentheses."""
        found: list[Item] = []
        self.expect("(")
        self.items(lambda: found.append(read()), lambda: self.kind != ")")
        self.close()
        return tuple(found)

    def column_names(self) -> tuple[Name, ...]:
        """`(a, b)`"""
        return self.collected(lambda: self.name("the name of a column"))

    def column(self, constraints: Constraints, named: Name | None = None) -> ColumnClause:
        """A column with its constraints, perhaps behind its name; those of the table are added to `constraints`."""
        name = named or self.name("the name of a column")
        if self.kind in (",", ")"):
            return ColumnClause(name)
        if self.kind in ("GENERATED", "AS"):
            return ColumnClause(name, generated=self._generated())
        data_type = self.part(self.type)
        if self.kind in ("GENERATED", "AS"):
            return ColumnClause(name, data_type, generated=self._generated())
        nullable, default, collation = True, None, None
        while True:
            if self.skip("CONSTRAINT"):
                self.name("the name of a constraint")
            if self.skip("NOT", "NULL"):
                nullable = False
            elif self.skip("NULL"):
                pass
            elif self.skip("DEFAULT"):
                default = self.part(self.arithmetic)
            elif self.skip("PRIMARY", "KEY"):
                constraints.keys.append(KeyClause((name,), True))
            elif self.skip("UNIQUE"):
                constraints.keys.append(KeyClause((name,), False))
            elif self.kind == "CHECK":
                constraints.checks.append(self._check())
            elif self.kind == "REFERENCES":
                constraints.foreign_keys.append(self._references((name,)))
            elif self.kind == "COLLATE":
                collation = self.collation()
            else:
                return ColumnClause(name, data_type, nullable, default, collation=collation)

    def collation(self) -> Part | None:
        """The names behind COLLATE, if it stands here."""
        return (
            self.part(lambda: self.qualified_name("the name of a collation", 9))
            if self.skip("COLLATE")
            else None
        )

    def _generated(self) -> Part:
        """What a generated column is computed by."""
        if self.skip("GENERATED"):
            self.expect_any(("ALWAYS",), "ALWAYS")
        self.expect("AS", "(")
        expression = self.part(self.expression)
        self.close()
        if self.kind == "STORED":
            self.lacks("a generated column that is STORED")
        self.skip("VIRTUAL")
        if self.kind in CONSTRAINTS or self.kind in ("NOT", "NULL", "DEFAULT", "REFERENCES", "COLLATE"):
            self.complain("a generated column has no constraints and no default")
        return expression

    def _check(self) -> Part:
        self.expect("CHECK", "(")
        condition = self.part(self.expression)
        self.close()
        return condition

    def table_constraint(self, constraints: Constraints) -> None:
        """PRIMARY KEY, UNIQUE, CHECK or FOREIGN KEY of a table, which is added."""
        if self.skip("CONSTRAINT"):
            self.name("the name of a constraint")
        if self.skip("PRIMARY", "KEY"):
            constraints.keys.append(KeyClause(self.column_names(), True))
        elif self.skip("UNIQUE"):
            constraints.keys.append(KeyClause(self.column_names(), False))
        elif self.kind == "CHECK":
            constraints.checks.append(self._check())
        elif self.skip("FOREIGN"):
            self.expect("KEY")
            constraints.foreign_keys.append(self._references(self.column_names()))
        else:
            self.refuse("PRIMARY KEY, UNIQUE, CHECK or FOREIGN KEY")

    def _references(self, columns: tuple[Name, ...]) -> ForeignKeyClause:
        """What columns refer to."""
        self.expect("REFERENCES")
        table = self.qualified_name("the name of a table")
        referenced = self.column_names() if self.kind == "(" else ()
        if referenced and len(referenced) != len(columns):
            self.complain("a foreign key has as many columns as it refers to")
        while self.skip("ON"):
            self.expect_any(("DELETE", "UPDATE"), "DELETE or UPDATE")
            if self.kind in ("CASCADE", "SET"):
                self.complain("a foreign key cannot use CASCADE, SET NULL or SET DEFAULT")
            if self.skip("NO"):
                self.expect("ACTION")
            else:
                self.expect_any(("RESTRICT",), "NO ACTION or RESTRICT")
        return ForeignKeyClause(columns, table, referenced)
