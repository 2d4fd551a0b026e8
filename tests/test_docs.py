"""The documents cannot rot: plans, code and tables in them are made anew and compared, examples run, links lead somewhere.

A block between `<!-- made: NAME -->` and `<!-- end -->` is what the function of that name in `BLOCKS` makes of it.
After a change, `TQP_UPDATE_DOCS=1 pytest tests/test_docs.py` writes the blocks; read the difference before you commit.
"""

from __future__ import annotations

import ast
import datetime
import inspect
import math
import os
import re
import textwrap
import tomllib
from collections.abc import Callable, Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import tqp
from tests.type_table import type_rows
from tqp.core.errors import UnsupportedError
from tqp.ml.onnx.operators import OPERATORS
from tqp.ml.supported import SUPPORTED
from tqp.planner.algebra.explain import explain_logical, explain_physical
from tqp.planner.bind import bind
from tqp.planner.binder.expressions.calls import function_names
from tqp.planner.functions.registry import aggregate_names, window_names
from tqp.planner.optimizer import REQUIRED, RULES, optimize
from tqp.planner.physical.planner import PHYSICAL_RULES, plan_physical
from tqp.runtime.pipeline import Pipeline
from tqp.runtime.program import TensorProgram

ROOT = Path(__file__).parent.parent
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
UPDATE = os.environ.get("TQP_UPDATE_DOCS") == "1"

QUERY = """\
SELECT o_orderkey, o_orderdate, sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM customer, orders, lineitem
WHERE c_mktsegment LIKE '%BUILD%'
  AND c_custkey = o_custkey
  AND l_orderkey = o_orderkey
  AND o_orderdate < DATE '1995-03-15'
GROUP BY o_orderkey, o_orderdate
ORDER BY revenue DESC, o_orderdate
LIMIT 5"""


