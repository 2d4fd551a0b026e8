"""Times of day in Parquet files that are adjusted to UTC, as those of TIMETZ are: pyarrow reads them as any others."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from tqp.core.datatypes import TypeKind
from tqp.data.arrow_types import UniversalTimeArray
from tqp.data.sources.parquet.descriptions import leaf_types

_ADJUSTED = "Time(isAdjustedToUTC=true"


def with_universal_times(path: str, metadata: pq.FileMetaData, schema: pa.Schema) -> pa.Schema:
    """The schema of a file in which such times have a type of their own, also where they are nested."""
    leaves = (metadata.schema.column(place) for place in range(metadata.num_columns))
    if not any(leaf.physical_type.startswith("INT") and _is_adjusted(leaf) for leaf in leaves):
        return schema
    # older files do not say whether they are adjusted, and pyarrow then says yes
    are_zoned = iter([each == TypeKind.TIME_TZ.value for each in leaf_types(path)])
    return pa.schema([_zoned(field, are_zoned) for field in schema], schema.metadata)


def _is_adjusted(leaf: pq.ColumnSchema) -> bool:
    return str(leaf.logical_type).startswith(_ADJUSTED)


def _zoned(field: pa.Field, are_zoned: Iterator[bool]) -> pa.Field:
    """The field with its leaves' types, which tell in their order whether they are such times."""
    arrow_type = field.type
    if isinstance(arrow_type, pa.BaseExtensionType) or not arrow_type.num_fields:
        return field.with_type(UniversalTimeArray(arrow_type)) if next(are_zoned) else field
    inner = [_zoned(arrow_type.field(place), are_zoned) for place in range(arrow_type.num_fields)]
    if pa.types.is_struct(arrow_type):
        return field.with_type(pa.struct(inner))
    if pa.types.is_map(arrow_type):
        return field.with_type(pa.map_(*inner[0].type))
    if pa.types.is_large_list(arrow_type):
        return field.with_type(pa.large_list(*inner))
    if pa.types.is_fixed_size_list(arrow_type):
        return field.with_type(pa.list_(*inner, arrow_type.list_size))
    return field.with_type(pa.list_(*inner))
