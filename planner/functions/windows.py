"""Window functions. Aggregates may be called over windows as well; those are declared where all aggregates are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tqp.planner.functions.declaration import forms_of


@dataclass(frozen=True, slots=True)
class WindowFunction:
    """A function of a row's place in its partition, or of a value in another row of it.

    `forms` as of a ScalarFunction. Other than an aggregate, it may depend on the order of rows that tie.
    """

    name: str
    forms: Mapping[str, tuple[str, ...]]
    takes_frame: bool = False  # else it sees the whole partition, whatever the frame
    picks_value: bool = False  # it is its first argument in one of the rows, or NULL; NULLs may be ignored
    numbers_rows: bool = False  # from 1 to at most the number of rows
    looks_back: bool = False  # it depends on no row behind the row and its peers
    counts_rows_before: bool = False  # it is one more than the rows before the row, or before its peers
    nullable: bool = True
    raises: bool = False  # for some values of its arguments
    fills: bool = (
        False  # by the one key of ORDER BY, which may stand inside the call and is a further argument
    )


def window_function(names: str, *lines: str, **facts: bool) -> WindowFunction:
    """A declaration; `names`: the canonical name and other spellings."""
    return WindowFunction(names.split()[0], forms_of(names, lines), **facts)


_PLACE = {"numbers_rows": True, "looks_back": True, "nullable": False}

WINDOW_FUNCTIONS = (
    window_function("row_number", "-> BIGINT", **_PLACE, counts_rows_before=True),
    window_function("rank", "-> BIGINT", **_PLACE, counts_rows_before=True),
    window_function("dense_rank rank_dense", "-> BIGINT", **_PLACE),
    window_function("percent_rank", "-> DOUBLE", nullable=False),
    window_function("cume_dist", "-> DOUBLE", nullable=False),
    window_function("ntile", "BIGINT -> BIGINT", numbers_rows=True, raises=True),
    window_function("lag", "ANY -> same", "ANY BIGINT -> same", "ANY BIGINT ANY -> same", picks_value=True),
    window_function("lead", "ANY -> same", "ANY BIGINT -> same", "ANY BIGINT ANY -> same", picks_value=True),
    window_function("first_value first", "ANY -> same", takes_frame=True, picks_value=True),
    window_function("last_value last", "ANY -> same", takes_frame=True, picks_value=True),
    window_function("fill", "ANY -> same", fills=True),
    window_function("nth_value", "ANY BIGINT -> same", takes_frame=True, picks_value=True),
)
