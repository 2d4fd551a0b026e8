"""CSV files: DuckDB's answers where nothing is lost by them, and what is done where something would be."""

import datetime
import gzip
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tqp
from tqp.core.errors import ExecutionError


def read(file: Path) -> tuple[list[str], list[str], list[tuple[Any, ...]]]:
    with tqp.connect(threads=1) as connection:
        result = connection.register("t", file).sql("SELECT * FROM t")
        return list(result.columns), list(map(str, result.types)), result.fetchall()


def written(folder: Path, content: str | bytes) -> Path:
    file = folder / "x.csv"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return file


#: Read as DuckDB reads them: names, types and rows.
AS_DUCKDB = {
    "typed": "a,b,c,d,e,f,g\n1,2.5,x,2020-01-01,2020-01-01 10:00:00,true,\n2,,,2020-01-02,2020-01-01 10:00:00.5,false,\n",
    "quoted": 'a,b\n"x, y","line\nbreak"\n"say ""hi""",\n',
    "no header": "1,2.5,x\n2,3.5,y\n",
    "header and strings": "a,b\nx,y\nz,w\n",
    "semicolon": "x;y\n1;2\n",
    "tab": "x\ty\n1\t2\n",
    "pipe": "a|b\n1|2\n",
    "one column": "number\n1\n2\n",
    "accents": "städte,größe\nMünchen,3\n",
    "leading zero": "a,b\n01234,x\n05,y\n",
    "leading zero in one row": "a\n012\n12\n",
    "leading zero of a fraction": "a\n01.5\n",
    "zeros": "a\n0\n00\n",
    "beyond 64 bits": "a\n9223372036854775808\n1\n",
    "far beyond 64 bits": "a\n99999999999999999999\n-5\n",
    "telephone number": "a\n+4712345678\n",
    "plus": "a\n+1.5\n",
    "many digits after the point": "a\n1.12345678901234567890123\n",
    "exponents": "a,b\n1e5,1E+3\n",
    "bare points": "a\n.5\n5.\n",
    "whole numbers and fractions": "a\n1\n2.5\n",
    "no numbers": "a,b,c,d\n1_000,$5,5%,1 2\n",
    "infinity": "a,b\n1.5,-1\ninf,-Infinity\n",
    "thousands": 'a\n"1,000"\n',
    "comma as point": "a;b\n1,5;2\n",
    "blanks around numbers": "a,b\n 1, 2\n3 ,4\n",
    "blanks around text": "a,b\n1 ,x \n",
    "booleans": "a,b,c,d,e\ntrue,T,yes,TRUE,t\nfalse,F,no,False,f\n",
    "mixed booleans": "a\ntrue\nf\nYES\n",
    "no booleans": "a,b\ny,on\nn,off\n",
    "booleans and numbers": "a\ntrue\n1\n",
    "dates": "a,b,c\n2024-01-02,2024/01/02,2024-1-2\n",
    "no date": "a\n2024-02-30\n",
    "digits of a date": "a\n20240102\n",
    "day first": "a,b\n2024-01-02,13.02.2024\n",
    **{
        f"written {date}": f"a\n{date.replace('|', chr(10))}\n"
        for date in (
            "01/02/2020",
            "02/13/2020",
            "1/2/2020",
            "13.02.2020",
            "13-02-2020",
            "20/01/31",
            "31/01/20",
            "01/31/20",
            "31-12-99",
            "2020.01.31",
            "2020 01 31",
            "31 1 2020",
            "31/01/2020|01/02/2020",
            "01/31/2020|01/02/2020",
            "12/2020",
            "1.5.2020",
            "01/02/2020|x",
            "31/02/2020",
            "31/01/2020|01-02-2020",
            "31/01/2020 10:00:00",
            "31.01.2020 10:00",
            "01/31/2020 10:00:00 PM",
            "01/31/2020 12:00:00 am",
            "01/31/2020 13:00:00 pm",
            "01/31/2020 10:00:00",
            "31/01/2020 10:00:00 PM",
            "2020/01/31 10:00:00",
        )
    },
    **{
        f"forms of {row}": f"{','.join('abc'[: row.count(',') + 1])}\n{row}\n"
        for row in (
            "2024-01-02,13.02.2024",
            "13/02/2024,13.02.2024",
            "13.02.2024,02.13.2024",
            "01.02.2024,02.13.2024",
            "02.13.2024,01.02.2024",
            "13.02.2024 10:00:00,13.02.2024",
            "13/02/2024,13.02.2024 10:00:00",
            "2024-01-02 10:00:00,13.02.2024 10:00:00",
            "x,13.02.2024,5",
            "13/02/2024,5,14/02/2024",
            "2024/01/02,13/02/2024,x",
        )
    },
    "dates and timestamps": "a\n2024-01-02\n2024-01-02 03:04:05\n",
    "dates and numbers": "a\n1\n2024-01-01\n",
    "timestamps": "a,b,c,d\n2024-01-02 03:04:05,2024-01-02T03:04:05,2024-01-02 03:04,2024/01/02 03:04:05\n",
    "microseconds": "a\n2024-01-02 03:04:05.123456\n",
    "an hour alone": "a\n2024-01-02 03\n",
    "times": "a,b,c\n01:02:03,1:02,01:02:03.123456\n",
    "no times": "a,b\n25:00:00,1:2\n",
    "times and dates": "a\n01:02:03\n2024-01-01\n",
    "byte order mark": "\ufeffa,b\n1,x\n",
    "NULL in one column": "a\n1\n\n3\n",
    "NULL in one column of text": "a\nx\n\nz\n",
    "NULL at the end of one column": "a\n1\n2\n\n",
    "empty line among two columns": "a,b\n1,2\n\n3,4\n",
    "escaped quote": 'a,b\n"x\\"y",1\n"z",2\n',
    "escaped quote and backslash": 'a,b\n"x\\\\y",1\n"z\\"w",2\n',
    "doubled quote": 'a,b\n"x""y",1\n',
    "backslashes": 'a,b\nx\\y,1\n"C:\\dir\\",1\n',
    "single quotes": "a,b\n'x,y',1\n'z',2\n",
    "apostrophe": "a,b\nit's,1\n",
    "both quotes": "a,b\n'x',1\n\"y\",2\n",
    "quote inside": 'a,b\nx"y,1\n',
    "last name empty": "a,b,\n1,2,3\n",
    "middle name empty": "a,,c\n1,2,3\n",
    "blank name": "a, \n1,2\n",
    "last name empty, all text": "a,b,\nx,y,z\n",
    "first name empty": ",x\na,y\n",
    "names with blanks": " a , b \n1,2\n",
    "quoted names": '"a b","c,d"\n1,2\n',
    "line break in a name": '"a\nb",c\n1,2\n',
    "names twice": "a,a,A\n1,2,3\n",
    "first row of numbers and text": "1,b\n1,x\n",
    "first row as the others": "a,1\nb,2\n",
    "first row of booleans": "true,x\nfalse,y\n",
    "first row of dates": "2024-01-01,x\n2024-01-02,y\n",
    "first row with NULL": ",x\n1,y\n",
    "one column of numbers": "1\n2\n",
    "one column of text": "x\ny\n",
    "names only": "a,b\n",
    "names only, without an end": "a,b",
    "a comma among bars": 'x|"a,b"|c\n1|2|3\n',
    "quoted numbers": 'a,b\n"1",2\n"3",4\n',
    "quoted nothing": 'a,b\n"",1\nx,2\n',
    "words for NULL": "a,b,c\nNULL,NA,null\nx,y,z\n",
    "only NULL": "a,b\n1,\n2,\n",
    "carriage returns": "a,b\r\n1,x\r\n2,y\r\n",
    "old line ends": "a,b\r1,x\r2,y\r",
    "NUL": "a,b\nx\0y,1\n",
    "JSON": 'a\n"{""x"": 1}"\n',
    "identifiers": "a,b\n550e8400-e29b-41d4-a716-446655440000,1234567890123456\n",
}


