"""The engine's tables by name: of itself, of what the catalog holds, and as PostgreSQL has them."""

from __future__ import annotations

import pyarrow as pa
import torch

from tqp.catalog.constraint_tables import CONSTRAINT_TABLES
from tqp.catalog.engine_tables import ENGINE_TABLES
from tqp.catalog.object_tables import OBJECT_TABLES
from tqp.catalog.postgres_details import POSTGRES_DETAILS
from tqp.catalog.postgres_tables import POSTGRES_TABLES
from tqp.catalog.state import CatalogState
from tqp.data.sources.base import Source
from tqp.data.sources.objects.arrow_tables import ArrowSource
from tqp.planner.catalog_protocol import Catalog

_TABLES = {**ENGINE_TABLES, **CONSTRAINT_TABLES, **OBJECT_TABLES, **POSTGRES_TABLES, **POSTGRES_DETAILS}


def system_table(name: str, state: CatalogState, catalog: Catalog, device: torch.device) -> Source | None:
    """The table of that name, such as "information_schema.tables"; None if there is none. `catalog`: where views look."""
    found = _TABLES.get(name)
    if found is None:
        return None
    rows = list(found.rows(state, catalog))
    arrays = [pa.array([row.get(column) for row in rows], kind) for column, kind in found.columns]
    return ArrowSource(name, pa.table(arrays, [column for column, _ in found.columns]), device)
