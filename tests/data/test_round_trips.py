"""Values of every type on each way out and in again, as hypothesis finds them: the same values of the same type."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import tqp
from tqp.core.datatypes import TypeKind

_DAY = st.dates(datetime.date(1, 1, 1), datetime.date(9999, 12, 31))
_TIME = st.times()
_ZONE = st.integers(-15 * 60 + 1, 15 * 60 - 1)
#: Any text but NUL, which SQL text cannot hold, and halves of characters.
_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


def _integers(bits: int, signed: bool) -> st.SearchStrategy[str]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    return st.integers(low, high).map(str)


def _decimals(precision: int, scale: int) -> st.SearchStrategy[str]:
    return st.integers(-(10**precision) + 1, 10**precision - 1).map(
        lambda whole: (
            f"{'-' if whole < 0 else ''}{abs(whole) // 10**scale}.{abs(whole) % 10**scale:0{scale}d}"
        )
    )


def _zone(minutes: int) -> str:
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"


def _lists(values: st.SearchStrategy[Any], write: Callable[[Any], str]) -> st.SearchStrategy[str]:
    return st.lists(st.none() | values, max_size=4).map(
        lambda each: f"[{', '.join('NULL' if value is None else write(value) for value in each)}]"
    )


#: By type, texts that a cast makes its values of.
TEXTS: dict[str, st.SearchStrategy[str]] = {
    "BOOLEAN": st.sampled_from(["true", "false"]),
    **{f"{name}INT": _integers(bits, True) for name, bits in (("TINY", 8), ("SMALL", 16), ("BIG", 64))},
    **{f"U{name}INT": _integers(bits, False) for name, bits in (("TINY", 8), ("SMALL", 16), ("BIG", 64))},
    "INTEGER": _integers(32, True),
    "UINTEGER": _integers(32, False),
    "HUGEINT": _integers(128, True),
    "UHUGEINT": st.integers(0, (1 << 127) - 1).map(str),  # Arrow and Parquet have none beyond, which is said
    "DECIMAL(4,1)": _decimals(4, 1),
    "DECIMAL(18,3)": _decimals(18, 3),
    "DECIMAL(38,10)": _decimals(38, 10),
    "FLOAT": st.floats(width=32).map(repr),
    "DOUBLE": st.floats().map(repr),
    "VARCHAR": _TEXT,
    "BLOB": st.binary(max_size=9).map(lambda each: "".join(f"\\x{byte:02X}" for byte in each)),
    "DATE": _DAY.map(str),
    "TIME": _TIME.map(str),
    "TIME WITH TIME ZONE": st.tuples(_TIME, _ZONE).map(lambda each: f"{each[0]}{_zone(each[1])}"),
    "TIMESTAMP": st.tuples(_DAY, _TIME).map(lambda each: f"{each[0]} {each[1]}"),
    "TIMESTAMP_S": st.tuples(_DAY, _TIME).map(lambda each: f"{each[0]} {each[1].replace(microsecond=0)}"),
    "TIMESTAMP_MS": st.tuples(_DAY, _TIME).map(lambda each: f"{each[0]} {each[1].replace(microsecond=0)}.123"),
    "TIMESTAMP_NS": st.datetimes(datetime.datetime(1700, 1, 1), datetime.datetime(2200, 1, 1)).map(
        lambda each: f"{each:%Y-%m-%d %H:%M:%S.%f}789"
    ),
    "TIMESTAMP WITH TIME ZONE": st.tuples(_DAY, _TIME).map(lambda each: f"{each[0]} {each[1]}+00"),
    "INTERVAL": st.tuples(st.integers(-2400, 2400), st.integers(-9999, 9999), st.integers(-(10**12), 10**12)).map(
        lambda each: f"{each[0]} months {each[1]} days {each[2]} microseconds"
    ),
    "UUID": st.uuids().map(str),
    "ENUM('lo', 'hi', 'ä')": st.sampled_from(["lo", "hi", "ä"]),
    "BIT": st.text("01", min_size=1, max_size=20),
    "UNION(i INTEGER, s VARCHAR)": st.integers(-9, 9).map(str) | st.sampled_from(["x", "ä"]),
    "INTEGER[]": _lists(st.integers(-(2**31), 2**31 - 1), str),
    "VARCHAR[]": _lists(st.sampled_from(["", "a", "ä b", "NULL", "x,y", '"', "'", "[", "\n"]), lambda each: "'" + each.replace("'", "\\'") + "'"),
    "STRUCT(a INTEGER, b VARCHAR)": st.tuples(st.integers(-9, 9), st.sampled_from(["x", "ä", "NULL"])).map(
        lambda each: f"{{'a': {each[0]}, 'b': '{each[1]}'}}"
    ),
    "MAP(VARCHAR, DOUBLE)": st.dictionaries(st.sampled_from("abc"), st.floats(-9, 9)).map(
        lambda each: "{" + ", ".join(f"'{key}'={value!r}" for key, value in each.items()) + "}"
    ),
}  # fmt: skip

#: Where values are not the same, as docs/data.md says, or what refuses them.
INEXACT: dict[str, tuple[str, ...]] = {
    "parquet": ("INTERVAL", "TIME WITH TIME ZONE"),  # of which the time in UTC is kept
    "csv": ("UNION",),  # is text there, as in DuckDB
    "json": ("DECIMAL(18", "DECIMAL(38", "BIT"),  # numbers have 53 bits, and BITs are not read, as in DuckDB
    "arrow": ("TIME WITH TIME ZONE", "BIT"),  # which are bytes there, as in DuckDB
    "pandas": (
        "HUGEINT",
        "UHUGEINT",
        "DECIMAL",
        "INTERVAL",
        "TIMESTAMP_S",
        "DATE",
        "TIMESTAMP_MS",
        "MAP",
        "UNION",
        "BIT",
    ),
    "polars": ("INTERVAL", "UUID", "MAP", "TIME WITH TIME ZONE", "UNION", "BIT"),
    "torch": (),
}
#: What has a tensor that is exact.
_TENSORS = (
    "BOOLEAN",
    "FLOAT",
    "DOUBLE",
    *(f"{name}INT" for name in ("TINY", "SMALL", "BIG", "UTINY")),
    "INTEGER",
)

Made = Callable[[tqp.Connection, tqp.Result, Path], str]


def _file(kind: str, options: str = "") -> Made:
    def copied(connection: tqp.Connection, result: tqp.Result, folder: Path) -> str:
        path = folder / f"t.{kind}"
        connection.sql(f"COPY t TO '{path}' {options}; CREATE OR REPLACE TABLE again AS FROM t LIMIT 0")
        connection.sql(f"COPY again FROM '{path}' {options}")
        return "again"

    return copied


def _object(make: Callable[[tqp.Result], Any]) -> Made:
    def registered(connection: tqp.Connection, result: tqp.Result, folder: Path) -> str:
        connection.register("data", make(result))
        return "data"

    return registered


def _parquet(connection: tqp.Connection, result: tqp.Result, folder: Path) -> str:
    path = folder / "t.parquet"
    result.write_parquet(path)
    return f"read_parquet('{path}')"


WAYS: dict[str, Made] = {
    "parquet": _parquet,
    "csv": _file("csv", "(NULL '<null>')"),
    "json": _file("json"),
    "arrow": _object(lambda result: result.to_arrow()),
    "pandas": _object(lambda result: result.to_pandas()),
    "polars": _object(lambda result: result.to_polars()),
    "torch": _object(lambda result: result.to_torch()),
}


@pytest.fixture(scope="module")
def connection() -> Any:
    with tqp.connect(threads=1) as opened:
        yield opened


@pytest.mark.parametrize("name", TEXTS)
def test_round_trips(connection: tqp.Connection, tmp_path: Path, name: str) -> None:
    @settings(max_examples=4, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(st.lists(st.none() | TEXTS[name], max_size=12))
    @example([])
    @example([None])
    def there_and_back(texts: list[str | None]) -> None:
        rows = pa.table({"n": pa.array(range(len(texts)), pa.int32()), "text": pa.array(texts, pa.string())})
        connection.register("rows", rows)
        connection.sql(f"CREATE OR REPLACE TABLE t AS SELECT n, CAST(text AS {name}) AS v FROM rows")
        result = connection.sql("FROM t ORDER BY n")
        for way, make in WAYS.items():
            if name.startswith(INEXACT.get(way, ())) or (
                way == "torch" and (name not in _TENSORS or None in texts)
            ):
                continue
            again = make(connection, result, tmp_path)
            found = connection.sql(f"SELECT n, CAST(v AS {name}) AS v FROM {again} ORDER BY n")
            assert repr(found.fetchall()) == repr(result.fetchall()), way

    there_and_back()


def test_every_type_has_its_values() -> None:
    """But JSON, which is text, NULL, and FLOAT[n], whose rows are tensors."""
    with tqp.connect(threads=1) as connection:
        kinds = {connection.sql(f"SELECT CAST(NULL AS {name})").types[0].kind for name in TEXTS}
    assert kinds == set(TypeKind) - {TypeKind.NULL, TypeKind.ARRAY}
