"""Queries of a connection: compiled, kept by their texts and shapes, and run."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeVar

from tqp.catalog.catalog import Catalog
from tqp.catalog.snapshot import Snapshot
from tqp.catalog.state import CatalogState, Kind
from tqp.catalog.variables import Variables
from tqp.compiled import CompiledQueries, KnownShape, KnownWords, Parameters, given_values, text_key
from tqp.compiler import Compiler, explained
from tqp.core.arguments import check_parameters, check_query
from tqp.core.datatypes import DataType
from tqp.core.errors import BindError, Error, ExecutionError, ParseError, UnsupportedError
from tqp.core.names import ObjectName
from tqp.core.process.deep_recursion import call_deep
from tqp.core.process.garbage import collected_later
from tqp.data.column import Table
from tqp.data.sources.file_identity import read_again_if_changed
from tqp.pieces import QueryInPieces, in_pieces
from tqp.planner.bind import Arrangement, BoundStatement, bind
from tqp.planner.binder.column_names import with_names
from tqp.planner.binder.pivot_values import with_values
from tqp.planner.binder.select.columns_calls import UnknownNamesError
from tqp.planner.parse import ParsedStatement, Query, parse, text_of
from tqp.planner.scan_conditions import scan_conditions
from tqp.planner.shapes import Shape, shape_of
from tqp.planner.templates import SplitText, Varied, learn, split
from tqp.rejects import with_rejects
from tqp.result import Result
from tqp.runtime.executor import Executor
from tqp.runtime.program import TensorProgram
from tqp.streaming import streaming_program
from tqp.wanted_rows import WantedRows

Outcome = TypeVar("Outcome")


class BoundDescription(NamedTuple):
    """The columns of a query."""

    names: tuple[str, ...]
    types: tuple[DataType, ...]


class Rows(NamedTuple):
    """The rows of a query: tables of them, at least one, which are made when they are asked for."""

    names: tuple[str, ...]
    tables: Iterator[Table]


class Queries:
    """Compiles and runs queries on a catalog. Nothing of a result is kept. Safe to use from several threads."""

    def __init__(self, catalog: Catalog, compiler: Compiler, executor: Executor) -> None:
        self.catalog, self.compiler, self.executor = catalog, compiler, executor
        self.compiled = CompiledQueries()
        catalog.on_change = self.compiled.forget_others

    def run(self, query: Query, params: Parameters | None, variables: Variables | None = None) -> Result:
        """What the query answers."""

        def run(query: Query) -> Result:
            program, snapshot = self._compiled_program(query, params, variables, by_shape=True)
            if isinstance(program, BoundStatement):
                analyze = program.explain == "analyze"
                return explained(self._explained(program, analyze), analyze)
            try:
                table = program()
            except (ExecutionError, UnsupportedError):
                if not program.has_parameters:
                    raise
                # says in the query's own words what fails
                program, snapshot = self._compiled_program(query, params, variables, by_shape=False)
                assert not isinstance(program, BoundStatement)
                table = program()
            self._store_rejects(snapshot)
            return Result(program.names, program.types, table)

        return self._answer(run, query, params, variables)

    def run_on(
        self,
        state: CatalogState,
        query: Query,
        params: Parameters | None = None,
        variables: Variables | None = None,
        arranged: Arrangement | None = None,
    ) -> Result:
        """What the query answers on a state of the catalog that need not be the one that others see; its program is not kept.

        Files are those that `Catalog.snapshot` has looked at: raises FileChangedError where one is replaced meanwhile.
        """

        def run(query: Query) -> Result:
            snapshot = Snapshot(state, self.catalog.files, variables)
            program = self._program_on(snapshot, query, params, arranged)
            table = program()
            self._store_rejects(snapshot)
            return Result(program.names, program.types, table)

        return self._answer(run, query, params, variables, state)

    def write(
        self,
        query: Query,
        params: Parameters | None,
        variables: Variables | None,
        write: Callable[[Rows], Outcome],
    ) -> Outcome:
        """`write` of what the query answers, of which no more than a part is held where the query allows it.

        It is called once more where a file is replaced meanwhile.
        """

        def run(query: Query) -> Outcome:
            snapshot = self.catalog.snapshot(variables)
            program = self._program_on(snapshot, query, params, is_stored=True)
            tables = program.tables() if isinstance(program, QueryInPieces) else iter([program()])
            written = write(Rows(program.names, tables))
            self._store_rejects(snapshot)
            return written

        return self._answer(run, query, params, variables)

    def _answer(
        self,
        run: Callable[[Query], Outcome],
        query: Query,
        params: Parameters | None,
        variables: Variables | None,
        state: CatalogState | None = None,
    ) -> Outcome:
        """What `run` makes of the query with the values of its PIVOTs and the names of its COLUMNS; errors name the query.

        `run` is called once more where a file is replaced meanwhile, unless `state` says what names mean.
        """
        with named_place(query, params):
            known = self.with_values_of_rows(query, params, variables, state)
            while True:
                try:
                    with self.executor.memory.query():
                        return run(known) if state is not None else read_again_if_changed(partial(run, known))
                except UnknownNamesError as unknown:
                    known = with_names(known, unknown, self._texts(params, variables, state))

    def _store_rejects(self, snapshot: Snapshot | None) -> None:
        """Store the errors of the files that a query has read, if it said so. Kept programs, which have no snapshot, did not."""
        if snapshot is not None and snapshot.rejecting:
            self.catalog.change(
                lambda state: with_rejects(state, snapshot.rejecting, partial(self._asked, state))
            )

    def _asked(self, state: CatalogState, query: ParsedStatement, variables: Variables | None) -> Result:
        return self.run_on(state, query, None, variables)

    def _program_on(
        self,
        snapshot: Snapshot,
        query: Query,
        params: Parameters | None,
        arranged: Arrangement | None = None,
        is_stored: bool = False,
    ) -> TensorProgram | QueryInPieces:
        """A program that is not kept."""
        statement = bind(query, snapshot, params, arranged=arranged)
        statement = WantedRows.of(scan_conditions(statement.plan)).in_place(statement)
        pieces = in_pieces(self.compiler, statement, is_stored)
        if pieces is not None:
            return pieces
        statement.encode_columns()
        with collected_later():
            return call_deep(lambda: self.compiler.program(statement))

    def describe(
        self,
        query: Query,
        state: CatalogState,
        variables: Variables | None = None,
        params: Parameters | None = None,
    ) -> BoundDescription:
        """The query's columns on a state of the catalog."""
        with self.executor.memory.query():
            statement = bind(query, Snapshot(state, self.catalog.files, variables), params)
        return BoundDescription(statement.names, tuple(each.data_type for each in statement.plan.schema))

    def is_random(
        self,
        query: Query,
        state: CatalogState,
        variables: Variables | None = None,
        params: Parameters | None = None,
    ) -> bool:
        """Whether the query draws random numbers or those of sequences, so that each run answers something else."""
        return bind(query, Snapshot(state, self.catalog.files, variables), params).is_random

    def names_read(self, query: Query, state: CatalogState, kind: Kind) -> set[ObjectName]:
        """What the query reads of a kind."""
        snapshot = Snapshot(state, self.catalog.files)
        bind(query, snapshot)
        return snapshot.names_read(kind)

    def types(self, query: Query, state: CatalogState) -> tuple[DataType, ...]:
        """The types of the query's columns, which has no parameters."""
        return self.describe(query, state).types

    def types_of_names(self, names: Sequence[str], state: CatalogState) -> tuple[DataType, ...]:
        """The types that SQL has by these names. Raises BindError for a text that is none."""
        types: list[DataType] = []
        for name in names:
            try:
                types += self.types(parse(f"SELECT CAST(NULL AS {name})"), state)
            except ParseError as error:
                raise BindError(f'"{name}" is no type: {error.message}') from None
        if len(types) > len(names):
            raise BindError(f"{', '.join(names)}: each of these is to be one type")
        return tuple(types)

    def with_values_of_rows(
        self,
        query: Query,
        params: Parameters | None,
        variables: Variables | None,
        state: CatalogState | None = None,
    ) -> Query:
        """The query with the values that PIVOTs find in their rows, which queries of their own tell; on a state, if one is given.

        To be called where errors are named, in `named_place`.
        """
        return with_values(query, self._texts(params, variables, state))

    def _texts(
        self, params: Parameters | None, variables: Variables | None, state: CatalogState | None
    ) -> Callable[[ParsedStatement], list[str | None]]:
        """What runs a part of a query whose rows are texts."""

        def texts_of(part: ParsedStatement) -> list[str | None]:
            found = (
                self.run(part, params, variables)
                if state is None
                else self.run_on(state, part, params, variables)
            )
            return [text for (text,) in found.fetchall()]

        return texts_of

    def compile(
        self, query: str, params: Parameters | None, variables: Variables | None
    ) -> TensorProgram | QueryInPieces | BoundStatement:
        """The query's program; EXPLAIN stays bound."""

        def compiled(query: Query) -> TensorProgram | QueryInPieces | BoundStatement:
            program, _ = self._compiled_program(query, params, variables, by_shape=False)
            return program

        return self._answer(compiled, query, params, variables)

    def differentiable(
        self, query: str, params: Parameters | None, variables: Variables | None
    ) -> TensorProgram | BoundStatement:
        """The query's program that carries gradients; EXPLAIN stays bound."""

        def program() -> TensorProgram | BoundStatement:
            statement = bind(query, self.catalog.snapshot(variables), params)
            if statement.explain is not None:
                return statement
            statement.encode_columns()
            return self.compiler.differentiable(statement)

        with named_place(query, params), self.executor.memory.query():
            return call_deep(program)

    def explain(
        self,
        query: Query,
        analyze: bool,
        params: Parameters | None = None,
        variables: Variables | None = None,
        state: CatalogState | None = None,
        arranged: Arrangement | None = None,
    ) -> str:
        """The query's plans as text; on a state of the catalog, if one is given."""

        def plans(query: Query) -> str:
            files = self.catalog.files
            snapshot = (
                self.catalog.snapshot(variables) if state is None else Snapshot(state, files, variables)
            )
            return self._explained(bind(query, snapshot, params, arranged=arranged), analyze)

        return self._answer(plans, query, params, variables, state)

    def _explained(self, statement: BoundStatement, analyze: bool) -> str:
        wanted = WantedRows.of(scan_conditions(statement.plan))
        pieces = in_pieces(self.compiler, wanted.in_place(statement))
        if pieces is not None:
            return call_deep(partial(pieces.explain, analyze))
        return call_deep(partial(self.compiler.explain, statement, analyze))

    def _compiled_program(
        self, query: Query, params: Parameters | None, variables: Variables | None, by_shape: bool
    ) -> tuple[TensorProgram | QueryInPieces | BoundStatement, Snapshot | None]:
        """The compiled query, kept from before if the same text was compiled on the same tables, or else what it was bound to;
        EXPLAIN stays bound.

        `by_shape`: or one that is kept for other constants, or serves this one run.
        """
        key = text_key(text_of(query), params)
        if isinstance(query, ParsedStatement) and query.variant is not None:
            key, by_shape = (key, query.variant), False
        with self.catalog.lock:
            self.catalog.check_open()
            # of a known program only the files that it reads are looked at
            program = self.compiled.programs.find_unchanged(key, self.catalog.now(variables))
            if program is not None:
                return program, None
            snapshot = self.catalog.snapshot(variables)
        with collected_later():
            return call_deep(lambda: self._new_program(key, query, params, snapshot, by_shape)), snapshot

    def _new_program(
        self, key: Hashable, query: Query, params: Parameters | None, snapshot: Snapshot, by_shape: bool
    ) -> TensorProgram | QueryInPieces | BoundStatement:
        by_shape = by_shape and self.compiler.fuser is None
        text = split(text_of(query), given_values(params)) if by_shape else None
        program = None if text is None else self._program_of_words(key, text, snapshot)
        if program is not None:
            return program
        statement = bind(query, snapshot, params)
        if statement.explain is not None:
            return statement
        conditions = self.compiler.scan_conditions(statement.plan)
        wanted = WantedRows.of(conditions)
        pieces = in_pieces(self.compiler, wanted.in_place(statement))
        if pieces is not None:
            return pieces
        if by_shape:
            wanted.choose(self.compiler, conditions)
        if wanted.smaller:  # by its own constants
            statement, text = wanted.in_place(statement), None
        streaming = streaming_program(self.compiler, statement) if by_shape else None
        if streaming is not None:
            return streaming
        statement.encode_columns()
        program = None
        if text is not None:
            statement = replace(statement, plan=self.compiler.without_subqueries(statement.plan))
            program = self._program_of_shape(key, query, params, text, statement, snapshot)
        if program is None:
            program = self.compiler.program(statement)
            with self.catalog.lock:
                if program.is_lasting and not (self.catalog.is_closed or wanted.are_chosen):
                    self.compiled.programs.keep(key, program, snapshot.read, self.catalog.now())
        return program

    def _program_of_words(self, key: Hashable, text: SplitText, snapshot: Snapshot) -> TensorProgram | None:
        """A program that a text's words and constants tell without binding it, if one is kept; see `_program_of_shape`."""
        with self.catalog.lock:
            words = self.compiled.words.find(text.words, snapshot)
            found = None if words is None else words.find(text.constants, snapshot)
            if found is None:
                return None
            known, constants, names = found
            program = known.program_for(constants)
            if program is None or not known.is_worth_parameters(key):
                return None
        return program.with_parameters(constants, names)

    def _program_of_shape(
        self,
        key: Hashable,
        query: Query,
        params: Parameters | None,
        text: SplitText,
        statement: BoundStatement,
        snapshot: Snapshot,
    ) -> TensorProgram | None:
        """A program with the query's constants as parameters, from the second text of a shape on; its plan is without subqueries.

        None of a new shape, and of a text that is sent again: they are planned for their own constants.
        """
        shape, varied = self._shape(text, statement, snapshot)
        constants = shape.constants
        if not constants.values and constants.rows is None:
            return None
        with self.catalog.lock:
            known = self.compiled.shapes.known(shape.key, KnownShape, snapshot.read, self.catalog.now())
            if not known.is_worth_parameters(key, bool(varied.operands)):
                return None
            program = known.program_for(constants)
        if program is None:
            try:
                program = self.compiler.program_of_shape(statement, shape)
            except Error:  # of a part that the text's own constants leave out
                return None
            if program.is_lasting:
                with self.catalog.lock:
                    known.keep(constants, program)
        with self.catalog.lock:
            words = self.compiled.words.known(text.words, KnownWords, snapshot.read, self.catalog.now())
            is_worth_learning = words.is_worth_learning()
        template = learn(query, params, text, shape, varied, snapshot) if is_worth_learning else None
        if template is not None:
            with self.catalog.lock:
                words.learn(template, known, snapshot.read)
        return program.with_parameters(constants, statement.names)

    def _shape(self, text: SplitText, statement: BoundStatement, snapshot: Snapshot) -> tuple[Shape, Varied]:
        """The shape of a text, with the operands as parameters that vary among the texts with the same words; and what varies."""
        shape = shape_of(statement.plan)
        if not shape.operands:
            return shape, Varied()
        with self.catalog.lock:
            words = self.compiled.words.known(text.words, KnownWords, snapshot.read, self.catalog.now())
            varied = words.varied(text.constants, shape.operands)
        return (shape_of(statement.plan, varied.operands) if varied.operands else shape), varied


@contextmanager
def named_place(query: Query, params: Parameters | None = None) -> Iterator[None]:
    """Checks both; errors of the block show the place in the query that they speak of."""
    if not isinstance(query, ParsedStatement):
        check_query(query)
    check_parameters(params)
    try:
        yield
    except Error as error:
        raise error.with_query(text_of(query)) from error.__cause__
