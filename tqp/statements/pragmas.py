"""PRAGMA: tables told of as SHOW does, and settings set as SET does."""

from __future__ import annotations

from collections.abc import Mapping

from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.planner.parse import parse
from tqp.planner.syntax.clauses import Pragma
from tqp.result import Result
from tqp.statements.execution import Execution, done
from tqp.statements.settings import assign, value_of

#: What answers those without arguments.
_QUERIES: Mapping[str, str] = {
    "show_tables": "SHOW TABLES",
    "show_tables_expanded": "SHOW ALL TABLES",
    "show_databases": "SHOW DATABASES",
    **{name: f"FROM pragma_{name}()" for name in ("version", "database_size", "platform", "user_agent")},
    "database_list": """
        SELECT row_number() OVER () - 1 AS seq, database_name AS name, path AS file
        FROM duckdb_databases() WHERE NOT internal
    """,
}
#: Settings that are switched, by the pragmas without arguments that switch them.
_SWITCHES: Mapping[str, tuple[str, bool]] = {
    f"{word}_{name}": ("enable_progress_bar", word == "enable")
    for word in ("enable", "disable")
    for name in ("progress_bar", "print_progress_bar")
}
#: Those that say something of storage, of caches, or of tests of DuckDB's own, of which there is nothing here.
_WITHOUT_EFFECT = (
    "force_checkpoint",
    "enable_object_cache",
    "disable_object_cache",
    "enable_checkpoint_on_shutdown",
    "disable_checkpoint_on_shutdown",
    "disable_profiling",
    "disable_profile",
    *(f"{word}_{name}" for word in ("enable", "disable") for name in ("optimizer", "verification")),
    "verify_parallelism",
    "disable_verify_parallelism",
)


def pragma(execution: Execution) -> Result:
    """Answers what it asks for. Raises UnsupportedError for those that tell of what tqp does not have."""
    clauses = execution.command.clauses
    assert isinstance(clauses, Pragma)
    name, count = lower_ascii(clauses.name.text), len(clauses.arguments)
    if name == "table_info":
        if count != 1:
            raise BindError("PRAGMA table_info takes the name of a table", clauses.name.span)
        query = execution.command.query("FROM pragma_table_info(", *clauses.arguments, ")")
        return execution.rows(query, execution.state)
    if name in _QUERIES:
        if count:
            raise BindError(f"PRAGMA {name} takes no arguments", clauses.name.span)
        return execution.rows(parse(_QUERIES[name]), execution.state)
    if name in _SWITCHES or name in _WITHOUT_EFFECT:
        if count:
            raise BindError(f"PRAGMA {name} takes no arguments", clauses.name.span)
        if name in _WITHOUT_EFFECT:
            return done()
        setting, value = _SWITCHES[name]
        assign(execution, clauses.name._replace(text=setting), value)
        return done()
    if clauses.is_setting:
        assign(execution, clauses.name, value_of(execution, clauses.arguments[0]))
        return done()
    remedy = "; EXPLAIN ANALYZE tells what a query took" if "profil" in name else ""
    raise UnsupportedError(f"PRAGMA {name} is not supported{remedy}", clauses.name.span)
