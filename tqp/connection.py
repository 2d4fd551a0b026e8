"""Connection: registered tables, compiled queries and worker threads."""

from __future__ import annotations

import gc
import threading
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

import torch

from tqp.compiled import CompiledQueries, Parameters, RestrictedSnapshot, Snapshot, given_values, text_key
from tqp.compiler import Compiler
from tqp.core.arguments import (
    MAX_THREADS,
    check_choice,
    check_count,
    check_name,
    check_parameter_sets,
    check_parameters,
    check_query,
    check_rules,
    parse_size,
)
from tqp.core.deep_recursion import call_deep
from tqp.core.errors import BindError, Error, ExecutionError, UnsupportedError, nearest
from tqp.core.forks import renew_after_fork
from tqp.core.garbage import collected_later
from tqp.core.schema import TableSource
from tqp.data.backend import choose_backend, parse_device
from tqp.data.sources.base import Source
from tqp.data.sources.file_identity import read_again_if_changed
from tqp.data.sources.files import up_to_date
from tqp.data.sources.make_source import make_source
from tqp.data.sources.open_files import OpenFiles
from tqp.memory_ledger import ledger
from tqp.ml.model import Model
from tqp.ml.register import Output, make_model
from tqp.planner.bind import BoundStatement, bind
from tqp.planner.functions.registry import function_names
from tqp.planner.optimizer import RULES
from tqp.planner.parse import ParsedStatement, Query, parse, text_of
from tqp.planner.physical.planner import PHYSICAL_RULES
from tqp.planner.shapes import shape_of
from tqp.planner.templates import SplitText, learn, split
from tqp.result import Result
from tqp.runtime.executor import Executor
from tqp.runtime.fuse import MODES, Fuser
from tqp.runtime.memory_limit import give_back_memory_of_tables
from tqp.runtime.program import TensorProgram
from tqp.runtime.trace import Trace
from tqp.statement import Statement

_PRECISIONS = ("float32", "bf16")

Item = TypeVar("Item", Source, Model)


