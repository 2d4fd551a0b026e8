"""Names of tables, views, macros, types and sequences, each of which stands in a schema.

A catalog keeps each under an `ObjectName`. What is temporary stands in the schema `temp`, which is a database to SQL. A name in a text is
`LookedUp`: what stands before its dot gives the schemas (`CatalogState.schemas_named`); without one they are `temp`, those that SET has
given, and `main` (`CatalogState.searched`), and within a view its own schema in their place (`Snapshot.seen_from`). `CatalogState.found` is the
only look-up. What was searched is noted with what was found (`Snapshot.read`), so that USE finds other programs. Queries that
statements ask about a table name it in full (`ObjectName.in_quotes`).
"""

from __future__ import annotations

from typing import NamedTuple

from tqp.core.keywords import in_quotes, lower_ascii, quoted

#: The database, and its schema for what is put into no other.
DATABASE, MAIN = "memory", "main"
#: The database of what is temporary, here a schema that is searched before others.
TEMPORARY = "temp"
#: Schemas that tell of the catalog. No statement makes, drops or fills them.
SYSTEM_SCHEMAS = frozenset(("information_schema", "pg_catalog"))


class ObjectName(NamedTuple):
    """What a catalog keeps an object under: its schema and its name, in lower case.

    >>> ObjectName.of("T", "S")
    ObjectName(schema='s', name='t')
    """

    schema: str
    name: str

    @staticmethod
    def of(name: str, schema: str = MAIN, temporary: bool = False) -> ObjectName:
        """Of names as they were written."""
        return ObjectName(TEMPORARY if temporary else lower_ascii(schema), lower_ascii(name))

    @property
    def in_quotes(self) -> str:
        """The name as SQL that means nothing else, whatever schemas are searched.

        >>> print(ObjectName("main", "t").in_quotes)
        "memory"."main"."t"
        """
        database = () if self.schema == TEMPORARY else (DATABASE,)
        return ".".join(map(in_quotes, (*database, *self)))


class LookedUp(NamedTuple):
    """A name in lower case, and the schemas in which it is looked up, in turn; of none, all that are searched."""

    name: str
    schemas: tuple[str, ...] = ()


def shown(name: str, schema: str = MAIN) -> str:
    """The name as DuckDB shows it in statements: behind that of its schema, if that is not `main`.

    >>> shown("t"), shown("a b", "s")
    ('t', 's."a b"')
    """
    return quoted(name) if lower_ascii(schema) == MAIN else f"{quoted(schema)}.{quoted(name)}"
