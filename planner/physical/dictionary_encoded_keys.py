"""Dictionary-encoded group keys: where the values of a table column lie far apart, codes stand for them.

A direct group-by asks for keys within a range as long as the accumulators, any other is quicker by one word. Encoding a column reads
it once, between two plannings of the second query that asks for it; its dictionary and codes stay with the column. Rows that match many rows each in a range join hand them their code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tqp.core.backends import Backend
from tqp.core.datatypes import BIGINT
from tqp.core.schema import TableSource
from tqp.planner.algebra.expressions import ColumnRef, Expression
from tqp.planner.algebra.join_keys import KEEPS_RIGHT, JoinType
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.outcomes import nullable
from tqp.planner.functions.ranges import within
from tqp.planner.physical.algorithm_choice import PhysicalOptions
from tqp.planner.physical.plan import (
    Filter,
    Join,
    JoinAlgorithm,
    KeyPacking,
    KeyPart,
    PhysicalPlan,
    Project,
    RuntimeFilter,
    TableScan,
)

#: Rows of the table for each row that is grouped, at most: of fewer rows the values are not worth being encoded.
_TABLE_ROWS = 4.0
#: Rows of the table for each distinct value, at least: numbers hash and sort fast.
_ROWS_PER_VALUE = 8.0
#: What a key spans for each of its values, at least: a wider packing costs less than codes.
_SPANNED = 2.0


def encode_keys(
    keys: Sequence[Expression],
    parts: Sequence[KeyPart | None],
    fields: FieldsById,
    input: PhysicalPlan,
    most_groups: float,
    options: PhysicalOptions,
) -> KeyPacking | None:
    """A packing of at most so many codes, with a code in place of each key that spans many more values than it has.

    `parts`: how each key is packed by its value, None where it cannot be. None where no codes help, are not worth it, or are
    still to be made.
    """
    columns = _table_columns(input, input.estimated_rows)

    def column_of(key: Expression, part: KeyPart | None) -> int | None:
        """The id of a column whose values are far fewer than they span."""
        if not isinstance(key, ColumnRef) or key.id not in columns:
            return None
        found = columns[key.id]
        if not _is_worth(*found, input, options.backend):
            return None
        spans_more = part is None or _SPANNED * _estimated_values(*found[:2]) <= part.span
        return key.id if spans_more else None

    encoded = list(map(column_of, keys, parts))

    def packing(count: Callable[[TableSource, str], float]) -> KeyPacking | None:
        """With so many values in each column."""
        chosen = []
        for key, part, id in zip(keys, parts, encoded, strict=True):
            if id is not None:
                can_be_null, values = nullable(key, fields), int(count(*columns[id][:2]))
                part = KeyPart(0, max(1, values) + can_be_null, can_be_null, id)
            chosen.append(part)
        return KeyPacking.of(chosen, most_groups)

    chosen = [columns[id][:2] for id in encoded if id is not None]
    if not chosen or packing(_estimated_values) is None:
        return None
    sizes = {column: column[0].dictionary_size(column[1]) for column in chosen}
    missing = [column for column, size in sizes.items() if size is None]
    options.wanted.extend(missing)
    return packing(lambda table, name: sizes[table, name] or 0) if all(sizes.values()) else None


def _estimated_values(table: TableSource, name: str) -> float:
    return table.column_estimates(name).distinct_count or 0.0


def _is_worth(table: TableSource, name: str, reads: float, input: PhysicalPlan, backend: Backend) -> bool:
    """Are most rows of the table grouped, and its values few against how often the column is read?"""
    data_type, facts = table.column_type(name), table.column_facts(name)
    count = table.column_estimates(name).distinct_count
    is_float = data_type.is_float and backend is Backend.HOST
    can_be = is_float or (data_type.is_integer_like and within(facts.range, BIGINT))
    few = count is not None and 0 < _ROWS_PER_VALUE * count <= reads
    return can_be and few and table.num_rows <= _TABLE_ROWS * input.estimated_rows


def _table_columns(plan: PhysicalPlan, rows: float) -> dict[int, tuple[TableSource, str, float]]:
    """The columns, by id, of the table whose rows stream into the `rows` rows that are grouped, and of tables joined by ranges.

    With how often each is read. Of other joins the build side may be copied, or its key be that of the probe side.
    """
    match plan:
        case TableScan():
            names = zip(plan.fields, plan.columns, strict=True)
            return {field.id: (plan.table, name, plan.table.num_rows) for field, name in names}
        case Filter() | RuntimeFilter() | Project():
            return _table_columns(plan.input, rows)
        case Join(join_type=JoinType.INNER, algorithm=JoinAlgorithm.RANGE, build=TableScan()):
            built = {id: (*column[:2], rows) for id, column in _table_columns(plan.build, rows).items()}
            return _table_columns(plan.probe, rows) | built
        case Join() if plan.join_type not in KEEPS_RIGHT:
            return _table_columns(plan.probe, rows)
    return {}
