"""Rows of Python values as one table, for statements that would otherwise run once for each of them."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch

from tqp.catalog.variables import OneVariable
from tqp.compiled import Parameters
from tqp.core.datatypes import TypeKind
from tqp.core.errors import BindError, Error, InterruptError
from tqp.core.keywords import in_quotes, in_quotes_joined
from tqp.data.sources.base import Source
from tqp.data.sources.make_source import make_source
from tqp.data.sources.objects.python_objects import arrow_of_objects, hugeint_array
from tqp.planner.parse import Command, ParsedStatement
from tqp.planner.syntax.change_clauses import Insert
from tqp.statements.session import Session

#: Fewer rows are as quick one by one.
_WORTH = 8
_NAME = "%rows"
_PLAIN_TYPES: Mapping[type, pa.DataType] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.large_string(),
    bytes: pa.large_binary(),
    datetime.date: pa.date32(),
    np.bool_: pa.bool_(),
    np.int64: pa.int64(),
    np.int32: pa.int32(),
    np.float64: pa.float64(),
    np.float32: pa.float32(),
}
#: Of which Arrow's type depends on the values.
_OTHER_TYPES = (datetime.datetime, datetime.time, datetime.timedelta, decimal.Decimal, uuid.UUID)
#: What the values of one array have in common; None of a NULL.
_Kind = object


class RowsTable(NamedTuple):
    """Rows as a table. `columns`: of each value of a row, the columns of which one holds it, where it is not NULL."""

    source: Source
    columns: Sequence[Sequence[str]]

    def value(self, place: int, data_type: str) -> str:
        """The SQL of a value of a row, as a type."""
        casts = [f"CAST({name} AS {data_type})" for name in self.columns[place]]
        return casts[0] if len(casts) == 1 else f"coalesce({', '.join(casts)})"


def table_of(rows: Sequence[Sequence[Any]], name: str, device: torch.device) -> RowsTable | None:
    """The rows as a table, in which each value has a type that can be cast to what its own can be; None where there are values of other
    types than parameters mostly have."""
    arrays: dict[str, pa.Array] = {}
    columns: list[list[str]] = []
    try:
        for place, values in enumerate(zip(*rows, strict=True)):
            kinds = list(map(_kind_of, values))
            names = list[str]()
            for kind in dict.fromkeys(each for each in kinds if each is not None) or (None,):
                names.append(f"c{place}_{len(names)}")
                mine = [value if of == kind else None for value, of in zip(values, kinds, strict=True)]
                arrays[names[-1]] = _array(mine, kind)
            columns.append(names)
    except (_OtherError, Error, pa.ArrowException, ValueError, OverflowError):
        return None
    return RowsTable(make_source(name, arrays, device), columns)


class _OtherError(Exception):
    """A value of another type."""


def _kind_of(value: Any) -> _Kind:
    kind = type(value)
    if kind in _PLAIN_TYPES:
        return kind
    if value is None:
        return None
    if kind is decimal.Decimal and value.is_finite():
        return kind, max(-value.as_tuple().exponent, 0)  # each is written with the digits that it has
    if kind in (datetime.datetime, datetime.time):
        return kind, value.tzinfo is not None
    if kind is list:
        inner = set(map(type, value)) - {type(None)}
        inner = {float} if inner == {int, float} else inner
        if len(inner) < 2 and inner <= _PLAIN_TYPES.keys():
            return kind, *inner
    if kind not in _OTHER_TYPES or kind is decimal.Decimal:
        raise _OtherError
    return kind


def _array(values: list[Any], kind: _Kind) -> pa.Array:
    if kind is None:
        return pa.nulls(len(values))
    if isinstance(kind, tuple) and kind[0] is list:
        return pa.array(values, pa.list_(_PLAIN_TYPES[kind[1]] if len(kind) > 1 else pa.null()))
    if not isinstance(kind, type) or kind not in _PLAIN_TYPES:
        return arrow_of_objects(values, _NAME)
    try:
        return pa.array(values, _PLAIN_TYPES[kind])
    except OverflowError:
        return hugeint_array(values)


def are_inserted(session: Session, parsed: ParsedStatement | Command, sets: Sequence[Parameters]) -> bool:
    """Insert one row for each set of values at once; False, and nothing is done, where that is not so plain, or fails."""
    if len(sets) < _WORTH or not isinstance(parsed, Command):
        return False
    clauses = parsed.clauses
    if not isinstance(clauses, Insert) or not _is_plain(parsed, clauses):
        return False
    rows = [
        values
        for values in sets
        if isinstance(values, list | tuple) and len(values) == len(parsed.parameter_keys)
    ]
    given = table_of(rows, _NAME, session.device) if len(rows) == len(sets) else None
    if given is None:
        return False
    try:
        with session.catalog.trying():
            session.run_one(_insert(session, clauses, given), None, OneVariable(_NAME, given.source))
    except InterruptError:
        raise
    except Error:  # one by one, those before the row that fails are kept, and the error says what it is
        return False
    return True


def _insert(session: Session, clauses: Insert, given: RowsTable) -> str:
    """The statement that inserts all rows. Raises BindError where that cannot be."""
    definition = session.catalog.state.stored_table(clauses.table).definition
    columns = definition.columns
    if clauses.columns is not None:
        columns = tuple(columns[definition.place_of(each.text, each.span)] for each in clauses.columns)
    if len(given.columns) != len(columns) or any(each.data_type.kind is TypeKind.BIT for each in columns):
        raise BindError("one by one")  # bits tell how wide a number was
    listed = in_quotes_joined(each.name for each in columns)
    values = ", ".join(given.value(place, str(each.data_type)) for place, each in enumerate(columns))
    return f"INSERT INTO {clauses.table.in_quotes} ({listed}) SELECT {values} FROM {in_quotes(_NAME)}"


def _is_plain(parsed: Command, clauses: Insert) -> bool:
    """Is it INSERT INTO t (...) VALUES (?, ?, ...)?"""
    is_more = clauses.conflict or clauses.returning or parsed.common_tables or parsed.explain
    if is_more or clauses.by_name or clauses.rows is None or len(clauses.rows) != 1:
        return False
    [row] = clauses.rows
    kinds = [parsed.tokens.kinds[part.start : part.stop] for part in row]
    return len(row) > 0 and all(list(each) == ["?"] for each in kinds)
