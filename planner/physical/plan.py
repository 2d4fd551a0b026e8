"""Physical plan nodes: the logical plan with every algorithm chosen. What `tqp.runtime` lowers; free of names and torch.

Every node has `fields` (its output, with sound nullability and value ranges), `estimated_rows`, and `max_rows`, a sound
upper bound. Children that are streamed stay in the parent's pipeline; children that are materialised end a pipeline.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from math import prod

from tqp.core.datatypes import BOOLEAN
from tqp.core.frozen import dataclass
from tqp.core.schema import Field, Schema, TableSource
from tqp.planner.algebra.derived import derived
from tqp.planner.algebra.expression_text import Names, format_expression, sort_keys_text
from tqp.planner.algebra.expressions import (
    AggregateCall,
    Call,
    ColumnRef,
    Expression,
    HasExpressions,
    SortKey,
)
from tqp.planner.algebra.join_keys import LEFT_ONLY, JoinType
from tqp.planner.algebra.known_fields import Fields
from tqp.planner.algebra.node import Node
from tqp.planner.algebra.node_text import (
    conjunction_text,
    count_text,
    fields_text,
    grouping_text,
    limit_text,
    list_text,
    outputs_text,
    window_text,
)
from tqp.planner.algebra.recursive import kept_text
from tqp.planner.algebra.window_calls import WindowCall


class JoinAlgorithm(Enum):
    """How build rows are found. The first five find equal keys: all but STRINGS by one integer; see `KeyPacking`."""

    PERFECT_HASH = "perfect-hash join"  # one unique key over a dense range: a position table
    # duplicate keys over a dense range: rows sorted by key, an offset per key
    OFFSET_ARRAY = "offset-array join"
    HASH = "hash join"  # sparse, wide or composite keys: a hash table of the keys, candidates compared
    STRINGS = "string join"  # one string key: strings as numbers by the bytes of the build rows; if not, hashed and compared
    SORT = "sort join"  # any 64-bit key: sorted build rows, binary search; the general choice on CUDA
    # inequalities only: build rows sorted by a key, of which a probe row matches a range
    RANGE = "range join"
    NEAREST = "nearest join"  # of ASOF: build rows sorted by key and value, of which a probe row finds one
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
    the number after its last entry stands for every string that is not in it. Of a group-by's key, its own id: the codes of its
    table column stand for its values.
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

    @staticmethod
    def of(parts: Sequence[KeyPart | None], most: float = 2**63 - 1) -> KeyPacking | None:
        """A packing of the parts; None where one is missing, of none, or where there are more keys than `most`."""
        known = tuple(part for part in parts if part is not None)
        size = prod(part.span for part in known)
        return KeyPacking(known, size) if known and len(known) == len(parts) and size <= most else None


@dataclass(frozen=True, slots=True)
class Bound(HasExpressions):
    """An inequality of a range or nearest join: `build comparison probe`; both are integers of at most 64 bits, or floats of one type."""

    EXPRESSIONS = ("probe", "build")

    comparison: str  # 'less', 'less_equal', 'greater' or 'greater_equal'
    probe: Expression
    build: Expression


#: Numbers by the value of a factor.
Table = tuple[int, ...] | range


@dataclass(frozen=True, slots=True)
class FactoredSum:
    """The sum of a product: of `base` (None: of ones) by group and factors, times a number by each factor, added up.

    Or, of one factor and ones, the least or the greatest of the numbers that have rows.
    """

    base: Expression | None
    tables: tuple[Table | None, ...]  # for each factor; None: not multiplied
    total: tuple[int, int]  # the range of the result


@dataclass(frozen=True, slots=True)
class Factors:
    """Columns of few values by which a group-by groups besides its keys, until sums are multiplied; see `factored_sums`."""

    columns: tuple[ColumnRef, ...]
    packing: KeyPacking  # of the keys, then the columns
    sums: tuple[FactoredSum | None, ...]  # for each aggregate; None of those that count rows


@dataclass(frozen=True)
class PhysicalPlan(Node["PhysicalPlan"]):
    fields: Schema
    estimated_rows: float
    max_rows: int

    REQUIRED = frozenset(("INPUTS", "EXPRESSIONS", "describe"))
    FIELDS = ("fields",)

    @derived
    def field_facts(self) -> Fields:
        """The fields by id."""
        return {field.id: field for field in self.fields}

    @property
    def has_one_row(self) -> bool:
        """Is it the one row of an aggregate without keys?"""
        below: PhysicalPlan = self
        while isinstance(below, (Project, Shared)):
            below = below.input
        return isinstance(below, Aggregate) and not below.keys

    def describe(self, names: Names) -> str:
        """The node's line in EXPLAIN."""
        raise NotImplementedError


