"""What users pass to `connect`, `register` and `sql`, checked: errors name the argument and what it may be."""

from __future__ import annotations

import math
import operator
import os
import string
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tqp.core.errors import BindError, UnsupportedError, nearest
from tqp.core.keywords import lower_ascii, quoted_text

#: More threads than any computer runs at once are a mistake, and would not all start.
MAX_THREADS = 4_096

#: DuckDB's name for a database that ends with its connection.
IN_MEMORY = ":memory:"
#: Other names of what a connection is made with.
_SETTINGS = {"worker_threads": "threads", "max_memory": "memory_limit"}

_UNITS = {
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}


def check_count(argument: str, value: object, least: str, most: int | None = None) -> None:
    """Raises BindError unless `value` is None or a positive integer, no greater than `most`; `least` says why."""
    if value is None:
        return
    count = check_integer(argument, value)
    if count < 1:
        raise BindError(f"{argument}={value}: {least}")
    if most is not None and count > most:
        raise BindError(f"{argument}={value}: at most {most} are possible")


def check_integer(argument: str, value: object) -> int:
    """The integer. Raises BindError unless `value` is one, of any library."""
    count = _integer(value)
    if count is None:
        raise BindError(f"{argument}={value!r}: give an integer, not a {type(value).__name__}")
    return count


def check_choice(argument: str, value: object, choices: Sequence[str]) -> None:
    """Raises BindError unless `value` is one of the choices."""
    if not isinstance(value, str) or value not in choices:
        raise BindError(f"{argument}={value!r}: choose one of {', '.join(choices)}")


def check_rules(rules: object, known: Sequence[str]) -> frozenset[str]:
    """The rules as a set. Raises BindError unless all are known."""
    if isinstance(rules, str) or not isinstance(rules, Iterable):
        raise BindError(f"disabled_rules={rules!r}: give a list of rules' names")
    names = list(rules)
    for name in names:
        if not isinstance(name, str) or name not in known:
            raise BindError(f'there is no optimizer rule "{name}"' + nearest(str(name), known))
    return frozenset(names)


def check_database(database: object) -> None:
    """Raises BindError unless `database` is one in memory, by one of DuckDB's names for that: UnsupportedError for a file."""
    if database is not None and not isinstance(database, (str, os.PathLike)):
        raise BindError(f"database={database!r}: the name is text, not a {type(database).__name__}")
    if database not in (None, "", IN_MEMORY):
        raise UnsupportedError(
            f"database={str(database)!r}: databases in files are not supported; leave it out, and tables are kept in memory. "
            "EXPORT DATABASE and IMPORT DATABASE write and read files"
        )


def check_config(config: object) -> dict[str, Any]:
    """The settings by their names in lower case.

    Raises BindError unless `config` is None or a mapping from names to settings that SQL can say.
    """
    if config is None:
        return {}
    if not isinstance(config, Mapping):
        raise BindError(f"config is a {type(config).__name__}; give a dict of settings by their names")
    settings: dict[str, Any] = {}
    for name, value in config.items():
        check_name("a setting", name)
        if not isinstance(value, (str, int, float)):
            raise BindError(f'config["{name}"]={value!r}: a setting is text, a number, or True or False')
        settings[_SETTINGS.get(lower_ascii(name), lower_ascii(name))] = value
    return settings


def setting_text(value: str | float) -> str:
    """A setting's value as SQL.

    >>> setting_text(True), setting_text("1GB"), setting_text(3)
    ('True', "'1GB'", '3')
    """
    return quoted_text(value) if isinstance(value, str) else str(value)


def check_name(what: str, name: object) -> None:
    """Raises BindError unless `name`, of a table or the like, is text that SQL can say."""
    if not isinstance(name, str):
        raise BindError(f"the name of {what} is text, not a {type(name).__name__}: {name!r}")
    if not name:
        raise BindError(f"the name of {what} cannot be empty")
    check_text(f"the name of {what}", name)


def check_query(query: object) -> None:
    """Raises BindError unless `query` is text."""
    check_is_text("the query", query)


def check_is_text(what: str, value: object) -> None:
    """Raises BindError unless `value` is text that UTF-8 has."""
    if not isinstance(value, str):
        raise BindError(f"{what} is text, not a {type(value).__name__}")
    check_text(what, value)


