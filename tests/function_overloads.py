"""`python -m tests.function_overloads`: DuckDB's own list of scalar functions and aggregates, and which overloads tqp binds.

An overload counts where a call of columns of its types binds in both engines, with one type of the result. An argument that must be
a constant is one.
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

import duckdb

import tqp
from tqp.core.errors import Error

#: What stands for a type of a signature that is none of a column.
_SAMPLES = {
    "ANY": "INTEGER",
    "DECIMAL": "DECIMAL(9,2)",
    "T": "INTEGER",
    '"NULL"': "INTEGER",
    "ENUM": "ENUM('a', 'b')",
    "UNION": "UNION(a INTEGER, b VARCHAR)",
}
#: Constants, for arguments of which some functions take nothing else.
_CONSTANTS = {
    "VARCHAR": ("'day'", "'a'", "'%Y'"),
    "DOUBLE": ("0.5",),
    "FLOAT": ("0.5::FLOAT",),
    **dict.fromkeys(("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"), ("1",)),
    **dict.fromkeys(("UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT"), ("1",)),
}
#: Types of which nothing is supported, each with what the documents say of it.
_TYPES = {
    r"\bUUID\b": "the type UUID",
    r"TIME_NS|TIMESTAMPTZ_NS": "the types TIME_NS and TIMESTAMPTZ_NS",
    r"\bBIGNUM\b": "the type BIGNUM",
    r"\bVARIANT\b": "the type VARIANT",
    r"\bGEOMETRY\b": "the type GEOMETRY",
    r"\bJSON\b": "JSON",
    r"\bUNION\b|\bMAP\b": "maps and unions",
    r"STRUCT|\[|\bLIST\b|LAMBDA": "lists, structs and arrays of this form",
}
_FAMILY = re.compile("__internal_|collate_|pg_|st_|icu_")
_SYSTEM = re.compile(
    r"^(pg_|has_|current_|in_search_path|get_block_size|write_log|parse_duckdb_log|txid|nextval|currval|setval|icu_|collate|"
    r"__internal|create_sort_key|vector_type|getvariable|stats$|error$|sleep_ms|finalize|combine|to_aggregate_state|"
    r"remap_struct|make_type|get_type|index_key)"
)


@dataclass(frozen=True)
class Signature:
    """An overload of DuckDB's list."""

    kind: str  # scalar or aggregate
    name: str
    parameters: tuple[str, ...]
    result: str

    @property
    def reason(self) -> str:
        """Why it is not bound."""
        text = f"{', '.join(self.parameters)} -> {self.result}"
        for pattern, reason in _TYPES.items():
            if re.search(pattern, text):
                return reason
        return "the system's own" if _SYSTEM.match(self.name) else "not written yet"


@cache
def signatures() -> tuple[Signature, ...]:
    """DuckDB's scalar functions and aggregates, operators among them, each form once."""
    rows = duckdb.connect().sql(
        "SELECT DISTINCT function_type, function_name, parameter_types, return_type FROM duckdb_functions() "
        "WHERE function_type IN ('scalar', 'aggregate') AND schema_name = 'main' ORDER BY ALL"
    )
    return tuple(Signature(kind, name, tuple(types), result) for kind, name, types, result in rows.fetchall())


def _calls(name: str, types: tuple[str, ...]) -> Iterator[str]:
    """The call of columns `a0`, ... of these types, then some with constants in place of the later arguments."""
    columns = [f"a{place}" for place in range(len(types))]
    yield _written(name, columns)
    for place in range(len(types) - 1, -1, -1):
        for constant in _CONSTANTS.get(types[place], ()):
            for first in (place, len(types) - 1):
                arguments = [
                    constant if place <= other <= first and types[other] == types[place] else column
                    for other, column in enumerate(columns)
                ]
                yield _written(name, arguments)


def _written(name: str, arguments: list[str]) -> str:
    if name.isidentifier():
        return f'"{name}"({", ".join(arguments)})'
    if len(arguments) == 1:
        return f"({name} {arguments[0]})" if name != "!__postfix" else f"({arguments[0]} !)"
    shown = {"~~": "LIKE", "!~~": "NOT LIKE", "~~*": "ILIKE", "!~~*": "NOT ILIKE", "~~~": "GLOB"}.get(
        name, name
    )
    return f"({arguments[0]} {shown} {arguments[1]})" if len(arguments) == 2 else f"({name})"


class _Engines:
    """Both engines, with a table of no rows for each list of types."""

    def __init__(self) -> None:
        self.oracle, self.connection = duckdb.connect(), tqp.connect()
        self._tables: dict[tuple[str, ...], str | None] = {}

    def binds(self, signature: Signature) -> bool:
        """Whether tqp gives a call the type that DuckDB does."""
        types = tuple(_SAMPLES.get(each, each) for each in signature.parameters)
        source = self._source(types)
        if source is None:
            return False
        for call in dict.fromkeys(_calls(signature.name, types)):
            try:
                mine = self.connection.sql(f"SELECT {call} AS c FROM {source} q")
            except Error:
                continue
            try:
                expected = self.oracle.sql(f"SELECT {call} AS c FROM {source} q").types[0]
            except duckdb.Error:
                continue
            return str(mine.types[0]) == str(expected)
        return False

    def _source(self, types: tuple[str, ...]) -> str | None:
        """What is selected from: no rows of these types; None where tqp has not got one of them."""
        if types not in self._tables:
            columns = ", ".join(f"NULL::{each} AS a{place}" for place, each in enumerate(types)) or "1 AS a0"
            source = f"(SELECT {columns} WHERE false)"
            try:
                self.connection.sql(f"FROM {source} q")
                self._tables[types] = source
            except Error:
                self._tables[types] = None
        return self._tables[types]


@cache
def coverage() -> Mapping[Signature, bool]:
    """Of each overload whether tqp binds it."""
    engines = _Engines()
    return {each: engines.binds(each) for each in signatures()}


def report() -> str:
    """How many are bound, by kind, and the names of the others by reason; of a name that is bound in part, how many forms are not."""
    found = coverage()
    lines = [
        "| | overloads | bound with the same type | left for a type or for being the system's own |",
        "|---|---|---|---|",
    ]
    for kind in ("scalar", "aggregate"):
        of_kind = [each for each in found if each.kind == kind]
        bound = sum(found[each] for each in of_kind)
        left = sum(not found[each] and each.reason != "not written yet" for each in of_kind)
        lines.append(f"| {kind} | {len(of_kind)} | {bound} | {left} |")
    missing: dict[str, Counter[str]] = defaultdict(Counter)
    for each, is_bound in found.items():
        if not is_bound:
            family = _FAMILY.match(each.name)
            missing[each.reason][f"{family[0]}*" if family else each.name] += 1
    bound_names = {each.name for each, is_bound in found.items() if is_bound}
    for reason in sorted(missing, key=lambda each: (each != "not written yet", each)):
        names = (
            f"`{name}`" + (f" ({count} form{'s' if count > 1 else ''})" if name in bound_names else "")
            for name, count in sorted(missing[reason].items())
        )
        lines += ["", f"**{reason[0].upper()}{reason[1:]}**: {', '.join(names)}."]
    return "\n".join(lines)


if __name__ == "__main__":
    print(report())
    sys.exit(0)
