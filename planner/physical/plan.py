"""Physical plan nodes: the logical plan with every algorithm chosen. What `tqp.runtime` lowers; free of names and torch.

Every node has `fields` (its output, with sound nullability and value ranges), `estimated_rows`, and `max_rows`, a sound
upper bound. Children that are streamed stay in the parent's pipeline; children that are materialised end a pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from tqp.core.schema import Field, Schema, TableSource
from tqp.planner.algebra.expressions import AggregateCall, ColumnRef, Expression
from tqp.planner.algebra.logical_plan import JoinType, SortKey


class JoinAlgorithm(Enum):
    """How build rows are found. The first five find equal keys: all but STRINGS by one integer; see `KeyPacking`."""

    LOOKUP = "look-up join"  # one unique key over a dense range: a position table
    DIRECTORY = "directory join"  # duplicate keys over a dense range: rows sorted by key, an offset per key
    BUCKET = "bucket join"  # sparse, wide or composite keys: rows sorted by hash bucket, candidates compared
    STRINGS = "string join"  # one string key: strings as numbers by the bytes of the build rows; if not, hashed and compared
    SORT = "sort join"  # any 64-bit key: sorted build rows, binary search; the general choice on CUDA
    RANGE = (
        "range join"  # inequalities only: build rows sorted by a key, of which a probe row matches a range
    )
    NESTED_LOOP = "nested-loop join"  # no bounds either: every pair, a block at a time


class GroupAlgorithm(Enum):
    """How rows find their group."""

    SINGLE = "single group"  # no keys
    DIRECT = "direct group-by"  # the packed key is the group id; accumulators cover the whole key range
    CLUSTERED = "clustered group-by"  # input sorted on the key: run boundaries, groups joined across batches
    HASH = "hash group-by"  # one word of 64 bits, few groups: numbered by a hash table
    SORT = "sort group-by"  # anything else


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One key column inside a packed key: `code = value - minimum` (+ 1 if nullable, NULL being 0), 0 <= code < span.

    `dictionary`: of a join's string key, the id of the table column whose dictionary numbers the strings of both sides;
    the number after its last entry stands for every string that is not in it. Of a group-by's key, its own id: the numbers of the
    values of its table column stand for them.
    """

    minimum: int
    span: int
    nullable: bool
    dictionary: int | None = None


@dataclass(frozen=True, slots=True)
class KeyPacking:
    """Packs several bounded integer-like (or dictionary) keys into one: code = ((c0 * span1) + c1) * span2 + ...

    `parts` pair up with the keys; the product of the spans is `size` < 2^63. For joins each part covers the values of
    both sides, so no bounds check is needed, and NULLs (which never match) are not given a code.
    For a dictionary-encoded string key of a group-by, minimum is 0 and span covers the dictionary codes.
    """

    parts: tuple[KeyPart, ...]
    size: int


@dataclass(frozen=True, slots=True)
class Bound:
    """An inequality of a range join: `build comparison probe`; both are integers of at most 64 bits, or floats of one type."""

    comparison: str  # 'less', 'less_equal', 'greater' or 'greater_equal'
    probe: Expression
    build: Expression


@dataclass(frozen=True, slots=True)
class FactoredSum:
    """The sum of a product: of `base` (None: of ones) by group and factors, times a number by each factor, added up."""

    base: Expression | None
    tables: tuple[
        tuple[int, ...] | None, ...
    ]  # for each factor, the number by its value; None: not multiplied
    total: tuple[int, int]  # the range of the result


@dataclass(frozen=True, slots=True)
class Factors:
    """Columns of few values by which a group-by groups besides its keys, until sums are multiplied; see `factored_sums`."""

    columns: tuple[ColumnRef, ...]
    packing: KeyPacking  # of the keys, then the columns
    sums: tuple[FactoredSum | None, ...]  # for each aggregate; None of those that count rows


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    fields: Schema
    estimated_rows: float
    max_rows: int

    @property
    def inputs(self) -> tuple[PhysicalPlan, ...]:
        return ()


@dataclass(frozen=True, slots=True)
class TableScan(PhysicalPlan):
    table: TableSource
    table_name: str
    columns: tuple[str, ...]  # in the table, pairing up with `fields`


@dataclass(frozen=True, slots=True)
class ValuesScan(PhysicalPlan):
    rows: tuple[tuple[Expression, ...], ...]


