"""Functions that DuckDB has and tqp does not: a call of one is not supported, any other unknown name is a mistake."""

from __future__ import annotations

from collections.abc import Sequence

from tqp.core.datatypes import DOUBLE, FLOAT, DataType, TypeKind
from tqp.core.errors import BindError, UnsupportedError
from tqp.planner.functions.json import ROW_FUNCTIONS

_NESTED = ("list_", "array_", "struct_", "map_", "json", "union_", "variant_")
_PREFIXES = ("pg_", "has_", "icu_", "collate_", "st_", "inet_", "current_")
_NAMES = frozenset(
    """
combine
combine_aggr create_sort_key decimal_average decimal_division
finalize
get_block_size get_type hive_partition_component index_key
lttb make_type md5_number md5_number_lower md5_number_upper
normalized_interval parse_duckdb_log_message
parse_formatted_bytes path_join
remap_struct sleep_ms stats
to_aggregate_state unpivot_list vector_type vertex_extract write_log
""".split()
)


#: Forms that DuckDB has beside those of the table: how many arguments they take.
_FORMS = {
    "bitstring_agg": (1,),
    "max": (2,),
    "min": (2,),
    "arg_min": (3,),
    "arg_max": (3,),
}


#: A fractional number is a BIGNUM to these.
_OF_BIGNUM = frozenset(("hex", "to_hex", "bin", "to_binary"))
_OF_QUANTILES = frozenset(("quantile", "quantile_cont", "quantile_disc", "approx_quantile"))


def refuse_missing_form(name: str, count: int, span: tuple[int, int] | None) -> None:
    """Raise UnsupportedError for a call of `name`, which tqp has, with so many arguments, if only DuckDB has that."""
    if count in _FORMS.get(name, ()):
        raise UnsupportedError(
            f"{name}() of {count} argument{'s' if count > 1 else ''} is not supported", span
        )


def refuse_missing_type(name: str, types: Sequence[DataType], span: tuple[int, int] | None) -> None:
    """Raise UnsupportedError for a call that DuckDB casts to a type which tqp lacks."""
    if name in _OF_BIGNUM and types and types[0] in (FLOAT, DOUBLE):
        raise UnsupportedError(
            f"{name}() of {types[0]}, which DuckDB makes a BIGNUM of, is not supported; cast to BIGINT", span
        )
    if name in _OF_QUANTILES and len(types) > 1 and types[1].kind in (TypeKind.LIST, TypeKind.ARRAY):
        raise UnsupportedError(
            f"{name}() of a list of quantiles is not supported; call it once for each", span
        )


def refuse_missing(name: str, span: tuple[int, int] | None) -> None:
    """Raise UnsupportedError for a call of `name` (lower case) if DuckDB has such a function, BindError if it stands in FROM."""
    if name in ROW_FUNCTIONS:
        raise BindError(f"{name}() makes rows: it stands in FROM", span)
    missing = missing_feature(name)
    if missing is not None:
        raise UnsupportedError(f"{missing} not supported", span)


def missing_feature(name: str) -> str | None:
    """What a call of `name` (lower case) asks for, if DuckDB has such a function; None if it has none."""
    if name.startswith(_NESTED):
        return f"functions on nested values and JSON ({name}) are"
    if name in _NAMES or name.startswith(_PREFIXES):
        return f"the function {name}() is"
    return None
