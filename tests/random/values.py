"""Random values of every SQL type, as text that the type reads: small ones, the ends of the type, oddities."""

from __future__ import annotations

from random import Random

INTEGERS: dict[str, tuple[int, int]] = {
    **{name: (-(2**bits), 2**bits - 1) for name, bits in (("TINYINT", 7), ("SMALLINT", 15))},
    **{name: (-(2**bits), 2**bits - 1) for name, bits in (("INTEGER", 31), ("BIGINT", 63))},
    **{name: (0, 2**bits - 1) for name, bits in (("UTINYINT", 8), ("USMALLINT", 16))},
    **{name: (0, 2**bits - 1) for name, bits in (("UINTEGER", 32), ("UBIGINT", 64))},
}
#: Queries make them by casts.
WIDE_INTEGERS = {"HUGEINT": (-(2**127), 2**127 - 1), "UHUGEINT": (0, 2**128 - 1)}

DECIMALS = tuple(
    f"DECIMAL({precision},{scale})"
    for precision, scale in (
        *((1, 0), (4, 1), (4, 4), (5, 5), (9, 2), (9, 9), (15, 4), (18, 0), (18, 3), (18, 18)),
        *((19, 0), (28, 6), (38, 0), (38, 10), (38, 37), (38, 38)),
    )
)
TIMESTAMPS = ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS")

#: ENUMs by their types, with values that are text of other types, too, and not in the order of text.
ENUMS: dict[str, tuple[str, ...]] = {
    f"ENUM({', '.join(map(repr, values))})": values
    for values in (
        ("b", "a", "c"),
        ("low", "a", "é", "", "abc", "B", "äö", "2024-02-29", "banana", "true"),
        ("9", "10", "-1", "0", "007", "1.5", "127"),
        ("only",),
    )
}

#: The families of types that the generator tells apart, with the types that a column of each may have.
FAMILIES: dict[str, tuple[str, ...]] = {
    "int": tuple(INTEGERS),
    "dec": DECIMALS,
    "float": ("FLOAT", "DOUBLE", "DOUBLE"),
    "str": ("VARCHAR", "VARCHAR", "VARCHAR", *ENUMS),
    "blob": ("BLOB",),
    "bool": ("BOOLEAN",),
    "date": ("DATE",),
    "time": ("TIME",),
    "timetz": ("TIME WITH TIME ZONE",),
    "ts": TIMESTAMPS,
    "tz": ("TIMESTAMP WITH TIME ZONE",),
    "interval": ("INTERVAL",),
    "uuid": ("UUID",),
    "bit": ("BIT",),
}
FAMILY_OF = {each: family for family, types in FAMILIES.items() for each in types}

UUIDS = (
    *("00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"),
    *("7fffffff-ffff-ffff-ffff-ffffffffffff", "80000000-0000-4000-8000-000000000001"),
    *("019482e4-1441-7aad-8127-eec99573b0a0", "550e8400-e29b-41d4-a716-446655440000"),
)
WORDS = (
    *("", "a", "ab", "abc", "B", "banana", "Zebra", "äö", "É", "é", "ß", "日本", "50%", "a_b", " x ", "  "),
    *("apple pie", "🦆", "e\u0301", "a\nb", "it's", "abc" * 40, "ﬁ", "İ", "x,y", "\\", "null", "NULL"),
)
TEXTS_OF_VALUES = (
    *("1", "-1", "0", "007", " 7 ", "127", "128", "255", "1e3", "1.5", "-0.0", "2.5", "nan", "inf", "-inf"),
    *("9223372036854775807", "9223372036854775808", "170141183460469231731687303715884105727", "1_000", "+3"),
    *("99999999999999999999999999999999999999", "0.00000000000000000000000000000000000001", "1e38", "1e-50"),
    *("true", "f", "yes", "2024-02-29", "2024-02-30", "infinity", "-infinity", "12:34:56", "24:00:00"),
    *("2024-02-14 19:54:57", "2024-02-14 19:54:57.123456789+02", "1 month", "2 days 03:00:00", "-5 hours"),
    *(UUIDS[4], f"{{{UUIDS[5]}}}", "019482E414417aad8127-eec99573b0a0"),
    *("0101", "10000000", "\\xAA\\x00", "1 year 2 mons", "epoch", "0001-01-01", "9999-12-31 23:59:59.999999"),
)