@dataclass(frozen=True)
class TableScan(PhysicalPlan):
    table: TableSource
    table_name: str
    columns: tuple[str, ...]  # in the table, pairing up with `fields`

    INPUTS, EXPRESSIONS = (), ()

    def describe(self, names: Names) -> str:
        return f"TableScan {self.table_name} {fields_text(self.fields, names)}"


@dataclass(frozen=True)
class ValuesScan(PhysicalPlan):
    rows: tuple[tuple[Expression, ...], ...]

    INPUTS, EXPRESSIONS = (), ("rows",)

    def describe(self, names: Names) -> str:
        return f"ValuesScan {fields_text(self.fields, names)}"


@dataclass(frozen=True)
class SeriesScan(PhysicalPlan):
    """As the logical node; `max_rows` is how many rows there are."""

    start: int
    step: int

    INPUTS, EXPRESSIONS = (), ()

    def describe(self, names: Names) -> str:
        return f"SeriesScan {fields_text(self.fields, names)} from {self.start} by {self.step}"


@dataclass(frozen=True)
class Filter(PhysicalPlan):
    input: PhysicalPlan
    #: Evaluated in this order; a later one may see only the rows that are left.
    conjuncts: tuple[Expression, ...]

    INPUTS, EXPRESSIONS = ("input",), ("conjuncts",)

    def describe(self, names: Names) -> str:
        return f"Filter {conjunction_text(self.conjuncts, names)}"


@dataclass(frozen=True)
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

    INPUTS, EXPRESSIONS = ("input",), ("keys",)

    def describe(self, names: Names) -> str:
        by_runs = " [by runs of the sorted column]" if self.by_runs else ""
        return f"RuntimeFilter{by_runs} {list_text(self.keys, names)} in build keys of join {self.join}"


@dataclass(frozen=True)
class Project(PhysicalPlan):
    input: PhysicalPlan
    outputs: tuple[Expression, ...]

    INPUTS, EXPRESSIONS = ("input",), ("outputs",)

    def describe(self, names: Names) -> str:
        return f"Project {outputs_text(self.fields, self.outputs, names)}"


@dataclass(frozen=True)
class Join(PhysicalPlan):
    """`probe` is streamed, `build` materialised first. Join types as in the logical plan with left = probe, and RIGHT.

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
    packing: KeyPacking | None  # None: the keys are hashed (HASH, SORT) and candidates compared, or STRINGS
    mark: Field | None = None
    all_match: bool = False  # every probe row has a partner, as is known
    by_key: bool = False  # of a perfect-hash join: build columns stand in tables by key, not in rows that a position leads to
    #: The build side is a whole table, whose index on the key takes the place of a build, or the set of its keys where only these are asked for.
    indexed: bool = False
    #: Of a range join: all but the last on one build key, see `range_joins`. Of a nearest join the one that tells which is nearest.
    bounds: tuple[Bound, ...] = ()

    INPUTS, EXPRESSIONS = ("probe", "build"), ("probe_keys", "build_keys", "bounds", "residual")

    @property
    def has_keys(self) -> bool:
        """Is there a build that can tell whether a row has a key?"""
        return not self.indexed and self.algorithm is not JoinAlgorithm.NEAREST

    @property
    def asks_for_keys(self) -> bool:
        """Is only asked whether a build row has the key?"""
        return self.join_type in LEFT_ONLY and not self.residual

    def describe(self, names: Names) -> str:
        keys = [
            f"{format_expression(probe, names)} {'IS NOT DISTINCT FROM' if null_equal else '='} "
            f"{format_expression(build, names)}"
            for probe, build, null_equal in zip(
                self.probe_keys, self.build_keys, self.null_equal, strict=True
            )
        ]
        keys += [
            format_expression(Call(bound.comparison, (bound.build, bound.probe), BOOLEAN), names)
            for bound in self.bounds
        ]
        how = f"{self.algorithm.value}{_packed(self.packing)}"
        how += f", {'keys' if self.asks_for_keys else 'index'} of the table" * self.indexed
        how += ", values by key" * self.by_key + ", all match" * self.all_match
        text = f"Join {self.identifier} {self.join_type.value} [{how}]"
        if keys:
            text += f" on {' AND '.join(keys)}"
        if self.residual:
            text += f" where {conjunction_text(self.residual, names)}"
        return text if self.mark is None else f"{text} as {names.get(self.mark.id, self.mark.name)}"


@dataclass(frozen=True)
class Aggregate(PhysicalPlan):
    """`fields`: one per key, then one per aggregate."""

    input: PhysicalPlan
    algorithm: GroupAlgorithm
    keys: tuple[Expression, ...]
    aggregates: tuple[AggregateCall, ...]
    packing: KeyPacking | None  # of `keys`; None if they do not fit 63 bits
    factors: Factors | None = None  # DIRECT only

    INPUTS, EXPRESSIONS = ("input",), ("keys", "aggregates")

    def describe(self, names: Names) -> str:
        how = f"{self.algorithm.value}{_packed(self.packing)}{self._encoded(names)}"
        if self.factors is not None:
            how += f", by {list_text(self.factors.columns, names)} too until sums are multiplied"
        measures = self.fields[len(self.keys) :]
        return f"Aggregate [{how}]{grouping_text(self.keys, measures, self.aggregates, names)}"

    def _encoded(self, names: Names) -> str:
        parts = () if self.packing is None else self.packing.parts
        keys = [key for key, part in zip(self.keys, parts, strict=False) if part.dictionary is not None]
        return f", {list_text(keys, names)} dictionary-encoded" if keys else ""


@dataclass(frozen=True)
class Sort(PhysicalPlan):
    """All rows in order, or with `limit` only rows [offset, offset + limit): top-k."""

    input: PhysicalPlan
    keys: tuple[SortKey, ...]
    limit: int | None = None
    offset: int = 0

    INPUTS, EXPRESSIONS = ("input",), ("keys",)

    def describe(self, names: Names) -> str:
        top = f" top{limit_text(self.limit, self.offset)}" if self.limit is not None else ""
        return f"Sort{top} by {sort_keys_text(self.keys, names)}"


@dataclass(frozen=True)
class Unnest(PhysicalPlan):
    """As the logical node; `fields`: of the input's those that are used above, then those of the elements and of their places."""

    input: PhysicalPlan
    lists: tuple[Expression, ...]
    has_places: bool
    keeps_rows: bool

    INPUTS, EXPRESSIONS = ("input",), ("lists",)

    def describe(self, names: Names) -> str:
        return f"Unnest{' outer' if self.keeps_rows else ''} {list_text(self.lists, names)}"


