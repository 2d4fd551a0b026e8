"""Connection: registered tables, compiled queries and worker threads."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Self

import torch

from tqp.catalog.catalog import Catalog, free_tables
from tqp.catalog.snapshot import Snapshot
from tqp.catalog.state import CatalogState
from tqp.catalog.variables import Variables
from tqp.compiled import Parameters
from tqp.compiler import Compiler
from tqp.conveniences import Conveniences
from tqp.core.arguments import (
    IN_MEMORY,
    check_choice,
    check_config,
    check_count,
    check_database,
    check_name,
    check_parameter_sets,
    check_rules,
    parse_size,
    parse_threads,
    setting_text,
)
from tqp.core.errors import BindError, nearest
from tqp.core.keywords import in_quotes, lower_ascii
from tqp.core.names import ObjectName
from tqp.core.process.deep_recursion import call_deep
from tqp.data.backend import choose_backend, parse_device
from tqp.data.sources.make_source import make_source
from tqp.data.sources.stored_tables import StoredTable
from tqp.memory_ledger import ledger
from tqp.ml.model import Model
from tqp.ml.python_functions import PythonFunction, make_function
from tqp.ml.register import Output, make_model
from tqp.pieces import QueryInPieces
from tqp.planner.bind import BoundStatement
from tqp.planner.binder.expressions.calls import function_names
from tqp.planner.optimizer import RULES
from tqp.planner.parse import parse, parse_statement, split_statements
from tqp.planner.physical.planner import PHYSICAL_RULES
from tqp.queries import Queries, named_place
from tqp.relation import QueryResult
from tqp.result import Result
from tqp.runtime.executor import Executor
from tqp.runtime.fuse import MODES, Fuser
from tqp.runtime.program import TensorProgram
from tqp.runtime.trace import Trace
from tqp.statement import Statement
from tqp.statements.session import Session
from tqp.ways_in import WaysIn
from tqp.ways_out import WaysOut

_PRECISIONS = ("float32", "bf16")


class Connection(WaysIn, WaysOut, Conveniences):
    """Tables and models, and the means to query them; `tqp.connect` makes one. Safe to use from several threads.

    `database`: ":memory:", DuckDB's name for one that ends with its connection, as all do here; also as the first argument. `read_only`: False.
    `config`: settings by the names that SET has for them, and "threads" and "memory_limit".
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
        database: str = IN_MEMORY,
        config: Mapping[str, object] | None = None,
        read_only: bool = False,
    ) -> None:
        check_database(database)
        if read_only:
            raise BindError("read_only=True: what is in memory alone can be written; leave it out")
        settings = check_config(config)
        threads = parse_threads(settings.pop("threads", threads))
        memory_limit = settings.pop("memory_limit", memory_limit)
        self._device = parse_device(device)
        self._backend = choose_backend(backend, self._device)
        check_count("batch_rows", batch_rows, "a batch has at least one row")
        check_choice("fuse", fuse, MODES)
        check_choice("ml_precision", ml_precision, _PRECISIONS)
        self._ml_precision = ml_precision
        rules = check_rules(disabled_rules, [name for name, _ in RULES] + list(PHYSICAL_RULES))
        self._executor = Executor(self._device, threads, batch_rows, parse_size(memory_limit), self._backend)
        self._fuser = Fuser(fuse) if fuse != "off" else None
        compiler = Compiler(self._device, self._backend, rules, self._fuser, self._executor)
        self._of_thread = threading.local()  # what it executed last
        self._catalog = Catalog(self._device)
        self._queries = Queries(self._catalog, compiler, self._executor)
        self._session = Session(
            self._catalog, self._queries, self._device, threads, self._executor.memory.limit
        )
        try:
            for name, value in settings.items():
                self._session.run(f"SET {in_quotes(name)} = {setting_text(value)}", None, None)
        except BaseException:
            self.close()
            raise

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
        self._catalog.check_open()
        with self._executor.memory.query():
            source = make_source(name, data, self._device)
        self._catalog.change(lambda state: state.with_table(source))
        return self

    def unregister(self, name: str) -> Connection:
        """Forget what was registered under the name, if something was; returns the connection. A table of CREATE TABLE stays."""
        check_name("a table", name)
        place = ObjectName.of(name)

        def next_state(state: CatalogState) -> CatalogState:
            table = state.tables.get(place)
            return state if table is None or isinstance(table, StoredTable) else state.without(place)

        self._catalog.change(next_state)
        return self

    def table_names(self) -> list[str]:
        """Names of the registered tables."""
        return [table.name for table in self._catalog.state.tables.values()]

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
        self._catalog.check_open()
        _check_function_name("a model", name)
        made = make_model(
            name, model, inputs, output, sample, self._device, target, bf16=self._ml_precision == "bf16"
        )
        self._catalog.change(lambda state: state.with_function(made))
        return self

    def unregister_model(self, name: str) -> None:
        """Forget the model. Raises BindError if there is none of that name."""
        check_name("a model", name)
        self._catalog.change(lambda state: _without("model", name, state, _models(state)))

    def models(self) -> list[Model]:
        """The registered models, each with its inputs, its default output and its proof."""
        return list(_models(self._catalog.state).values())

    def model_names(self) -> list[str]:
        """Names of the registered models."""
        return [model.name for model in self.models()]

    # functions

    def create_function(
        self,
        name: str,
        function: Callable[..., object],
        parameters: Sequence[object] | None = None,
        return_type: object = None,
        *,
        type: str = "arrow",
        null_handling: str = "default",
        exception_handling: str = "default",
        side_effects: bool = False,
    ) -> Connection:
        """Make a Python function callable in SQL as `name(arguments...)`, in place of one of that name; returns the connection.

        `parameters`, `return_type`: types by their names in SQL ("INTEGER", "DECIMAL(9,2)[]"), or Python's or Arrow's; None
        takes the annotations, and a parameter without one takes any type. `type`: "arrow" calls it with a pyarrow.Array
        for each argument and takes an array; "torch" with tensors on the connection's device, as `Result.to_torch` has them;
        "native", DuckDB's default, with the Python values of one row, as `fetchall` has them, and takes one. A batch of rows
        is a call of the first two. "native" is a call and its objects for each row: 0.16 microseconds of integers, where the
        others take 0.003 and SQL's own `+` one.
        `null_handling`: by default a row with a NULL is NULL, and the function neither sees it nor gives NULL; "special"
        gives it NULL (None), and takes it. `exception_handling`: "return_null" makes NULL of what a "native" one raises.

        Worker threads call it, several at once; the arrays may be the table's memory, the tensors are its own. Equal calls in a query may be one, and what nobody reads is not called: so
        `side_effects=True` is an UnsupportedError. What it raises is an ExecutionError of the query that names it, as is a
        value that is not of its type. Raises BindError for a name that SQL uses, and types that are none.

        >>> import pyarrow.compute as pc
        >>> import tqp
        >>> def plural(word: str, n: int) -> str:
        ...     return word if n == 1 else word + "s"
        >>> with tqp.connect() as con:
        ...     _ = con.create_function("doubled", lambda x: pc.multiply(x, 2), ["BIGINT"], "BIGINT")
        ...     _ = con.create_function("plural", plural, type="native")
        ...     con.sql("SELECT doubled(i), plural('duck', i) FROM range(1, 3) r(i)").fetchall()
        [(2, 'duck'), (4, 'ducks')]
        """
        _check_function_name("a function", name)
        self._catalog.check_open()
        made = make_function(
            name,
            function,
            parameters,
            return_type,
            type,
            null_handling,
            exception_handling,
            side_effects,
            lambda texts: self._queries.types_of_names(texts, self._catalog.state),
        )
        self._catalog.change(lambda state: state.with_function(made))
        return self

    def remove_function(self, name: str) -> Connection:
        """Forget the Python function; returns the connection. Raises BindError if there is none of that name."""
        check_name("a function", name)
        self._catalog.change(lambda state: _without("function", name, state, _python_functions(state)))
        return self

    def memory(self) -> Result:
        """What is kept of the registered tables, and the bytes that it takes: a row for each thing that queries have made.

        `kept`: "values", the encoded column; "dictionary", its distinct values with codes for the rows; "index" and "runs", where
        the values of a sorted one begin. It goes with the table: `unregister` frees it. One immutable table under two names
        is counted twice here.
        """
        self._catalog.check_open()
        return ledger([*self._catalog.state.tables.values(), *self._catalog.files.tables().values()])

    # queries

    def sql(self, query: str, params: Parameters | None = None, *, alias: str = "") -> QueryResult:
        """Run one query. `params`: values for `?` and `$1` (a sequence) or `$name` (a mapping). `alias`: the answer's name in joins.

        >>> import tqp
        >>> with tqp.connect() as con:
        ...     con.sql("SELECT $x + 1 AS y", params={"x": 41}).fetchall()
        [(42,)]
        """
        return self._answer(query, params, self._variables(sys._getframe(1)), alias)

    def _answer(
        self, query: str, params: Parameters | None, variables: Variables | None, alias: str = ""
    ) -> QueryResult:
        return QueryResult(self._session, self._session.run(query, params, variables), query, params, alias)

    def execute(self, query: str, params: Parameters | None = None) -> QueryResult:
        """`sql`, under the name that PEP 249 has for it. `fetchone` and the like of the connection give the answer's rows.

        >>> import tqp
        >>> with tqp.connect() as con:
        ...     _ = con.execute("SELECT ? + 1", [41])
        ...     con.fetchone()
        (42,)
        """
        return self._executed(query, params, self._variables(sys._getframe(1)))

    def _executed(self, query: str, params: Parameters | None, variables: Variables | None) -> QueryResult:
        answer = self._of_thread.answer = self._answer(query, params, variables)
        return answer

    def cursor(self) -> Cursor:
        """For a thread, or a loop, that executes something while the rows of another answer are fetched."""
        self._catalog.check_open()
        return Cursor(self)

    def duplicate(self) -> Cursor:
        """`cursor`: another user of the same tables."""
        return self.cursor()

    def _result(self) -> Result:
        answer: Result | None = getattr(self._of_thread, "answer", None)
        if answer is None:
            raise BindError("nothing has been executed; con.execute(...) comes before its rows are fetched")
        return answer

    @property
    def rowcount(self) -> int:
        """How many rows the statement that `execute` has run last has changed; -1 where it changes none."""
        answer: QueryResult | None = getattr(self._of_thread, "answer", None)
        return -1 if answer is None else answer.rowcount

    @property
    def in_transaction(self) -> bool:
        """Whether BEGIN has begun a transaction that has not ended."""
        return self._catalog.in_transaction

    def prepare(self, query: str) -> Statement:
        """Parse a statement that is to be executed with several values; what it names is looked up at each `Statement.execute`.

        Raises ParseError for text that is no statement, UnsupportedError.
        """
        self._catalog.check_open()
        with named_place(query):
            parsed = call_deep(lambda: parse_statement(query))
        return Statement(parsed, self._session)

    def executemany(self, query: str, params: Iterable[Parameters]) -> list[Result]:
        """Run one statement, which is parsed once, for each set of values: the results in order.

        DuckDB's returns the last result only. Raises BindError where there is no set; then, and where one fails, no result
        is returned.
        """
        variables = self._variables(sys._getframe(1))
        statement = self.prepare(query)
        return statement._execute_all(check_parameter_sets(params), variables)

    def compile(
        self, query: str, params: Parameters | None = None, *, differentiable: bool = False
    ) -> TensorProgram | QueryInPieces:
        """The query as a torch.nn.Module: `print(program.code)` shows it, `program()` runs it and returns a Table.

        Of a table that is to be read in pieces, as memory may not hold it, the programs of the first piece are shown; what
        `program()` runs is no module then, and other pieces may have other programs.

        With `differentiable`, `program()` gives a tensor by the name of each output, as `Result.to_torch` does, and those
        of floats carry gradients to the parameters of registered torch modules, which are parameters of the program, and to
        the tensors with requires_grad in registered dicts. UnsupportedError names what of the query has no gradient.
        """
        make = self._queries.differentiable if differentiable else self._queries.compile
        program = make(query, params, self._variables(sys._getframe(1)))
        if isinstance(program, BoundStatement):
            raise BindError("EXPLAIN cannot be compiled; compile the query itself")
        return program

    def explain(self, query: str, analyze: bool = False, params: Parameters | None = None) -> str:
        """The logical and physical plan as text, with estimates; with `analyze` also what a run of it took."""
        return self._queries.explain(query, analyze, params, self._variables(sys._getframe(1)))

    def get_table_names(self, query: str, *, qualified: bool = False) -> set[str]:
        """The tables that a query reads, in lower case, `qualified` by their schemas. Raises BindError where there is none of a name."""
        with named_place(query):
            parsed = call_deep(lambda: parse(query))
            names = self._queries.names_read(parsed, self._catalog.state, "table")
        return {".".join(name) if qualified else name.name for name in names}

    def extract_statements(self, query: str) -> list[str]:
        """The statements of a text, each as a text of its own. Raises ParseError."""
        with named_place(query):
            return [text.strip() for text in call_deep(lambda: split_statements(query))]

    def trace(self) -> Trace:
        """A context manager: all that runs in its block is timed by pipeline, breaker and kernel.

        `print(trace)` lists them, `trace.write("trace.json")` writes a timeline for ui.perfetto.dev or chrome://tracing.
        """
        self._catalog.check_open()
        return Trace(self._executor)

    def interrupt(self) -> None:
        """End the queries and statements that run now on this connection, in whatever threads, with an InterruptError.

        For another thread than theirs; those that begin later run.
        """
        self._executor.memory.interrupt()

    def close(self) -> None:
        """End the worker threads and forget the tables; the connection cannot be used afterwards."""
        with self._catalog.lock:
            if self._catalog.is_closed:
                return
            self._catalog.close()
            self._of_thread = threading.local()
            self._queries.compiled.clear()
            free_tables()
        self._executor.close()
        if self._fuser is not None:
            self._fuser.close()

    def _snapshot(self) -> Snapshot:
        return self._catalog.snapshot()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Cursor(WaysOut):
    """Executes on a connection, and has the rows of what it executed last; `tqp.dbapi` has cursors with PEP 249's errors."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._executed: Result | None = None

    def execute(self, query: str, params: Parameters | None = None) -> Self:
        """Run a query or statement; returns the cursor."""
        variables = self.connection._variables(sys._getframe(1))
        self._executed = self.connection._answer(query, params, variables)
        return self

    def close(self) -> None:
        """Forget the answer."""
        self._executed = None

    def _result(self) -> Result:
        if self._executed is None:
            raise BindError(
                "nothing has been executed; cursor.execute(...) comes before its rows are fetched"
            )
        return self._executed


def _without(
    kind: str, name: str, state: CatalogState, registered: Mapping[str, Model | PythonFunction]
) -> CatalogState:
    """Without the one of that name. Raises BindError if there is none."""
    if lower_ascii(name) not in registered:
        known = [item.name for item in registered.values()]
        raise BindError(f'there is no {kind} "{name}" to unregister' + nearest(name, known))
    return state.without_function(name)


def _models(state: CatalogState) -> dict[str, Model]:
    return {name: each for name, each in state.functions.items() if isinstance(each, Model)}


def _python_functions(state: CatalogState) -> dict[str, PythonFunction]:
    return {name: each for name, each in state.functions.items() if isinstance(each, PythonFunction)}


def _check_function_name(what: str, name: object) -> None:
    check_name(what, name)
    if lower_ascii(str(name)) in function_names():
        raise BindError(f'"{name}" is a function of SQL; give {what.replace("a ", "the ")} another name')
