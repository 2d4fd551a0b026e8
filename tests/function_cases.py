"""What `tests.function_matrix` evaluates: every overload of every scalar function and operator, and the edges of every type.

A case is an SQL expression with a place for each argument, and the values of each argument as texts; None is NULL.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from random import Random

from tests.random.values import DECIMALS, ENUMS, INTEGERS, WIDE_INTEGERS
from tqp.core.datatypes import DataType, TypeKind
from tqp.planner.functions import registry
from tqp.planner.functions.overloads import ANY, Overload

#: The most combinations of arguments of one case.
_MAX_ROWS = 250
_MAX_ROWS_OF_TWO = 300
_MAX_ROWS_OF_FORMS = 100

_DATES = (
    *("infinity", "-infinity", "5881580-07-10", "5881580-07-09", "5877642-06-25 (BC)", "5877642-06-26 (BC)"),
    *("294247-01-10", "294247-01-11", "294247-01-31", "290309-12-22 (BC)", "290309-12-21 (BC)"),
    *("1970-01-01", "1969-12-31", "2024-02-29", "2024-01-31", "1582-10-15", "1582-10-04", "0001-01-01"),
    *("0001-12-31 (BC)", "0005-02-28 (BC)", "1900-02-28", "9999-12-31", "2262-04-12", "1677-09-21"),
)
_INSTANTS = (
    *("infinity", "-infinity", "1970-01-01 00:00:00", "1969-12-31 23:59:59", "2024-02-29 12:34:56"),
    *("1582-10-15 00:00:00", "0001-01-01 00:00:00", "0001-12-31 (BC) 23:59:59", "2024-01-31 23:59:59"),
    *("9999-12-31 23:59:59",),
)
_LAST = ("294247-01-10 04:00:54.775806", "294247-01-10 04:00:54.775805", "294247-01-09 23:59:59.999999")
_FIRST = ("290309-12-22 (BC) 00:00:00", "290309-12-22 (BC) 00:00:00.000001", "290309-12-23 (BC) 00:00:00")
_SECONDS = ("294247-01-10 04:00:54", "294247-01-10 04:00:53", "290309-12-22 (BC) 00:00:00")
_NANOSECONDS = (
    *("infinity", "-infinity", "1970-01-01 00:00:00", "1969-12-31 23:59:59.999999999"),
    *("1970-01-01 00:00:00.000000001", "1677-09-22 00:00:00", "2262-04-11 23:47:16.854775806"),
    *("2262-04-11 23:47:16.854775805", "2024-02-29 12:34:56.123456789"),
)
_FLOATS = ("0", "-0.0", "1", "-1", "0.5", "-2.5", "nan", "inf", "-inf", "16777217")
_DOUBLE_ENDS = (
    *("1.7976931348623157e308", "-1.7976931348623157e308", "1.3e154", "2.2250738585072014e-308", "5e-324"),
    *("-5e-324", "9007199254740993", "9223372036854775807", "-9223372036854775808", "1e16", "1e-10", "710"),
    *("0.9999999999999999", "1.0000000000000002", "2", "3", "-3", "100.5", "1.7014118346046923e38"),
)
_VALUES: dict[str, tuple[str, ...]] = {
    "BOOLEAN": ("true", "false"),
    "FLOAT": (*_FLOATS, "3.4028235e38", "-3.4028235e38", "1.17549435e-38", "1e-45", "-1e-45", "1e10", "3"),
    "DOUBLE": (*_FLOATS, *_DOUBLE_ENDS),
    "VARCHAR": (
        *(
            "",
            "a",
            "ab",
            "abcabc",
            " x ",
            "Äö",
            "é",
            "e\u0301",
            "日本",
            "🦆",
            "a%b_c",
            "\\",
            "it's",
            "ß",
            "İ",
        ),
        *("1", "-0.0", "nan", "9223372036854775808", "2024-02-29", "infinity", "a,b,,c", "abc" * 40, "\x00a"),
    ),
    "JSON": ("null", "1", " [1, 2.50] ", '{"a": {"a": "x"}, "b": -0}', '"x"'),
    "BLOB": ("", "a", "\\x00", "\\xFF\\x00\\xC3", "abcabc", "\\xC3\\xA9"),
    "BIT": ("0", "1", "01", "10", "0101", "11111111", "000000001", "0110" * 20),
    "UUID": (
        *("00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000001"),
        *("7fffffff-ffff-ffff-ffff-ffffffffffff", "80000000-0000-4000-8000-000000000000"),
        *("ffffffff-ffff-ffff-ffff-ffffffffffff", "019482e4-1441-7aad-8127-eec99573b0a0"),
    ),
    "DATE": _DATES,
    "TIME WITH TIME ZONE": (
        *("00:00:00+00", "24:00:00-15:59:59", "00:00:00+15:59:59", "12:34:56.789-00:30"),
        *("11:00:00+00", "12:00:00+01", "24:00:00+00"),
    ),
    "TIME": ("00:00:00", "23:59:59.999999", "24:00:00", "12:34:56.789", "00:00:00.000001"),
    "TIMESTAMP": (*_INSTANTS, *_LAST, *_FIRST, "1969-12-31 23:59:59.999999", "2262-04-11 23:47:16.854776"),
    "TIMESTAMP_S": (*_INSTANTS, *_SECONDS),
    "TIMESTAMP_MS": (*_INSTANTS, "294247-01-10 04:00:54.775", "290309-12-22 (BC) 00:00:00"),
    "TIMESTAMP_NS": _NANOSECONDS,
    "TIMESTAMP WITH TIME ZONE": tuple(
        each if "infinity" in each else f"{each}+00"
        for each in (*_INSTANTS, *_LAST[:2], _FIRST[0], "0011-02-28 (BC) 00:00:00.5")
    ),
    "INTERVAL": (
        *("0 days", "1 day", "-1 day", "1 month", "-1 month", "30 days", "1 month -30 days", "24:00:00"),
        *("00:00:00.000001", "-00:00:00.000001", "13 months -2 days 25:00:00", "-00:00:01.5", "1 year"),
        *("2147483647 months", "-2147483648 months", "2147483647 days", "-2147483648 days"),
        *("9223372036854775807 microseconds", "-9223372036854775807 microseconds", "1000000 years"),
    ),
    "FLOAT[2]": (
        *("[0, 0]", "[1, 0]", "[-0.0, 1]", "[3, 4]", "[nan, 1]", "[inf, 1]", "[-inf, inf]", "[1e-45, 0]"),
        *("[3.4028235e38, 3.4028235e38]", "[-3.4028235e38, 1]", "[1e-30, 1e-30]", "[1e20, -1e20]"),
    ),
    **{sql_type: values[:6] for sql_type, values in ENUMS.items()},
}
_DECIMALS = (
    "DECIMAL(1,0)",
    "DECIMAL(4,1)",
    "DECIMAL(9,9)",
    "DECIMAL(18,0)",
    "DECIMAL(18,3)",
    "DECIMAL(19,0)",
)
_WIDE_DECIMALS = ("DECIMAL(38,0)", "DECIMAL(38,10)", "DECIMAL(38,38)")
_DECIMAL_PAIRS = (
    *((each, each) for each in (*_DECIMALS, *_WIDE_DECIMALS)),
    *(
        ("DECIMAL(4,1)", "DECIMAL(18,3)"),
        ("DECIMAL(18,3)", "DECIMAL(38,10)"),
        ("DECIMAL(9,9)", "DECIMAL(9,2)"),
    ),
    *(
        ("DECIMAL(38,0)", "DECIMAL(4,1)"),
        ("DECIMAL(18,0)", "DECIMAL(1,0)"),
        ("DECIMAL(38,0)", "DECIMAL(9,9)"),
    ),
)
_SIGNED = (*(each for each in INTEGERS if not each.startswith("U")), "HUGEINT")
_WHOLE = (*INTEGERS, "HUGEINT")
ALL_TYPES = (*_WHOLE, *_DECIMALS, *_WIDE_DECIMALS, *(each for each in _VALUES if each != "FLOAT[2]"))
#: Types that meet in comparisons and sums through a cast that may not hold every value.
_MIXED = (
    *(("BIGINT", "DOUBLE"), ("UBIGINT", "BIGINT"), ("HUGEINT", "UBIGINT"), ("BIGINT", "DECIMAL(18,3)")),
    *(("HUGEINT", "DECIMAL(38,10)"), ("DECIMAL(38,0)", "DOUBLE"), ("FLOAT", "DOUBLE"), ("BIGINT", "FLOAT")),
    *(("UTINYINT", "TINYINT"), ("DATE", "TIMESTAMP"), ("DATE", "TIMESTAMP_S"), ("DATE", "TIMESTAMP_NS")),
    *(("TIMESTAMP", "TIMESTAMP_NS"), ("TIMESTAMP_S", "TIMESTAMP"), ("TIMESTAMP_MS", "TIMESTAMP_S")),
    *(("TIMESTAMP", "TIMESTAMP_MS"), ("DATE", "TIMESTAMP_MS"), ("BOOLEAN", "TINYINT")),
)

_PARTS = (
    *("year", "month", "day", "decade", "century", "millennium", "quarter", "week", "isoyear", "hour"),
    *("minute", "second", "millisecond", "microsecond"),
)
_ALL_PARTS = (*_PARTS, "yearweek", "dow", "isodow", "doy", "era", "epoch", "epoch_ms", "julian", "nothing")
_FORMATS = (
    *(
        "%Y-%m-%d %H:%M:%S",
        "%d/%m/%y",
        "%a %A %b %B",
        "%j %U %W %u %w",
        "%f %n %g",
        "%I %p %-d %-m",
        "%%",
        "",
    ),
    *("%x", "%c", "%X", "%G-%V", "%Z", "%z", "%s", "%y", "%-H:%-M:%-S"),
)
_PATTERNS = ("", "a", "^a", "b$", ".", "a|b", "(a)(b)?", "[^a]+", "\\w*", "(?i)A", "\\", "[", "é", "^$", "x*")
_LIKES = ("", "%", "_", "a%", "%b", "%b%", "_b%", "\\%", "a\\", "é%", "a%b_c", "%%", "ab")
_COUNTS = ("-9223372036854775808", "-2", "-1", "0", "1", "2", "3", "4294967295", "9223372036854775807")
_FEW = ("-9223372036854775808", "-1", "0", "1", "3", "100")
_YEARS = (
    "-290307",
    "-5877641",
    "0",
    "-1",
    "1970",
    "2024",
    "1900",
    "294247",
    "5881580",
    "9223372036854775807",
)
_MONTHS = ("0", "1", "2", "6", "7", "12", "13", "-1", "9223372036854775807")
_DAYS = ("0", "1", "10", "11", "25", "28", "29", "30", "31", "32", "-9223372036854775808")
_HOURS = ("0", "4", "23", "24", "25", "-1", "9223372036854775807")
_MINUTES = ("0", "59", "60", "-1")
_SECOND_VALUES = (
    "0",
    "59.999999",
    "54.775807",
    "60",
    "-0.5",
    "nan",
    "inf",
    "59.9999999",
    "1e300",
    "0.0000005",
)
_DIGITS = (
    "-2147483648",
    "-400",
    "-39",
    "-38",
    "-19",
    "-3",
    "-1",
    "0",
    "1",
    "3",
    "9",
    "38",
    "400",
    "2147483647",
)
_FILLINGS = ("", " ", "xy", "é", "🦆")
_LENGTHS = ("-2147483648", "-1", "0", "1", "5", "40")
#: What an argument of a function may be, where the edges of its type say little or are too large.
_OF_ARGUMENT: dict[tuple[str, int], tuple[str, ...]] = {
    **{(each, 0): _PARTS for each in ("date_diff", "date_sub")},
    **{(each, 0): _ALL_PARTS for each in ("date_part", "date_trunc")},
    **{
        (each, 1): _PATTERNS
        for each in ("regexp_matches", "regexp_full_match", "regexp_replace", "regexp_extract")
    },
    **{(each, 2): ("", "i", "c", "s", "g", "l", "?") for each in ("regexp_matches", "regexp_full_match")},
    ("regexp_replace", 2): ("", "x", "\\0", "\\1", "\\9"),
    ("regexp_replace", 3): ("", "g", "i", "gi"),
    ("regexp_extract", 2): ("0", "1", "2", "-1", "9", "10", "2147483647"),
    **{(each, 1): _LIKES for each in ("~~", "~~*")},
    **{(each, 2): ("", "\\", "%", "a", "ab", "é") for each in ("~~", "~~*")},
    **{(each, place): _COUNTS for each in ("substring", "left", "right", "split_part") for place in (1, 2)},
    ("split_part", 1): ("", ",", "a", "b", "é", "\\"),
    ("repeat", 1): _FEW,
    **{("overlay", place): _COUNTS for place in (2, 3)},
    ("from_hex", 0): ("", "4", "41", "4fE", "zz", "0x41", " 41", "é", "00ff"),
    ("from_binary", 0): ("", "1", "101", "000000001", "111111111", "2", "-1", "0" * 17, " 1"),
    ("from_base64", 0): (
        "",
        "YQ==",
        "YWI=",
        "YWJj",
        "YR==",
        "YQ",
        "Y===",
        "====",
        "YQ==YQ==",
        "Y_==",
        "YW Jj",
    ),
    ("url_decode", 0): (
        "",
        "a%20b+c",
        "%",
        "%4",
        "%zz",
        "%4%41",
        "%C3%A9",
        "%c3",
        "%00",
        "%f0%9f%a6%86",
        "é",
    ),
    ("to_base", 1): ("2", "10", "16", "36", "1", "37", "-2147483648"),
    ("to_base", 2): ("0", "1", "5", "64", "65", "-1"),
    **{
        (name, 0): ("", "/", "a", "/a", "a/", "//a/b", "a/b.c/d.e.f", "a\\b/c", "/a\\b.c\\.d", "é/🦆.é", "..")
        for name in ("parse_filename", "parse_dirname", "parse_dirpath")
    },
    **{
        (name, place): ("system", "backslash", "both_slash", "forward_slash", "other", "")
        for name in ("parse_filename", "parse_dirname", "parse_dirpath")
        for place in ((2,) if name == "parse_filename" else (1,))
    },
    **{
        ("bar", place): ("0", "5", "-1.5", "9.99", "nan", "inf", "-inf", "1e308", "-1e308")
        for place in range(3)
    },
    ("bar", 3): ("1", "10", "7.5", "1000", "1000.5", "0.9", "nan", "-inf"),
    ("chr", 0): ("-1", "0", "65", "128", "55296", "1114111", "1114112", "2147483647"),
    **{(each, 1): _LENGTHS for each in ("lpad", "rpad")},
    **{(each, 2): _FILLINGS for each in ("lpad", "rpad")},
    **{(each, 1): _DIGITS for each in ("round", "trunc")},
    **{("make_date", place): values for place, values in enumerate((_YEARS, _MONTHS, _DAYS))},
    **{("make_time", place): values for place, values in enumerate((_HOURS, _MINUTES, _SECOND_VALUES))},
    ("time_bucket", 0): (
        *("1 day", "1 week", "36 hours", "1 month", "7 months", "1000 years", "0 days", "-1 day", "-1 month"),
        *("1 month 1 day", "00:00:00.000001", "2147483647 months", "2147483647 days", "1000000 days"),
        *("9223372036854775807 microseconds", "1 day -24:00:00"),
    ),
    ("to_timestamp", 0): (
        *(
            "0",
            "1.5",
            "-0.5",
            "1284352323.123456789",
            "0.0000005",
            "0.0000015",
            "nan",
            "inf",
            "-inf",
            "1e300",
        ),
        *("9223372036854.775", "-9223372036854.776", "253402300799.999999"),
    ),
    **{
        ("make_timestamp", place): values
        for place, values in enumerate((_YEARS, _MONTHS, _DAYS, _HOURS, _MINUTES, _SECOND_VALUES))
    },
}
_INFIX = {
    **{each: each for each in ("/", "//", "%", "&", "|", "<<", ">>")},
    "add": "+",
    "subtract": "-",
    "multiply": "*",
    "~~": "LIKE",
    "~~*": "ILIKE",
}


@dataclass(frozen=True)
class Case:
    """`template` is SQL with `{0}`, `{1}`, ... for arguments of `types`; `rows` are their values."""

    name: str
    template: str
    types: tuple[str, ...]
    rows: tuple[tuple[str | None, ...], ...]

    def __str__(self) -> str:
        return f"{self.name}: {self.template.format(*self.types)}"


def values_of(sql_type: str) -> tuple[str, ...]:
    """The edges of a type, as texts that it reads."""
    if sql_type in INTEGERS or sql_type in WIDE_INTEGERS:
        low, high = INTEGERS.get(sql_type) or WIDE_INTEGERS[sql_type]
        numbers = (0, 1, 2, 3, 7, -1, -2, -7, 63, 64, low, low + 1, high, high - 1, high // 2 + 1, 2**53 + 1)
        return tuple(str(each) for each in dict.fromkeys(numbers) if low <= each <= high)
    if sql_type.startswith("DECIMAL"):
        precision, scale = (int(part) for part in sql_type[len("DECIMAL(") : -1].split(","))
        limit, unit = 10**precision - 1, 10**scale
        halves = (unit // 2, -unit // 2, unit + unit // 2)
        numbers = (0, 1, -1, limit, -limit, limit - 1, unit, -unit, 2 * unit, 3 * unit, *halves)
        return tuple(_decimal(each, scale) for each in dict.fromkeys(numbers) if abs(each) <= limit)
    return _VALUES[sql_type]


def _decimal(number: int, scale: int) -> str:
    digits = f"{abs(number):0{scale + 1}}"
    point = len(digits) - scale
    return ("-" if number < 0 else "") + digits[:point] + ("." + digits[point:] if scale else "")


def cases() -> Iterator[Case]:
    """Every case."""
    for name in registry.scalar_names():
        if registry.main_spelling(name) == name:
            for overload in registry.scalar_overloads(name) or ():
                if not overload.swapped or name in _INFIX:
                    yield from _of_overload(name, overload)
    yield from _special_forms()


def _of_overload(name: str, overload: Overload) -> Iterator[Case]:
    written = tuple(reversed(overload.parameters)) if overload.swapped else overload.parameters
    if any(_is(each, TypeKind.LIST) or _is(each, TypeKind.STRUCT) for each in written):
        return  # there are no edges of nested types
    for types in _concrete(written):
        places = [f"{{{place}}}" for place in range(len(types))]
        if name in _INFIX and len(types) > 1:
            escape = " ESCAPE {2}" if len(types) == 3 else ""
            template = f"{{0}} {_INFIX[name]} {{1}}{escape}"
        elif name.isidentifier():
            template = f"{name}({', '.join(places)})"
        else:
            template = f"{name} {{0}}"
        yield case(name, template, types)


def _concrete(parameters: tuple[DataType | str, ...]) -> Iterator[tuple[str, ...]]:
    decimals = [place for place, each in enumerate(parameters) if _is(each, TypeKind.DECIMAL)]
    names = ["FLOAT[2]" if _is(each, TypeKind.ARRAY) else str(each) for each in parameters]
    if ANY in names or "NULL" in names:
        return
    if len(decimals) == 2:
        yield from _DECIMAL_PAIRS
    elif decimals:
        for each in (*DECIMALS, *_DECIMALS[:2]) if len(names) == 1 else (*_DECIMALS, *_WIDE_DECIMALS):
            names[decimals[0]] = each
            yield tuple(names)
    else:
        yield tuple(names)


def _is(parameter: DataType | str, kind: TypeKind) -> bool:
    return isinstance(parameter, DataType) and parameter.kind is kind


def case(name: str, template: str, types: tuple[str, ...], limit: int = 0) -> Case:
    """A case with all combinations of the edges of its types, or some if these are too many; NULL is among them."""
    is_number = name.startswith("make_") and len(types) == 1  # no year
    lists = [
        (*(values_of(each) if is_number else _OF_ARGUMENT.get((name, place), values_of(each))), None)
        for place, each in enumerate(types)
    ]
    rows: list[tuple[str | None, ...]] = list(product(*lists)) if len(lists) < 4 else []
    limit = limit or (_MAX_ROWS_OF_TWO if len(lists) == 2 else _MAX_ROWS)
    random = Random(f"{name} {template} {types}")
    if not rows:
        rows = [tuple(random.choice(each) for each in lists) for _ in range(limit)]
        rows += [tuple(each[place % (len(each) - 1)] for each in lists) for place in range(12)]
    elif len(rows) > limit:
        rows = random.sample(rows, limit)
    return Case(name, template, types, tuple(dict.fromkeys(rows)))


def _form(name: str, template: str, types: tuple[str, ...]) -> Case:
    return case(name, template, types, _MAX_ROWS_OF_FORMS)


def _special_forms() -> Iterator[Case]:
    pairs = (*((each, each) for each in ALL_TYPES), *_MIXED)
    for operator in ("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"):
        for types in pairs:
            yield _form(operator, f"{{0}} {operator} {{1}}", types)
    for types in pairs:
        for name, template in (
            *(("coalesce", "coalesce({0}, {1})"), ("greatest", "greatest({0}, {1})")),
            *(("least", "least({0}, {1})"), ("nullif", "nullif({0}, {1})")),
            *(
                ("in", "{0} IN ({1})"),
                ("not in", "{0} NOT IN ({1}, {0})"),
                ("case", "CASE {0} WHEN {1} THEN {1} END"),
            ),
        ):
            yield _form(name, template, types)
        yield _form("between", "{0} BETWEEN {1} AND {2}", (*types, types[0]))
    for each in (*_MIXED[:9],):
        for operator in "+-*/%":
            yield _form(operator, f"{{0}} {operator} {{1}}", each)
    for each in ALL_TYPES:
        yield _form("is null", "{0} IS NULL", (each,))
        yield _form("concat", "concat({0}, {1})", (each, "VARCHAR"))
        yield _form("||", "{0} || {1}", (each, "VARCHAR"))
        yield _form("if", "if({0}, {1}, {2})", ("BOOLEAN", each, each))
    yield _form("||", "{0} || {1}", ("BLOB", "BLOB"))
    yield _form("concat_ws", "concat_ws({0}, {1}, {2})", ("VARCHAR", "VARCHAR", "DOUBLE"))
    for operator in ("AND", "OR"):
        yield _form(operator, f"{{0}} {operator} {{1}}", ("BOOLEAN", "BOOLEAN"))
    yield _form("not", "NOT {0}", ("BOOLEAN",))
    for each in ("DATE", "TIMESTAMP", "TIMESTAMP WITH TIME ZONE"):
        yield _form("date_add", "date_add({0}, {1})", (each, "INTERVAL"))
        yield _form("date", "date({0})", (each,))
    yield _form("date", "date({0})", ("VARCHAR",))
    yield _form("fmod", "fmod({0}, {1})", ("DOUBLE", "DOUBLE"))
    yield _form("**", "{0} ** {1}", ("DOUBLE", "DOUBLE"))
    for each in ("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"):
        for name in ("year", "epoch", "dayname", "last_day", "isfinite", "epoch_ms"):
            yield _form(name, f"{name}({{0}})", (each,))
        yield _form("date_trunc", "date_trunc({0}, {1})", ("VARCHAR", each))
        yield _form("add", "{0} + {1}", (each, "INTERVAL"))
        yield _form("subtract", "{0} - {1}", (each, "INTERVAL"))
        yield _form("subtract", "{0} - {1}", (each, each))
        yield _form("date_diff", "date_diff({0}, {1}, {2})", ("VARCHAR", each, each))
    for sql_type in ENUMS:
        yield _form("enum_code", "enum_code({0})", (sql_type,))
