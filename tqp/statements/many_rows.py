"""Rows of Python values as one table, for statements that would otherwise run once for each of them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import torch

from tqp.catalog.variables import OneVariable
from tqp.compiled import Parameters
from tqp.core.errors import Error, InterruptError
from tqp.core.keywords import in_quotes, in_quotes_joined
from tqp.data.sources.base import Source
from tqp.data.sources.make_source import make_source
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
    datetime.datetime: pa.timestamp("us"),
}


def table_of(rows: Sequence[Sequence[Any]], name: str, device: torch.device) -> Source | None:
    """The rows as a table of columns c0, c1, ...; None where the values of a column are not all of one plain type, or NULL."""
    arrays: dict[str, pa.Array] = {}
    for place, values in enumerate(zip(*rows, strict=True)):
        types = set(map(type, values)) - {type(None)}
        data_type = _PLAIN_TYPES.get(types.pop()) if len(types) == 1 else None if types else pa.null()
        if data_type is None or any(getattr(value, "tzinfo", None) is not None for value in values):
            return None
        try:
            arrays[f"c{place}"] = pa.array(values, data_type)
        except (pa.ArrowException, ValueError, OverflowError):
            return None
    return make_source(name, arrays, device)


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
    source = table_of(rows, _NAME, session.device) if len(rows) == len(sets) else None
    if source is None:
        return False
    columns = (
        "" if clauses.columns is None else f"({in_quotes_joined(each.text for each in clauses.columns)})"
    )
    text = f"INSERT INTO {clauses.table.in_quotes} {columns} SELECT * FROM {in_quotes(_NAME)}"
    try:
        with session.catalog.trying():
            session.run_one(text, None, OneVariable(_NAME, source))
    except InterruptError:
        raise
    except Error:  # one by one, those before the row that fails are kept, and the error says what it is
        return False
    return True


def _is_plain(parsed: Command, clauses: Insert) -> bool:
    """Is it INSERT INTO t (...) VALUES (?, ?, ...)?"""
    is_more = clauses.conflict or clauses.returning or parsed.common_tables or parsed.explain
    if is_more or clauses.by_name or clauses.rows is None or len(clauses.rows) != 1:
        return False
    [row] = clauses.rows
    kinds = [parsed.tokens.kinds[part.start : part.stop] for part in row]
    return len(row) > 0 and all(list(each) == ["?"] for each in kinds)
