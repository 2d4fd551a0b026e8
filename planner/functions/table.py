"""The contents of the function table; `tqp.planner.functions.registry` says how to read a line."""

from __future__ import annotations

_NUMBERS = ("INTEGERS -> same", "FLOAT -> FLOAT", "DOUBLE -> DOUBLE", "DECIMAL -> same")
_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
_TIMESTAMPS = ("TIMESTAMP", "TIMESTAMP_TZ")


def _numeric_pair(decimal_rule: str) -> tuple[str, ...]:
    return (
        "INTEGERS INTEGERS -> same",
        "FLOAT FLOAT -> FLOAT",
        "DOUBLE DOUBLE -> DOUBLE",
        f"DECIMAL DECIMAL -> {decimal_rule}",
    )


def _doubles(count: int = 1) -> tuple[str, ...]:
    return (f"{'DOUBLE ' * count}-> DOUBLE",)


def _part(part: str, *, time: bool = False, result: str = "BIGINT") -> tuple[str, ...]:
    """`year(x)` and friends: date_part with a constant."""
    sources = ("DATE", *_TIMESTAMPS, "INTERVAL", *(("TIME",) if time else ()))
    return tuple(f"date_part[{part}]: {source} -> {result}" for source in sources)


def _interval_of(unit: str, *sources: str) -> tuple[str, ...]:
    return tuple(f"to_interval[{unit}]: {source} -> INTERVAL" for source in sources)


_PARTS = "year month day decade century millennium quarter week isodow isoyear yearweek era dayofweek dayofyear".split()
_TIME_PARTS = "hour minute second millisecond microsecond".split()

