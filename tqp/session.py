"""`tqp.connect` and `tqp.sql`: the two ways in. `sql` finds data frames in the caller's variables; the others begin on its connection."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Concatenate, ParamSpec, TypeVar, overload

import torch

from tqp.compiled import Parameters
from tqp.connection import Connection
from tqp.core.arguments import check_tables
from tqp.core.errors import BindError
from tqp.core.process.forks import renew_after_fork
from tqp.relation import QueryResult, Relation
from tqp.result import Result

Given = ParamSpec("Given")
Answer = TypeVar("Answer")

connect = Connection


class _Default:
    """The connection behind `sql` where neither tables nor models are given: made when it is first used."""

    def __init__(self) -> None:
        self._connection: Connection | None = None
        self.after_fork()
        renew_after_fork(self)

    def after_fork(self) -> None:
        """Called in a forked child, where no other thread can hold the lock."""
        self._lock = threading.Lock()

    def connection(self) -> Connection:
        with self._lock:
            if self._connection is None or self._connection._catalog.is_closed:
                self._connection = connect()
            return self._connection


_default = _Default()


@overload
def sql(
    query: str, tables: None = None, *, params: Parameters | None = None, alias: str = ""
) -> QueryResult: ...


@overload
def sql(
    query: str,
    tables: Mapping[str, object] | None = None,
    *,
    params: Parameters | None = None,
    device: str | torch.device | None = None,
    models: Mapping[str, object] | None = None,
) -> Result: ...


def sql(
    query: str,
    tables: Mapping[str, object] | None = None,
    *,
    params: Parameters | None = None,
    device: str | torch.device | None = None,
    models: Mapping[str, object] | None = None,
    alias: str = "",
) -> Result:
    """Run one query on `tables`, a mapping from table name to data; see `Connection.register` for what data may be.

    `models`: trained models by the names under which the query calls them; see `Connection.register_model`. One that needs
    more than the model itself is a pair of it and a mapping of keywords, such as `(net, {"inputs": ["a", "b"]})`.

    Without `tables`, `models` and `device`, tables that statements make stay for the next call: there is one connection behind
    all these; `alias` names the answer in joins then. Other names that the query uses are looked up among the caller's variables,
    local before global.

    >>> import tqp
    >>> tqp.sql("SELECT max(x) AS top FROM t", {"t": {"x": torch.tensor([1, 5, 2])}}).fetchall()
    [(5,)]
    """
    if alias and not (tables is None and models is None and device is None):
        raise BindError("an alias is for relations: there are none with tables, models or device")
    check_tables("tables", tables)
    check_tables("models", models)
    if tables is None and models is None and device is None:
        connection = _default.connection()
        try:
            return connection._answer(query, params, connection._variables(sys._getframe(1)), alias)
        finally:
            connection._catalog.forget_files()
    with connect(device) as connection:
        for name, data in (tables or {}).items():
            connection.register(name, data)
        for name, model in (models or {}).items():
            original, keywords = model if isinstance(model, tuple) and len(model) == 2 else (model, {})
            if not isinstance(keywords, Mapping):
                raise BindError(f'models["{name}"]: give the model, or a pair of it and a dict of keywords')
            connection.register_model(name, original, **keywords)
        return connection._session.run(query, params, connection._variables(sys._getframe(1)))


def default_connection() -> Connection:
    """The connection behind `sql` where neither tables nor models are given, and behind the functions of this module that are
    called as methods of connections are."""
    return _default.connection()


def query(query: str, params: Parameters | None = None, *, alias: str = "") -> QueryResult:
    """`Connection.query` of the default connection."""
    connection = _default.connection()
    return connection._answer(query, params, connection._variables(sys._getframe(1)), alias)


def execute(query: str, params: Parameters | None = None) -> QueryResult:
    """`Connection.execute` of the default connection, whose `fetchone` and the like give the answer's rows."""
    connection = _default.connection()
    return connection._executed(query, params, connection._variables(sys._getframe(1)))


def _of_default(method: Callable[Concatenate[Connection, Given], Answer]) -> Callable[Given, Answer]:
    """A method of connections as a function, of the default connection."""

    def function(*arguments: Given.args, **named: Given.kwargs) -> Answer:
        return method(_default.connection(), *arguments, **named)

    _describe(function, method, f"`Connection.{method.__name__}` of the default connection.")
    return function


def _of_frame(
    method: Callable[Concatenate[Relation, Given], Answer],
) -> Callable[Concatenate[object, Given], Answer]:
    """A method of relations as a function, of a frame or whatever else `from_df` takes."""

    def function(df: object, /, *arguments: Given.args, **named: Given.kwargs) -> Answer:
        return method(_default.connection().from_df(df), *arguments, **named)

    frame = inspect.Parameter("df", inspect.Parameter.POSITIONAL_ONLY, annotation="object")
    _describe(function, method, f"`Relation.{method.__name__}` of a frame, on the default connection.", frame)
    return function


def _describe(
    function: Callable[..., object], method: Callable[..., object], text: str, *first: inspect.Parameter
) -> None:
    """Give a function the name and the parameters of a method, with `first` in place of `self`."""
    function.__name__ = function.__qualname__ = method.__name__
    function.__doc__ = text
    signature = inspect.signature(method)
    function.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[*first, *[*signature.parameters.values()][1:]]
    )


table = _of_default(Connection.table)
view = _of_default(Connection.view)
values = _of_default(Connection.values)
table_function = _of_default(Connection.table_function)
from_df = _of_default(Connection.from_df)
from_arrow = _of_default(Connection.from_arrow)
read_csv = _of_default(Connection.read_csv)
read_json = _of_default(Connection.read_json)
read_parquet = _of_default(Connection.read_parquet)
from_csv_auto = _of_default(Connection.from_csv_auto)
from_parquet = _of_default(Connection.from_parquet)
append = _of_default(Connection.append)
appender = _of_default(Connection.appender)
query_appender = _of_default(Connection.query_appender)
register = _of_default(Connection.register)
unregister = _of_default(Connection.unregister)
create_function = _of_default(Connection.create_function)
remove_function = _of_default(Connection.remove_function)
cursor = _of_default(Connection.cursor)
begin = _of_default(Connection.begin)
commit = _of_default(Connection.commit)
rollback = _of_default(Connection.rollback)
interrupt = _of_default(Connection.interrupt)
get_table_names = _of_default(Connection.get_table_names)
extract_statements = _of_default(Connection.extract_statements)
checkpoint = _of_default(Connection.checkpoint)
duplicate = _of_default(Connection.duplicate)
sqltype = _of_default(Connection.sqltype)
dtype = _of_default(Connection.dtype)
string_type = _of_default(Connection.string_type)
load_extension = _of_default(Connection.load_extension)
install_extension = _of_default(Connection.install_extension)
executemany = _of_default(Connection.executemany)
fetchone = _of_default(Connection.fetchone)
fetchmany = _of_default(Connection.fetchmany)
fetchall = _of_default(Connection.fetchall)
fetchnumpy = _of_default(Connection.fetchnumpy)
fetchdf = _of_default(Connection.fetchdf)
fetch_df = _of_default(Connection.fetch_df)
fetch_df_chunk = _of_default(Connection.fetch_df_chunk)
df = _of_default(Connection.df)
close = _of_default(Connection.close)
filter = _of_frame(Relation.filter)
project = _of_frame(Relation.project)
aggregate = _of_frame(Relation.aggregate)
order = _of_frame(Relation.order)
limit = _of_frame(Relation.limit)
distinct = _of_frame(Relation.distinct)
alias = _of_frame(Relation.set_alias)
query_df = _of_frame(Relation.query)
