"""The 22 queries with other constants, drawn by the rules of TPC-H (the substitution parameters of its clause 2.4)."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from random import Random

from tqp.measuring.query import Query

_REGIONS: dict[str, Sequence[str]] = {
    "AFRICA": ("ALGERIA", "ETHIOPIA", "KENYA", "MOROCCO", "MOZAMBIQUE"),
    "AMERICA": ("ARGENTINA", "BRAZIL", "CANADA", "PERU", "UNITED STATES"),
    "ASIA": ("CHINA", "INDIA", "INDONESIA", "JAPAN", "VIETNAM"),
    "EUROPE": ("FRANCE", "GERMANY", "ROMANIA", "RUSSIA", "UNITED KINGDOM"),
    "MIDDLE EAST": ("EGYPT", "IRAN", "IRAQ", "JORDAN", "SAUDI ARABIA"),
}
_NATIONS = sorted(nation for nations in _REGIONS.values() for nation in nations)
_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
_MODES = ("AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK")
_SIZES_OF_TYPES = ("ECONOMY", "LARGE", "MEDIUM", "PROMO", "SMALL", "STANDARD")
_FINISHES = ("ANODIZED", "BRUSHED", "BURNISHED", "PLATED", "POLISHED")
_METALS = ("BRASS", "COPPER", "NICKEL", "STEEL", "TIN")
_CONTAINERS = tuple(
    f"{size} {kind}"
    for size in ("JUMBO", "LG", "MED", "SM", "WRAP")
    for kind in ("BAG", "BOX", "CAN", "CASE", "DRUM", "JAR", "PACK", "PKG")
)
#: Of the words that names of parts are made of.
_COLORS = tuple(
    "almond antique aquamarine azure beige bisque black blanched blue blush brown burlywood chartreuse chiffon chocolate "
    "coral cornflower cream cyan dark deep dim dodger drab firebrick floral forest frosted ghost goldenrod green grey "
    "honeydew hot indian ivory khaki lace lavender lawn lemon light lime linen magenta maroon medium metallic midnight mint "
    "misty moccasin navajo navy olive orange orchid pale papaya peach peru pink plum powder puff purple red rose rosy royal "
    "saddle salmon sandy seashell sienna sky slate smoke snow spring steel tan thistle tomato turquoise violet wheat white "
    "yellow".split()
)


#: Draws for each set that is wanted: where so many repeat what is there, the rules have no more.
_DRAWS = 20


def with_new_constants(query: Query, random: Random) -> Query:
    """The query with other constants in the same places."""
    new = _RULES[query.number](random)
    places = re.compile("|".join(map(re.escape, sorted(new, key=len, reverse=True))))
    text = places.sub(lambda found: new[found[0]], query.text)
    return replace(query, text=text)


def sets_of_constants(query: Query, count: int) -> list[Query]:
    """The query with `count` sets of other constants, no two of them alike; the same sets every time.

    Fewer where the rules have fewer: query 18 has four.
    """
    random = Random(query.number)
    found: dict[str, Query] = {}
    for _ in range(_DRAWS * count):
        other = with_new_constants(query, random)
        if other.text != query.text:
            found.setdefault(other.text, other)
        if len(found) == count:
            break
    return list(found.values())


def _month(random: Random, first: tuple[int, int], last: tuple[int, int]) -> str:
    """The first day of a month between two, each (year, month)."""
    number = random.randint(first[0] * 12 + first[1] - 1, last[0] * 12 + last[1] - 1)
    return f"'{number // 12}-{number % 12 + 1:02}-01'"


def _year(random: Random) -> str:
    return f"'{random.randint(1993, 1997)}-01-01'"


def _text(random: Random, choices: Sequence[str]) -> str:
    return f"'{random.choice(choices)}'"


def _brand(random: Random) -> str:
    return f"'Brand#{random.randint(1, 5)}{random.randint(1, 5)}'"


def _nation_and_region(random: Random) -> dict[str, str]:
    region = random.choice(list(_REGIONS))
    return {"'AMERICA'": f"'{region}'", "'BRAZIL'": _text(random, _REGIONS[region])}


def _two(random: Random, places: tuple[str, str], choices: Sequence[str]) -> dict[str, str]:
    return dict(zip(places, (f"'{choice}'" for choice in random.sample(choices, 2)), strict=True))


def _sizes(random: Random) -> str:
    return "IN (" + ", ".join(map(str, random.sample(range(1, 51), 8))) + ")"


def _codes(random: Random) -> str:
    return "IN (" + ", ".join(f"'{code}'" for code in random.sample(range(10, 35), 7)) + ")"


def _quantities(random: Random) -> dict[str, str]:
    """Three, each of which stands alone and as the beginning of a range of ten."""
    new = {}
    for low, high in ((1, 10), (10, 20), (20, 30)):
        quantity = random.randint(low, high)
        new[f">= {low} AND l_quantity <= {low} + 10"] = f">= {quantity} AND l_quantity <= {quantity} + 10"
    return new


#: By number of the query: what stands in its text, and what is to stand there.
_RULES: Mapping[int, Callable[[Random], dict[str, str]]] = {
    1: lambda random: {"'90'": f"'{random.randint(60, 120)}'"},
    2: lambda random: {
        "p_size = 15": f"p_size = {random.randint(1, 50)}",
        "'%BRASS'": f"'%{random.choice(_METALS)}'",
        "'EUROPE'": _text(random, list(_REGIONS)),
    },
    3: lambda random: {
        "'BUILDING'": _text(random, _SEGMENTS),
        "'1995-03-15'": f"'1995-03-{random.randint(1, 31):02}'",
    },
    4: lambda random: {"'1993-07-01'": _month(random, (1993, 1), (1997, 10))},
    5: lambda random: {"'ASIA'": _text(random, list(_REGIONS)), "'1994-01-01'": _year(random)},
    6: lambda random: {
        "'1994-01-01'": _year(random),
        "0.06": f"0.0{random.randint(2, 9)}",
        "< 24": f"< {random.randint(24, 25)}",
    },
    7: lambda random: _two(random, ("'FRANCE'", "'GERMANY'"), _NATIONS),
    8: lambda random: {
        **_nation_and_region(random),
        "'ECONOMY ANODIZED STEEL'": (
            f"'{random.choice(_SIZES_OF_TYPES)} {random.choice(_FINISHES)} {random.choice(_METALS)}'"
        ),
    },
    9: lambda random: {"%green%": f"%{random.choice(_COLORS)}%"},
    10: lambda random: {"'1993-10-01'": _month(random, (1993, 2), (1995, 1))},
    11: lambda random: {"'GERMANY'": _text(random, _NATIONS)},
    12: lambda random: {**_two(random, ("'MAIL'", "'SHIP'"), _MODES), "'1994-01-01'": _year(random)},
    13: lambda random: {
        "%special%": f"%{random.choice(('special', 'pending', 'unusual', 'express'))}%",
        "requests%": f"{random.choice(('packages', 'requests', 'accounts', 'deposits'))}%",
    },
    14: lambda random: {"'1995-09-01'": _month(random, (1993, 1), (1997, 12))},
    15: lambda random: {"'1996-01-01'": _month(random, (1993, 1), (1997, 10))},
    16: lambda random: {
        "'Brand#45'": _brand(random),
        "'MEDIUM POLISHED%'": f"'{random.choice(_SIZES_OF_TYPES)} {random.choice(_FINISHES)}%'",
        "IN (49, 14, 23, 45, 19, 3, 36, 9)": _sizes(random),
    },
    17: lambda random: {"'Brand#23'": _brand(random), "'MED BOX'": _text(random, _CONTAINERS)},
    18: lambda random: {"> 300": f"> {random.randint(312, 315)}"},
    19: lambda random: {
        **_quantities(random),
        "'Brand#12'": _brand(random),
        "'Brand#23'": _brand(random),
        "'Brand#34'": _brand(random),
    },
    20: lambda random: {
        "'forest%'": f"'{random.choice(_COLORS)}%'",
        "'1994-01-01'": _year(random),
        "'CANADA'": _text(random, _NATIONS),
    },
    21: lambda random: {"'SAUDI ARABIA'": _text(random, _NATIONS)},
    22: lambda random: {"IN ('13', '31', '23', '29', '30', '18', '17')": _codes(random)},
}