@pytest.mark.parametrize("text", AS_DUCKDB.values(), ids=AS_DUCKDB.keys())
def test_csv_agrees_with_duckdb(tmp_path: Path, text: str) -> None:
    file = written(tmp_path, text)
    expected = duckdb.sql(f"SELECT * FROM read_csv('{file}')")
    assert read(file) == (expected.columns, list(map(str, expected.types)), expected.fetchall())


#: Differences that docs/semantics.md gives the reasons of: text, type and values here, and DuckDB's type.
DIFFERENT = {
    "digits that a double loses": ("9007199254740993\n1.5", "VARCHAR", "9007199254740993", "DOUBLE"),
    "beyond DOUBLE": ("1e400", "VARCHAR", "1e400", "DOUBLE"),
    "beyond 128 bits": ("9" * 45, "VARCHAR", "9" * 45, "BIGNUM"),
    "hexadecimal": ("0x1F", "VARCHAR", "0x1F", "BIGINT"),
    "negative with a leading zero": ("-07", "VARCHAR", "-07", "BIGINT"),
    "nanoseconds of a time": ("01:02:03.123456789", "VARCHAR", "01:02:03.123456789", "TIME"),
    "nanoseconds": (
        "2024-01-02 03:04:05.123456789", "TIMESTAMP_NS", datetime.datetime(2024, 1, 2, 3, 4, 5, 123456), "TIMESTAMP",
    ),
    "late fraction": ("1\n" * 30_000 + "1.5", "DOUBLE", 1.0, "BIGINT"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "ours", "value", "theirs"), DIFFERENT.values(), ids=DIFFERENT.keys())
