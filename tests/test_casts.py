"""TRY_CAST of the edges of every type to every type, as constants and as columns, held against DuckDB's answers.

Dates, times and timestamps are compared as the integers that they are, so that infinite ones and those that Python has
no object for count too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tqp
from tests.oracle import assert_same_rows, duckdb_database

_TEXTS = [
    *(
        "",
        "abc",
        " 12 ",
        "+5",
        "-0",
        "1_000",
        "1__0",
        "1e3",
        "1E-3",
        "1e1_0",
        "0x1F",
        "0b101",
        "1.5",
        "-2.5",
        ".5",
        "5.",
    ),
    *(
        "1e",
        "e5",
        "--5",
        "+-5",
        "+-inf",
        "++5",
        "+",
        "1e400",
        "1e-400",
        "1e39",
        "999.995",
        "20240101",
        "-0.4",
        "nan",
        "-inf",
        "Infinity",
    ),
    *(
        "true",
        "T",
        "YES",
        "on",
        " true",
        "2024-01-01",
        "2024-1-1",
        "2024-02-30",
        "2024/01/01",
        "epoch",
        "infinity",
    ),
    *(
        "2024-01-01 10:11:12",
        "2024-01-01T10:11:12Z",
        "2024-01-01 10:11:12.123456789+05:30",
        "2024-01-01 24:00:00",
    ),
    *("2024-01-01 10:11:60", "2024-01-01 10:", "2024-01-01 (BC)", "10000-01-01", "-5-01-01", "5881580-07-10"),
    *("294247-01-10 04:00:54.775806", "1677-09-21 00:12:43.145224194", "2262-04-12", "9999-12-31 23:59:60"),
    *(
        "10:11",
        "10:11:12.5",
        "24:00:00",
        "11:",
        "11:5:",
        "11::05",
        "25:00:00",
        "11:05 ",
        "12:30:45 PM",
        "-1:00",
    ),
    *(
        "1 day",
        "1.5 months",
        "0.05 year",
        "0.004 decade",
        "1.55 quarter",
        "-3 years 2 days 04:05:06",
        "1 day ago",
    ),
    *(
        "90 minutes",
        "1 day 2",
        "99999999999 years",
        "0.0000005 seconds",
        r"\x41",
        "99999999999999999999",
        "1 2",
    ),
    *(
        "{019482e4-1441-7aad-8127-eec99573b0a0}",
        "019482E414417aad8127eec99573b0a0",
        "-0194-82e4-1441-7aad-8127-eec9-9573-b0a0-",
        "019482e4-1441-7aad-8127-eec99573b0a",
        "019482e4-1441-7aad-8127_eec99573b0a0",
        "{019482e4-1441-7aad-8127-eec99573b0a0",
    ),
]

_EDGES: dict[str, list[str]] = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["0", "127", "-128"],
    "SMALLINT": ["1", "32767", "-32768", "256"],
    "INTEGER": ["2147483647", "-2147483648", "65536", "16777217"],
    "BIGINT": ["9223372036854775807", "-9223372036854775808", "9007199254740993", "4294967296"],
    "HUGEINT": [
        "0",
        "170141183460469231731687303715884105727",
        "-170141183460469231731687303715884105728",
        "300",
    ],
    "UHUGEINT": [
        "340282366920938463463374607431768211455",
        "170141183460469231731687303715884105728",
        "99999999999999999999999999999999999999",
        "300",
        "0",
    ],
    "UTINYINT": ["255", "128"],
    "USMALLINT": ["65535", "256"],
    "UINTEGER": ["4294967295", "1"],
    "UBIGINT": ["18446744073709551615", "9223372036854775808", "1000"],
    "DECIMAL(4,1)": ["0.5", "-0.5", "999.9", "127.5", "255.4"],
    "DECIMAL(9,9)": ["0", "-0.5", "0.999999999"],
    "DECIMAL(18,3)": ["999999999999999.999", "1.499", "2.500"],
    "DECIMAL(38,10)": ["9999999999999999999999999999.9999999999", "-2.5", "9223372036854775807.5", "0"],
    "DECIMAL(38,38)": ["0.99999999999999999999999999999999999999", "-0.5"],
    "FLOAT": [
        "0",
        "-0.0",
        "nan",
        "inf",
        "-inf",
        "0.5",
        "-2.5",
        "3.4028235e38",
        "1e-45",
        "153.328125",
        "127.5",
        "57741808",
    ],
    "DOUBLE": [
        "-0.0",
        "nan",
        "-inf",
        "1.5",
        "2.5",
        "1e308",
        "5e-324",
        "9007199254740993",
        "1e39",
        "255.5",
        "1e16",
    ]
    + ["1.7014118346046923e38", "-1.7014118346046923e38", "9223372036854775807", "999.95", "0.9999999995"],
    "VARCHAR": _TEXTS,
    "BLOB": [r"\x00\xFF", "abc", "", "0123456789abcdef"],
    "DATE": [
        "2024-02-29",
        "0001-01-01",
        "infinity",
        "-infinity",
        "5881580-07-10",
        "5877642-06-25 (BC)",
        "294247-01-10",
    ]
    + ["294247-01-11", "290309-12-22 (BC)", "290309-12-21 (BC)", "1677-09-21", "1677-09-22", "2262-04-12"],
    "TIME": ["00:00:00", "23:59:59.999999", "24:00:00"],
    "TIMETZ": ["00:00:00+15:59:59", "23:59:59.999999+00", "24:00:00-15:59:59", "12:00:00-00:30"],
    "TIMESTAMP": ["1969-12-31 23:59:59.999999", "infinity", "-infinity", "294247-01-10 04:00:54.775806"]
    + [
        "290309-12-22 (BC) 00:00:00",
        "1677-09-21 00:12:43.145224",
        "2262-04-11 23:47:16.854776",
        "1950-01-01 00:00:00.5",
    ],
    "TIMESTAMP_S": ["9999-12-31 23:59:59", "infinity", "294247-01-10 04:00:54"],
    "TIMESTAMP_MS": ["1969-12-31 23:59:59.999", "-infinity", "9999-12-31 23:59:59.999"],
    "TIMESTAMP_NS": [
        "1970-01-01 00:00:00.000000001",
        "infinity",
        "1969-12-31 23:59:59.9999996",
        "1677-09-22 00:00:00",
    ],
    "TIMESTAMPTZ": ["infinity", "2024-02-29 12:34:56.789123+00", "294247-01-10 04:00:54.775806+00"],
    "BIT": ["0", "1", "01", "11111111", "100000000", "0" * 15 + "1", "1" * 64, "1" + "0" * 127, "01" * 65],
    "UUID": [
        "00000000-0000-0000-0000-000000000000",
        "7fffffff-ffff-ffff-ffff-ffffffffffff",
        "80000000-0000-0000-8000-000000000001",
        "FFFFFFFF-FFFF-FFFF-FFFF-FFFFFFFFFFFF",
    ],
    "INTERVAL": ["0 days", "1 year 2 months 3 days 04:05:06.789", "-00:00:01.5", "30 days", "1 month -1 day"],
}
_TARGETS = [*_EDGES, "DECIMAL(1,0)", "DECIMAL(5,5)"]
#: DuckDB gives Arrow these in another type; they come as text and are cast back.
_AS_TEXT = ("HUGEINT", "UHUGEINT", "INTERVAL", "UUID", "TIMETZ", "BIT")


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _casts(value: str, source: str) -> str:
    targets = enumerate(target for target in _TARGETS if target != source)
    casts = ((number, f"TRY_CAST({value} AS {target})", target) for number, target in targets)
    return ", ".join(  # Arrow has no UHUGEINT beyond 127 bits
        f"{f'CAST({cast} AS VARCHAR)' if target == 'UHUGEINT' else cast} AS c{number}"
        for number, cast, target in casts
    )


def _columns(table: pa.Table) -> list[list[Any]]:
    columns = []
    for column in table.combine_chunks().columns:
        values = pa.concat_arrays(column.chunks)
        if pa.types.is_date(values.type):
            values = values.view(pa.int32())
        elif pa.types.is_temporal(values.type) and not pa.types.is_interval(values.type):
            values = values.view(pa.int64())
        # repr tells NaN and -0.0 from other floats, as == does not
        columns.append([repr(value) for value in values.to_pylist()])
    return columns


@pytest.mark.parametrize("source", _EDGES)
def test_try_cast_agrees_with_duckdb(source: str) -> None:
    edges = ", ".join(f"(CAST({_quoted(text)} AS {source}))" for text in [*_EDGES[source]])
    values = f"(VALUES {edges}, (NULL)) t(v)"
    with tqp.connect(threads=1) as connection, duckdb_database() as oracle:
        oracle.execute("SET TimeZone = 'UTC'")
        stored = "CAST(v AS VARCHAR) AS v" if source in _AS_TEXT else "v"
        connection.register("t", oracle.sql(f"SELECT {stored} FROM {values}").to_arrow_table())
        rows = f"(SELECT CAST(v AS {source}) AS v FROM t) q" if source in _AS_TEXT else "t"
        expected = oracle.sql(f"SELECT {_casts('v', source)} FROM {values}").to_arrow_table()
        actual = connection.sql(f"SELECT {_casts('v', source)} FROM {rows}").to_arrow()
        assert actual.schema.types == expected.schema.types
        wanted = _columns(expected)
        assert _columns(actual) == wanted
        for row, text in enumerate(_EDGES[source]):
            constant = _quoted(text) if source == "VARCHAR" else f"CAST({_quoted(text)} AS {source})"
            folded = connection.sql(f"SELECT {_casts(constant, source)}").to_arrow()
            assert _columns(folded) == [[column[row]] for column in wanted], text


def test_cast_raises_where_try_cast_gives_null() -> None:
    with tqp.connect(threads=1) as connection:
        for query in (
            "SELECT '9999-12-31'::TIMESTAMP_NS",
            "SELECT DATE '0001-01-01'::TIMESTAMP_NS",
            "SELECT 1e308::DECIMAL(18,3)",
            "SELECT '11::05'::TIME",
            "SELECT 'e5'::DOUBLE",
            "SELECT TIMESTAMP 'infinity'::TIME",
            "SELECT CAST(s AS DECIMAL(38,38)) FROM (VALUES ('20240101')) t(s)",
            "SELECT CAST(x AS HUGEINT) FROM (VALUES (-1.7014118346046923e38)) t(x)",
            "SELECT CAST(x AS TIMESTAMP_S) FROM (VALUES (TIMESTAMP '294247-01-10 04:00:54.775806')) t(x)",
        ):
            with pytest.raises(tqp.ExecutionError):
                connection.sql(query).fetchall()


def test_text_of_floats() -> None:
    """32-bit floats get their shortest digits, and the exact value where DuckDB's algorithm finds these unclear."""
    generator = np.random.default_rng(1)
    bits = generator.integers(0, 2**32, 5_000, np.uint64).astype(np.uint32).view(np.float32)
    around = [(generator.random(1_000, np.float32) - 0.5) * scale for scale in (1e3, 1e6, 1e8, 1e9, 1e12)]
    singles = pa.array(np.concatenate([bits, *around]).astype(np.float32))
    doubles = pa.array(generator.random(5_000) * 10.0 ** generator.integers(-20, 20, 5_000))
    for floats in (singles, doubles):
        assert_same_rows({"t": pa.table({"x": floats})}, "SELECT CAST(x AS VARCHAR) FROM t")
