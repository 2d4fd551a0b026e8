"""More of what `tests.function_matrix` evaluates: casts between every two types, and operators of every two that may meet.

`tests.function_cases` has the operators that are functions, with operands of the types that these take.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, permutations, product
from random import Random

from tests.function_cases import ALL_TYPES, Case, case, values_of
from tests.random.values import INTEGERS

_MAX_ROWS = 60
_ENDS = ("TINYINT", "UTINYINT", "INTEGER", "UINTEGER")
#: Others differ from one of these in their bounds only.
_LEFT_OUT = ("SMALLINT", "USMALLINT", "DECIMAL(1,0)", "DECIMAL(18,0)", "DECIMAL(19,0)")
_TYPES = tuple(each for each in ALL_TYPES if each not in _LEFT_OUT)
_NUMBERS = (
    *("BOOLEAN", "TINYINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "UINTEGER", "UBIGINT"),
    *("DECIMAL(4,1)", "DECIMAL(18,3)", "DECIMAL(38,0)", "DECIMAL(38,10)", "FLOAT", "DOUBLE"),
)
_INSTANTS = ("DATE", "TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE")
_ARITHMETIC = ("+", "-", "*", "/", "//", "%")
_COMPARISONS = (
    *(("=", "{0} = {1}"), ("<", "{0} < {1}"), (">=", "{0} >= {1}")),
    *(("IS NOT DISTINCT FROM", "{0} IS NOT DISTINCT FROM {1}"), ("in", "{0} IN ({1}, {2})")),
    *(("between", "{0} BETWEEN {1} AND {2}"), ("not between", "{0} NOT BETWEEN {1} AND {2}")),
    *(("coalesce", "coalesce({0}, {1})"), ("greatest", "greatest({0}, {1})"), ("nullif", "nullif({0}, {1})")),
    ("case", "CASE WHEN {2} IS NULL THEN {0} ELSE {1} END"),
)
_OF_TEXT = (
    *(("not like", "{0} NOT LIKE {1}"), ("not ilike", "{0} NOT ILIKE {1}")),
    *(("similar to", "{0} SIMILAR TO {1}"), ("not similar to", "{0} NOT SIMILAR TO {1}")),
    *(("~", "{0} ~ {1}"), ("!~", "{0} !~ {1}")),
)
_PATTERNS = ("", "a", "a%", "%b", "_", "a|b", "(a)(b)?", ".*", "[^a]+", "é", "\\", "[", "a%b_c", "日.", "^a$")


def operator_cases() -> Iterator[Case]:
    """Every case."""
    yield from _casts()
    for types in permutations(_NUMBERS, 2):
        for operator in _ARITHMETIC:
            yield _some(operator, f"{{0}} {operator} {{1}}", types)
    for types in (*combinations(_NUMBERS, 2), *combinations(_INSTANTS, 2)):
        yield from _comparisons(types)
    for left in ALL_TYPES:
        for operator in ("^", "**", "<<", "&", "||"):
            yield _some(operator, f"{{0}} {operator} {{1}}", (left, left))
        for operator in ("-", "+", "~"):
            yield _some(operator, f"{operator} {{0}}", (left,))
    for name, template in _OF_TEXT:
        rows = product((*values_of("VARCHAR"), None), (*_PATTERNS, None))
        yield Case(name, template, ("VARCHAR", "VARCHAR"), _sample(rows, f"{template}", 200))


def _comparisons(types: tuple[str, ...]) -> Iterator[Case]:
    for name, template in _COMPARISONS:
        yield _some(name, template, (*types, types[1]) if "{2}" in template else types)


def _some(name: str, template: str, types: tuple[str, ...]) -> Case:
    return case(name, template, types, _MAX_ROWS)


def _casts() -> Iterator[Case]:
    for source, target in permutations((*_TYPES, "DECIMAL(5,5)"), 2):
        if source == "DECIMAL(5,5)":
            continue
        values = _texts_for(target) if source == "VARCHAR" else (*values_of(source), *_between(source))
        rows = tuple((each,) for each in (*dict.fromkeys(values), None))
        for name in ("cast", "try_cast"):
            yield Case(name, f"{name.upper()}({{0}} AS {target})", (source,), rows)


def _texts_for(target: str) -> tuple[str, ...]:
    """Texts of values, with what may stand around them, and others."""
    own = values_of("DECIMAL(4,1)" if target == "DECIMAL(5,5)" else target)
    changed = (
        each.format(value) for value in own[:8] for each in (" {} ", "+{}", "{}x", "{}.5", "{}e1", "-{}")
    )
    beyond = [
        str(bound + step)
        for low, high in [INTEGERS.get(target, (0, 0))]
        for bound, step in ((low, -1), (high, 1))
    ]
    return (*own, *changed, *beyond, *values_of("VARCHAR"))


def _between(source: str) -> tuple[str, ...]:
    """The ends of the narrower integers, and what rounds to them."""
    if source in ("FLOAT", "DOUBLE", "DECIMAL(18,3)", "DECIMAL(38,10)"):
        ends = (bound for name in _ENDS for bound in INTEGERS[name])
        return tuple(f"{bound}{part}" for bound in ends for part in ("", ".5", ".499"))
    if source in ("BIGINT", "HUGEINT"):
        ends = (bound for name in _ENDS for bound in INTEGERS[name])
        return tuple(str(bound + step) for bound in ends for step in (-1, 0, 1))
    return ()


def _sample(
    rows: Iterator[tuple[str | None, ...]], seed: str, count: int
) -> tuple[tuple[str | None, ...], ...]:
    every = list(rows)
    return tuple(every if len(every) <= count else Random(seed).sample(every, count))
