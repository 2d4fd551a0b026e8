"""Decisions about joins: which side is built, how keys are packed, which algorithm finds the build rows."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import replace

from tqp.core.backends import Backend
from tqp.core.datatypes import BOOLEAN
from tqp.core.schema import Field
from tqp.planner.algebra.expressions import Call, ColumnRef, Expression, Literal, conjuncts, transform
from tqp.planner.algebra.join_keys import JoinKeys
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.logical_plan import (
    Join,
    JoinType,
    LogicalPlan,
    Project,
    Shared,
    UnionAll,
    as_nullable,
)
from tqp.planner.algebra.null_facts import nullable
from tqp.planner.algebra.value_ranges import value_range
from tqp.planner.functions.ranges import Range
from tqp.planner.physical.plan import Join as PhysicalJoin
from tqp.planner.physical.plan import JoinAlgorithm, KeyPacking, KeyPart, PhysicalPlan, TableScan
from tqp.planner.physical.plan import Project as PhysicalProject

# Nanoseconds a row on one CPU core, rounded; only their ratios matter.
_PROBE = 3.0
_BUILD = 8.0  # build rows are materialised, probe rows streamed
_SORT = 15.0  # build rows with duplicate keys are sorted into a directory
_BUCKET = 65.0  # hashing, sorting by bucket, comparing candidates
_OFFSET = 3.0  # an entry of a directory of offsets
_TABLE_ENTRY = 0.5  # clearing an entry of a table of bools, and the misses that a larger table costs
_SCATTER = 1.5  # entering a row's value into a table, in look-ups

_ALWAYS_DENSE = 1 << 20
_FREE_ENTRIES = (
    1 << 12
)  # entries that a table may have too many, to save subtracting the least key of each row
_LARGEST_TABLE = 1 << 28
_LARGEST_PACKED = 1 << 62
_INT64 = (-(2**63), 2**63 - 1)
_SWAP_GAIN = 0.1
_MOST_CANDIDATES = 16.0

#: Joins that ask whether a build row exists, not which: without a residual, duplicates of a key change nothing.
_EXISTENCE = (JoinType.SEMI, JoinType.ANTI, JoinType.NULL_AWARE_ANTI, JoinType.MARK)


def should_swap(as_written: float, swapped: float) -> bool:
    """True if building on the left and streaming the right is clearly cheaper."""
    return as_written - swapped > _SWAP_GAIN * max(abs(as_written), abs(swapped))


def side_cost(probe_rows: float, build_rows: float, build_is_unique: bool, span: int | None) -> float:
    """Estimated nanoseconds of an inner join; `span`: how many values the key can take, if it is dense."""
    offsets = 0.0 if build_is_unique or span is None else span * _OFFSET
    return build_rows * (_BUILD if build_is_unique else _BUILD + _SORT) + probe_rows * _PROBE + offsets


def dense_span(
    keys: JoinKeys, probe: FieldsById, build: FieldsById, dictionaries: Mapping[int, int], rows: float
) -> int | None:
    """The size of a packing of the keys if a table of that size pays for joins of about so many rows.

    One of several keys has to pay against that of a single key, whose entries are fewer and stay in the caches.
    """
    packing = pack_join_keys(keys, probe, build, dictionaries, None)
    entry = _OFFSET if len(keys.left) > 1 else _TABLE_ENTRY
    return packing.size if packing is not None and _is_dense(packing.size, rows, 0.0, entry) else None


def reduce_keys(
    keys: JoinKeys, candidates: Sequence[float], spans: Sequence[int | None], saved: Sequence[float]
) -> JoinKeys:
    """One dense key instead of several that are not dense together; the other equalities become residual.

    `candidates[i]`: how many build rows share a value of key i on average; `spans[i]`: its range, if dense;
    `saved[i]`: what a runtime filter on it saves.
    """
    usable = [
        position
        for position, span in enumerate(spans)
        if span is not None and candidates[position] <= _MOST_CANDIDATES and not keys.null_equal[position]
    ]
    if not usable:
        return keys
    best = min(usable, key=lambda position: (-saved[position], candidates[position]))
    rest = tuple(
        Call("is_not_distinct_from" if null_equal else "equal", (left, right), BOOLEAN)
        for position, (left, right, null_equal) in enumerate(
            zip(keys.left, keys.right, keys.null_equal, strict=True)
        )
        if position != best
    )
    return JoinKeys((keys.left[best],), (keys.right[best],), (False,), rest + keys.residual)


def single_key(keys: JoinKeys, position: int) -> JoinKeys:
    """The key at one position, alone."""
    return JoinKeys((keys.left[position],), (keys.right[position],), (keys.null_equal[position],), ())


def pack_join_keys(
    keys: JoinKeys,
    probe: FieldsById,
    build: FieldsById,
    dictionaries: Mapping[int, int],
    filtered: Sequence[Range] | None,
) -> KeyPacking | None:
    """A packing that covers the values of both sides, and the `filtered` ranges where a runtime filter looks keys up.

    Strings are numbered by the dictionary of a table column that is the key of one side, the probe side's if it has one;
    `dictionaries` gives the sizes by column id.
    A part is nullable only where NULLs match; elsewhere a row with a NULL key is dropped before it is packed.
    """
    parts: list[KeyPart] = []
    size = 1
    for position, (left, right, null_equal) in enumerate(
        zip(keys.left, keys.right, keys.null_equal, strict=True)
    ):
        if left.data_type != right.data_type:
            return None
        if left.data_type.is_string:
            column = next(
                (key.id for key in (left, right) if isinstance(key, ColumnRef) and key.id in dictionaries),
                None,
            )
            if column is None:
                return None
            span = dictionaries[column] + 1 + null_equal
            size *= span
            if size >= _LARGEST_PACKED:
                return None
            parts.append(KeyPart(0, span, null_equal, column))
            continue
        if not left.data_type.is_integer_like:
            return None
        known = [value_range(left, probe), value_range(right, build)]
        if filtered is not None:
            known.append(filtered[position])
        ranges = [pair for pair in known if pair is not None]
        if len(ranges) < len(known):
            return None
        low, high = min(pair[0] for pair in ranges), max(pair[1] for pair in ranges)
        if low < _INT64[0] or high > _INT64[1]:
            return None
        if len(keys.left) == 1 and 0 < low <= _FREE_ENTRIES and not null_equal:
            low = 0  # the key is its own code then
        span = high - low + 1 + null_equal
        size *= span
        if size >= _LARGEST_PACKED:
            return None
        parts.append(KeyPart(low, span, null_equal))
    return KeyPacking(tuple(parts), size) if parts else None


def choose_algorithm(
    join_type: JoinType,
    keys: JoinKeys,
    packing: KeyPacking | None,
    build_is_unique: bool,
    probe_rows: float,
    build_rows: float,
    backend: Backend,
    disabled_rules: frozenset[str],
) -> JoinAlgorithm:
    """LOOKUP or DIRECTORY over a dense key range, STRINGS for a string, else BUCKET (SORT for torch); NESTED_LOOP without keys."""
    if not keys.left:
        return JoinAlgorithm.NESTED_LOOP
    if packing is not None and _is_dense(packing.size, probe_rows, build_rows):
        existence = join_type in _EXISTENCE and not keys.residual
        if (build_is_unique or existence) and "lookup_join" not in disabled_rules:
            return JoinAlgorithm.LOOKUP
        if "directory_join" not in disabled_rules:
            return JoinAlgorithm.DIRECTORY
    is_string = len(keys.left) == 1 and keys.left[0].data_type.is_string and not keys.null_equal[0]
    if is_string and packing is None and "string_join" not in disabled_rules:
        return JoinAlgorithm.STRINGS
    return JoinAlgorithm.SORT if backend is Backend.TORCH else JoinAlgorithm.BUCKET


def every_row_matches(keys: JoinKeys, probe: PhysicalPlan, build: PhysicalPlan) -> bool:
    """True if each probe row is known to have a partner: the build side is a whole table with every key there can be."""
    if len(keys.left) != 1 or keys.residual or not isinstance(keys.right[0], ColumnRef):
        return False
    probe_fields, build_fields = ({field.id: field for field in side.fields} for side in (probe, build))
    field = build_fields[keys.right[0].id]
    known, asked = value_range(keys.right[0], build_fields), value_range(keys.left[0], probe_fields)
    if known is None or asked is None or field.nullable or not field.statistics.is_unique:
        return False
    return (
        known[1] - known[0] + 1 == _rows_of_whole_table(build)
        and known[0] <= asked[0]
        and asked[1] <= known[1]
        and not nullable(keys.left[0], probe_fields)
    )


def _rows_of_whole_table(plan: PhysicalPlan) -> int | None:
    """The number of rows of a table that the plan neither drops nor repeats rows of."""
    match plan:
        case TableScan():
            return plan.table.num_rows
        case PhysicalProject():
            return _rows_of_whole_table(plan.input)
        case PhysicalJoin() if plan.all_match:
            return _rows_of_whole_table(plan.probe)
    return None


def stands_by_key(columns: int, build_rows: float, rows: float) -> bool:
    """True if tables of the build columns by key cost less than one of positions that lead to the build rows.

    They are filled for all build rows, and read once, not twice, for each row of the result.
    """
    return (columns - 1) * build_rows * _SCATTER <= rows


def _is_dense(size: int, probe_rows: float, build_rows: float, entry: float = _TABLE_ENTRY) -> bool:
    if size > _LARGEST_TABLE:
        return False
    dense = size * entry + (probe_rows + build_rows) * _PROBE
    return size <= _ALWAYS_DENSE or dense <= (probe_rows + build_rows) * _BUCKET


def match_plain_nulls(keys: JoinKeys, join_type: JoinType, probe: FieldsById, build: FieldsById) -> JoinKeys:
    """The keys with IS NOT DISTINCT FROM turned into = where one side is never NULL (then no two NULLs meet).

    Not where NULL and false differ.
    """
    if not any(keys.null_equal) or join_type in (JoinType.MARK, JoinType.NULL_AWARE_ANTI):
        return keys
    null_equal = tuple(
        matches and nullable(left, probe) and nullable(right, build)
        for left, right, matches in zip(keys.left, keys.right, keys.null_equal, strict=True)
    )
    return replace(keys, null_equal=null_equal)


def plain_join_type(join_type: JoinType, keys: JoinKeys, probe: FieldsById, build: FieldsById) -> JoinType:
    """ANTI for a NULL_AWARE_ANTI join whose condition is never NULL."""
    if join_type is JoinType.NULL_AWARE_ANTI and not _condition_may_be_null(keys, {**probe, **build}):
        return JoinType.ANTI
    return join_type


def keys_for_three_values(
    join_type: JoinType, keys: JoinKeys, condition: Expression, probe: FieldsById, build: FieldsById
) -> JoinKeys:
    """No keys where a pair that keys do not find can still make the outcome NULL: each pair has to be looked at.

    That is MARK and NULL_AWARE_ANTI with a nullable condition of more parts than one key.
    """
    if join_type not in (JoinType.MARK, JoinType.NULL_AWARE_ANTI):
        return keys
    single = len(keys.left) == 1 and not keys.residual and not keys.null_equal[0]
    if single or not _condition_may_be_null(keys, {**probe, **build}):
        return keys
    return JoinKeys((), (), (), conjuncts(condition))


def _condition_may_be_null(keys: JoinKeys, fields: FieldsById) -> bool:
    compared = zip((*keys.left, *keys.right), keys.null_equal * 2, strict=True)
    return any(not null_equal and nullable(key, fields) for key, null_equal in compared) or any(
        nullable(part, fields) for part in keys.residual
    )


def flip(keys: JoinKeys) -> JoinKeys:
    """The keys with the sides exchanged."""
    return replace(keys, left=keys.right, right=keys.left)


class FreshIds:
    """Hands out column ids and Shared identifiers that the query does not use yet."""

    def __init__(self, next_id: int, next_shared: int) -> None:
        self._next_id = next_id
        self._next_shared = next_shared

    def field(self, field: Field) -> Field:
        """The field under a new id."""
        self._next_id += 1
        return replace(field, id=self._next_id - 1)

    def shared(self) -> int:
        self._next_shared += 1
        return self._next_shared - 1


def reduce_build_side(join: Join, keys: JoinKeys, required: Container[int], fresh: FreshIds) -> Join:
    """left SEMI JOIN right = left SEMI JOIN (right SEMI JOIN left), with the left side computed once; ANTI alike.

    Of the left columns those in `required` are kept. The join has one key, a column on each side.
    """
    (left_key,), (right_key,) = keys.left, keys.right
    assert isinstance(left_key, ColumnRef)
    kept = tuple(field for field in join.left.schema if field.id in required)
    outputs = tuple(ColumnRef(field.id, field.data_type, field.name) for field in kept)
    left = Project(join.left, kept, outputs)
    identifier = fresh.shared()
    copies = tuple(fresh.field(field) for field in kept)
    position = next(place for place, field in enumerate(kept) if field.id == left_key.id)
    key = ColumnRef(copies[position].id, left_key.data_type, left_key.name)
    condition = Call("equal", (right_key, key), BOOLEAN)
    reduced = Join(join.right, Shared(left, identifier, copies), JoinType.SEMI, condition)
    return replace(join, left=Shared(left, identifier, kept), right=reduced)


def expand_full_join(join: Join, fresh: FreshIds) -> LogicalPlan:
    """left FULL JOIN right = (left LEFT JOIN right) UNION ALL (right ANTI left, the left columns NULL).

    Both inputs are shared, so each is computed once.
    """
    left, right = join.left, join.right
    left_shared, right_shared = fresh.shared(), fresh.shared()

    def copy() -> tuple[Shared, Shared, Expression]:
        left_fields = tuple(fresh.field(field) for field in left.schema)
        right_fields = tuple(fresh.field(field) for field in right.schema)
        renamed = {
            old.id: new
            for old, new in zip(left.schema + right.schema, left_fields + right_fields, strict=True)
        }
        condition = transform(
            join.condition,
            lambda node: (
                ColumnRef(renamed[node.id].id, node.data_type, node.name)
                if isinstance(node, ColumnRef) and node.id in renamed
                else node
            ),
        )
        return Shared(left, left_shared, left_fields), Shared(right, right_shared, right_fields), condition

    first_left, first_right, first_condition = copy()
    matched = Join(first_left, first_right, JoinType.LEFT, first_condition)
    second_left, second_right, second_condition = copy()
    unmatched = Join(second_right, second_left, JoinType.ANTI, second_condition)
    padding = tuple(fresh.field(field) for field in as_nullable(left.schema))
    padded = Project(
        unmatched,
        padding + second_right.fields,
        (
            *(Literal(None, field.data_type) for field in padding),
            *(ColumnRef(field.id, field.data_type, field.name) for field in second_right.fields),
        ),
    )
    return UnionAll((matched, padded), as_nullable(left.schema + right.schema))