@dataclass(frozen=True)
class Window(PhysicalPlan):
    """As the logical node; `fields`: of the input's those that are used above, then one for each call.

    `most`: only so many rows of each partition come out, the first.
    """

    input: PhysicalPlan
    partition: tuple[Expression, ...]
    order: tuple[SortKey, ...]
    calls: tuple[WindowCall, ...]
    most: int | None = None

    INPUTS, EXPRESSIONS = ("input",), ("partition", "order", "calls")

    @property
    def keys(self) -> tuple[SortKey, ...]:
        """What the rows are sorted by."""
        return (*map(SortKey, self.partition), *self.order)

    @property
    def call_fields(self) -> Schema:
        """The fields of the calls."""
        return self.fields[len(self.fields) - len(self.calls) :]

    def describe(self, names: Names) -> str:
        first = "" if self.most is None else f" first {self.most}"
        return f"Window{first}{window_text(self.partition, self.order, self.call_fields, self.calls, names)}"


@dataclass(frozen=True)
class Limit(PhysicalPlan):
    input: PhysicalPlan
    limit: int | None
    offset: int

    INPUTS, EXPRESSIONS = ("input",), ()

    def describe(self, names: Names) -> str:
        return f"Limit{limit_text(self.limit, self.offset)}"


@dataclass(frozen=True)
class UnionAll(PhysicalPlan):
    branches: tuple[PhysicalPlan, ...]

    INPUTS, EXPRESSIONS = ("branches",), ()

    def describe(self, names: Names) -> str:
        return f"UnionAll {fields_text(self.fields, names)}"


@dataclass(frozen=True)
class WorkingRows(PhysicalPlan):
    """As the logical node, with all of its columns."""

    identifier: int
    is_whole: bool

    INPUTS, EXPRESSIONS = (), ()

    def describe(self, names: Names) -> str:
        whole = " whole" * self.is_whole
        return f"WorkingRows{whole} ${self.identifier} {fields_text(self.fields, names)}"


@dataclass(frozen=True)
class Recursive(PhysicalPlan):
    """As the logical node. What of `step` depends on no row of an iteration is computed once."""

    first: PhysicalPlan
    step: PhysicalPlan
    identifier: int
    distinct: bool
    keys: tuple[int, ...] | None
    most_rows: int | None

    INPUTS, EXPRESSIONS = ("first", "step"), ()

    def describe(self, names: Names) -> str:
        kept = kept_text(self.distinct, self.keys, self.most_rows)
        return f"Recursive{kept} ${self.identifier} {fields_text(self.fields, names)}"


@dataclass(frozen=True)
class Shared(PhysicalPlan):
    """A materialised sub-plan read in several places: the same object `input` for every node with one identifier."""

    input: PhysicalPlan
    identifier: int

    INPUTS, EXPRESSIONS = ("input",), ()

    def describe(self, names: Names) -> str:
        return f"Shared ${self.identifier} {fields_text(self.fields, names)}"


def _packed(packing: KeyPacking | None) -> str:
    return "" if packing is None else f", {count_text(packing.size)} keys"