class Connection:
    """Tables and models, and the means to query them; `tqp.connect` makes one. Safe to use from several threads.

    `device`: "cpu" (the default), "cuda", "cuda:1", ...; `threads`: worker threads on the CPU, by default all
    processors; `memory_limit`: bytes, or a size such as "4GiB", by which the process may grow while queries run
    (columns that they encode count, too), by default four fifths of the memory of the machine or of its control group;
    `batch_rows`: rows per batch; `disabled_rules`: optimizer rules to leave out, for experiments (answers stay the same);
    `fuse`: "on" compiles elementwise parts of a query with torch.compile when they first run, "background" while queries run
    without; what is not quicker compiled stays as it is;
    `ml_precision`: "bf16" makes the matrix products of models in bfloat16: quicker on processors that have it, and off by as
    much as `Connection.models()` says;
    `backend`: "host" computes with arrays, on the CPU only; "torch" with torch's own operations, which run on every device;
    "auto" means "host" on the CPU and "torch" elsewhere. Answers are the same.
    Raises BindError for a device that torch does not have, and for "mps", which has no 64-bit floats.
    """

    def __init__(
        self,
        device: str | torch.device | None = None,
        threads: int | None = None,
        memory_limit: int | str | None = None,
        *,
        batch_rows: int | None = None,
        disabled_rules: Iterable[str] = (),
        fuse: str = "off",
        ml_precision: str = "float32",
        backend: str = "auto",
    ) -> None:
        self._device = parse_device(device)
        self._backend = choose_backend(backend, self._device)
        check_count("threads", threads, "at least one thread is needed", MAX_THREADS)
        check_count("batch_rows", batch_rows, "a batch has at least one row")
        check_choice("fuse", fuse, MODES)
        check_choice("ml_precision", ml_precision, _PRECISIONS)
        self._ml_precision, self._threads = ml_precision, threads
        rules = check_rules(disabled_rules, [name for name, _ in RULES] + list(PHYSICAL_RULES))
        self._executor = Executor(self._device, threads, batch_rows, parse_size(memory_limit), self._backend)
        self._fuser = Fuser(fuse) if fuse != "off" else None
        self._compiler = Compiler(self._device, self._backend, rules, self._fuser, self._executor)
        self._sources: dict[str, Source] = {}
        self._models: dict[str, Model] = {}
        self._files = OpenFiles(self._device, threads)
        self._compiled = CompiledQueries()
        self._closed = False
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """Called in a forked child, where no other thread can hold the lock."""
        self._lock = threading.RLock()

    @property
    def device(self) -> torch.device:
        """Where this connection's columns live and its queries run."""
        return self._device

    @property
    def backend(self) -> str:
        """What its queries are lowered for: "host", arrays on the CPU, or "torch", torch's own operations on any device."""
        return self._backend.value

    @property
    def threads(self) -> int:
        """How many worker threads run a query."""
        return self._executor.threads

    # tables

    def register(self, name: str, data: object) -> Connection:
        """Make `data` queryable as table `name`, in place of a table of that name; returns the connection.

        `data`: an Arrow table, batch, array or reader, anything with `__arrow_c_stream__` (Polars, DuckDB relations, ...), a
        pandas frame or series, NumPy arrays, a dict of these or of torch tensors, or the path of Parquet, CSV or Arrow files.
        The table is what `data` was when it was registered, whatever is written to it later; files that change are read
        again (docs/data.md). Columns are encoded when a query first touches them. Raises BindError for anything else.
        """
        check_name("a table", name)
        self._check_open()
        source = make_source(name, data, self._device)
        source.threads = self._threads
        with self._lock:
            self._check_open()
            self._replace_tables({**self._sources, name.lower(): source})
        return self

    def unregister(self, name: str) -> None:
        """Forget the table. Raises BindError if there is none of that name."""
        with self._lock:
            self._check_open()
            self._replace_tables(_without("table", name, self._sources))

    def lookup(self, name: str) -> TableSource | None:
        """The registered table of that name, ignoring case. Raises what keeps it from being read."""
        return self._now().lookup(name)

    def table_names(self) -> list[str]:
        """Names of the registered tables."""
        return [source.name for source in list(self._sources.values())]

    # models

    def register_model(
        self,
        name: str,
        model: object,
        *,
        inputs: Sequence[str] | Mapping[str, int] | None = None,
        output: Output = None,
        sample: object = None,
        target: str | None = None,
    ) -> Connection:
        """Make a trained model callable in SQL as `name(inputs...)`; returns the connection.

        `model`: a torch module or a function from features [n, inputs] to [n] or [n, outputs]; or a fitted estimator of a
        supported class, or an ONNX model (docs/models.md). A module stays the one that was given: it is put into evaluation
        mode and on the connection's device, and changes of its parameters count. `inputs`: names of the inputs in order, by
        default those it was fitted with; of a module or function also a mapping from names to how many features an input is:
        1 of a number, n of FLOAT[n].
        `output`: "label", "proba" (of two classes the positive one; of more all of them), ("proba", class), "score" or
        "value"; by default the label of classifiers, the value of everything else. `sample`: rows, as a data frame or
        array, on which the converted model is compared with the original; by default made-up ones. `target`: what it
        predicts, for the names of columns that ML_PREDICT adds: by default "label" of classifiers, else "value".

        Raises UnsupportedError for a class without converter, BindError for a model whose converted form differs from the
        original, for a name that SQL uses, and for inputs or an output that the model does not have.
        """
        check_name("a model", name)
        self._check_open()
        if name.lower() in function_names():
            raise BindError(f'"{name}" is a function of SQL; give the model another name')
        made = make_model(
            name, model, inputs, output, sample, self._device, target, bf16=self._ml_precision == "bf16"
        )
        with self._lock:
            self._check_open()
            self._models = {**self._models, name.lower(): made}
            self._compiled.forget_others(self._now())
        return self

    def unregister_model(self, name: str) -> None:
        """Forget the model. Raises BindError if there is none of that name."""
        with self._lock:
            self._check_open()
            self._models = _without("model", name, self._models)
            self._compiled.forget_others(self._now())

    def models(self) -> list[Model]:
        """The registered models, each with its inputs, its default output and its proof."""
        return list(self._models.values())

    def lookup_model(self, name: str) -> Model | None:
        """The registered model of that name, ignoring case."""
        return self._models.get(name.lower())

    def model_names(self) -> list[str]:
        """Names of the registered models."""
        return [model.name for model in list(self._models.values())]

    def memory(self) -> Result:
        """What is kept of the registered tables, and the bytes that it takes: a row for each thing that queries have made.

        `kept`: "values", the encoded column; "dictionary", its distinct values with codes for the rows; "index" and "runs", where
        the values of a sorted one begin. It goes with the table: `unregister` frees it. One immutable table under two names
        is counted twice here.
        """
        self._check_open()
        return ledger([*self._sources.values(), *self._files.tables().values()])

    # queries

    def sql(self, query: str, params: Parameters | None = None) -> Result:
        """Run one query. `params`: values for `?` and `$1` (a sequence) or `$name` (a mapping).

        >>> import tqp
        >>> with tqp.connect() as con:
        ...     con.sql("SELECT $x + 1 AS y", params={"x": 41}).fetchall()
        [(42,)]
        """
        return self._run(query, params)

    def prepare(self, query: str) -> Statement:
        """Parse a query that is to be executed with several values; what it names is looked up at each `Statement.execute`.

        Raises ParseError and UnsupportedError for text that is no query.
        """
        self._check_open()
        with _named_place(query):
            parsed = call_deep(lambda: parse(query))
        return Statement(parsed, self._run, self._explain_query, self._snapshot)

    def executemany(self, query: str, params: Iterable[Parameters]) -> list[Result]:
        """Run one query, which is parsed once, for each set of values: the results in order.

        DuckDB's returns the last result only. Raises BindError where there is no set; then, and where one fails, no result
        is returned.
        """
        statement = self.prepare(query)
        return [statement.execute(values) for values in check_parameter_sets(params)]

    def _run(self, query: Query, params: Parameters | None) -> Result:
        with _named_place(query, params), self._executor.memory.query():
            program = self._program(query, params, by_shape=True)
            if not isinstance(program, TensorProgram):
                return call_deep(partial(self._compiler.explained, program))
            try:
                table = program()
            except (ExecutionError, UnsupportedError):
                if not program.has_parameters:
                    raise
                program = self._program(query, params)  # says in the query's own words what fails
                assert isinstance(program, TensorProgram)
                table = program()
            return Result(program.names, program.types, table)

    def compile(
        self, query: str, params: Parameters | None = None, *, differentiable: bool = False
    ) -> TensorProgram:
        """The query as a torch.nn.Module: `print(program.code)` shows it, `program()` runs it and returns a Table.

        With `differentiable`, `program()` gives a tensor by the name of each output, as `Result.to_torch` does, and those
        of floats carry gradients to the parameters of registered torch modules, which are parameters of the program, and to
        the tensors with requires_grad in registered dicts. UnsupportedError names what of the query has no gradient.
        """
        with _named_place(query, params):
            if differentiable:
                program = call_deep(lambda: self._differentiable(query, params))
            else:
                program = self._program(query, params)
        if not isinstance(program, TensorProgram):
            raise BindError("EXPLAIN cannot be compiled; compile the query itself")
        return program

    def explain(self, query: str, analyze: bool = False, params: Parameters | None = None) -> str:
        """The logical and physical plan as text, with estimates; with `analyze` also what a run of it took."""
        return self._explain_query(query, analyze, params)

    def _explain_query(self, query: Query, analyze: bool, params: Parameters | None) -> str:
        with _named_place(query, params):
            return call_deep(lambda: self._compiler.explain(bind(query, self._snapshot(), params), analyze))

    def trace(self) -> Trace:
        """A context manager: all that runs in its block is timed by pipeline, breaker and kernel.

        `print(trace)` lists them, `trace.write("trace.json")` writes a timeline for ui.perfetto.dev or chrome://tracing.
        """
        self._check_open()
        return Trace(self._executor)

    def close(self) -> None:
        """End the worker threads and forget the tables; the connection cannot be used afterwards."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._sources, self._models = {}, {}
            self._files.close()
            self._compiled.clear()
            _free_tables()
        self._executor.close()
        if self._fuser is not None:
            self._fuser.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # compiling

    def _differentiable(self, query: str, params: Parameters | None) -> TensorProgram | BoundStatement:
        statement = bind(query, self._snapshot(), params)
        if statement.explain is not None:
            return statement
        statement.encode_columns()
        return self._compiler.differentiable(statement)

    def _check_open(self) -> None:
        if self._closed:
            raise BindError("the connection is closed; open a new one with tqp.connect()")

    def _replace_tables(self, tables: dict[str, Source]) -> None:
        """The tables that queries see from now on; with the lock held."""
        before, self._sources = self._sources, tables
        self._compiled.forget_others(self._now())
        if any(tables.get(name) is not source for name, source in before.items()):
            del before
            _free_tables()

    def _now(self) -> Snapshot:
        return Snapshot(self._sources, self._models, self._files)

    def _snapshot(self) -> Snapshot:
        """What a query is bound to. Tables whose files have changed are read anew. Raises BindError after `close`."""
        with self._lock:
            self._check_open()
            renewed = {
                name: up_to_date(source) for name, source in self._sources.items() if source.files is not None
            }
            if any(self._sources[name] is not source for name, source in renewed.items()):
                self._replace_tables({**self._sources, **renewed})
            if self._files.renew():
                self._compiled.forget_others(self._now())
                _free_tables()
            return self._now()

    def _program(
        self, query: Query, params: Parameters | None, by_shape: bool = False
    ) -> TensorProgram | BoundStatement:
        """As `_compiled_program`; made again where a file is replaced while its columns are read."""
        return read_again_if_changed(lambda: self._compiled_program(query, params, by_shape))

    def _compiled_program(
        self, query: Query, params: Parameters | None, by_shape: bool
    ) -> TensorProgram | BoundStatement:
        """The compiled query, kept from before if the same text was compiled on the same tables; EXPLAIN stays bound.

        `by_shape`: or one that is kept for other constants.
        """
        key = text_key(text_of(query), params)
        with self._lock:
            snapshot = self._snapshot()
            program = self._compiled.programs.find(key, snapshot)
        if program is not None:
            return program
        with collected_later():
            return call_deep(lambda: self._new_program(key, query, params, snapshot, by_shape))

    def _new_program(
        self, key: Hashable, query: Query, params: Parameters | None, snapshot: Snapshot, by_shape: bool
    ) -> TensorProgram | BoundStatement:
        by_shape = by_shape and self._fuser is None
        text = split(text_of(query), given_values(params)) if by_shape else None
        program = None if text is None else self._program_of_words(key, text, snapshot)
        if program is not None:
            return program
        statement = bind(query, snapshot, params)
        if statement.explain is not None:
            return statement
        restricted = statement.restricted_tables()
        if restricted:  # by its own constants
            statement, text = bind(query, RestrictedSnapshot(snapshot, restricted), params), None
        statement.encode_columns()
        program = None
        if text is not None:
            statement = replace(statement, plan=self._compiler.without_subqueries(statement.plan))
            program = self._program_of_shape(key, query, params, text, statement, snapshot)
        if program is None:
            program = self._compiler.program(statement)
            with self._lock:
                if not self._closed:
                    self._compiled.programs.keep(key, program, snapshot.read, self._now())
        return program

    def _program_of_words(self, key: Hashable, text: SplitText, snapshot: Snapshot) -> TensorProgram | None:
        """A program that a text's words and constants tell without binding it, if one is kept; see `_program_of_shape`."""
        with self._lock:
            words = self._compiled.words.find(text.words, snapshot)
            found = None if words is None else words.find(text.constants, snapshot)
            if found is None:
                return None
            known, constants = found
            program = known.program_for(constants)
            if program is None or not known.is_worth_parameters(key):
                return None
        return program.with_parameters(constants.values)

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
        shape = shape_of(statement.plan)
        constants = shape.constants
        if not constants.values:
            return None
        with self._lock:
            known = self._compiled.known_shape((shape.key, statement.names), snapshot.read, self._now())
            if not known.is_worth_parameters(key):
                return None
            program = known.program_for(constants)
        if program is None:
            try:
                program = self._compiler.program_of_shape(statement, shape)
            except Error:  # of a part that the text's own constants leave out
                return None
            with self._lock:
                known.keep(constants, program)
        with self._lock:
            words = self._compiled.known_words(text.words, snapshot.read, self._now())
            is_worth_learning = words.is_worth_learning()
        template = learn(query, params, text, shape, snapshot) if is_worth_learning else None
        if template is not None:
            with self._lock:
                words.learn(template, known, snapshot.read)
        return program.with_parameters(constants.values)


@contextmanager
def _named_place(query: Query, params: Parameters | None = None) -> Iterator[None]:
    """Checks both; errors of the block show the place in the query that they speak of."""
    if not isinstance(query, ParsedStatement):
        check_query(query)
    check_parameters(params)
    try:
        yield
    except Error as error:
        raise error.with_query(text_of(query)) from error.__cause__


def _without(kind: str, name: str, registered: Mapping[str, Item]) -> dict[str, Item]:
    """All but the one of that name. Raises BindError if there is none."""
    check_name(f"a {kind}", name)
    if name.lower() not in registered:
        known = [item.name for item in registered.values()]
        raise BindError(f'there is no {kind} "{name}" to unregister' + nearest(name, known))
    return {key: item for key, item in registered.items() if key != name.lower()}


def _free_tables() -> None:
    """Free what nobody but garbage refers to any more, and give back what large tables held.

    Planning leaves cycles that refer to its tables; they are among the youngest objects (see `collected_later`).
    """
    gc.collect(0)
    give_back_memory_of_tables()
