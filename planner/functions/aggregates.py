"""Aggregate functions."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from tqp.core.datatypes import HUGEINT, TypeKind
from tqp.core.errors import BindError, UnsupportedError
from tqp.planner.algebra.expressions import AggregateCall, Expression, Literal
from tqp.planner.functions.constants import constant_number, no_constant
from tqp.planner.functions.declaration import aggregate
from tqp.planner.functions.ranges import Range, within


def _total(known: Range | None, rows: int) -> Range | None:
    return None if known is None else (min(known[0], known[0] * rows), max(known[1], known[1] * rows))


def _sum(call: AggregateCall, known: Range | None, rows: int) -> Range | None:
    same_scale = call.arguments[0].data_type.scale == call.data_type.scale
    return _total(known, rows) if call.data_type.is_integer_like and same_scale else None


def _sum_overflows(call: AggregateCall, known: Range | None, rows: int) -> bool:
    """A sum of integers or decimals; of an average it has 128 bits. Of intervals, which have no range, it has 64."""
    if call.data_type.kind is TypeKind.INTERVAL:
        return True
    if not call.arguments[0].data_type.is_integer_like:
        return False
    return not within(_total(known, rows), HUGEINT if call.function == "avg" else call.data_type)


def _sum_of_sums(call: AggregateCall, known: Range | None, rows: int) -> Range | None:
    """A sum of sums of other rows each is one of these rows, as each of them is: the range of one is that of all."""
    return (
        None if known is None or not call.data_type.is_integer_like else (min(known[0], 0), max(known[1], 0))
    )


def _bits(call: AggregateCall, known: Range | None, rows: int) -> Range | None:
    """What has no more bits than the values, and no sign where these have none."""
    if known is None or not call.data_type.is_integer:
        return None
    bits = max(each.bit_length() for each in known)
    return (0 if known[0] >= 0 else -(1 << bits), (1 << bits) - 1)


def _is_refused_of_infinity(call: AggregateCall, known: Range | None, rows: int) -> bool:
    return True


def _has_bins(call: AggregateCall, known: Range | None, rows: int) -> bool:
    """Bins must not be NULL."""
    return len(call.arguments) > 1


def _check_fraction(arguments: Sequence[Expression], least: int = -1) -> None:
    """The second argument of a quantile."""
    value = constant_number(arguments[1])
    if value is None:
        raise no_constant(arguments[1], "the fraction of a quantile must be a constant number")
    if not least <= value <= 1:
        raise BindError(f"the fraction of a quantile must be between {least} and 1")


def _check_sample(arguments: Sequence[Expression]) -> None:
    """The fraction, and the size of the sample, of a quantile of one."""
    _check_fraction(arguments, least=0)
    for size in arguments[2:]:
        if not isinstance(size, Literal):
            raise no_constant(size, "the size of a sample must be a constant")
        rows = constant_number(size)
        if rows is None or rows <= 0:
            raise BindError("the size of a sample must be greater than 0")


def _check_separator(arguments: Sequence[Expression]) -> None:
    if not isinstance(arguments[1], Literal):
        raise no_constant(arguments[1], "the separator must be a constant")


def _are_bit_strings(call: AggregateCall, known: Range | None, rows: int) -> bool:
    """Those of a group have one length."""
    return call.data_type.kind is TypeKind.BIT


def _are_beyond_bits(call: AggregateCall, known: Range | None, rows: int) -> bool:
    return True


def _check_bits(arguments: Sequence[Expression]) -> None:
    """The least and the greatest value of bitstring_agg."""
    for each in arguments[1:]:
        if not isinstance(each, Literal):
            raise no_constant(each, "the least and the greatest value must be constants")
        if each.value is None:
            raise UnsupportedError("the least and the greatest value must not be NULL")


_PICKS: dict[str, Any] = {"picks_value": True, "minds_order": True}
_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_OF_PAIRS = "DOUBLE DOUBLE -> DOUBLE"
#: Types that aggregates take in DuckDB and make no value of the type of: their stored bits are computed with, as DOUBLE.
_NO_FLOATS = frozenset((TypeKind.TIME_TZ,))

#: Types of which DuckDB's quantiles compare the stored bytes, whose order is not that of the values.
_IN_ANOTHER_ORDER = frozenset((TypeKind.BIT,))

AGGREGATE_FUNCTIONS = (
    aggregate("count_star", "-> BIGINT", of_nothing=0, counts=True, merged_by="sum_of_counts"),
    aggregate("count", "ANY -> BIGINT", of_nothing=0, counts=True, merged_by="sum_of_counts"),
    aggregate("approx_count_distinct", "ANY -> BIGINT", of_nothing=0),
    aggregate(
        "sum",
        *("INTEGERS -> HUGEINT", "BOOLEAN -> HUGEINT", "DOUBLE -> DOUBLE", "DECIMAL -> widened"),
        *(
            f"sum_no_overflow: {each}"
            for each in (
                "INTEGER -> HUGEINT",
                "BIGINT -> HUGEINT",
                "HUGEINT -> HUGEINT",
                "DECIMAL -> widened",
            )
        ),
        "fsum kahan_sum sumkahan: DOUBLE -> DOUBLE",
        "count_if countif: BOOLEAN -> HUGEINT",
        range=_sum,
        raises=_sum_overflows,
        merged_by="sum_of_sums",
    ),
    # of what sum and count make of parts of a group, no row of which is in two of them; SQL has no name for them
    aggregate("sum_of_sums", range=_sum_of_sums),
    aggregate("sum_of_counts", of_nothing=0, range=_sum_of_sums),
    aggregate(
        "avg mean",
        *("INTEGERS -> DOUBLE", "DOUBLE -> DOUBLE", "DECIMAL -> DOUBLE"),
        *("TIMESTAMP -> TIMESTAMP", "TIMESTAMP_TZ -> TIMESTAMP_TZ", "TIME -> TIME", "TIME_TZ -> TIME_TZ"),
        "INTERVAL -> INTERVAL",
        "favg: DOUBLE -> DOUBLE",
        raises=_sum_overflows,
    ),
    aggregate("min", "ANY -> same", picks_value=True, ignores_duplicates=True, merged_by="min"),
    aggregate("max", "ANY -> same", picks_value=True, ignores_duplicates=True, merged_by="max"),
    aggregate("any_value", "ANY -> same", ignores_duplicates=True, merged_by="any_value", **_PICKS),
    aggregate("first arbitrary", "ANY -> same", ignores_duplicates=True, **_PICKS),
    aggregate("last", "ANY -> same", ignores_duplicates=True, **_PICKS),
    *(
        aggregate(names, "ANY ANY -> same", ignores_duplicates=True, **_PICKS)
        for names in (
            *("arg_min argmin min_by", "arg_max argmax max_by", "arg_min_null", "arg_max_null"),
            *("arg_min_nulls_last", "arg_max_nulls_last"),
        )
    ),
    aggregate("mode", "ANY -> same", **_PICKS),
    aggregate("bool_and", "BOOLEAN -> BOOLEAN", ignores_duplicates=True, merged_by="bool_and"),
    aggregate("bool_or", "BOOLEAN -> BOOLEAN", ignores_duplicates=True, merged_by="bool_or"),
    *(
        aggregate(
            name,
            *("INTEGERS -> same", "UHUGEINT -> same", "BIT -> same"),
            ignores_duplicates=is_idempotent,
            range=_bits,
            raises=_are_bit_strings,
            merged_by=name if is_idempotent else None,
        )
        for name, is_idempotent in (("bit_and", True), ("bit_or", True), ("bit_xor", False))
    ),
    aggregate(
        "bitstring_agg",
        *("INTEGERS INTEGERS INTEGERS -> BIT", "UHUGEINT UHUGEINT UHUGEINT -> BIT"),
        ignores_duplicates=True,
        raises=_are_beyond_bits,
        check=_check_bits,
    ),
    aggregate("product", "DOUBLE -> DOUBLE"),
    aggregate("list array_agg", "ANY -> list", fewest_values=0, minds_order=True),
    aggregate(
        "string_agg group_concat listagg",
        "ANY -> text",
        "ANY VARCHAR -> text",
        check=_check_separator,
        minds_order=True,
    ),
    # moments
    aggregate("stddev_samp stddev", "DOUBLE -> DOUBLE", fewest_values=2),
    aggregate("stddev_pop", "DOUBLE -> DOUBLE"),
    aggregate("var_samp variance", "DOUBLE -> DOUBLE", fewest_values=2),
    aggregate("var_pop", "DOUBLE -> DOUBLE"),
    aggregate("sem", "DOUBLE -> DOUBLE"),
    aggregate("skewness", "DOUBLE -> DOUBLE", fewest_values=3, raises=_is_refused_of_infinity),
    aggregate("kurtosis", "DOUBLE -> DOUBLE", fewest_values=4, raises=_is_refused_of_infinity),
    aggregate("kurtosis_pop", "DOUBLE -> DOUBLE", fewest_values=2, raises=_is_refused_of_infinity),
    aggregate("entropy", "ANY -> DOUBLE", of_nothing=0.0),
    aggregate("histogram", "ANY -> histogram", "ANY LIST -> binned", raises=_has_bins),
    aggregate("counted_histogram"),  # of values and how often each occurs; SQL has no name for it
    aggregate("histogram_exact", "ANY LIST -> binned", raises=_has_bins),
    # pairs of numbers
    aggregate("corr", _OF_PAIRS),
    aggregate("covar_pop", _OF_PAIRS),
    aggregate("covar_samp", _OF_PAIRS, fewest_values=2),
    aggregate("regr_count", "DOUBLE DOUBLE -> UINTEGER", of_nothing=0),
    *(aggregate(f"regr_{each}", _OF_PAIRS) for each in ("avgx", "avgy", "sxx", "syy", "sxy", "slope")),
    aggregate("regr_intercept", _OF_PAIRS, fewest_values=2),
    aggregate("regr_r2", _OF_PAIRS, fewest_values=2),
    # quantiles
    aggregate(
        "median",
        "ANY -> middle",
        unsupported=_IN_ANOTHER_ORDER,
    ),
    aggregate(
        "quantile_cont",
        *(f"{each} DOUBLE -> middle" for each in ("INTEGERS", "FLOAT", "DOUBLE", "DECIMAL")),
        *(f"{each} DOUBLE -> middle" for each in ("DATE", "TIMESTAMP", "TIMESTAMP_TZ", "TIME", "TIME_TZ")),
        unsupported=frozenset((TypeKind.INTERVAL,)),
        check=_check_fraction,
    ),
    aggregate(
        "quantile_disc quantile",
        "ANY DOUBLE -> same",
        picks_value=True,
        check=_check_fraction,
        unsupported=_IN_ANOTHER_ORDER,
    ),
    aggregate(
        "reservoir_quantile",  # of all values
        *(
            f"{each} DOUBLE{size} -> same"
            for each in (*_SIGNED, "FLOAT", "DOUBLE", "DECIMAL")
            for size in ("", " INTEGER")
        ),
        picks_value=True,
        check=_check_sample,
    ),
    aggregate(
        "approx_quantile",
        *(f"{each} FLOAT -> same" for each in (*_SIGNED, "FLOAT", "DOUBLE", "DECIMAL")),
        *(f"{each} FLOAT -> same" for each in ("DATE", "TIMESTAMP", "TIMESTAMP_TZ", "TIME")),
        unsupported=_NO_FLOATS,
        check=partial(_check_fraction, least=0),
    ),
    aggregate(
        "mad",
        *("FLOAT -> FLOAT", "DOUBLE -> DOUBLE", "DECIMAL -> same"),
        *(f"{each} -> INTERVAL" for each in ("DATE", "TIMESTAMP", "TIMESTAMP_TZ", "TIME")),
        unsupported=_NO_FLOATS,
    ),
)
