"""The grammar of statements about tables, views and the like: CREATE, DROP and ALTER."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tqp.planner.syntax.clauses import (
    AddColumn,
    AddKey,
    Alter,
    Alteration,
    ChangeDefault,
    ChangeNullable,
    ChangeType,
    ColumnClause,
    CreateIndex,
    CreateMacro,
    CreateSchema,
    CreateSequence,
    CreateTable,
    CreateType,
    CreateView,
    Drop,
    DropColumn,
    MacroFormClause,
    ObjectKind,
    ParameterClause,
    RenameColumn,
    RenameTable,
)
from tqp.planner.syntax.column_grammar import CONSTRAINTS, ColumnGrammar, Constraints
from tqp.planner.syntax.operand_grammar import QUERY_STARTS
from tqp.planner.syntax.parts import Name, Part
from tqp.planner.syntax.words import COLUMN_NAMES, FUNCTION_NAMES, NUMBER

#: Names with dots between that may lead to a field of structs in structs.
_MOST_FIELDS = 100


class DefinitionGrammar(ColumnGrammar):
    """What stands behind CREATE, DROP and ALTER."""

    def if_exists(self) -> bool:
        """IF EXISTS, if it is there."""
        return self.skip("IF", "EXISTS")

    def _if_not_exists(self, or_replace: bool) -> bool:
        if self.kind != "IF":
            return False
        if or_replace:
            self.complain("OR REPLACE and IF NOT EXISTS do not go together")
        self.expect("IF", "NOT", "EXISTS")
        return True

    def _skip_cascade(self) -> None:
        self.skip_any(("CASCADE", "RESTRICT"))

    # CREATE

    def create(
        self,
    ) -> CreateTable | CreateView | CreateMacro | CreateType | CreateSequence | CreateIndex | CreateSchema:
        """CREATE, behind which stands what is made."""
        self.expect("CREATE")
        or_replace = self.skip("OR", "REPLACE")
        temporary = self.skip_any(("TEMP", "TEMPORARY"))
        if self.skip("TABLE"):
            return self._create_table(temporary, or_replace)
        if self.skip("VIEW"):
            return self._create_view(temporary, or_replace)
        if self.skip("RECURSIVE", "VIEW"):
            view = self._create_view(temporary, or_replace)
            if not view.columns:
                self.complain("a recursive view has a list of the names of its columns")
            return replace(view, recursive=True)
        if self.skip_any(("MACRO", "FUNCTION")):
            return self._create_macro(temporary, or_replace)
        if self.skip("TYPE"):
            return self._create_type(temporary, or_replace)
        if self.kind in ("UNIQUE", "INDEX"):
            return self._create_index(or_replace)
        if self.skip("SEQUENCE"):
            return self._create_sequence(temporary, or_replace)
        if self.skip("SCHEMA"):
            return self._create_schema(or_replace)
        self.lacks(f"CREATE {self.tokens.source(self.index).upper()}".strip())

    def _create_schema(self, or_replace: bool) -> CreateSchema:
        if_not_exists = self._if_not_exists(or_replace)
        return CreateSchema(self.qualified_name("the name of a schema"), or_replace, if_not_exists)

    def _create_type(self, temporary: bool, or_replace: bool) -> CreateType:
        if_not_exists = self._if_not_exists(or_replace)
        name = self.qualified_name("the name of a type")
        self.expect("AS")
        if self.word_is("ENUM") and self.next_kind() == "(":
            start = self.index
            self.advance(2)
            if self.kind in QUERY_STARTS:
                query = self.part(self.query)
                self.close()
                return CreateType(name, None, query, temporary, or_replace, if_not_exists)
            self.go_back(start)
        return CreateType(name, self.part(self.type), None, temporary, or_replace, if_not_exists)

    def _create_index(self, or_replace: bool) -> CreateIndex:
        if or_replace:
            self.lacks("OR REPLACE of an index")
        is_unique = self.skip("UNIQUE")
        self.expect("INDEX")
        if_not_exists = self._if_not_exists(or_replace)
        if self.kind == "ON":
            self.complain("an index has a name")
        name = self.name("the name of an index")
        self.expect("ON")
        table = self.qualified_name("the name of a table")
        if self.skip("USING") and not self.word_is("ART"):
            self.lacks("an index of another kind than ART")
        if self.word_is("ART"):
            self.advance()
        items = self.collected(self._item_of_index)
        if self.kind in ("WITH", "WHERE"):
            self.lacks(f"{self.kind} of an index")
        return CreateIndex(name, table, items, is_unique, if_not_exists)

    def _item_of_index(self) -> Part:
        item = self.part(self.expression)
        self.skip_any(("ASC", "DESC"))
        if self.skip("NULLS"):
            self.expect_any(("FIRST", "LAST"), "FIRST or LAST")
        return item

    def _create_sequence(self, temporary: bool, or_replace: bool) -> CreateSequence:
        if_not_exists = self._if_not_exists(or_replace)
        name = self.qualified_name("the name of a sequence")
        numbers: dict[str, int | None] = {}
        cycles: list[bool] = []
        while True:
            option = self.kind
            if self.skip("NO"):
                option = self.kind
                self.expect_any(("MINVALUE", "MAXVALUE", "CYCLE"), "MINVALUE, MAXVALUE or CYCLE")
                is_again, numbers = option in numbers, {**numbers, option: None}
            elif self.skip_any(("START", "INCREMENT", "MINVALUE", "MAXVALUE")):
                if option in ("START", "INCREMENT"):
                    self.skip("WITH" if option == "START" else "BY")
                is_again, numbers = option in numbers, {**numbers, option: self._integer()}
            elif self.skip("CYCLE"):
                is_again = False
            else:
                break
            if option == "CYCLE":
                is_again = bool(cycles)
                cycles.append(self.kinds[self.index - 2] != "NO")
            if is_again:
                self.complain(f"{option} is said twice")
        return CreateSequence(
            name,
            numbers.get("START"),
            numbers.get("INCREMENT"),
            numbers.get("MINVALUE"),
            numbers.get("MAXVALUE"),
            True in cycles,
            temporary,
            or_replace,
            if_not_exists,
        )

    def _integer(self) -> int:
        """A number that is written out, perhaps with a sign."""
        is_negative = self.skip("-")
        text = self.tokens.source(self.index).replace("_", "")
        if self.kind != NUMBER or not text.isdecimal():
            self.refuse("an integer")
        self.advance()
        return -int(text) if is_negative else int(text)

    def _create_macro(self, temporary: bool, or_replace: bool) -> CreateMacro:
        if_not_exists = self._if_not_exists(or_replace)
        name = self._name_of_macro()
        parameters = self._parameters_of_macro()
        is_table = self.skip("TABLE")
        forms = [MacroFormClause(parameters, self.part(self.query if is_table else self.expression))]
        while self.skip(",") and self.kind == "(":
            parameters = self._parameters_of_macro()
            if is_table:
                self.expect("TABLE")
            elif self.kind == "TABLE":
                self.refuse("an expression, as in the first form")
            forms.append(MacroFormClause(parameters, self.part(self.query if is_table else self.expression)))
        return CreateMacro(name, tuple(forms), is_table, temporary, or_replace, if_not_exists)

    def _name_of_macro(self) -> Name:
        if self.next_is("."):
            return self.qualified_name("the name of a macro")
        index = self.index
        self.expect_any(FUNCTION_NAMES | COLUMN_NAMES, "the name of a macro")
        return self.name_at(index)

    def _parameters_of_macro(self) -> tuple[ParameterClause, ...]:
        parameters = () if self.skip("(", ")") else self.collected(self._parameter_of_macro)
        self.expect("AS")
        return parameters

    def _parameter_of_macro(self) -> ParameterClause:
        name = self.name("a parameter")
        data_type = None if self.kind in (",", ")", ":=", "=>") else self.part(self.type)
        default = self.part(self.expression) if self.skip_any((":=", "=>")) else None
        return ParameterClause(name, data_type, default)

    def _create_view(self, temporary: bool, or_replace: bool) -> CreateView:
        if_not_exists = self._if_not_exists(or_replace)
        name = self.qualified_name("the name of a view")
        columns = self.column_names() if self.kind == "(" else ()
        self.expect("AS")
        return CreateView(name, columns, self.part(self.query), temporary, or_replace, if_not_exists)

    def _create_table(self, temporary: bool, or_replace: bool) -> CreateTable:
        if_not_exists = self._if_not_exists(or_replace)
        name = self.qualified_name("the name of a table")
        columns: list[ColumnClause] = []
        constraints = Constraints()

        def element() -> None:
            if self.kind in CONSTRAINTS:
                self.table_constraint(constraints)
            else:
                columns.append(self.column(constraints))

        if self.kind == "(":
            self.collected(element)
            if not columns:
                self.complain("a table has at least one column")
        is_list_of_names = bool(columns) and all(column.is_name for column in columns)
        if self.kind == "AS" and (not columns or is_list_of_names):
            self.advance()
            query = self.part(self.query)
            with_data = True
            if self.skip("WITH"):
                with_data = not self.skip("NO")
                self.expect("DATA")
            return CreateTable(
                name,
                tuple(columns),
                query=query,
                with_data=with_data,
                temporary=temporary,
                or_replace=or_replace,
                if_not_exists=if_not_exists,
            )
        if not columns:
            self.refuse('"(" or AS')
        without = next((column for column in columns if column.is_name), None)
        if without is not None:
            self.complain(f'the column "{without.name.text}" has no type')
        return CreateTable(
            name,
            tuple(columns),
            tuple(constraints.keys),
            tuple(constraints.foreign_keys),
            tuple(constraints.checks),
            temporary=temporary,
            or_replace=or_replace,
            if_not_exists=if_not_exists,
        )

    # DROP

    def drop(self) -> Drop:
        """DROP TABLE, VIEW, ..."""
        self.expect("DROP")
        if self.skip_any(("MACRO", "FUNCTION")):
            self.skip("TABLE")
            kind: ObjectKind = "macro"
        else:
            kind = self.object_kind("DROP", ("table", "view", "type", "sequence", "index", "schema"))
        if_exists = self.if_exists()
        name = self.qualified_name(f"the name of a {kind}")
        if self.kind == ",":
            self.lacks("DROP of several at a time")
        cascades = self.kind == "CASCADE"
        self._skip_cascade()
        return Drop(kind, name, if_exists, cascades)

    def object_kind(self, statement: str, kinds: Sequence[ObjectKind] = ("table", "view")) -> ObjectKind:
        """One of the kinds, which the statement is about."""
        for kind in kinds:
            if self.skip(kind.upper()):
                return kind
        self.lacks(f"{statement} {self.tokens.source(self.index).upper()}".strip())

    # ALTER

    def alter(self) -> Alter:
        """ALTER TABLE or VIEW."""
        self.expect("ALTER")
        kind = self.object_kind("ALTER")
        if_exists = self.if_exists()
        name = self.qualified_name(f"the name of a {kind}")
        if kind == "view":
            self.expect("RENAME", "TO")
            return Alter("view", name, if_exists, RenameTable(self.name("a name")))
        alteration = self._alteration()
        if self.kind == ",":
            self.lacks("ALTER of several things at a time")
        return Alter("table", name, if_exists, alteration)

    def _alteration(self) -> Alteration:
        if self.skip("RENAME"):
            if self.skip("TO"):
                return RenameTable(self.name("a name"))
            self.skip("COLUMN")
            column = self._column_or_field()
            self.expect("TO")
            return RenameColumn(column, self.name("a name"))
        if self.skip("ADD"):
            return self._added()
        if self.skip("DROP"):
            if self.kind == "CONSTRAINT":
                self.lacks("ALTER TABLE DROP CONSTRAINT")
            self.skip("COLUMN")
            if_exists = self.if_exists()
            dropped = DropColumn(self._column_or_field(), if_exists)
            self._skip_cascade()
            return dropped
        if self.skip("ALTER"):
            self.skip("COLUMN")
            return self._altered(self.name("the name of a column"))
        self.refuse("RENAME, ADD, DROP or ALTER")

    def _column_or_field(self) -> Name:
        return self.qualified_name("the name of a column", most=_MOST_FIELDS)

    def _added(self) -> AddColumn | AddKey:
        constraints = Constraints()
        if self.kind in CONSTRAINTS:
            self.table_constraint(constraints)
            if not constraints.keys:
                self.lacks(f"ALTER TABLE ADD {'CHECK' if constraints.checks else 'FOREIGN KEY'}")
            return AddKey(constraints.keys[0])
        self.skip("COLUMN")
        if_not_exists = self._if_not_exists(or_replace=False)
        column = self.column(constraints, self._column_or_field())
        if column.type is None:
            self.refuse("a type")
        is_primary = any(key.is_primary for key in constraints.keys)
        if is_primary or constraints.checks or constraints.foreign_keys:
            self.lacks("ALTER TABLE ADD COLUMN with PRIMARY KEY, CHECK or REFERENCES")
        is_unique, is_field = bool(constraints.keys), bool(column.name.qualifiers)
        if (is_unique or not column.nullable) and (is_field or if_not_exists):
            self.lacks("a constraint of a field, or of a column that may be there,")
        return AddColumn(column, if_not_exists, is_unique)

    def _altered(self, column: Name) -> ChangeType | ChangeDefault | ChangeNullable:
        if self.skip("SET", "NOT"):
            self.expect("NULL")
            return ChangeNullable(column, False)
        if self.skip("DROP", "NOT"):
            self.expect("NULL")
            return ChangeNullable(column, True)
        if self.skip("SET", "DEFAULT"):
            return ChangeDefault(column, self.part(self.expression))
        if self.skip("DROP"):
            self.expect("DEFAULT")
            return ChangeDefault(column, None)
        if self.skip("SET"):
            self.expect("DATA")
        self.expect("TYPE")
        data_type, collation = self.part(self.type), self.collation()
        value = self.part(self.expression) if self.skip("USING") else None
        return ChangeType(column, data_type, value, collation)