SCALARS: dict[str, tuple[str, ...]] = {
    # arithmetic; operators that are no function of the same meaning stand under their own signs
    "add": (
        *_numeric_pair("sum"),
        "add_days: DATE INTEGER -> DATE",
        "add_days~: INTEGER DATE -> DATE",
        "add_intervals: INTERVAL INTERVAL -> INTERVAL",
        "add_interval: DATE INTERVAL -> TIMESTAMP",
        "add_interval~: INTERVAL DATE -> TIMESTAMP",
        "add_interval: TIME INTERVAL -> TIME",
        "add_interval~: INTERVAL TIME -> TIME",
        "add_interval: TIMESTAMP INTERVAL -> TIMESTAMP",
        "add_interval~: INTERVAL TIMESTAMP -> TIMESTAMP",
        "add_interval: TIMESTAMP_TZ INTERVAL -> TIMESTAMP_TZ",
        "add_interval~: INTERVAL TIMESTAMP_TZ -> TIMESTAMP_TZ",
        "add_time: DATE TIME -> TIMESTAMP",
        "add_time~: TIME DATE -> TIMESTAMP",
    ),
    "subtract": (
        *_numeric_pair("sum"),
        "subtract_dates: DATE DATE -> BIGINT",
        "subtract_days: DATE INTEGER -> DATE",
        "subtract_timestamps: TIMESTAMP TIMESTAMP -> INTERVAL",
        "subtract_timestamps: TIMESTAMP_TZ TIMESTAMP_TZ -> INTERVAL",
        "subtract_intervals: INTERVAL INTERVAL -> INTERVAL",
        "subtract_interval: DATE INTERVAL -> TIMESTAMP",
        "subtract_interval: TIME INTERVAL -> TIME",
        "subtract_interval: TIMESTAMP INTERVAL -> TIMESTAMP",
        "subtract_interval: TIMESTAMP_TZ INTERVAL -> TIMESTAMP_TZ",
    ),
    "negate": (*_NUMBERS, "negate_interval: INTERVAL -> INTERVAL"),
    "multiply": (
        *_numeric_pair("product"),
        "multiply_interval: INTERVAL BIGINT -> INTERVAL",
        "multiply_interval: INTERVAL DOUBLE -> INTERVAL",
        "multiply_interval~: BIGINT INTERVAL -> INTERVAL",
        "multiply_interval~: DOUBLE INTERVAL -> INTERVAL",
    ),
    "/": (
        "divide: FLOAT FLOAT -> FLOAT",
        "divide: DOUBLE DOUBLE -> DOUBLE",
        "divide_interval: INTERVAL DOUBLE -> INTERVAL",
    ),
    "//": (
        "integer_divide: INTEGERS INTEGERS -> same",
        "integer_divide: FLOAT FLOAT -> FLOAT",
        "integer_divide: DOUBLE DOUBLE -> DOUBLE",
    ),
    "%": tuple(f"modulo: {line}" for line in _numeric_pair("remainder")),
    "&": ("bit_and: INTEGERS INTEGERS -> same",),
    "|": ("bit_or: INTEGERS INTEGERS -> same",),
    "xor": ("bit_xor: INTEGERS INTEGERS -> same",),
    "~": ("bit_not: INTEGERS -> same",),
    "<<": ("shift_left: INTEGERS INTEGERS -> same",),
    ">>": ("shift_right: INTEGERS INTEGERS -> same",),
    "abs": _NUMBERS,
    "sign": ("INTEGERS -> TINYINT", "FLOAT -> TINYINT", "DOUBLE -> TINYINT"),
    "floor": ("DECIMAL -> whole", "FLOAT -> FLOAT", "DOUBLE -> DOUBLE"),
    "ceil": ("DECIMAL -> whole", "FLOAT -> FLOAT", "DOUBLE -> DOUBLE"),
    "round": (
        *("DECIMAL -> whole", "FLOAT -> FLOAT", "DOUBLE -> DOUBLE"),
        *("DECIMAL INTEGER -> rounded", "FLOAT INTEGER -> FLOAT", "DOUBLE INTEGER -> DOUBLE"),
        *(f"{each} -> {each}" for each in _SIGNED),
        *(f"{each} INTEGER -> {each}" for each in _SIGNED),
    ),
    "trunc": (
        *("DECIMAL -> whole", "FLOAT -> FLOAT", "DOUBLE -> DOUBLE", "INTEGERS -> same"),
        *("DECIMAL INTEGER -> cut", "FLOAT INTEGER -> FLOAT", "DOUBLE INTEGER -> DOUBLE"),
        "INTEGERS INTEGER -> same",
    ),
    "log": ("log10: DOUBLE -> DOUBLE", "DOUBLE DOUBLE -> DOUBLE"),
    **{
        name: _doubles()
        for name in (
            "sqrt cbrt exp ln log10 log2 sin cos tan asin acos atan sinh cosh tanh degrees radians".split()
        )
    },
    "power": _doubles(2),
    "atan2": _doubles(2),
    "fmod": ("floored_modulo: FLOAT FLOAT -> FLOAT", "floored_modulo: DOUBLE DOUBLE -> DOUBLE"),
    "isnan": ("is_nan: FLOAT -> BOOLEAN", "is_nan: DOUBLE -> BOOLEAN"),
    **{
        name: (
            *(f"{canonical}: {each} -> BOOLEAN" for each in ("FLOAT", "DOUBLE")),
            *(f"{canonical}_date: {each} -> BOOLEAN" for each in ("DATE", *_TIMESTAMPS)),
        )
        for name, canonical in (("isinf", "is_inf"), ("isfinite", "is_finite"))
    },
    "gcd": ("BIGINT BIGINT -> BIGINT", "HUGEINT HUGEINT -> HUGEINT"),
    "lcm": ("BIGINT BIGINT -> BIGINT", "HUGEINT HUGEINT -> HUGEINT"),
    # dates and times
    **{
        name: _part("dow" if name == "dayofweek" else "doy" if name == "dayofyear" else name)
        for name in _PARTS
    },
    **{name: _part(name, time=True) for name in _TIME_PARTS},
    "epoch": _part("epoch", time=True, result="DOUBLE"),
    "epoch_ms": (
        "BIGINT -> TIMESTAMP",
        *(f"date_part[epoch_ms]: {each} -> BIGINT" for each in ("DATE", *_TIMESTAMPS, "INTERVAL", "TIME")),
    ),
    "date_trunc": (
        "VARCHAR DATE -> TIMESTAMP",
        "VARCHAR TIMESTAMP -> TIMESTAMP",
        "VARCHAR TIMESTAMP_TZ -> TIMESTAMP_TZ",
        "VARCHAR INTERVAL -> INTERVAL",
    ),
    "date_part": tuple(f"VARCHAR {each} -> part" for each in ("DATE", *_TIMESTAMPS, "TIME", "INTERVAL")),
    "date_diff": tuple(f"VARCHAR {each} {each} -> BIGINT" for each in ("DATE", *_TIMESTAMPS, "TIME")),
    "date_sub": tuple(f"VARCHAR {each} {each} -> BIGINT" for each in ("DATE", *_TIMESTAMPS, "TIME")),
    "make_date": ("BIGINT BIGINT BIGINT -> DATE",),
    "make_timestamp": ("BIGINT BIGINT BIGINT BIGINT BIGINT DOUBLE -> TIMESTAMP",),
    "last_day": tuple(f"{each} -> DATE" for each in ("DATE", *_TIMESTAMPS)),
    "dayname": tuple(f"{each} -> VARCHAR" for each in ("DATE", *_TIMESTAMPS)),
    "monthname": tuple(f"{each} -> VARCHAR" for each in ("DATE", *_TIMESTAMPS)),
    "strftime": tuple(
        line
        for each in ("DATE", *_TIMESTAMPS, "TIMESTAMP_NS")
        for line in (f"{each} VARCHAR -> VARCHAR", f"strftime~: VARCHAR {each} -> VARCHAR")
    ),
    "strptime": ("VARCHAR VARCHAR -> TIMESTAMP",),
    **{
        f"to_{unit}s": _interval_of(unit, "INTEGER", "BIGINT")
        for unit in ("year", "quarter", "month", "week", "day", "decade")
    },
    "to_centuries": _interval_of("century", "INTEGER", "BIGINT"),
    "to_millennia": _interval_of("millennium", "INTEGER", "BIGINT"),
    **{f"to_{unit}s": _interval_of(unit, "BIGINT") for unit in ("hour", "minute", "microsecond")},
    **{f"to_{unit}s": _interval_of(unit, "DOUBLE") for unit in ("second", "millisecond")},
    # strings
    "like": ("VARCHAR VARCHAR -> BOOLEAN", "VARCHAR VARCHAR VARCHAR -> BOOLEAN"),
    "ilike": ("VARCHAR VARCHAR -> BOOLEAN", "VARCHAR VARCHAR VARCHAR -> BOOLEAN"),
    "regexp_matches": ("VARCHAR VARCHAR -> BOOLEAN", "VARCHAR VARCHAR VARCHAR -> BOOLEAN"),
    "regexp_full_match": ("VARCHAR VARCHAR -> BOOLEAN", "VARCHAR VARCHAR VARCHAR -> BOOLEAN"),
    "regexp_replace": ("VARCHAR VARCHAR VARCHAR -> VARCHAR", "VARCHAR VARCHAR VARCHAR VARCHAR -> VARCHAR"),
    "regexp_extract": (
        "VARCHAR VARCHAR -> VARCHAR",
        "VARCHAR VARCHAR INTEGER -> VARCHAR",
    ),
    "starts_with": ("VARCHAR VARCHAR -> BOOLEAN",),
    "ends_with": ("VARCHAR VARCHAR -> BOOLEAN",),
    "contains": ("VARCHAR VARCHAR -> BOOLEAN",),
    "substring": ("VARCHAR BIGINT -> VARCHAR", "VARCHAR BIGINT BIGINT -> VARCHAR"),
    "left": ("VARCHAR BIGINT -> VARCHAR",),
    "right": ("VARCHAR BIGINT -> VARCHAR",),
    "length": ("VARCHAR -> BIGINT",),
    "octet_length": ("BLOB -> BIGINT",),
    "strlen": ("octet_length: VARCHAR -> BIGINT",),
    "upper": ("VARCHAR -> VARCHAR",),
    "lower": ("VARCHAR -> VARCHAR",),
    "trim": ("VARCHAR -> VARCHAR", "VARCHAR VARCHAR -> VARCHAR"),
    "ltrim": ("VARCHAR -> VARCHAR", "VARCHAR VARCHAR -> VARCHAR"),
    "rtrim": ("VARCHAR -> VARCHAR", "VARCHAR VARCHAR -> VARCHAR"),
    "lpad": ("VARCHAR INTEGER VARCHAR -> VARCHAR",),
    "rpad": ("VARCHAR INTEGER VARCHAR -> VARCHAR",),
    "replace": ("VARCHAR VARCHAR VARCHAR -> VARCHAR",),
    "reverse": ("VARCHAR -> VARCHAR",),
    "repeat": ("VARCHAR BIGINT -> VARCHAR", "BLOB BIGINT -> BLOB"),
    "position": ("VARCHAR VARCHAR -> BIGINT",),
    "split_part": ("VARCHAR VARCHAR BIGINT -> VARCHAR",),
    "ascii": ("VARCHAR -> INTEGER",),
    "unicode": ("VARCHAR -> INTEGER",),
    "chr": ("INTEGER -> VARCHAR",),
    "translate": ("VARCHAR VARCHAR VARCHAR -> VARCHAR",),
    # arrays
    **{
        f"array_{measure}": ("ARRAY ARRAY -> similarity",)
        for measure in (
            "cosine_similarity cosine_distance inner_product negative_inner_product distance".split()
        )
    },
}

