"""Random window functions whose values are determined: either no row's value depends on which of its peers comes first, or none has peers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

#: By family; `{w}` is a window with a frame, `{ranked}` one with ORDER BY, `{whole}` one without, `{v}` a value that rows are ordered by.
_CALLS: dict[str, tuple[str, ...]] = {
    "int": (
        "rank() OVER ({ranked})",
        "dense_rank() OVER ({ranked})",
        "count(*) OVER ({w})",
        "count({any}) OVER ({w})",
        "count(DISTINCT {any}) OVER ({whole})",
        "count(DISTINCT {any}) OVER ({w})",
        "bit_or({int}) OVER ({w})",
        "list_sum(list({int}) OVER ({w}))",
        "count({any}) FILTER (WHERE {bool}) OVER ({w})",
        "(max({int}, 2) OVER ({w}))[2]",
        "cardinality(histogram({any}) OVER ({w}))",
        "count(DISTINCT {any}) FILTER (WHERE {bool}) OVER ({w})",
        "bit_xor({int}) OVER ({w})",
        "fill(CASE WHEN {v} % 3 = 1 THEN {v} % 101 END) OVER ({partition}ORDER BY {v}{direction})",
        "count(*) OVER ({partition}ORDER BY {num}{direction} RANGE BETWEEN {range} FOLLOWING AND UNBOUNDED FOLLOWING)",
    ),
    "float": (
        "percent_rank() OVER ({ranked})",
        "cume_dist() OVER ({ranked})",
        "sum({exact}) OVER ({w})",
        "avg({int}) OVER ({w})",
        "median({exact}) OVER ({w})",
        "fill(CASE WHEN {v} < 3 OR {v} > 9 THEN {v} END) OVER ({partition}ORDER BY {v}{direction})",
    ),
    "date": ("fill(CASE WHEN day({v}) < 12 THEN {v} END ORDER BY {v}{direction}) OVER ({partition})",),
    "dec": ("sum({same}) OVER ({w})",),
    "bool": ("bool_and({bool}) OVER ({w})", "bool_or({bool}) OVER ({w})"),
}
_OF_ANY_FAMILY = (
    "min({same}) OVER ({w})",
    "max({same}) OVER ({w})",
    "quantile_disc({same}, 0.5) OVER ({w})",
    "(quantile_disc({same}, [0.25, 0.9, 0]) OVER ({w}))[2]",
    "list_sort(list(DISTINCT {same}) OVER ({w}))[1]",
    "arg_max({v}, {v}) OVER ({partition}ORDER BY {num}{frame})",
    "{picked}({v}) OVER ({partition}ORDER BY {v}{direction}{frame})",
    "{picked}({v} IGNORE NULLS) OVER ({partition}ORDER BY {v}{direction}{frame})",
    "{extreme}({same}) OVER ({partition}ORDER BY {num}{direction} RANGE BETWEEN {range} PRECEDING AND {range} FOLLOWING)",
    "{extreme}({same}) OVER ({partition}ORDER BY {day}{direction} RANGE BETWEEN INTERVAL {range} {unit} PRECEDING AND CURRENT ROW)",
)
_DIRECTIONS = ("", "", " DESC", " NULLS FIRST", " DESC NULLS FIRST")
_FRAMES = (
    *("", "", "", " RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING", " RANGE CURRENT ROW"),
    " GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW",
    " GROUPS BETWEEN 1 FOLLOWING AND 3 FOLLOWING",
    " GROUPS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
    " RANGE BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING EXCLUDE GROUP",
    " GROUPS BETWEEN 2 PRECEDING AND 1 FOLLOWING EXCLUDE CURRENT ROW",
)

#: Calls that tell rows apart which tie: `{unique}` orders by what no two rows that differ have in common, `{rows}` is a frame of ROWS.
_CALLS_OF_PLACES: dict[str, tuple[str, ...]] = {
    "int": (
        *("row_number() OVER ({unique})", "ntile({number}) OVER ({unique})"),
        *("count({any}) OVER ({unique}{rows})", "count(*) FILTER (WHERE {bool}) OVER ({unique}{rows})"),
    ),
    "float": ("sum({exact}) OVER ({unique}{rows})", "avg({int}) OVER ({unique}{rows})"),
    "dec": ("sum({same}) OVER ({unique}{rows})",),
    "bool": ("bool_or({bool}) OVER ({unique}{rows})",),
    "str": ("string_agg({str}, ',') OVER ({unique}{rows})", "list({str}) OVER ({unique}{rows})::VARCHAR"),
}
_PLACES_OF_ANY_FAMILY = (
    *("{neighbour}({same}) OVER ({unique})", "{neighbour}({same}, {offset}) OVER ({unique})"),
    *("{neighbour}({same}, {offset}, {same}) OVER ({unique})", "{neighbour}({same} IGNORE NULLS) OVER ({unique})"),
    *("{picked}({same}) OVER ({unique}{rows})", "{picked}({same} IGNORE NULLS) OVER ({unique}{rows})"),
    *("nth_value({same}, {number}) OVER ({unique}{rows})", "nth_value({same}, {number} IGNORE NULLS) OVER ({unique}{rows})"),
    *("min({same}) OVER ({unique}{rows})", "max({same}) OVER ({unique}{rows})"),
    *("(list({same}) OVER ({unique}{rows}))[{number}]", "quantile_disc({same}, 0.3) OVER ({unique}{rows})"),
)  # fmt: skip
_NUMBERS_OF_ROWS = ("0", "1", "1", "2", "3", "7", "coalesce({int} % 3 * ({int} % 3), 0)")
_EXCLUDED = ("", "", "", "", " EXCLUDE CURRENT ROW", " EXCLUDE GROUP", " EXCLUDE TIES", " EXCLUDE NO OTHERS")


def random_window(
    random: Random, family: str, draw: Callable[[str], str], unique_keys: Sequence[str] = ()
) -> str:
    """A call with a result of `family`, holes for arguments of other families left in it; `draw` makes keys of a family or "any".

    Of rows that have all `unique_keys` in common it does not matter which comes first; without such keys no call asks for it.
    """
    tells_peers_apart = bool(unique_keys) and random.random() < 0.5
    choices = (_CALLS_OF_PLACES if tells_peers_apart else _CALLS).get(family, ())
    others = _PLACES_OF_ANY_FAMILY if tells_peers_apart else _OF_ANY_FAMILY
    call = random.choice(choices if choices and random.random() < 0.6 else others)
    partition = f"PARTITION BY {draw('any')} " if random.random() < 0.5 else ""
    keys = ", ".join(draw("any") + random.choice(_DIRECTIONS) for _ in range(random.choice((1, 1, 2))))
    frame = random.choice(_FRAMES)
    ranked = f"{partition}ORDER BY {keys}"
    window = ranked + frame if random.random() < 0.7 else partition
    filled = {
        "{ranked}": ranked,
        "{whole}": partition,
        "{w}": window,
        "{partition}": partition,
        "{frame}": frame.partition(" EXCLUDE")[0],
        "{direction}": random.choice(_DIRECTIONS),
        "{picked}": random.choice(("first_value", "last_value")),
        "{extreme}": random.choice(("min", "max")),
        "{range}": str(random.randint(0, 9)),
        "{day}": random.choice(("{date}", "{ts}")),
        "{unit}": random.choice(("DAY", "MONTH", "HOUR")),
    }
    if "{v}" in call:
        filled["{v}"] = draw(family)
    if tells_peers_apart:
        in_some_order = random.sample(unique_keys, len(unique_keys))
        filled["{unique}"] = (
            f"{partition}ORDER BY {', '.join(key + random.choice(_DIRECTIONS) for key in in_some_order)}"
        )
        filled["{rows}"] = _rows(random)
        filled["{neighbour}"] = random.choice(("lag", "lead"))
        filled["{number}"] = random.choice(("1", "2", "3", "10"))
        filled["{offset}"] = random.choice(("0", "1", "2", "(-1)", "NULL", "{int} % 4"))
    for hole, text in filled.items():
        call = call.replace(hole, text)
    return call


def _rows(random: Random) -> str:
    """A frame of ROWS that begins before it ends, or one that may not."""
    start = random.choice(
        ("UNBOUNDED PRECEDING", "CURRENT ROW", "{n} PRECEDING", "{n} PRECEDING", "{n} FOLLOWING")
    )
    ends = {
        "CURRENT ROW": ("CURRENT ROW", "{n} FOLLOWING", "UNBOUNDED FOLLOWING"),
        "{n} FOLLOWING": ("{n} FOLLOWING", "UNBOUNDED FOLLOWING"),
    }
    end = random.choice(
        ends.get(
            start, ("{n} PRECEDING", "CURRENT ROW", "CURRENT ROW", "{n} FOLLOWING", "UNBOUNDED FOLLOWING")
        )
    )
    start, end = (bound.replace("{n}", random.choice(_NUMBERS_OF_ROWS)) for bound in (start, end))
    return f" ROWS BETWEEN {start} AND {end}{random.choice(_EXCLUDED)}"
