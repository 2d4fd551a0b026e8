"""The settings of a connection, as queries see them; `tqp.statements.settings` says which of them SET may change."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tqp.core.datatypes import BIGINT, BOOLEAN, DOUBLE, UBIGINT, VARCHAR
from tqp.core.keywords import quoted
from tqp.core.names import MAIN
from tqp.core.process.memory_budget import current_budget
from tqp.data.sharing import threads_at_work
from tqp.planner.algebra.expressions import Value
from tqp.planner.catalog_protocol import OrderDefaults, Setting

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
#: Those that have a value of their own kind.
_OTHERS: Mapping[str, Setting] = {
    "TimeZone": Setting("Etc/UTC", VARCHAR, "The time zone of times with one."),
    "default_order": Setting(OrderDefaults().order, VARCHAR, "The order of ORDER BY without ASC or DESC."),
    "default_null_order": Setting(
        OrderDefaults().nulls, VARCHAR, "Where ORDER BY puts NULLs without NULLS FIRST or LAST."
    ),
    "python_enable_replacements": Setting(
        True, BOOLEAN, "Whether tables are looked up among variables of Python."
    ),
}
_TYPES = {bool: BOOLEAN, int: UBIGINT, float: DOUBLE, str: VARCHAR}
_VALUES: Mapping[str, bool | int | float | str] = {
    "allocator_background_threads": False,
    "allocator_bulk_deallocation_flush_threshold": "512.0 MiB",
    "allocator_flush_threshold": "134217728B",
    "allow_community_extensions": True,
    "allow_unsigned_extensions": False,
    "approximate_join_order_threshold": 12,
    "asof_loop_join_threshold": 64,
    "autoinstall_known_extensions": True,
    "autoload_known_extensions": True,
    "checkpoint_threshold": "16.0 MiB",
    "custom_user_agent": "",
    "disable_parquet_prefetching": False,
    "disabled_optimizers": "",
    "dynamic_or_filter_threshold": 50,
    "enable_external_file_cache": True,
    "enable_fsst_vectors": False,
    "enable_http_metadata_cache": False,
    "enable_object_cache": False,
    "enable_optimistic_write": True,
    "explain_output": "PHYSICAL_ONLY",
    "external_threads": 1,
    "force_compression": "auto",
    "immediate_transaction_mode": False,
    "index_scan_max_count": 2_048,
    "index_scan_percentage": 0.001,
    "late_materialization_max_rows": 50,
    "max_expression_depth": 1_000,
    "max_streaming_buffer_size": "10.0 MiB",
    "max_temp_directory_size": "90% of available disk space",
    "merge_join_threshold": 1_000,
    "nested_loop_join_threshold": 5,
    "ordered_aggregate_threshold": 262_144,
    "pandas_analyze_sample": 1_000,
    "parquet_metadata_cache": False,
    "partitioned_write_flush_threshold": 524_288,
    "partitioned_write_max_open_files": 100,
    "perfect_ht_threshold": 12,
    "pin_threads": "auto",
    "pivot_filter_threshold": 20,
    "prefer_range_joins": False,
    "prefetch_all_parquet_files": False,
    "preserve_insertion_order": True,
    "progress_bar_time": 2_000,
    "storage_compatibility_version": "latest",
    "temp_directory": ".tmp",
    "temp_file_encryption": False,
    "wal_autocheckpoint_entries": 0,
    "write_buffer_row_group_count": 5,
    "zstd_min_string_length": 4_096,
}
#: Those of DuckDB that change no answer: a value is kept, and told when it is asked for. Each with the one that DuckDB has at first.
WITHOUT_EFFECT: Mapping[str, Setting] = {
    name: Setting(value, _TYPES[type(value)], "Kept, and without any effect.")
    for name, value in _VALUES.items()
}
#: Other names of settings.
ALIASES: Mapping[str, str] = {
    "worker_threads": "threads",
    "max_memory": "memory_limit",
    "null_order": "default_null_order",
    "wal_autocheckpoint": "checkpoint_threshold",
    "streaming_buffer_size": "max_streaming_buffer_size",
}


def current_settings(given: Mapping[str, Value], path: Sequence[str]) -> Mapping[str, Setting]:
    """All settings by their names, for a query of this thread. `given`: values of those that SET keeps as they are; `path`: schemas that are searched."""
    budget = current_budget()
    limit = None if budget is None else budget.limit
    memory = Setting(shown_size(limit or 0), VARCHAR, "The memory that queries may take.")
    shows = Setting(
        budget is not None and budget.shows_progress, BOOLEAN, "Whether a bar shows how far a query is."
    )
    kept = {**_OTHERS, **WITHOUT_EFFECT}
    settings = {
        **kept,
        **{name: kept[name]._replace(value=value) for name, value in given.items()},
        "schema": Setting(
            path[0] if path else MAIN, VARCHAR, "The schema in which names are looked up first."
        ),
        "search_path": Setting(
            ",".join(map(quoted, path)),
            VARCHAR,
            "The schemas in which names are looked up, with commas between.",
        ),
        "enable_progress_bar": shows,
        "threads": Setting(threads_at_work(), BIGINT, "The threads that a query runs on."),
        "memory_limit": memory,
    }
    return {**settings, **{alias: settings[name] for alias, name in ALIASES.items()}}


def shown_size(count: float) -> str:
    """Bytes as text: tenths are cut off, as DuckDB does.

    >>> shown_size(2**31), shown_size(100)
    ('2.0 GiB', '100 bytes')
    """
    place = 0
    while count >= 1024 and place < len(_UNITS) - 1:
        count, place = count / 1024, place + 1
    return f"{int(count * 10) / 10:.1f} {_UNITS[place]}" if place else f"{count:.0f} {_UNITS[0]}"
