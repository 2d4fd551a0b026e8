"""Units of time: how long they are, and how they, and other parts of dates, are spelled."""

from __future__ import annotations

#: (months, days, microseconds) of each unit, of which one is not zero.
UNITS: dict[str, tuple[int, int, int]] = {
    "millennium": (12_000, 0, 0),
    "century": (1_200, 0, 0),
    "decade": (120, 0, 0),
    "year": (12, 0, 0),
    "quarter": (3, 0, 0),
    "month": (1, 0, 0),
    "week": (0, 7, 0),
    "day": (0, 1, 0),
    "hour": (0, 0, 3_600_000_000),
    "minute": (0, 0, 60_000_000),
    "second": (0, 0, 1_000_000),
    "millisecond": (0, 0, 1_000),
    "microsecond": (0, 0, 1),
}
MONTHS_OF_UNITS, DAYS_OF_UNITS, MICROSECONDS_OF_UNITS = (
    {unit: fields[place] for unit, fields in UNITS.items() if fields[place]} for place in range(3)
)

#: The unit that each spelling, in small letters, stands for.
UNIT_NAMES = {
    alias: unit
    for unit, aliases in {
        "millennium": "millennium millenniums millennia millenium mil mils",
        "century": "century centuries cent c",
        "decade": "decade decades dec decs",
        "year": "year years yr yrs y",
        "quarter": "quarter quarters",
        "month": "month months mon mons",
        "week": "week weeks w",
        "day": "day days d dayofmonth",
        "hour": "hour hours hr hrs h",
        "minute": "minute minutes min mins m",
        "second": "second seconds sec secs s",
        "millisecond": "millisecond milliseconds ms msec msecs msecond mseconds",
        "microsecond": "microsecond microseconds us usec usecs usecond useconds",
    }.items()
    for alias in aliases.split()
}
#: The same of parts of dates that have other names besides.
PART_NAMES = {
    **UNIT_NAMES,
    **dict.fromkeys(("dayofweek", "weekday"), "dow"),
    "dayofyear": "doy",
    "weekofyear": "week",
}
