"""`describe`: what a query puts out, as far as it is known before its parameters have values."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from tqp.core.datatypes import DataType
from tqp.core.errors import Error
from tqp.planner.bind import BoundStatement, bind
from tqp.planner.catalog_protocol import Catalog
from tqp.planner.parse import ParsedStatement

_INSTANT = datetime.datetime(2000, 1, 1)
#: One value of each type that a parameter may have; 0 and 1, as a scale, give two types. NULL has none: it is bound as it is.
_EXAMPLES = (
    0,
    1,
    2**40,
    2**63,
    2**100,
    1.5,
    True,
    "1",
    b"1",
    decimal.Decimal("0.25"),
    _INSTANT.date(),
    _INSTANT,
    _INSTANT.replace(tzinfo=datetime.UTC),
    _INSTANT.time(),
    datetime.timedelta(1),
    uuid.UUID(int=1),
    [1.0],
)


@dataclass(frozen=True, slots=True)
class Description:
    """Output columns in order: `names` (duplicates allowed), and `types`, None where the values of parameters decide."""

    names: tuple[str, ...]
    types: tuple[DataType | None, ...]


def describe(statement: ParsedStatement, catalog: Catalog) -> Description:
    """Raises what binding raises whatever the values are.

    The statement is bound with NULL for all parameters, which has no type, then with examples of every type for one after the
    other: some twenty bindings for each parameter. A column whose type is always the same does not depend on them.
    """
    keys = [str(key) for key in dict.fromkeys(statement.parameter_keys.values())]
    first, bound = _first_that_binds(statement, catalog, keys)
    types: list[DataType | None] = [*_types(bound)]
    for key in keys:
        for example in _EXAMPLES:
            try:
                others = _types(bind(statement, catalog, {**first, key: example}))
            except Error:
                continue  # no value of this type can stand there
            types = [known if known == other else None for known, other in zip(types, others, strict=True)]
    return Description(bound.names, tuple(types))


def _first_that_binds(
    statement: ParsedStatement, catalog: Catalog, keys: list[str]
) -> tuple[dict[str, object], BoundStatement]:
    """Values with which the statement can be bound: NULL, where it may be."""

    def attempts() -> Iterator[dict[str, object]]:
        yield dict.fromkeys(keys)
        for example in _EXAMPLES if keys else ():
            yield dict.fromkeys(keys, example)

    failed: Error | None = None
    for values in attempts():
        try:
            return values, bind(statement, catalog, values)
        except Error as error:
            failed = failed or error
    assert failed is not None
    raise failed


def _types(statement: BoundStatement) -> list[DataType]:
    return [field.data_type for field in statement.plan.schema]