def _example_tables() -> dict[str, pa.Table]:
    """A few rows in the shape of TPC-H's tables; the same on every machine."""
    first, segments = datetime.date(1995, 1, 1), ("BUILDING", "AUTOMOBILE", "MACHINERY")
    money = pa.decimal128(15, 2)
    return {
        "customer": pa.table(
            {
                "c_custkey": pa.array(range(1, 21), pa.int64()),
                "c_mktsegment": [segments[i % 3] for i in range(20)],
            }
        ),
        "orders": pa.table(
            {
                "o_orderkey": pa.array(range(1, 61), pa.int64()),
                "o_custkey": pa.array([1 + 7 * i % 20 for i in range(60)], pa.int64()),
                "o_orderdate": [first + datetime.timedelta(days=13 * i % 120) for i in range(60)],
            }
        ),
        "lineitem": pa.table(
            {
                "l_orderkey": pa.array([1 + i // 4 for i in range(240)], pa.int64()),
                "l_extendedprice": pa.array([Decimal(1000 + 37 * i % 900) / 100 for i in range(240)], money),
                "l_discount": pa.array([Decimal(i % 11) / 100 for i in range(240)], money),
            }
        ),
    }


#: The table of the examples in docs/semantics.md.
EXAMPLE = pa.table(
    {
        "i": pa.array([1, 2, None], pa.int32()),
        "s": ["a", "B", "é"],
        "x": [1.5, math.nan, None],
        "d": pa.array([Decimal("10.25"), None, Decimal("0.10")], pa.decimal128(6, 2)),
        "day": [datetime.date(2024, 1, 31), None, datetime.date(2000, 2, 29)],
    }
)


@cache
def _architecture() -> tqp.Connection:
    connection = tqp.connect(threads=2)
    for name, table in _example_tables().items():
        connection.register(name, table)
    return connection


@cache
def _semantics() -> tuple[tqp.Connection, duckdb.DuckDBPyConnection]:
    ours, reference = tqp.connect(threads=1), duckdb.connect()
    ours.register("t", EXAMPLE)
    reference.register("example", EXAMPLE)
    reference.execute("CREATE TABLE t AS SELECT * FROM example")
    return ours, reference


# the block of README.md


def _notebook(body: str) -> str:
    """What the last line of the first example shows."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    code = re.search(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert code is not None
    *before, last = code[1].strip().splitlines()
    namespace: dict[str, Any] = {}
    exec("\n".join(before), namespace)  # noqa: S102 - our own documents
    return _fenced(str(eval(last, namespace)))


# blocks of docs/architecture.md


def _fenced(text: str, language: str = "") -> str:
    return f"```{language}\n{text}\n```\n"


def _query(body: str) -> str:
    return _fenced(QUERY, "sql")


def _bound(body: str) -> str:
    return _fenced(explain_logical(bind(QUERY, _architecture()._snapshot()).plan))


def _optimized(body: str) -> str:
    return _fenced(explain_logical(optimize(bind(QUERY, _architecture()._snapshot()).plan)))


def _physical(body: str) -> str:
    return _fenced(explain_physical(plan_physical(optimize(bind(QUERY, _architecture()._snapshot()).plan))))


def _program() -> TensorProgram:
    return _architecture().compile(QUERY)


def _code(body: str) -> str:
    """The second and the third pipeline: the others only read and write what these make."""
    pipelines = _program().code.split("\n\n# pipeline ")
    return _fenced("# pipeline " + "\n\n# pipeline ".join(pipelines[1:3]), "python")


def _stored(body: str) -> str:
    lines = ["| column | type | stored as | validity |", "|---|---|---|---|"]
    for table in _program().tables.values():
        for name in table.columns:
            column = table.source.column(name)
            values = "row i is entry i of the pool" if column.values is None else _tensor_text(column.values)
            if column.pool_is_dictionary and column.pool is not None:
                values += f", codes into a sorted dictionary of {column.pool.num_rows}"
            validity = "none" if column.validity is None else "bool"
            lines.append(f"| `{table.source.name}.{name}` | {column.data_type} | {values} | {validity} |")
    return "\n".join(lines) + "\n"


def _tensor_text(values: Any) -> str:
    return f"{str(values.dtype).removeprefix('torch.')} {list(values.shape)}"


def _run(body: str) -> str:
    lines = ["| pipeline | source | breaker | order of its states matters |", "|---|---|---|---|"]
    for number, pipeline in enumerate(_program().steps(), 1):
        assert isinstance(pipeline, Pipeline)
        source = pipeline.source_slot.removeprefix("table_")
        ordered = "yes" if pipeline.breaker.ordered else "no"
        lines.append(f"| {number} | {source} | `{type(pipeline.breaker).__name__}` | {ordered} |")
    return "\n".join(lines) + "\n"


def _layers(body: str) -> str:
    """The layers of the first contract, the upper ones first."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = " > ".join(settings["tool"]["importlinter"]["contracts"][0]["layers"])
    return _fenced(textwrap.fill(layers, 128))


def _rules(body: str) -> str:
    lines = []
    for name, rule in RULES:
        module = inspect.getmodule(rule)
        assert module is not None
        needed = "; cannot be switched off" if name in REQUIRED else ""
        lines.append(f"- `{name}`{needed}: {_first_line(Path(str(module.__file__)))}")
    lines.append(f"- when the physical plan is made: {', '.join(f'`{name}`' for name in PHYSICAL_RULES)}")
    return "\n".join(lines) + "\n"


def _house(body: str) -> str:
    """Every room with the first line of its `__init__.py` and the names of its files."""
    lines = []
    for top in ("tqp", "planner", "operators", "tpch", "tests/random"):
        for room in sorted(path.parent for path in (ROOT / top).rglob("__init__.py")):
            if any(parent.is_symlink() for parent in (room, *room.parents)):
                continue
            files = [f"`{path.stem}`" for path in sorted(room.glob("*.py")) if path.name != "__init__.py"]
            about = f"{_first_line(room / '__init__.py')} {', '.join(files)}".strip()
            lines.append(f"- **`{room.relative_to(ROOT)}/`** {about}")
    return "\n".join(lines) + "\n"


def _first_line(path: Path) -> str:
    """The first sentence of a module's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


# blocks of docs/semantics.md


def _table_t(body: str) -> str:
    return _fenced(str(_semantics()[0].sql("SELECT * FROM t")))


def _types(body: str) -> str:
    """Fills the Arrow columns; what is stored is written by hand."""
    return _table(
        ("type", "stored as", "Arrow types read", "Arrow type written"), type_rows(_table_rows(body))
    )


def _checked(body: str) -> str:
    """Both engines give the same rows of the same types, or both refuse."""
    filled = []
    for sql, *_ in _table_rows(body):
        ours, types = _ours(_unquoted(sql))
        theirs, their_types = _theirs(_unquoted(sql))
        if types is None:
            assert their_types is None, f"DuckDB answers {sql}: {theirs}"
        else:
            assert (ours, types) == (theirs, their_types), sql
        filled.append((sql, ours, types or ""))
    return _table(("query", "answer", "types"), filled)


def _lists(_: str) -> str:
    """What both engines answer for each condition and list."""
    lists: list[list[Any] | None] = [[1, 2], [1, None], [], None]
    filled = []
    for condition in ("i IN $l", "i NOT IN $l", "i = ANY($l)", "i <> ALL($l)"):
        answers = []
        for values in lists:
            sql = f"SELECT {condition} FROM (VALUES (1), (3), (NULL)) t(i)"
            ours, theirs = (
                tqp.sql(sql, {}, params={"l": values}).fetchall(),
                duckdb.execute(sql, {"l": values}),
            )
            assert ours == theirs.fetchall(), (sql, values)
            answers.append(_rows_text(ours))
        filled.append((f"`{condition}`", *answers))
    shown = ["NULL" if values is None else f"`{values}`" for values in lists]
    return _table(("of 1 / 3 / NULL", *shown), filled)


def _different(body: str) -> str:
    """The engines differ; why is written by hand."""
    filled = []
    for sql, *cells in _table_rows(body):
        ours, types = _ours(_unquoted(sql))
        theirs, their_types = _theirs(_unquoted(sql))
        assert (ours, types) != (theirs, their_types), f"{sql}: no difference any more"
        if ours == theirs:
            ours, theirs = f"{ours} {types}", f"{theirs} {their_types}"
        filled.append((sql, theirs, ours, cells[-1] if len(cells) >= 3 else ""))
    return _table(("query", "DuckDB", "tqp", "why"), filled)


def _unsupported(body: str) -> str:
    """DuckDB answers, tqp says that it does not."""
    ours, reference = _semantics()
    filled = []
    for sql, *_ in _table_rows(body):
        reference.execute(_unquoted(sql)).fetchall()
        with pytest.raises((UnsupportedError, tqp.BindError, tqp.ParseError)) as caught:
            ours.sql(_unquoted(sql)).fetchall()
        filled.append((sql, type(caught.value).__name__, caught.value.message.replace("|", "\\|")))
    return _table(("query", "error", "message"), filled)


ERRORS = (
    "SELECT i FORM t",
    "SELECT i FROM t WHERE dya = 1",
    "SELECT i + s FROM t",
    "SELECT lenght(s) FROM t",
    "SELECT i, sum(d) FROM t",
    "SELECT * FROM t AT (VERSION => 1)",
    "SELECT i * 2147483647 FROM t",
    "SELECT i // 0 FROM t",
    "SELECT CAST(s AS INTEGER) FROM t",
    "SELECT (SELECT i FROM t) AS one",
)


def _errors(body: str) -> str:
    shown = []
    for sql in ERRORS:
        with pytest.raises(tqp.Error) as caught:
            _semantics()[0].sql(sql).fetchall()
        shown.append(f"{type(caught.value).__name__}: {caught.value}")
    with tqp.connect(threads=1, memory_limit="1MiB") as connection:
        connection.register("wide", {"x": np.arange(1 << 24)})
        with pytest.raises(tqp.ResourceError) as limited:
            connection.sql("SELECT x * 2 AS y FROM wide ORDER BY y")
    shown.append(f"ResourceError: {limited.value}")
    return _fenced("\n\n".join(shown))


def _functions(body: str) -> str:
    scalars = ", ".join(f"`{name}`" for name in sorted(function_names() - {*aggregate_names()}))
    grouped = ", ".join(f"`{name}`" for name in sorted(aggregate_names()))
    windows = ", ".join(f"`{name}`" for name in sorted(window_names()))
    return (
        f"Scalar functions: {scalars}.\n\nAggregate functions: {grouped}.\n\nWindow functions: {windows}.\n"
    )


def _supported(body: str) -> str:
    """One line for each converter: the classes that it takes, and what it says of itself."""
    classes: dict[tuple[str, str], list[str]] = {}
    for name, converter in SUPPORTED.items():
        library, cls = name.split(".")
        told = " ".join((inspect.getdoc(converter) or "").split("\n\n")[0].split())
        classes.setdefault((library, told), []).append(cls)
    lines = ["| library | classes | what of them |", "|---|---|---|"]
    for (library, told), names in classes.items():
        lines.append(f"| {library} | {', '.join(f'`{name}`' for name in names)} | {told.replace('|', '')} |")
    return "\n".join(lines) + "\n"


def _onnx(body: str) -> str:
    return ", ".join(f"`{name}`" for name in sorted(OPERATORS)) + ".\n"


def _ours(sql: str) -> tuple[str, str | None]:
    try:
        result = _semantics()[0].sql(sql)
        return _rows_text(result.fetchall()), ", ".join(map(str, result.types))
    except tqp.Error as error:
        return type(error).__name__, None


def _theirs(sql: str) -> tuple[str, str | None]:
    try:
        relation = _semantics()[1].sql(sql)
        return _rows_text(relation.fetchall()), ", ".join(map(str, relation.types))
    except duckdb.Error as error:
        return type(error).__name__, None


def _rows_text(rows: Sequence[Sequence[Any]]) -> str:
    return " / ".join(", ".join(map(_value_text, row)) for row in rows) or "no rows"


def _value_text(value: Any) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return str(value).lower()
        case str():
            return f"'{value}'"
        case datetime.datetime():
            return value.isoformat(" ")
    return str(value)


# tables in Markdown


def _table_rows(body: str) -> list[list[str]]:
    lines = [line for line in body.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(cells) + " |\n" for cells in (head, *rows)]
    return "".join([lines[0], "|---" * len(head) + "|\n", *lines[1:]])


def _unquoted(cell: str) -> str:
    return cell.strip("`").replace("\\|", "|")


BLOCKS: dict[str, Callable[[str], str]] = {
    "notebook": _notebook,
    "query": _query,
    "bound": _bound,
    "optimized": _optimized,
    "physical": _physical,
    "code": _code,
    "stored": _stored,
    "run": _run,
    "layers": _layers,
    "rules": _rules,
    "house": _house,
    "table t": _table_t,
    "types": _types,
    "lists": _lists,
    "checked": _checked,
    "different": _different,
    "unsupported": _unsupported,
    "errors": _errors,
    "functions": _functions,
    "supported": _supported,
    "onnx": _onnx,
}

_BLOCK = re.compile(r"(<!-- made: ([\w ]+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def test_the_life_of_a_query_is_short() -> None:
    assert len((ROOT / "docs/architecture.md").read_text(encoding="utf-8").splitlines()) <= 300


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_what_is_made_by_the_program_is_up_to_date(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    made = _BLOCK.sub(lambda match: match[1] + BLOCKS[match[2]](match[3]) + match[4], text)
    if UPDATE and made != text:
        path.write_text(made, encoding="utf-8")
        return
    assert made == text, f"write it anew with TQP_UPDATE_DOCS=1 pytest {Path(__file__).relative_to(ROOT)}"


def test_every_block_is_used() -> None:
    used = {match[2] for path in DOCUMENTS for match in _BLOCK.finditer(path.read_text(encoding="utf-8"))}
    assert used == set(BLOCKS)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_python_examples_run(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = _BLOCK.sub("", path.read_text(encoding="utf-8"))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for code in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        exec(compile(code, str(path), "exec"), namespace)  # noqa: S102 - our own documents


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_files_that_are_named_exist(path: Path) -> None:
    text = _BLOCK.sub("", path.read_text(encoding="utf-8"))
    links = [link.split("#")[0] for link in re.findall(r"\]\(([^)]+)\)", text) if "://" not in link]
    assert all((path.parent / link).exists() for link in links if link)
    named = re.findall(r"`((?:[\w.]+/)+[\w.]*)`", text)
    missing = [name for name in named if not any((base / name).exists() for base in (ROOT, path.parent))]
    assert not missing