@dataclass(frozen=True, slots=True)
class Filter(PhysicalPlan):
    input: PhysicalPlan
    conjuncts: tuple[
        Expression, ...
    ]  # evaluated in this order; a later one may see only the rows that are left

    @property
    def inputs(self) -> tuple[PhysicalPlan, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class RuntimeFilter(PhysicalPlan):
    """Drops rows whose `keys` are not among the build keys of the join with identifier `join`.

    Placed on the probe side of that join (below other joins, or below an aggregate on the key), which need not ask
    again whether a row has a partner. With `by_runs` the one key is a sorted column of the table right below, and each
    of its distinct values is looked up once.
    """

    input: PhysicalPlan
    keys: tuple[Expression, ...]
    join: int
    by_runs: bool = False

    @property
    def inputs(self) -> tuple[PhysicalPlan, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Project(PhysicalPlan):
    input: PhysicalPlan
    outputs: tuple[Expression, ...]

    @property
    def inputs(self) -> tuple[PhysicalPlan, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Join(PhysicalPlan):
    """`probe` is streamed, `build` materialised first. Join types as in the logical plan with left = probe; no FULL.

    `fields`: the probe's then the build's (or the probe's alone; or the probe's then the mark), pruned to those that
    are used above. A pair matches where the keys are equal and the `bounds` and `residual` are true.
    """

    identifier: int
    probe: PhysicalPlan
    build: PhysicalPlan
    join_type: JoinType
    algorithm: JoinAlgorithm
    probe_keys: tuple[Expression, ...]
    build_keys: tuple[Expression, ...]
    null_equal: tuple[bool, ...]  # per key: IS NOT DISTINCT FROM instead of =
    residual: tuple[Expression, ...]
    packing: KeyPacking | None  # None: the keys are hashed (BUCKET, SORT) and candidates compared, or STRINGS
    mark: Field | None = None
    all_match: bool = False  # every probe row has a partner, as is known
    by_key: bool = (
        False  # of a look-up join: build columns stand in tables by key, not in rows that a position leads to
    )
    indexed: bool = (
        False  # the build side is a whole table, whose index on the key takes the place of a build
    )
    bounds: tuple[Bound, ...] = ()  # of a range join: all but the last on one build key, see `range_joins`

    @property
    def inputs(self) -> tuple[PhysicalPlan, ...]:
        return (self.probe, self.build)


@dataclass(frozen=True, slots=True)
class Aggregate(PhysicalPlan):
    """`fields`: one per key, then one per aggregate."""

    input: PhysicalPlan
    algorithm: GroupAlgorithm
    keys: tuple[Expression, ...]
    aggregates: tuple[AggregateCall, ...]
    packing: KeyPacking | None  # of `keys`; None if they do not fit 63 bits
    factors: Factors | None = None  # DIRECT only

    @property
    def inputs(self) -> tuple[PhysicalPlan, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Sort(PhysicalPlan):
    """All rows in order, or with `limit` only rows [offset, offset + limit): top-k."""

    input: PhysicalPlan
    keys: tuple[SortKey, ...]
    limit: int | None = None
    offset: int = 0

    @property
    def inputs(self) -> tuple[PhysicalPlan, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class Limit(PhysicalPlan):
    input: PhysicalPlan
    limit: int | None
    offset: int

    @property
    def inputs(self) -> tuple[PhysicalPlan, ...]:
        return (self.input,)


@dataclass(frozen=True, slots=True)
class UnionAll(PhysicalPlan):
    branches: tuple[PhysicalPlan, ...]

    @property
    def inputs(self) -> tuple[PhysicalPlan, ...]:
        return self.branches


@dataclass(frozen=True, slots=True)
class Shared(PhysicalPlan):
    """A materialised sub-plan read in several places: the same object `input` for every node with one identifier."""

    input: PhysicalPlan
    identifier: int

    @property
    def inputs(self) -> tuple[PhysicalPlan, ...]:
        return (self.input,)


def walk_physical(plan: PhysicalPlan) -> Iterator[PhysicalPlan]:
    """The plan and everything below it, parents first; what Shared nodes share once."""
    shared: set[int] = set()
    stack = [plan]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, Shared):
            if node.identifier in shared:
                continue
            shared.add(node.identifier)
        stack.extend(reversed(node.inputs))
