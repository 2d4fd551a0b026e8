"""sqlglot's DuckDB parser as a class that Python code can subclass.

sqlglot's compiled form (the package `sqlglotc`, the extra `sqlglot[c]`) refuses subclasses that were not compiled with
it, but leaves the Python sources beside the compiled modules. Where the parser is compiled, its two modules are run
from their sources as private copies. Tokens, tree nodes and errors stay the compiled ones, and sqlglot stays as it is
for everyone else.
"""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from importlib.machinery import EXTENSION_SUFFIXES, SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import sqlglot.parser
import sqlglot.parsers.duckdb

from tqp.core.errors import Error

__all__ = ["DuckDBParser", "interpreted_duckdb_parser", "is_compiled"]


def is_compiled(module: ModuleType) -> bool:
    """Whether a module is machine code instead of Python's."""
    return str(module.__file__).endswith(tuple(EXTENSION_SUFFIXES))


def interpreted_duckdb_parser() -> Any:
    """A private copy of `sqlglot.parsers.duckdb.DuckDBParser`, and of what it inherits, made from the sources.

    Raises Error where sqlglot was installed without them.
    """
    base = _run_source("parser", {})

    def import_with_base(
        name: str,
        global_names: Mapping[str, object] | None = None,
        local_names: Mapping[str, object] | None = None,
        wanted: tuple[str, ...] = (),
        level: int = 0,
    ) -> Any:
        if name == "sqlglot.parser":
            return base
        found = builtins.__import__(name, global_names, local_names, wanted, level)
        if name == "sqlglot":  # from sqlglot import exp, parser
            return SimpleNamespace(
                **{part: base if part == "parser" else getattr(found, part) for part in wanted}
            )
        return found

    return _run_source(
        "parsers/duckdb", {"__builtins__": {**vars(builtins), "__import__": import_with_base}}
    ).DuckDBParser


def _run_source(path: str, global_names: dict[str, object]) -> ModuleType:
    """A module of sqlglot's run from its source, not entered among the imported modules."""
    name = f"{__name__}.{path.replace('/', '_')}"
    source = str(Path(sqlglot.__path__[0], f"{path}.py"))
    if not Path(source).exists():
        raise Error(
            f"{source} is missing: where sqlglot is compiled, tqp runs its parser from the Python sources that come with it; "
            "install them again with pip install --force-reinstall --no-deps sqlglot"
        )
    loader = SourceFileLoader(name, source)
    spec = spec_from_file_location(name, source, loader=loader)
    assert spec is not None
    module = module_from_spec(spec)
    vars(module).update(global_names)
    loader.exec_module(module)
    return module


if TYPE_CHECKING:
    from sqlglot.parsers.duckdb import DuckDBParser
elif is_compiled(sqlglot.parser):
    DuckDBParser = interpreted_duckdb_parser()
else:
    DuckDBParser = sqlglot.parsers.duckdb.DuckDBParser
