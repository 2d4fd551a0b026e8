"""What one binding carries through all its parts: ids, the catalog, parameters, the text, and the scans to complete."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tqp.core.datatypes import DataType
from tqp.core.schema import Field, TableSource
from tqp.planner.algebra.expressions import PythonCall
from tqp.planner.catalog_protocol import Catalog, NumberSequence, View

if TYPE_CHECKING:
    from tqp.planner.binder.query import QueryBinder

Parameters = Sequence[Any] | Mapping[str, Any] | None


@dataclass(slots=True)
class Ids:
    """The numbers of columns and CTEs in one plan."""

    next_id: int = 0
    next_shared: int = 0


@dataclass(slots=True)
class BindContext:
    """State of one `bind` call, or of a view in it, which has a text of its own and shares the ids."""

    catalog: Catalog
    parameters: Parameters
    query: str
    parameter_keys: Mapping[int, int | str]  # see `tqp.planner.parse.ParsedStatement`
    #: Set by the statement; breaks the circle query -> expression -> subquery -> query.
    bind_query: QueryBinder = field(init=False)
    used_parameters: set[int | str] = field(default_factory=set)
    ids: Ids = field(default_factory=Ids)
    #: The views around, by their identities.
    views: frozenset[int] = frozenset()
    #: Names that this view alone knows, before those of the catalog, by their lower case.
    inputs: Mapping[str, View | TableSource] = field(default_factory=dict)

    #: The calls of nextval() and setval() so far, with their sequences.
    drawn: list[tuple[NumberSequence, PythonCall]] = field(default_factory=list)

    def new_field(self, name: str, data_type: DataType, nullable: bool = True) -> Field:
        """A field with an id of its own."""
        self.ids.next_id += 1
        return Field(self.ids.next_id, name, data_type, nullable)

    def renewed(self, known: Field) -> Field:
        """The same field with an id of its own."""
        return self.new_field(known.name, known.data_type, known.nullable)

    def new_shared(self) -> int:
        """An identifier for the references to one CTE."""
        self.ids.next_shared += 1
        return self.ids.next_shared - 1
