"""SET and RESET of the settings that DuckDB has, as far as they mean something here."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tqp.catalog.settings import ALIASES, WITHOUT_EFFECT
from tqp.catalog.state import CatalogState
from tqp.core.arguments import parse_size, parse_threads
from tqp.core.datatypes import BIGINT, BOOLEAN, DOUBLE, VARCHAR
from tqp.core.errors import BindError, UnsupportedError, nearest
from tqp.core.keywords import KEYWORDS, lower_ascii
from tqp.data.results.to_python import stored_values
from tqp.planner.algebra.expressions import Literal
from tqp.planner.functions.literal_casts import cast_value
from tqp.planner.parse import Span
from tqp.planner.syntax.clauses import Reset, Set, Use
from tqp.planner.syntax.parts import Name, Part
from tqp.planner.syntax.words import NAME
from tqp.result import Result
from tqp.runtime.progress_bar import is_interactive
from tqp.statements.execution import TRUTH_WORDS, Execution, done


def set_setting(execution: Execution) -> Result:
    """Sets what it names. Raises UnsupportedError for what is fixed when a connection is made, and for other values."""
    clauses = execution.command.clauses
    assert isinstance(clauses, Set)
    if clauses.is_variable:
        value = _variable(execution, clauses.value)
        execution.session.catalog.change(lambda state: state.with_variable(clauses.name.text, value))
        return done()
    assign(execution, clauses.name, value_of(execution, clauses.value))
    return done()


def assign(execution: Execution, name: Name, value: Any) -> None:
    """Gives a setting a value; None stands for the one that it had at first."""
    _setting(name.text, name.span)(execution, value)


def reset_setting(execution: Execution) -> Result:
    """Sets what it names to what it was when the connection was made."""
    clauses = execution.command.clauses
    assert isinstance(clauses, Reset)
    if clauses.is_variable:
        execution.session.catalog.change(lambda state: state.with_variable(clauses.name.text, None))
        return done()
    _setting(clauses.name.text, clauses.name.span)(execution, None)
    return done()


def _variable(execution: Execution, part: Part) -> Literal:
    """The value of a constant expression, or of a subquery."""
    answer = execution.rows(execution.command.query("SELECT", part), execution.state)
    (value,) = stored_values(answer._table.columns[0])
    return Literal(value, answer.types[0])


def value_of(execution: Execution, part: Part) -> Any:
    """What stands behind `=`: a constant expression, a word such as ON, or names with dots between. DEFAULT is None."""
    tokens = execution.command.tokens
    kinds = tokens.kinds[part.start : part.stop]
    if len(kinds) == 1 and kinds[0] in KEYWORDS | {NAME}:
        word = lower_ascii(tokens.name(part.start))
        return {"default": None, **TRUTH_WORDS}.get(word, word)
    if set(kinds[1::2]) == {"."}:
        return ".".join(tokens.name(index) for index in range(part.start, part.stop, 2))
    return execution.value_of(part)


def _memory_limit(execution: Execution, value: Any) -> None:
    memory = execution.session.queries.executor.memory
    memory.limit = execution.session.memory_limit if value is None else parse_size(value)


def _threads(execution: Execution, value: Any) -> None:
    threads = execution.session.threads if value is None else parse_threads(value)
    execution.session.queries.executor.set_threads(threads)


def _progress_bar(execution: Execution, value: Any) -> None:
    if isinstance(value, str):
        value = TRUTH_WORDS.get(lower_ascii(value), value)
    if value not in (None, True, False):
        raise BindError(f"enable_progress_bar is true or false, not {value!r}")
    memory = execution.session.queries.executor.memory
    memory.shows_progress = is_interactive() if value is None else value


def use(execution: Execution) -> Result:
    """Has a schema searched first. Raises BindError for what is none."""
    clauses = execution.command.clauses
    assert isinstance(clauses, Use)
    _search(execution, [(*clauses.name.qualifiers, clauses.name.text)], clauses.name.span)
    return done()


def _schema(execution: Execution, value: Any) -> None:
    """The one schema that is searched first."""
    schemas = [] if value is None else _schemas(str(value))
    if value is not None and len(schemas) != 1:
        raise _no_schema(value)
    _search(execution, schemas)


def _search_path(execution: Execution, value: Any) -> None:
    """The schemas that are searched: their names, with commas between."""
    _search(execution, [] if value is None else _schemas(str(value)))


#: A name in a search path, in quotes or without, and what stands behind it.
_IN_PATH = re.compile(r'\s*(?:"((?:[^"]|"")+)"|([^".,]*[^".,\s]))\s*([.,]|$)')


def _schemas(text: str) -> list[tuple[str, ...]]:
    """The schemas in a text such as `s,memory."a b"`, each perhaps behind the name of its database; of an empty text none."""
    schemas, names, place = list[tuple[str, ...]](), tuple[str, ...](), 0
    while place < len(text):
        found = _IN_PATH.match(text, place)
        if found is None:
            raise _no_schema(text)
        within_quotes, plain, mark = found.groups()
        names = (*names, plain or within_quotes.replace('""', '"'))
        if mark != ".":
            schemas.append(names)
            names = ()
        place = found.end()
    if names:
        raise _no_schema(text)
    return schemas


def _no_schema(value: object) -> BindError:
    return BindError(f'"{value}" is no name of a schema')


def _search(execution: Execution, schemas: Sequence[tuple[str, ...]], span: Span | None = None) -> None:
    """Has these schemas searched, each of which has a name, perhaps behind that of the database."""

    def next_state(state: CatalogState) -> CatalogState:
        found = [state.schemas_named(names, span)[-1] for names in schemas]
        said = zip(found, schemas, strict=True)
        return state.with_path(
            tuple(names[-1] if schema == lower_ascii(names[-1]) else schema for schema, names in said)
        )

    execution.session.catalog.change(next_state)


def _kept(name: str, execution: Execution, value: Any) -> None:
    """One without effect. Raises ExecutionError for a value that is none of its type."""
    if value is not None:
        source = next((each for kind, each in _TYPES.items() if isinstance(value, kind)), VARCHAR)
        value = cast_value(value if source != VARCHAR else str(value), source, WITHOUT_EFFECT[name].data_type)
    execution.session.catalog.change(lambda state: state.with_setting(name, value))


#: What SET calls the orders of ORDER BY, and how they are shown.
_ORDERS = {"asc": "ASC", "ascending": "ASC", "desc": "DESC", "descending": "DESC"}
_NULL_ORDERS = {
    "nulls_first": "NULLS_FIRST",
    "nulls first": "NULLS_FIRST",
    "first": "NULLS_FIRST",
    "nulls_last": "NULLS_LAST",
    "nulls last": "NULLS_LAST",
    "last": "NULLS_LAST",
    "nulls_first_on_asc_last_on_desc": "NULLS_FIRST_ON_ASC_LAST_ON_DESC",
    "sqlite": "NULLS_FIRST_ON_ASC_LAST_ON_DESC",
    "mysql": "NULLS_FIRST_ON_ASC_LAST_ON_DESC",
    "nulls_last_on_asc_first_on_desc": "NULLS_LAST_ON_ASC_FIRST_ON_DESC",
    "postgres": "NULLS_LAST_ON_ASC_FIRST_ON_DESC",
}


def _one_of(name: str, words: Mapping[str, str], execution: Execution, value: Any) -> None:
    """A setting that has these values."""
    shown = None if value is None else words.get(lower_ascii(str(value)))
    if value is not None and shown is None:
        raise BindError(f"{value!r} is no value of {name}, which is one of {', '.join(words)}")
    execution.session.catalog.change(lambda state: state.with_setting(name, shown))


def _fixed(remedy: str, *allowed: Any) -> Callable[[Execution, Any], None]:
    """A setting that has only these values, the first of which is what RESET gives; `remedy`: what to do instead of giving another."""

    def check(execution: Execution, value: Any) -> None:
        said = lower_ascii(value) if isinstance(value, str) else value
        if value is not None and said not in allowed:
            raise UnsupportedError(
                f"{value!r} for this setting is not supported; it is {allowed[0]!r}: {remedy}"
            )

    return check


#: Types of Python's values; of bool, which is an int as well, first.
_TYPES = {bool: BOOLEAN, int: BIGINT, float: DOUBLE}
#: Those of DuckDB that are not supported.
_OTHERS = frozenset(
    """
    access_mode active_grammar_extensions allow_extension_repositories allow_extensions_metadata_mismatch
    allow_parser_override_extension allow_persistent_secrets allow_unredacted_secrets allowed_configs
    allowed_directories allowed_paths arrow_large_buffer_size arrow_lossless_conversion arrow_output_list_view
    arrow_output_version async_threads auto_checkpoint_skip_wal_threshold autoinstall_extension_repository
    binary_as_string block_allocator_memory cache_local_files calendar catalog_error_max_schemas
    checkpoint_on_detach current_dialect current_transaction_invalidation_policy custom_extension_repository
    debug_checkpoint_scan_sleep_ms default_block_size default_secret_storage
    default_transaction_invalidation_policy delim_join_as_cte dialect_compatibility_mode
    disable_database_invalidation disable_timestamptz_casts disabled_compression_methods disabled_filesystems
    disabled_log_types duckdb_api enable_geoparquet_conversion enable_logging
    enable_macro_dependencies enable_optimizer enable_profiling enable_progress_bar_print
    enable_view_dependencies enabled_log_types error_on_division_by_zero errors_as_json
    experimental_metadata_reuse extension_directories extension_repository_directory
    external_file_cache_local_max_block_size external_file_cache_remote_max_block_size
    external_file_cache_remote_min_block_size external_file_cache_request_sizing external_file_cache_spill
    file_search_path force_column_metadata_reuse fsync_mode geometry_minimum_shredding_size home_directory
    http_client_pool_capacity http_proxy http_proxy_password http_proxy_username ignore_unknown_crs
    initial_column_segment_size json_geometry_format legacy_disable_null_type log_query_path logging_level
    logging_mode logging_storage max_execution_time max_vacuum_tasks
    operator_memory_limit order_by_non_integer_literal parquet_prefetch_column_gap password pivot_limit
    preserve_identifier_case profile_output profiling_coverage profiling_output profiling_renderer_settings
    python_scan_all_frames read_ahead_depth redact_http_logs regex_match_operator_semantics
    scheduler_process_partial secret_directory show_behavior standard_vector_size storage_block_prefetch
    table_function_identifier_conversion tracked_metrics user username
    validate_external_file_cache variant_minimum_shredding_size warnings_as_errors
    write_buffer_row_group_memory_limit 
    """.split()
)
_SETTINGS: Mapping[str, Callable[[Execution, Any], None]] = {
    **{name: partial(_kept, name) for name in WITHOUT_EFFECT},
    "threads": _threads,
    "memory_limit": _memory_limit,
    "timezone": _fixed("x AT TIME ZONE '...' gives times of another zone", "utc", "etc/utc", "gmt"),
    "schema": _schema,
    "search_path": _search_path,
    "default_order": partial(_one_of, "default_order", _ORDERS),
    "default_null_order": partial(_one_of, "default_null_order", _NULL_ORDERS),
    "default_collation": _fixed("write COLLATE behind the text", ""),
    "integer_division": _fixed("write //", False),
    "ieee_floating_point_ops": _fixed("write a CASE of the divisor", True),
    "scalar_subquery_error_on_multiple_rows": _fixed("write any_value() or LIMIT 1 in the subquery", True),
    "enable_external_access": _fixed("a connection reads what its process may read", True),
    "enable_progress_bar": _progress_bar,
    "lock_configuration": _fixed("SET stays possible", False),
    "python_enable_replacements": _fixed("a table goes before a variable of its name", True),
}


def _setting(name: str, span: tuple[int, int]) -> Callable[[Execution, Any], None]:
    known = ALIASES.get(lower_ascii(name), lower_ascii(name))
    if known in _OTHERS:
        raise UnsupportedError(f'the setting "{name}" is not supported', span)
    found = _SETTINGS.get(known)
    if found is None:
        raise BindError(f'there is no setting "{name}"{nearest(name, [*_SETTINGS, *ALIASES])}', span)
    return found
