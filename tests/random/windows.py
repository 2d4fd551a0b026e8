"""Random window functions whose values are determined: no row's value depends on which of its peers comes first."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

#: By family; `{w}` is a window with a frame, `{ranked}` one with ORDER BY, `{whole}` one without, `{v}` a value that rows are ordered by.
_CALLS: dict[str, tuple[str, ...]] = {
    "int": (
        "rank() OVER ({ranked})",
        "dense_rank() OVER ({ranked})",
        "count(*) OVER ({w})",
        "count({any}) OVER ({w})",
        "count(DISTINCT {any}) OVER ({whole})",
        "count({any}) FILTER (WHERE {bool}) OVER ({w})",
    ),
    "float": (
        "percent_rank() OVER ({ranked})",
        "cume_dist() OVER ({ranked})",
        "sum({exact}) OVER ({w})",
        "avg({int}) OVER ({w})",
    ),
    "dec": ("sum({same}) OVER ({w})",),
    "bool": ("bool_and({bool}) OVER ({w})", "bool_or({bool}) OVER ({w})"),
}
_OF_ANY_FAMILY = (
    "min({same}) OVER ({w})",
    "max({same}) OVER ({w})",
    "{picked}({v}) OVER ({partition}ORDER BY {v}{direction}{frame})",
    "{picked}({v} IGNORE NULLS) OVER ({partition}ORDER BY {v}{direction}{frame})",
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


def random_window(random: Random, family: str, draw: Callable[[str], str]) -> str:
    """A call with a result of `family`, holes for arguments of other families left in it; `draw` makes keys of a family or "any"."""
    choices = _CALLS.get(family, ())
    call = random.choice(choices if choices and random.random() < 0.6 else _OF_ANY_FAMILY)
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
    }
    if "{v}" in call:
        filled["{v}"] = draw(family)
    for hole, text in filled.items():
        call = call.replace(hole, text)
    return call
