"""Answers of tqp and of DuckDB to one question of the matrices of functions and aggregates, and when two are the same."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import Any

Row = tuple[str | None, ...]

#: These pick one of their arguments; which of two equal zeros is open.
_OF_EQUALS = frozenset(
    (
        *("min", "max", "any_value", "median", "greatest", "least", "first", "last", "mode", "quantile_disc"),
        *("arg_min", "arg_max", "arg_min_null", "arg_max_null", "arg_min_nulls_last", "arg_max_nulls_last"),
    )
)
#: Sums of floats: what overflows, or is left of digits that cancel out, depends on the order, and on what is rounded on the way.
_SUMS = frozenset(
    (
        *("avg", "stddev_samp", "stddev_pop", "var_samp", "var_pop", "sem", "skewness", "kurtosis"),
        *("kurtosis_pop", "corr", "covar_pop", "covar_samp", "regr_slope", "regr_intercept", "regr_r2"),
        *("regr_sxx", "regr_sxy", "regr_syy", "regr_avgx", "regr_avgy", "quantile_cont"),
        *("array_inner_product", "array_negative_inner_product"),
    )
)
#: What only one of the engines fails for, as docs/semantics.md says: the place in a text, the cast of a DATE that is compared, what is
#: beyond the type on the way, a part of a date that does not exist where the date is NULL.
_INTENDED = (
    *("Substring offset outside", "Substring length outside", "can't be cast to the destination type INT64"),
    *("to higher precision", "Date out of range: -5877641-1-1", "is not a part of a date"),
    *("format is empty", "Option 'g'", "Unrecognized Regex option"),
    *("Group index must be", "Unable to subtract calendar part"),
)
#: The same, of some functions.
_INTENDED_OF = {
    "sum": "in HUGEINT addition",  # only what is summed on the way does not fit
    "avg": "in HUGEINT addition",
    "date_sub": "Overflow in subtraction of INT64",
    **dict.fromkeys(
        ("between", "not between", "in", "not in"), "Conversion Error"
    ),  # another comparison has decided
    "date_diff": "Overflow in subtraction of INT64",
}
#: How an error begins that tqp does not raise on purpose, and one of DuckDB that is a fault of its own.
CRASH = "CRASH "
OWN_FAULT = "own fault: "
#: DuckDB numbers the years of an instant with a time zone by era.
_OF_YEARS = frozenset(("date_part", "year", "decade", "date_trunc", "date_diff"))
#: A DATE that only DuckDB has.
_BEFORE_INFINITY = -(2**31)


@dataclass(frozen=True)
class Answer:
    """A value with the type of its column, or an error."""

    value: Any = None
    sql_type: str = ""
    error: str | None = None

    def __str__(self) -> str:
        return f"raises {self.error}" if self.error is not None else f"{self.value!r} {self.sql_type}"


def is_before_infinity(answer: Answer) -> bool:
    """Whether DuckDB gives a DATE that there is none of."""
    return answer.sql_type == "DATE" and bool(answer.value == _BEFORE_INFINITY)


def is_same(mine: Answer, theirs: Answer, name: str = "", row: Row = ()) -> bool:
    """Whether two answers of a function for arguments are equal, but for the last digits of floats and what is intended to differ."""
    if mine.error is not None and mine.error.startswith(CRASH):
        return False
    if name in _OF_YEARS and any("(BC)" in each and each.endswith("+00") for each in row if each):
        return mine.error is None or theirs.error is not None
    if name in _OF_EQUALS and mine.value == theirs.value == 0:
        mine, theirs = replace(mine, value=0), replace(theirs, value=0)
    if (mine.error is None) != (theirs.error is None):
        if theirs.error is not None and theirs.error.startswith(OWN_FAULT):
            return True
        text = f"{mine.error or ''}{theirs.error or ''}"
        intended = any(each in text for each in (*_INTENDED, *filter(None, [_INTENDED_OF.get(name)])))
        return intended or is_before_infinity(theirs) or _is_moved_by_exponent(mine, name, row)
    if mine.error is not None or _is_intended(mine.value, theirs, name, row):
        return True
    if theirs.sql_type == mine.sql_type and _is_moved_by_exponent(mine, name, row):
        return True
    if name in _SUMS and isinstance(mine.value, float) and isinstance(theirs.value, float):
        if not math.isfinite(mine.value) and not math.isfinite(theirs.value):
            return True
        if abs(mine.value - theirs.value) < 1e-15:
            return True
    return mine.sql_type == theirs.sql_type and same_values(mine.value, theirs.value, mine.sql_type)


def _is_moved_by_exponent(mine: Answer, name: str, row: Row) -> bool:
    """Whether text with an exponent became a DECIMAL, for which DuckDB may lose digits."""
    made = name in ("cast", "try_cast") and mine.sql_type.startswith("DECIMAL") and mine.value is not None
    return made and re.fullmatch(r"\W*[0-9.]+e[+]?[0-9]+\W*", str(row[0])) is not None


def _is_intended(mine: Any, theirs: Answer, name: str, row: Row) -> bool:
    """Whether DuckDB's value is one that docs/semantics.md says is not ours."""
    if name == "trunc" and row[1:] == ("-19",) and theirs.sql_type == "UBIGINT":
        return bool(mine == 10**19 and theirs.value == 0)
    if name in ("round", "trunc", "round_even"):  # NULL, where no digit of the DECIMAL is left
        return mine is None and bool(row) and row[0] is None and bool(theirs.value == 0)
    return name == "regexp_extract" and row[2:] == (None,) and mine is None


def same_values(mine: Any, theirs: Any, sql_type: str) -> bool:
    """As `is_same`, of values of one type; 0.0 and -0.0 differ."""
    if isinstance(mine, float) and isinstance(theirs, float):
        if math.isnan(mine) or math.isnan(theirs):
            return math.isnan(mine) and math.isnan(theirs)
        tolerance = 1e-5 if sql_type == "FLOAT" else 1e-9
        same_sign = math.copysign(1, mine) == math.copysign(1, theirs)
        return math.isclose(mine, theirs, rel_tol=tolerance) and (same_sign or mine != 0 or theirs != 0)
    return type(mine) is type(theirs) and bool(mine == theirs)
