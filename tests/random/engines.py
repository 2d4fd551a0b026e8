"""Runs a query in DuckDB and in tqp, with limits of time, and makes either answer to plain values."""

from __future__ import annotations

import random
import signal
import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import duckdb
import pyarrow as pa
from pyarrow import parquet

import tqp
from tests.oracle import arrow_of
from tests.random.tables import RandomTable

#: Queries are left out whose answer is larger, or that take DuckDB longer: one would take as long as a hundred others.
MAX_ROWS = 40_000
MAX_SECONDS = 0.5
#: Of processor time, on all threads, that tqp may take: DuckDB had one thread for `MAX_SECONDS`.
SLOW_SECONDS = 10.0
#: After these it hangs, however busy the machine is.
HANG_SECONDS = 180.0
MEMORY_LIMIT = "1GiB"
#: A function of the oracle, with another value for each row, whatever its argument: rows that tie are ordered by it.
ANY_ORDER = "any_order"

#: DuckDB's own faults, and the optimizers of DuckDB that compute a condition while they plan.
_INTERNAL = (duckdb.InternalException, duckdb.FatalException)
_COMPUTE_CONSTANTS = "expression_rewriter,filter_pushdown,statistics_propagation"

warnings.filterwarnings("ignore", message="Arrow output on a DB-API result", category=UserWarning)


@dataclass(frozen=True)
class Rows:
    """An answer: types as SQL names, and rows of plain values; intervals as microseconds, times as integers."""

    names: tuple[str, ...]
    types: tuple[str, ...]
    rows: list[tuple[Any, ...]]


class SlowError(Exception):
    """tqp took too long."""


class Oracle:
    """DuckDB with tables, their rows in reverse order if that is wanted; `arrow` holds them as it reads them."""

    def __init__(self, tables: Mapping[str, RandomTable], *, is_reversed: bool = False) -> None:
        self._tables = tables
        self._is_reversed = is_reversed
        self._open()
        names = [table.name for table in tables.values()]
        self.arrow = {name: arrow_of(self._connection.sql(f"FROM {name}")) for name in names}

    def _open(self) -> None:
        self._connection = duckdb.connect(config={"threads": 1, "memory_limit": MEMORY_LIMIT})
        for table in self._tables.values():
            for statement in table.statements():
                self._connection.execute(statement).fetchall()
            if self._is_reversed:
                reverse = f"CREATE OR REPLACE TABLE {table.name} AS FROM {table.name} ORDER BY rowid DESC"
                self._connection.execute(reverse).fetchall()

        self._connection.create_function(ANY_ORDER, lambda _: random.random(), ["UBIGINT"], "DOUBLE")

    @property
    def columns(self) -> dict[str, list[str]]:
        """Names of columns by table."""
        return {name: table.column_names for name, table in self.arrow.items()}

    def close(self) -> None:
        """Drops the tables."""
        self._connection.close()

    def text_rows(self, table: RandomTable) -> tuple[tuple[str | None, ...], ...]:
        """What it holds in a table, as texts."""
        items = ", ".join(f"CAST({column.name} AS VARCHAR)" for column in table.columns)
        return tuple(self._connection.execute(f"SELECT {items} FROM {table.name}").fetchall())

    def answer(self, sql: str, parameters: Any, optimize: bool = True) -> Rows | Exception:
        """Its answer or error. Without the optimizer it may take four times as long.

        Some queries have an internal error then, such as a subquery over an aggregate of no column; they are asked again without those
        optimizers alone that compute constants.
        """
        if optimize:
            return self._answer(sql, parameters, None)
        answer = self._answer(sql, parameters, "PRAGMA disable_optimizer")
        if isinstance(answer, _INTERNAL):
            answer = self._answer(sql, parameters, f"SET disabled_optimizers = '{_COMPUTE_CONSTANTS}'")
            self._connection.execute("RESET disabled_optimizers")
        return answer

    def _answer(self, sql: str, parameters: Any, setting: str | None) -> Rows | Exception:
        cursor = self._connection.cursor()
        timer = threading.Timer(MAX_SECONDS if setting is None else 4 * MAX_SECONDS, cursor.interrupt)
        timer.start()
        try:
            if setting is not None:
                cursor.execute(setting)
            cursor.execute(sql, parameters) if parameters else cursor.execute(sql)
            types = tuple(str(column[1]) for column in cursor.description or ())
            return _rows(types, cursor.to_arrow_table())
        except _INTERNAL as error:
            self._open()  # DuckDB answers nothing after such an error
            return error
        except (duckdb.Error, RuntimeError, UnicodeError, ValueError) as error:
            return error
        finally:
            timer.cancel()
            cursor.close()


