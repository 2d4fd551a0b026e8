"""Smaller queries over smaller tables that still show the same difference.

Tokens are dropped by brackets, clauses and items of lists, largest first, as long as both engines disagree in the same
way; DuckDB's grammar keeps the rest in shape. Then tables, columns and rows are.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import duckdb

from tests.random.comparison import Engines, Verdict
from tests.random.queries import RandomQuery
from tests.random.tables import RandomTable
from tests.random.tokens import CLAUSES, levels, text_of, tokens_of

#: Tables of more rows than this are cut by halves before their rows are looked at one by one.
_MANY_ROWS = 300


@dataclass(frozen=True)
class Case:
    """What is needed to see a difference again."""

    tables: Mapping[str, RandomTable]
    query: RandomQuery
    settings: Mapping[str, Any]
    is_mutated: bool
    verdict: Verdict


def judge(
    tables: Mapping[str, RandomTable], query: RandomQuery, settings: Mapping[str, Any], is_mutated: bool
) -> Verdict:
    """The verdict on a query with engines of its own."""
    with Engines(tables, settings) as engines:
        return engines.compare(query, is_mutated)


def reduced(case: Case, seconds: float = 8.0) -> Case:
    """The smallest case found within `seconds` with the same outcome and signature."""
    if case.verdict.outcome == "slow":
        return case
    case = _with_plain_settings(case)
    case = _with_fewer_tables(case)
    case = _with_empty_tables(case)
    case = _with_smaller_query(case, time.monotonic() + 0.7 * seconds)
    case = _with_fewer_tables(case)
    case = _with_fewer_rows(case, time.monotonic() + 0.3 * seconds)
    deadline = time.monotonic() + 0.3 * seconds
    case = _with_smaller_query(case, deadline)
    return _with_fewer_columns(_with_fewer_tables(case), deadline)


def _if_same(case: Case, verdict: Verdict, **changes: Any) -> Case | None:
    """The case with these changes, which gave `verdict`; None if that is another difference than before."""
    wanted = case.verdict
    if (verdict.outcome, verdict.signature) != (wanted.outcome, wanted.signature):
        return None
    return replace(case, verdict=verdict, **changes)


def _changed(case: Case, **changes: Any) -> Case | None:
    """The case with other tables, query or settings, or None if the difference is gone."""
    new = replace(case, **changes)
    try:
        verdict = judge(new.tables, new.query, new.settings, new.is_mutated)
    except duckdb.Error:  # the tables cannot be made
        return None
    return _if_same(case, verdict, **changes)


def _with_plain_settings(case: Case) -> Case:
    return (_changed(case, settings={}) if case.settings else None) or case


def _with_fewer_tables(case: Case) -> Case:
    words = set(tokens_of(case.query.sql))
    tables = {name: table for name, table in case.tables.items() if name in words}
    return (_changed(case, tables=tables) if len(tables) < len(case.tables) else None) or case


def _with_empty_tables(case: Case) -> Case:
    """Most differences need no rows, or those of one table."""
    empty = {name: replace(table, rows=(), num_large_rows=0) for name, table in case.tables.items()}
    none = _changed(case, tables=empty)
    if none is not None:
        return none
    for name, table in empty.items():
        if case.tables[name].num_rows:
            case = _changed(case, tables={**case.tables, name: table}) or case
    return case


def _with_smaller_query(case: Case, deadline: float) -> Case:
    with Engines(case.tables, case.settings) as engines:
        progress = True
        largest = len(tokens_of(case.query.sql))
        while (progress or largest < len(tokens_of(case.query.sql))) and time.monotonic() < deadline:
            if not progress:
                largest = len(tokens_of(case.query.sql))
            progress = False
            tokens = tokens_of(case.query.sql)
            for start, stop, put in _removals(tokens):
                if stop - start - len(put) > largest:
                    continue  # failed before the last success
                if time.monotonic() > deadline:
                    break
                sql = text_of([*tokens[:start], *put, *tokens[stop:]])
                if len(sql) >= len(case.query.sql):
                    continue
                query = replace(case.query, sql=sql)
                smaller = _if_same(case, engines.compare(query, case.is_mutated), query=query)
                if smaller is not None:
                    case, progress, largest = smaller, True, stop - start - len(put)
                    break
    return case


def _removals(tokens: Sequence[str]) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """What may go, as [start, stop) and what stands there instead; the largest first."""
    found: dict[tuple[int, int, tuple[str, ...]], None] = {}
    protected = []
    for items in levels(tokens):
        words = [tokens[start].upper() if stop - start == 1 else "(" for start, stop in items]
        bounds = [index for index, word in enumerate(words) if word in CLAUSES or word == ","] + [len(items)]
        if "LIMIT" in words and "ORDER" in words:
            protected.append((items[words.index("ORDER")][0], items[words.index("LIMIT")][0]))
        places = [start for start, _ in items] + [items[-1][1]] if items else []
        for number, bound in enumerate(bounds):
            for other in bounds[number + 1 : number + 6]:
                found[places[bound], places[other], ()] = None
            if number + 6 < len(bounds):
                found[places[bound], places[-1], ()] = None
        # The first item of a list has its comma behind it, the first condition its AND or OR.
        for bound in bounds:
            if bound < len(items) and words[bound] in (",", "AND", "OR"):
                before = max((index for index in bounds if index < bound), default=-1) + 1
                found[places[before], places[bound + 1], ()] = None
        for index, (start, stop) in enumerate(items):
            if stop - start > 1:
                called = index > 0 and words[index - 1].isidentifier() and words[index - 1] not in CLAUSES
                first = items[index - 1][0] if called else start
                inner = tuple(tokens[start + 1 : stop - 1])
                found[first, stop, ("NULL",)] = None
                found[first, stop, ("1",)] = None
                found[first, stop, ("(", *inner, ")")] = None
                found[first, stop, inner] = None
                for argument in _arguments(inner):
                    found[first, stop, ("(", *argument, ")")] = None
                    found[first, stop, argument] = None
        for width in (1, 2, 3):
            for index in range(len(items) - width + 1):
                found[items[index][0], items[index + width - 1][1], ()] = None
    for start, stop, put in sorted(found, key=lambda each: each[0] - each[1] + len(each[2])):
        if all(stop <= low or start >= high or start <= low and stop > high for low, high in protected):
            yield start, stop, put


def _arguments(inner: Sequence[str]) -> list[tuple[str, ...]]:
    """The parts of a list, or of an expression between its operators and words."""
    items = levels(inner)[-1] if inner else []
    parts: list[list[str]] = [[]]
    for start, stop in items:
        word = inner[start].upper()
        if stop - start == 1 and (
            not word[0].isalnum() and word[0] not in "'$_\".:" or word in _BETWEEN_ARGUMENTS
        ):
            parts.append([])
        else:
            parts[-1] += inner[start:stop]
    return [tuple(part) for part in parts if part] if len(parts) > 1 else []


_BETWEEN_ARGUMENTS = {
    "AND",
    "OR",
    "AS",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "IN",
    "IS",
    "LIKE",
    "BETWEEN",
    "FROM",
    "DISTINCT",
}


def _with_fewer_rows(case: Case, deadline: float) -> Case:
    for name in list(case.tables):
        table = case.tables[name]
        while table.num_large_rows > _MANY_ROWS and time.monotonic() < deadline:
            table = replace(table, num_large_rows=table.num_large_rows // 2)
            smaller = _changed(case, tables={**case.tables, name: table})
            if smaller is None:
                break
            case = smaller
        table = case.tables[name]
        if table.num_large_rows:
            if table.num_large_rows > _MANY_ROWS:
                continue
            with Engines({name: table}) as engines:
                table = replace(table, rows=engines.text_rows(table), num_large_rows=0)
            case = _changed(case, tables={**case.tables, name: table}) or case
        size = len(case.tables[name].rows)
        while size >= 1 and time.monotonic() < deadline:
            position = 0
            while position < len(case.tables[name].rows) and time.monotonic() < deadline:
                table = case.tables[name]
                rows = (*table.rows[:position], *table.rows[position + size :])
                smaller = _changed(case, tables={**case.tables, name: replace(table, rows=rows)})
                if smaller is None:
                    position += size
                else:
                    case = smaller
            size //= 2
    return case


def _with_fewer_columns(case: Case, deadline: float) -> Case:
    for name in list(case.tables):
        for index in reversed(range(len(case.tables[name].columns))):
            table = case.tables[name]
            if len(table.columns) == 1 or time.monotonic() > deadline:
                break
            case = _changed(case, tables={**case.tables, name: table.without_column(index)}) or case
    return case
