"""Random expressions over the columns in scope, drawn from the templates. Nearly all are valid; some overflow."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

from tests.random.templates import AGGREGATE_CALLS, CALLS, GENERAL, PREDICATES, TEMPLATES
from tests.random.values import (
    DECIMALS,
    ENUMS,
    FAMILIES,
    INTEGERS,
    TIMESTAMPS,
    WIDE_INTEGERS,
    WORDS,
    random_value,
)
from tests.random.windows import random_window

NUMBERS = ("int", "int", "dec", "float")
_HOLE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Column:
    """Something that stands where a column can: its SQL, family, and whether its values are small and exact."""

    sql: str
    family: str
    is_small: bool = True


@dataclass(frozen=True)
class Scope:
    """What an expression may refer to; `outer` are columns of the queries around, `keys` those of GROUP BY."""

    columns: Sequence[Column]
    outer: Sequence[Column] = ()
    #: How deeply subqueries may be nested here.
    num_subqueries: int = 0
    #: What no two rows have in common, of all that can be told of them; nothing if that is not known.
    unique_keys: Sequence[str] = ()

    def visible(self) -> tuple[Column, ...]:
        """What a query inside this one may refer to."""
        return (*self.columns, *self.outer)


#: Makes a subquery: scope, wanted family (None for EXISTS), whether it must give one row at most.
SubqueryMaker = Callable[[Scope, str | None, bool], str]


class Expressions:
    """Draws expressions from one random source."""

    def __init__(self, random: Random, subquery: SubqueryMaker) -> None:
        self.random = random
        self.subquery = subquery

    def draw(self, family: str, scope: Scope, depth: int = 2) -> str:
        """An expression of `family`, or of any if it is "any"."""
        random = self.random
        if family == "any":
            family = self.family(scope)
        if family == "num":
            family = random.choice(NUMBERS)
        if depth <= 0 or random.random() < 0.3:
            return self.leaf(family, scope)
        choice = random.random()
        if choice < 0.2:
            template = random.choice(GENERAL)
        elif family == "bool":
            template = random.choice(PREDICATES if choice < 0.9 else (*TEMPLATES["bool"], *CALLS["bool"]))
        elif choice < 0.6 and family in CALLS:
            template = random.choice(CALLS[family])
        else:
            template = random.choice(TEMPLATES[family])
        return self.fill(template, family, scope, depth - 1)

    def predicate(self, scope: Scope, depth: int = 2) -> str:
        """A condition."""
        return self.fill(self.random.choice(PREDICATES), "bool", scope, depth)

    def aggregate(self, family: str, scope: Scope, keys: Sequence[str]) -> str:
        """A call of an aggregate function with a result of `family`, now and then with FILTER."""
        random = self.random
        choices = AGGREGATE_CALLS.get(family, ())
        call = (
            random.choice(choices)
            if choices and random.random() < 0.7
            else random.choice(AGGREGATE_CALLS["same"])
        )
        if "{key}" in call:
            call = call.replace("{key}", random.choice(keys) if keys else self.literal(family))
        distinct = "DISTINCT " if random.random() < 0.15 else ""
        call = call.replace("{distinct}", distinct).replace(
            "{any}", "{same}" if "count" not in call else "{any}"
        )
        call = self.fill(call, family, scope, 1)
        return f"{call} FILTER (WHERE {self.predicate(scope, 0)})" if random.random() < 0.1 else call

    def window(self, family: str, scope: Scope) -> str:
        """A call of a window function with a result of `family`."""
        keys = Scope(scope.columns)

        def draw(kind: str) -> str:
            return self.draw(kind, keys, 1)

        return self.fill(random_window(self.random, family, draw, scope.unique_keys), family, keys, 1)

    def fill(self, template: str, family: str, scope: Scope, depth: int) -> str:
        """The template with all its holes filled; `{x}` is of one family throughout."""
        shared = self.family(scope)

        def hole(match: re.Match[str]) -> str:
            return self._hole(match.group(1), family, shared, scope, depth)

        return _HOLE.sub(hole, template)

    def leaf(self, family: str, scope: Scope) -> str:
        """A column of `family` if there is one, usually; else a literal."""
        column = self.column(family, scope)
        if column is None and family == "bool" and scope.columns:
            return self.fill(
                self.random.choice(("({x} {compare} {x})", "({x} IS {not}NULL)")), "bool", scope, 0
            )
        return column.sql if column is not None and self.random.random() < 0.85 else self.literal(family)

    def column(self, family: str, scope: Scope) -> Column | None:
        """A column of `family`, now and then one of an outer query."""
        outer = [column for column in scope.outer if column.family == family]
        inner = [column for column in scope.columns if column.family == family]
        if outer and (not inner or self.random.random() < 0.2):
            return self.random.choice(outer)
        return self.random.choice(inner) if inner else None

    def family(self, scope: Scope) -> str:
        """A family that a column in scope has, nearly always."""
        present = [column.family for column in scope.columns]
        return self.random.choice(present if present and self.random.random() < 0.95 else tuple(FAMILIES))

    def literal(self, family: str, is_typed: bool = False) -> str:
        """A constant, now and then NULL; `is_typed` where text would not take the type of what stands around it."""
        random = self.random
        if random.random() < 0.07:
            return f"CAST(NULL AS {random.choice(FAMILIES[family])})" if random.random() < 0.6 else "NULL"
        sql_type = random.choice(FAMILIES[family])
        profile = random.choice(("small", "small", "small", "small", "ends"))
        text = random_value(random, sql_type, profile)
        quoted = "'" + text.replace("'", "''") + "'"
        if family == "bool":
            return text.upper()
        if family == "str":
            return quoted
        if family == "int" and random.random() < 0.7:
            return f"({text})" if text.startswith("-") else text
        if family == "dec" and random.random() < 0.6 and len(text) < 12:
            return f"({text})" if text.startswith("-") else text
        form = random.random()
        if family not in ("int", "dec", "float") and form < (0.004 if is_typed else 0.07):
            return quoted
        if family in ("date", "interval", "time") and form < 0.7:
            return f"{sql_type} {quoted}"
        return f"CAST({quoted} AS {sql_type})" if form < 0.9 else f"{quoted}::{sql_type}"

    def _hole(self, name: str, family: str, shared: str, scope: Scope, depth: int) -> str:
        random = self.random
        if name in ("same", "guarded"):
            return self.draw(family, scope, depth) if name == "same" else self._guarded(family, scope)
        if name == "x":
            return self.draw(shared, scope, depth)
        if name in FAMILIES or name in ("any", "num"):
            return self.draw(name, scope, depth)
        if name == "literal":
            return self.literal(family)
        if name == "x_literal":
            return self.literal(shared)
        if name == "exact":
            exact = [column.sql for column in scope.columns if column.family == "float" and column.is_small]
            return random.choice(exact) if exact else f"CAST({random.randint(-9, 9) / 4} AS DOUBLE)"
        if name in ("subquery", "exists", "x_rows", "x_subquery"):
            wanted = {"subquery": family, "exists": None}.get(name, shared)
            if scope.num_subqueries <= 0:
                return f"SELECT {'1' if wanted is None else self.draw(wanted, scope, min(depth, 1))}"
            return self.subquery(scope, wanted, name in ("subquery", "x_subquery"))
        constant, is_constant = (
            name.removeprefix("some_"),
            not name.startswith("some_") or random.random() < 0.7,
        )
        if is_constant:
            return str(random.choice(_CONSTANTS[constant]))
        if constant == "part":
            first, second = (
                f"'{part}'" for part in random.sample(("year", "month", "day", "week", "quarter"), 2)
            )
            return f"CASE WHEN {self.predicate(scope, 0)} THEN {first} ELSE {second} END"
        text = self.leaf("str", scope)
        return f"regexp_escape({text})" if constant == "regex" else text

    def _guarded(self, family: str, scope: Scope) -> str:
        """A cast that fails for some rows, behind a condition that keeps those rows from it."""
        random = self.random
        if family not in ("int", "dec") or random.random() < 0.3:
            text = self.column("str", scope)
            if text is None:
                return self.draw(family, scope, 1)
            form = "CASE WHEN TRY_CAST({0} AS {1}) IS NOT NULL THEN CAST({0} AS {1}) END"
            return form.format(text.sql, random.choice(FAMILIES[family]))
        column = self.column(random.choice(("int", "dec", "float")), scope)
        if column is None:
            return self.draw(family, scope, 1)
        low, high = random.choice(((0, 100), (0, 8), (1, 50)))
        form = random.choice(
            (
                "CASE WHEN {0} > {1} AND {0} < {2} THEN CAST({0} AS {3}) ELSE 0 END",
                "if({0} BETWEEN {1} AND {2}, CAST({0} AS {3}), NULL)",
                "CASE WHEN {0} < {1} OR {0} > {2} THEN NULL ELSE {0}::{3} END",
            )
        )
        return form.format(column.sql, low, high, random.choice(_HOLD_SMALL_NUMBERS))


class PlainExpressions(Expressions):
    """Mostly columns and comparisons, so that few queries are refused and most of what differs is of relations."""

    def draw(self, family: str, scope: Scope, depth: int = 2) -> str:
        """As in `Expressions`."""
        if depth <= 0 or self.random.random() < 0.8:
            return super().draw(family, scope, 0)
        family = self.family(scope) if family == "any" else family
        family = self.random.choice(NUMBERS) if family == "num" else family
        return self.fill(self.random.choice(_PLAIN_VALUES), family, scope, depth - 1)

    def predicate(self, scope: Scope, depth: int = 2) -> str:
        """As in `Expressions`."""
        return self.fill(self.random.choice(_PLAIN_CONDITIONS), "bool", scope, depth)

    def aggregate(self, family: str, scope: Scope, keys: Sequence[str]) -> str:
        """As in `Expressions`."""
        calls = _PLAIN_COUNTS if family == "int" else ("min({same})", "max({same})", "any_value({literal})")
        call = self.fill(self.random.choice(calls), family, scope, 0)
        return f"{call} FILTER (WHERE {self.predicate(scope, 0)})" if self.random.random() < 0.1 else call


_PLAIN_VALUES = (
    *("coalesce({same}, {same})", "CASE WHEN {bool} THEN {same} ELSE {same} END", "nullif({same}, {same})"),
    *("({subquery})", "CASE WHEN ({x} IS NULL) THEN {same} END", "{same}"),
)
_PLAIN_COUNTS = (
    *("count(*)", "count({any})", "count(DISTINCT {any})", "sum({int} % 5)", "max({int})", "bit_and({int})"),
    *("count_if({bool})", "count(*) + min({int} % 3)"),
)
_PLAIN_CONDITIONS = (
    *("({x} {compare} {x})", "({x} {compare} {x})", "({x} {compare} {x_literal})", "({x} IS {not}NULL)"),
    *("({bool} AND {bool})", "({bool} OR {bool})", "(NOT {bool})", "({bool} IS {not}TRUE)"),
    *("({not}EXISTS ({exists}))", "({x} {not}IN ({x_rows}))", "({x} {compare} ({x_subquery}))"),
    *("({x} {order} {quantifier} ({x_rows}))", "({x} {not}IN ({x_literal}, {x_literal}))"),
    *("coalesce({bool}, {truth})", "(({x}, {int}) {not}IN (({x}, {small}), ({x_literal}, {int})))"),
)

#: Types that hold whole numbers of two digits.
_HOLD_SMALL_NUMBERS = (
    *INTEGERS,
    "HUGEINT",
    "DECIMAL(5,2)",
    "DECIMAL(9,2)",
    "DECIMAL(18,3)",
    "DECIMAL(28,6)",
    "DECIMAL(38,10)",
)
_PARTS = (
    "year month day hour minute second quarter week dow doy epoch decade century millisecond isoyear".split()
)
_CONSTANTS: dict[str, Sequence[object]] = {
    "compare": ("=", "=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"),
    "order": ("=", "<>", "<", "<=", ">", ">="),
    "not": ("", "", "NOT "),
    "collation": (*["NOCASE"] * 9, "NOACCENT"),  # two in one comparison are refused
    "truth": ("TRUE", "FALSE", "TRUE", "NULL"),
    "quantifier": ("ANY", "ALL"),
    "small": (0, 1, 2, 3, 5, "(-1)", "(-2)", 12),
    "divisor": (1, 2, 3, 7, "(-2)"),
    "count": (0, 1, 2, 3, 5, "(-1)", 8),
    "group": (0, 1),
    "year": (1970, 2024, 1, 9999),
    "code_point": (65, 97, 233, 8364, 128512),
    "pattern": tuple(
        f"'{text}'"
        for text in ("a%", "%a%", "%b", "_", "%", "", "a_b", "%a%b%", "%é%", "%1%", "%\\%%", "NULL", "_%_")
    ),
    "escape": ("'\\'", "'!'"),
    "glob": tuple(
        f"'{text}'"
        for text in ("a*", "*", "", "?", "[a-c]*", "*[!a]", "a?c", "\\a*", "[", "*é*", "??", "*1*")
    ),
    "regex": tuple(
        f"'{text}'" for text in ("a+", "^a", "[0-9]+", "b$", ".*", "(a|b)c", "", "\\d", "é", "(a)(b)?")
    ),
    "options": ("'i'", "'s'", "'c'"),
    "replace_options": ("'g'", "'gi'"),
    "width": tuple(f"INTERVAL '{width}'" for width in ("1 day", "1 week", "7 months", "1 year", "36:00:00")),
    "base": (2, 3, 10, 36),
    "separator": ("'system'", "'backslash'", "'both_slash'", "''"),
    "path_option": ("TRUE", "FALSE"),
    "json_path": ("'$.a'", "'b'", "'$.b[0]'", "'$.b[#]'", "'$.b[-1].x'", "'$.c.d'", "'/b/1'", "'$'", "NULL"),
    "json_rows": ("json_each", "json_tree"),
    "json_change": ("json_set", "json_insert", "json_replace"),
    "json_merge": ("json_merge_patch", "json_deep_merge", "json_merge_patch_diff"),
    "part": tuple(f"'{part}'" for part in _PARTS),
    "part_name": _PARTS,
    "zone": tuple(f"'{zone}'" for zone in ("UTC", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe")),
    "format": tuple(
        f"'{text}'" for text in ("%Y-%m-%d", "%d/%m/%y %H:%M:%S", "%j", "%Y%m%d", "%A %B", "%H:%M:%S.%f")
    ),
    "constant_text": tuple("'" + word.replace("'", "''") + "'" for word in (*WORDS[:12], "-", ", ")),
    "integer_type": (*INTEGERS, *INTEGERS, *WIDE_INTEGERS, "HUGEINT"),
    "enum_type": tuple(ENUMS),
    "decimal_type": DECIMALS,
    "float_type": ("FLOAT", "DOUBLE", "DOUBLE"),
    "timestamp_type": TIMESTAMPS,
    "fraction": (0, 0.25, 0.5, 0.9, 1),
    "array": ("[1, 2]::FLOAT[2]", "[0.5, -1]::FLOAT[2]", "NULL::FLOAT[2]"),
}