def parquet_files_of(tables: Mapping[str, pa.Table], folder: str) -> dict[str, str]:
    """A file in the folder for each table of some rows whose types Parquet keeps, by name."""
    files = {}
    for name, table in tables.items():
        path = f"{folder}/{name}.parquet"
        if any(map(pa.types.is_dictionary, table.schema.types)):
            continue  # which are ENUMs here, and text in files
        try:
            parquet.write_table(table, path, row_group_size=7 if table.num_rows < 1000 else 1000)
        except pa.ArrowException:  # a type that Parquet lacks
            continue
        if table.num_rows and parquet.read_schema(path).types == table.schema.types:
            files[name] = path
    return files


def in_tqp(connection: tqp.Connection, sql: str, parameters: Any) -> Rows | BaseException:
    """tqp's answer or error, SlowError after `SLOW_SECONDS` of processor time."""
    has_alarm = threading.current_thread() is threading.main_thread()
    try:
        if has_alarm:
            signal.signal(signal.SIGPROF, _raise_slow)
            signal.signal(signal.SIGALRM, _raise_slow)
            signal.setitimer(signal.ITIMER_PROF, SLOW_SECONDS)
            signal.setitimer(signal.ITIMER_REAL, HANG_SECONDS)
        result = connection.sql(sql, params=parameters) if parameters else connection.sql(sql)
        return _rows(tuple(str(each) for each in result.types), result.to_arrow())
    except Exception as error:  # noqa: BLE001 - whatever it is, it is what tqp answers
        return error
    finally:
        if has_alarm:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)


def _raise_slow(number: int, _: object) -> None:
    if number == signal.SIGPROF:
        raise SlowError(f"tqp takes more than {SLOW_SECONDS} s of processor time")
    raise SlowError(f"tqp has no answer after {HANG_SECONDS} s")


def _rows(types: tuple[str, ...], table: pa.Table) -> Rows:
    columns = [_plain(column) for column in table.columns]
    names = tuple(table.schema.names)
    return Rows(names, types, list(zip(*columns, strict=True)) if columns else [()] * table.num_rows)


def _plain(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_date32(column.type) or pa.types.is_time32(column.type):
        return list(column.cast(pa.int32()).to_pylist())
    if pa.types.is_timestamp(column.type) or pa.types.is_time64(column.type):
        return list(column.cast(pa.int64()).to_pylist())
    if pa.types.is_nested(column.type) and not pa.types.is_fixed_size_list(column.type):
        try:
            return [None if each is None else _text(each) for each in column.to_pylist()]
        except (OverflowError, ValueError):  # dates that Python has not
            return ["nested"] * len(column)
    values = column.to_pylist()
    if pa.types.is_interval(column.type):
        return [None if each is None else _microseconds(each) for each in values]
    return [
        each.replace("-nan", "nan").replace("Etc/UTC", "UTC") if isinstance(each, str) else each
        for each in values
    ]  # a sign, and the name of a time zone, of the machine


def _microseconds(interval: pa.MonthDayNano) -> int:
    """Equal intervals may be spelled in several ways, and either engine keeps any of a group."""
    days = interval.months * 30 + interval.days
    return int(days * 86_400_000_000 + interval.nanoseconds // 1000)


def _text(value: Any) -> str:
    """A nested value as a text, in which DOUBLEs have the digits that do not depend on the order of rows."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}: {_text(each)}" for name, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_text, value)) + "]"
    if isinstance(value, pa.MonthDayNano):
        return f"{_microseconds(value)} us"
    if isinstance(value, float):
        return f"{value + 0.0:.7g}".replace("-nan", "nan")
    return value.isoformat() if isinstance(value, datetime) else repr(value)