def random_value(random: Random, sql_type: str, profile: str) -> str:
    """A value of `sql_type` as text. `profile`: "small" is harmless in arithmetic, "ends" favours the type's ends."""
    at_an_end = profile == "ends" and random.random() < 0.5
    if sql_type in INTEGERS:
        return str(_integer(random, *INTEGERS[sql_type], profile))
    if sql_type.startswith("DECIMAL"):
        return _decimal(random, sql_type, profile)
    match sql_type:
        case "FLOAT" | "DOUBLE":
            if at_an_end:
                return random.choice(_FLOAT_ENDS if sql_type == "FLOAT" else _DOUBLE_ENDS)
            return str(random.randint(-12, 32) / 4)
        case _ if sql_type in ENUMS:
            return random.choice(ENUMS[sql_type])
        case "VARCHAR":
            return random.choice(TEXTS_OF_VALUES if random.random() < 0.35 else WORDS)
        case "BLOB":
            return random.choice(("", "a", "ab", "\\x00", "\\xFF\\x00\\xC3", "abc" * 20, "\\xC3\\xA9"))
        case "BOOLEAN":
            return random.choice(("true", "false"))
        case "DATE":
            return random.choice(_DATE_ENDS) if at_an_end else _date(random)
        case "TIME":
            return random.choice(_TIME_ENDS) if at_an_end else _time(random)
        case "TIME WITH TIME ZONE":
            return f"{random.choice(_TIME_ENDS) if at_an_end else _time(random)}{random.choice(_OFFSETS)}"
        case "INTERVAL":
            return random.choice(_INTERVAL_ENDS if at_an_end else _INTERVALS)
        case "UUID":
            return random.choice(UUIDS)
        case "BIT":  # of a few lengths, so that two of them can be combined
            return "".join(random.choices("01", k=random.choice((1, 2, 4, 4, 4, 8, 8, 9, 33))))
        case "TIMESTAMP_NS":
            return random.choice(_NS_ENDS) if at_an_end else f"{_date(random)} {_time(random)}"
        case _:
            return random.choice(_TIMESTAMP_ENDS) if at_an_end else f"{_date(random)} {_time(random)}"


def _integer(random: Random, low: int, high: int, profile: str) -> int:
    if profile == "spread":
        return random.randint(low, high)
    if profile == "ends" and random.random() < 0.5:
        return random.choice((low, high, low + 1, high - 1, 0))
    return max(low, random.randint(-3, 8))


def _decimal(random: Random, sql_type: str, profile: str) -> str:
    precision, scale = (int(part) for part in sql_type[len("DECIMAL(") : -1].split(","))
    limit = 10**precision - 1
    number = _integer(random, -limit, limit, profile)
    if profile == "small":
        number = random.choice((random.randint(-4, 8) * 10**scale, random.randint(-2000, 9999)))
        number = max(-limit, min(limit, number))
    digits = f"{abs(number):0{scale + 1}}"
    point = len(digits) - scale
    return ("-" if number < 0 else "") + digits[:point] + ("." + digits[point:] if scale else "")


def _date(random: Random) -> str:
    return f"{random.randint(1969, 1972)}-{random.randint(1, 12):02}-{random.choice((1, 15, 28)):02}"


def _time(random: Random) -> str:
    fraction = random.choice(("", "", ".5", ".123", ".123456"))
    return f"{random.choice((0, 0, 7, 23)):02}:{random.choice((0, 30, 59)):02}:{random.choice((0, 1, 59)):02}{fraction}"


#: The time 12:00:00 of one is that of another, or of another day.
_OFFSETS = ("", "+00", "+01", "-01", "+05:30", "-00:30:15", "+15:59:59", "-15:59:59")
_FLOAT_ENDS = ("nan", "inf", "-inf", "-0.0", "0.0", "3.4028235e+38", "-3.4028235e+38", "1e-45", "16777217")
_DOUBLE_ENDS = ("nan", "inf", "-inf", "-0.0", "0.0", "1.7976931348623157e308", "5e-324", "9007199254740993")
_DATE_ENDS = (
    "infinity",
    "-infinity",
    "5881580-07-10",
    "0001-01-01",
    "9999-12-31",
    "1900-03-01",
    "2000-02-29",
)
_TIME_ENDS = ("00:00:00", "23:59:59.999999", "24:00:00", "12:00:00")
_TIMESTAMP_ENDS = (
    *("infinity", "-infinity", "0001-01-01 00:00:00", "9999-12-31 23:59:59", "1969-12-31 23:59:59"),
    *("294247-01-10 04:00:54", "1582-10-15 00:00:00", "2038-01-19 03:14:08"),
)
_NS_ENDS = ("1677-09-22 00:00:00", "2262-04-11 23:47:16", "1969-12-31 23:59:59.999999", "1970-01-01 00:00:00")
_INTERVALS = (
    *("1 day", "2 days", "1 month", "3 months 5 days", "00:00:01", "-1 day", "1 year", "0 days"),
    *("36:00:00", "-2 months 4 days", "00:00:00.000001", "14 months 40 days 25:00:00"),
)
_INTERVAL_ENDS = ("1000000 years", "-1000000 days", "999999:00:00", "30 days", "24:00:00", "0 days")