AGGREGATES: dict[str, tuple[str, ...]] = {
    "count": ("ANY -> BIGINT",),
    "sum": (
        "INTEGERS -> HUGEINT",
        "BOOLEAN -> HUGEINT",
        "DOUBLE -> DOUBLE",
        "DECIMAL -> widened",
    ),
    "avg": (
        *("INTEGERS -> DOUBLE", "DOUBLE -> DOUBLE", "DECIMAL -> DOUBLE"),
        *("TIMESTAMP -> TIMESTAMP", "TIMESTAMP_TZ -> TIMESTAMP_TZ", "TIME -> TIME"),
    ),
    "min": ("ANY -> same",),
    "max": ("ANY -> same",),
    "any_value": ("ANY -> same",),
    "bool_and": ("BOOLEAN -> BOOLEAN",),
    "bool_or": ("BOOLEAN -> BOOLEAN",),
    **{name: _doubles() for name in ("stddev_samp", "stddev_pop", "var_samp", "var_pop")},
    "median": ("ANY -> middle",),
    "count_if": ("sum: BOOLEAN -> HUGEINT",),
}

#: Written as operators or in a grammar of their own; as in DuckDB, no function is called by these names.
OPERATOR_FORMS = frozenset(("negate", "like", "ilike", "position"))

