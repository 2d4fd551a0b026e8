"""The tables and views of a catalog, and their columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tqp.catalog.state import CatalogState
from tqp.core.definitions import ColumnDefinition
from tqp.core.errors import Error
from tqp.core.keywords import lower_ascii
from tqp.core.names import DATABASE, MAIN, TEMPORARY
from tqp.data.sources.base import Source
from tqp.data.sources.stored_tables import StoredTable
from tqp.planner.bind import bind
from tqp.planner.catalog_protocol import Catalog, View


class CatalogObject(NamedTuple):
    """A table or view. What was registered is a temporary view, as in DuckDB."""

    name: str
    schema: str
    is_view: bool
    temporary: bool
    what: Source | View

    @property
    def comment(self) -> str | None:
        """What COMMENT ON has said of it."""
        if isinstance(self.what, StoredTable):
            return self.what.definition.comment
        return self.what.comment if isinstance(self.what, View) else None

    @property
    def database(self) -> str:
        return TEMPORARY if self.temporary else DATABASE


def objects_of(state: CatalogState) -> list[CatalogObject]:
    """All of them, as they stand in the catalog."""
    found = []
    for table in state.tables.values():
        if isinstance(table, StoredTable):
            definition = table.definition
            found.append(CatalogObject(table.name, definition.schema, False, definition.temporary, table))
        else:
            found.append(CatalogObject(table.name, MAIN, True, True, table))
    for view in state.views.values():
        found.append(CatalogObject(view.name, view.schema, True, view.temporary, view))
    return found


def columns_of_object(each: CatalogObject, catalog: Catalog) -> Sequence[ColumnDefinition]:
    """The columns of a table or view; none of a view whose query fails."""
    if isinstance(each.what, StoredTable):
        return each.what.definition.all_columns
    try:
        if isinstance(each.what, View):
            statement = bind(each.what.query, catalog.seen_from(each.what))
            names = [*each.what.columns, *statement.names[len(each.what.columns) :]]
            types = [field.data_type for field in statement.plan.schema]
            comments = [each.what.comments.get(lower_ascii(name)) for name in names]
            return tuple(
                ColumnDefinition(name, data_type, comment=comment)
                for name, data_type, comment in zip(names, types, comments, strict=True)
            )
        return tuple(ColumnDefinition(name, each.what.column_type(name)) for name in each.what.column_names)
    except Error:
        return ()
