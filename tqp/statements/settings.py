"""SET and RESET of the settings that DuckDB has, as far as they mean something here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tqp.core.arguments import parse_size
from tqp.core.errors import BindError, UnsupportedError, nearest
from tqp.core.keywords import KEYWORDS, lower_ascii
from tqp.data.results.to_python import python_values, storage_values
from tqp.planner.algebra.expressions import Literal
from tqp.planner.syntax.clauses import Reset, Set
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
    data_type, column = answer.types[0], answer._table.columns[0]
    if data_type.is_nested:
        raise UnsupportedError(
            f"SET VARIABLE to a {data_type} is not supported", execution.command.span(part)
        )
    if column.validity is not None and not bool(column.validity.all()):
        return Literal(None, data_type)
    if column.values is None or data_type.is_string:
        return Literal(python_values(column)[0], data_type)
    (value,) = storage_values(column.values)
    return Literal(tuple(value) if isinstance(value, list) else value, data_type)


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
    now = execution.session.queries.executor.threads
    if value is not None and value != now:
        raise UnsupportedError(
            f"a connection keeps its number of threads ({now}); tqp.connect(threads={value}) makes one with others"
        )


def _progress_bar(execution: Execution, value: Any) -> None:
    if isinstance(value, str):
        value = TRUTH_WORDS.get(lower_ascii(value), value)
    if value not in (None, True, False):
        raise BindError(f"enable_progress_bar is true or false, not {value!r}")
    memory = execution.session.queries.executor.memory
    memory.shows_progress = is_interactive() if value is None else value


def _schema(execution: Execution, value: Any) -> None:
    if value is not None and lower_ascii(str(value)) not in ("main", "memory", "memory.main"):
        raise BindError(f'there is no database or schema "{value}"; tables are in "main" of "memory"')


def _fixed(*allowed: Any) -> Callable[[Execution, Any], None]:
    """A setting that has only these values, the first of which is what RESET gives."""

    def check(execution: Execution, value: Any) -> None:
        said = lower_ascii(value) if isinstance(value, str) else value
        if value is not None and said not in allowed:
            raise UnsupportedError(f"{value!r} for this setting is not supported; it is {allowed[0]!r}")

    return check


_SETTINGS: Mapping[str, Callable[[Execution, Any], None]] = {
    "threads": _threads,
    "worker_threads": _threads,
    "memory_limit": _memory_limit,
    "max_memory": _memory_limit,
    "timezone": _fixed("utc", "etc/utc", "gmt"),
    **dict.fromkeys(("schema", "search_path"), _schema),
    "preserve_insertion_order": _fixed(True),
    "default_order": _fixed("asc", "ascending"),
    "default_null_order": _fixed("nulls_last", "nulls last"),
    "enable_progress_bar": _progress_bar,
    "enable_object_cache": lambda execution, value: None,
    "python_enable_replacements": _fixed(True),
}


def _setting(name: str, span: tuple[int, int]) -> Callable[[Execution, Any], None]:
    found = _SETTINGS.get(lower_ascii(name))
    if found is None:
        raise BindError(f'there is no setting "{name}"{nearest(name, _SETTINGS)}', span)
    return found