#: Functions that the binder types itself, with the canonical function they become ("": none of their own).
VARIADIC: dict[str, str] = {
    "coalesce": "coalesce",
    "nullif": "",
    "if": "",
    "greatest": "greatest",
    "least": "least",
    "concat": "concat",
    "concat_ws": "concat_ws",
    "typeof": "",
    "bit_length": "",
    "date_add": "",
    "pi": "",
    "ml_predict": "",
    "ml_predict_proba": "",
    "array_value": "array_value",
}

ALIASES: dict[str, str] = {
    "divide": "//",
    "mod": "%",
    "pow": "power",
    "ceiling": "ceil",
    "greatest_common_divisor": "gcd",
    "least_common_multiple": "lcm",
    "ifnull": "coalesce",
    "datepart": "date_part",
    "datetrunc": "date_trunc",
    "datediff": "date_diff",
    "datesub": "date_sub",
    "weekday": "dayofweek",
    "dayofmonth": "day",
    "weekofyear": "week",
    "suffix": "ends_with",
    "prefix": "starts_with",
    "substr": "substring",
    "len": "length",
    "char_length": "length",
    "character_length": "length",
    "ucase": "upper",
    "lcase": "lower",
    "strpos": "position",
    "instr": "position",
    "ord": "unicode",
    "array_dot_product": "array_inner_product",
    "array_negative_dot_product": "array_negative_inner_product",
    "mean": "avg",
    "arbitrary": "any_value",
    "stddev": "stddev_samp",
    "variance": "var_samp",
    "countif": "count_if",
}