def check_parameters(params: object) -> None:
    """Raises BindError unless `params` is None, a sequence of values or a mapping from names to values."""
    if params is None:
        return
    if isinstance(params, (str, bytes)) or not isinstance(params, (Sequence, Mapping)):
        raise BindError(
            f"params is a {type(params).__name__}; give a list of values for ? and $1, or a dict for $name"
        )
    if isinstance(params, Mapping):
        for name in params:
            if not isinstance(name, str):
                raise BindError(
                    f"params: the name of a parameter is text, not a {type(name).__name__}: {name!r}"
                )
            check_text("the name of a parameter", name)
    for value in params.values() if isinstance(params, Mapping) else params:
        if isinstance(value, str):
            check_text("a parameter", value)


def check_parameter_sets(sets: object) -> list[Any]:
    """The sets as a list. Raises BindError unless there is one, and each is what `check_parameters` takes."""
    found = parameter_sets(sets)
    if not found:
        raise BindError("params is empty; give a list or a dict of values for each run")
    return found


def parameter_sets(sets: object) -> list[Any]:
    """The sets as a list, which may be empty. Raises BindError unless each is what `check_parameters` takes."""
    if isinstance(sets, (str, bytes, Mapping)) or not isinstance(sets, Iterable):
        raise BindError(
            f"params is a {type(sets).__name__}; give a list with a list or a dict of values for each run"
        )
    found = list(sets)
    for values in found:
        check_parameters(values)
    return found


def list_elements(value: object) -> Sequence[Any] | None:
    """What a list, a tuple, or an array of one dimension (NumPy, Arrow, torch, pandas) holds; None of anything else."""
    if isinstance(value, (list, tuple)):
        return value
    if getattr(value, "ndim", None) == 1 and hasattr(value, "tolist"):
        return value.tolist()  # type: ignore[no-any-return]
    if hasattr(value, "to_pylist"):
        return value.to_pylist()  # type: ignore[no-any-return]
    return None


def check_tables(argument: str, tables: object) -> None:
    """Raises BindError unless `tables`, or `models`, is None or a mapping from names."""
    if tables is not None and not isinstance(tables, Mapping):
        raise BindError(f"{argument} is a {type(tables).__name__}; give a dict, by name")


def check_text(what: str, text: str) -> None:
    """Raises BindError where text holds half of a surrogate pair, which UTF-8 does not have."""
    if text.isascii():
        return
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BindError(
            f"{what} has {text[error.start]!r} at position {error.start}, which is half of a character and not valid"
            " Unicode"
        ) from None


def parse_threads(threads: object) -> int | None:
    """How many threads; None stays None. Raises BindError unless it is a number, or text of one, that a connection may have.

    >>> parse_threads(" 3 "), parse_threads(2)
    (3, 2)
    """
    if threads is None:
        return None
    if isinstance(threads, str) and threads.strip().isdecimal():
        threads = int(threads)
    check_count("threads", threads, "at least one thread is needed", MAX_THREADS)
    return check_integer("threads", threads)


def parse_size(size: object, name: str = "memory_limit") -> int | None:
    """Bytes of a limit such as 2_000_000_000 or "2GiB"; None stays None. Raises BindError if it is no size.

    >>> parse_size("1.5 kB"), parse_size(1e9)
    (1500, 1000000000)
    """
    if size is None:
        return None
    number = _bytes_of_text(size) if isinstance(size, str) else _integer(size)
    if number is None and isinstance(size, float) and math.isfinite(size):
        number = int(size)
    if number is None:
        raise BindError(f"{name}={size!r}: give a number of bytes, or a size such as '4GiB'")
    if number <= 0:
        raise BindError(f"{name}={size!r}: give a positive number of bytes, or a size such as '4GiB'")
    return number


def _bytes_of_text(size: str) -> int | None:
    text = size.strip().lower()
    number = text.rstrip(string.ascii_lowercase + " ")
    try:
        return int(float(number) * _UNITS[text[len(number) :].strip() or "b"])
    except (ValueError, KeyError, OverflowError):
        return None


def _integer(value: object) -> int | None:
    """An integer of any library; no bool."""
    if isinstance(value, bool):
        return None
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return None


def unique_names(names: Iterable[object]) -> tuple[str, ...]:
    """Column names as strings, made unique ignoring case by `_1`, `_2`, ... as DuckDB does.

    >>> unique_names(["a", "b", "A", 3, "a"])
    ('a', 'b', 'A_1', '3', 'a_2')
    """
    taken: set[str] = set()
    repeats: dict[str, int] = {}
    result = []
    for name in map(str, names):
        unique = name
        while lower_ascii(unique) in taken:
            repeats[lower_ascii(name)] = repeats.get(lower_ascii(name), 0) + 1
            unique = f"{name}_{repeats[lower_ascii(name)]}"
        taken.add(lower_ascii(unique))
        result.append(unique)
    return tuple(result)