def test_no_type_loses_a_value(tmp_path: Path, text: str, ours: str, value: object, theirs: str) -> None:
    file = written(tmp_path, f"a\n{text}\n")
    names, types, rows = read(file)
    assert (names, types, rows[0]) == (["a"], [ours], (value,))
    assert list(map(str, duckdb.sql(f"FROM read_csv('{file}')").types)) == [theirs]


def test_all_rows_count_for_the_type(tmp_path: Path) -> None:
    _, types, rows = read(written(tmp_path, "a\n" + "1\n" * 30_000 + "x\n"))
    assert types == ["VARCHAR"] and rows[-1] == ("x",)


@pytest.mark.parametrize("padding", range(2))
def test_line_ends_in_quotes_where_arrow_reads_on(tmp_path: Path, padding: int) -> None:
    """More than the megabyte that Arrow reads at a time."""
    value = "\r\n" * 50
    _, _, rows = read(written(tmp_path, f'a,b\n{"9" * padding},""\n' + f'1,"{value}"\n' * 12_000))
    assert rows[1:] == [(1, value)] * 12_000


def test_nan(tmp_path: Path) -> None:
    _, types, rows = read(written(tmp_path, "a\nnan\n1.5\nNaN\n"))
    assert types == ["DOUBLE"] and str(rows) == "[(nan,), (1.5,), (nan,)]"


def test_timestamps_with_zones_are_instants(tmp_path: Path) -> None:
    _, types, rows = read(written(tmp_path, "a,b\n2024-01-02T03:04:05Z,2024-01-02 03:04:05+01:00\n"))
    assert types == ["TIMESTAMP WITH TIME ZONE"] * 2
    assert [value.hour for value in rows[0]] == [3, 2]


def test_compressed_csv(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "x.csv.gz", "wt") as stream:
        stream.write("a,d\n1,2020-01-01\n")
    assert read(tmp_path / "x.csv.gz")[2] == [(1, datetime.date(2020, 1, 1))]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("a,b\n1,2\n1,2,3\n", "Expected 2 columns, got 3"),
        ("a\nMünchen\n".encode("latin-1"), "line 2 is not UTF-8"),
        ("a,b\n1,2\n".encode("utf-16"), "is UTF-16; say encoding = 'utf-16'"),
    ],
)
def test_csv_that_cannot_be_read(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(ExecutionError, match=rf"cannot read .*x\.csv: .*{message}"):
        read(written(tmp_path, content))


def test_types_of_several_files_are_found_together(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("a,b\n1,x\n")
    (tmp_path / "2.csv").write_text("b,a\ny,2.5\n")
    assert read(tmp_path / "*.csv") == (["a", "b"], ["DOUBLE", "VARCHAR"], [(1.0, "x"), (2.5, "y")])
