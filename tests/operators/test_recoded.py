"""Accents, composed characters, URLs and escapes of every code point, as DuckDB has them."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest

import tqp


@pytest.mark.slow
def test_every_code_point() -> None:
    codes = [code for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]
    rows = pa.table({"t": [f"e{chr(code)}" for code in codes]})
    items = "strip_accents(t), nfc_normalize(t), url_encode(t), url_decode(url_encode(t)), regexp_escape(t)"
    expected = duckdb.sql(f"SELECT {items} FROM rows").to_arrow_table()
    with tqp.connect() as connection:
        connection.register("rows", rows)
        found = connection.sql(f"SELECT {items} FROM rows").to_arrow()
    for mine, theirs in zip(found.columns, expected.columns, strict=True):
        pairs = zip(codes, mine.to_pylist(), theirs.to_pylist(), strict=True)
        assert [hex(code) for code, text, other in pairs if text != other] == []
