"""Expressions over one column with a small domain are computed once per domain value, then looked up.

A dictionary-encoded string column has its dictionary as domain; an integer column of narrow range has that range, and a
column of instants the units of time, such as days, that an expression reads of it. So
LIKE, SUBSTRING or comparisons on strings, and costly functions of dates, run on thousands of values, not millions. Where
there are more values than rows are left, the rows are computed.

Predicates that hold for a few ranges of codes of a sorted dictionary come first (`code_ranges.py`). Any other expression
over one dictionary-encoded column, such as `LIKE '%word%'` or `substring`, is computed for every entry of the dictionary in
a pipeline of its own; rows then look their code up. The same is done for costly functions of an integer column whose range has at most 65,536 values, for example `extract`
of a date. Expressions that may raise, or that see NULL in a way of their own, are computed over rows: no row may have
the value that would raise. A table of strings gets a dictionary of its own, so that its codes can be grouped and sorted
again.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from tqp.core.datatypes import VARCHAR, TypeKind
from tqp.core.frozen import dataclass
from tqp.core.schema import ColumnFacts, Field
from tqp.core.time_limits import INFINITE_TICK
from tqp.operators import scalar_kernels
from tqp.operators.kernel import Kernel, NullRule
from tqp.operators.numbers.casts import resolve_cast
from tqp.operators.rows.domain_tables import look_up, unit_codes
from tqp.planner.algebra.expressions import (
    Call,
    Cast,
    ColumnRef,
    Expression,
    InList,
    Literal,
    Parameter,
)
from tqp.planner.algebra.granularity import ticks_read
from tqp.planner.algebra.known_fields import KnownFields
from tqp.planner.algebra.may_raise import may_raise
from tqp.planner.algebra.outcomes import nullable as may_be_null
from tqp.planner.functions.registry import SCALARS
from tqp.planner.functions.type_rules import can_cast
from tqp.planner.physical.predicate_costs import LOOK_UP_COST, own_cost
from tqp.runtime.lowering.layouts import Form, Pool
from tqp.runtime.lowering.stream import Stream, Value

if TYPE_CHECKING:
    from tqp.runtime.lowering.expressions.scalars import ExpressionLowering

#: Integer ranges up to this size count as small domains.
_MAX_INTEGER_DOMAIN = 1 << 16

#: Domains up to this size are small whatever is left of the rows: an estimate may be far too low, and so many values take
#: a fraction of a millisecond.
_SMALL_DOMAIN = 4096

#: Texts that are made for each value of a domain become a dictionary, which takes as long as making so many of them.
_REPEATS_OF_TEXT = 3

#: Nanoseconds that an instant takes to become the number of its unit.
_DIVISION_COST = 1.0

#: Nanoseconds that a pipeline of its own takes for a small domain.
_PIPELINE_COST = 150_000.0


@dataclass(frozen=True, slots=True)
class Domain:
    column: int
    pool: Pool | None  # the dictionary, or None for integers
    low: int = 0  # in units
    high: int = 0
    unit: int = 1  # so many integers have one value of the expression: those from a multiple of it on

    @property
    def size(self) -> int | None:
        return self.pool.size if self.pool is not None else self.high - self.low + 1

    @property
    def bounds(self) -> tuple[int, int]:
        """The first and the last of the integers that stand for all of them."""
        return self.low * self.unit, self.high * self.unit


@dataclass(frozen=True, slots=True)
class _Reading:
    """Of an expression that is NULL wherever the only column that it reads is: that column, None for constants."""

    column: ColumnRef | None
    is_costly: bool = False
    unit: int = 1  # it has one value for so many integers, from a multiple of it on


def domain_of(lowering: ExpressionLowering, expression: Expression) -> Domain | None:
    """The domain to compute `expression` over, or None if it has to be computed over rows."""
    if lowering.stream.is_domain:
        return None
    reading = lowering.derived(_reading, expression)
    if (
        reading is None
        or reading.column is None
        or isinstance(expression, ColumnRef)
        or expression.data_type.is_nested
        or _is_text_of_enum(expression)
    ):
        return None
    costly = reading.is_costly and not _is_cheap(expression, lowering, reading.unit)
    domain = _domain(reading.column, lowering.stream, costly, reading.unit)
    if domain is not None and expression.data_type.is_string and not _has_repeats(domain, lowering.stream):
        return None
    # a value that no remaining row has must not raise
    if domain is None or may_raise(expression, _domain_fields(lowering, reading.column, domain)):
        return None
    return domain


def _reading(expression: Expression, lowering: ExpressionLowering) -> _Reading | None:
    """None where it reads several columns, or is not NULL for a NULL."""
    is_costly = False
    match expression:
        case ColumnRef():
            return _Reading(expression)
        case Literal(value):
            # NULL, or a constant that may decide an OR whatever the column holds
            return None if value is None or isinstance(value, bool) else _Reading(None)
        case Parameter():
            return _Reading(None)
        case Call("and" | "or") | InList():
            pass
        case Cast() if _is_text_of_enum(expression):
            is_costly = True
        case Cast() if expression.input.data_type.is_nested or expression.data_type.is_nested:
            return None
        case Call() | Cast():
            kernel = _kernel(expression)
            if kernel is not None:
                if kernel.nulls is not NullRule.PROPAGATE:
                    return None
                is_costly = True
            elif (
                isinstance(expression, Call)
                and not SCALARS[expression.function].is_strict
                or isinstance(expression, Cast)
                and not (expression.data_type.is_float or expression.data_type.is_decimal)
            ):
                return None
        case _:
            return None  # CASE may turn NULL into something else
    column: ColumnRef | None = None
    unit = 0
    decides = isinstance(expression, Call) and expression.function in ("and", "or")
    for part in expression.inputs:
        reading = lowering.derived(_reading, part)
        if reading is None:
            return None
        if reading.column is None:
            if decides:  # by itself, though the column is NULL
                return None
            continue
        if column is not None and column.id != reading.column.id:
            return None
        column, is_costly = reading.column, is_costly or reading.is_costly
        read = reading.unit
        if column is part and column.data_type.is_timestamp:
            read = ticks_read(expression) or 1
        unit = math.gcd(unit, read) if unit else read
    return _Reading(column, is_costly, unit)


def _is_text_of_enum(expression: Expression) -> bool:
    """Is it the text of an ENUM, which is looked up as it is?"""
    return isinstance(expression, Cast) and expression.input.data_type.is_enum


def _domain(column: ColumnRef, stream: Stream, costly: bool, unit: int) -> Domain | None:
    """The domain of a column that has a small one; of integers it is worth it only for `costly` expressions."""
    layout = stream.columns[column.id].layout
    if layout.has_dictionary:
        assert layout.pool is not None
        return Domain(column.id, layout.pool) if _has_fewer_entries(layout.pool.size, stream) else None
    if not costly or layout.form is not Form.NUMBER or column.data_type.kind is TypeKind.BOOLEAN:
        return None
    if layout.value_range is None:
        return None
    if unit > 1 and max(map(abs, layout.value_range)) >= INFINITE_TICK:
        return None  # infinity is no multiple of a unit
    low, high = (bound // unit for bound in layout.value_range)
    if high - low >= _MAX_INTEGER_DOMAIN and not column.data_type.is_enum:
        return None
    domain = Domain(column.id, None, low, high, unit)
    return domain if _has_fewer_entries(domain.size, stream) else None


def _is_cheap(expression: Expression, lowering: ExpressionLowering, unit: int) -> bool:
    """Whether computing it for the rows that are expected costs less than a pipeline of its own, and a look-up for each."""
    rows = lowering.stream.estimated_rows
    saved = lowering.derived(_nanoseconds, expression) - LOOK_UP_COST - (_DIVISION_COST if unit > 1 else 0.0)
    return rows is not None and rows * saved < _PIPELINE_COST


def _nanoseconds(expression: Expression, lowering: ExpressionLowering) -> float:
    """For a row; infinite for what handles text, which would cost far more if there are more rows than were expected."""
    if isinstance(expression, Literal | Parameter):
        return 0.0
    if expression.data_type.is_string:
        return math.inf
    parts = sum(lowering.derived(_nanoseconds, part) for part in expression.inputs)
    return own_cost(expression, lowering.stream.fields) + parts


def _has_fewer_entries(size: int | None, stream: Stream) -> bool:
    """Whether computing all values of a domain costs less than computing the rows that are expected to be left."""
    if size is None or size <= _SMALL_DOMAIN or stream.estimated_rows is None:
        return True
    return size <= stream.estimated_rows


def _has_repeats(domain: Domain, stream: Stream) -> bool:
    """Whether values of a domain come so often that numbering the texts made of them is worth it."""
    if domain.size is None or domain.size <= _SMALL_DOMAIN or stream.estimated_rows is None:
        return True
    return _REPEATS_OF_TEXT * domain.size <= stream.estimated_rows


def _kernel(node: Call | Cast) -> Kernel | None:
    """The kernel behind a call or cast; None where the runtime lowers it itself."""
    if isinstance(node, Cast):
        source, target = node.input.data_type, node.data_type
        exact = source.is_integer or source.is_decimal
        if exact and (target.is_integer or target.is_decimal or target.is_float) or source == target:
            return None
        if source.kind in (TypeKind.BOOLEAN, TypeKind.NULL) or not can_cast(source, target):
            return None
        if target.is_json and source != VARCHAR:
            return None
        return resolve_cast(source, target, node.is_try)
    if node.function not in scalar_kernels.SCALAR_FUNCTIONS:
        return None
    return scalar_kernels.resolve(
        node.function, tuple(argument.data_type for argument in node.arguments), node.data_type
    )


def _domain_fields(lowering: ExpressionLowering, column: ColumnRef, domain: Domain) -> KnownFields:
    """What is known of the column where every value of its domain occurs."""
    fields = lowering.domain_fields.get(domain)
    if fields is None:
        known = ColumnFacts() if domain.pool is not None else ColumnFacts(*domain.bounds)
        field = Field(column.id, column.name, column.data_type, False, known)
        fields = lowering.domain_fields[domain] = KnownFields({column.id: field})
    return fields


def lower_over_domain(lowering: ExpressionLowering, expression: Expression, domain: Domain) -> Value:
    """The expression through a table over its column's domain."""
    stream, program = lowering.stream, lowering.program
    column = stream.column(domain.column)
    table = program.domain_table(expression, domain, replace(column.layout, nullable=False))
    codes, low = lowering.tensor(column), domain.low
    build = stream.builder
    nullable = column.layout.nullable
    if domain.unit > 1:  # what several expressions read of a column is divided once
        codes, low = build.call(unit_codes, codes, domain.unit, domain.low, name="unit_of_time"), 0
    values = build.call(look_up, stream.whole(table.slot, 0, "table"), codes, low, nullable, name="looked_up")
    validity = lowering.combine_validity(column)
    layout = table.layout
    if layout.nullable and _adds_nulls(expression, domain, stream):
        produced = build.call(
            look_up, stream.whole(table.slot, 0, "table_valid", validity=True), codes, low, nullable
        )
        validity = lowering.all_valid(validity, produced)
    return Value(layout.with_nullable(validity is not None), values, validity)


def _adds_nulls(expression: Expression, domain: Domain, stream: Stream) -> bool:
    """May the expression be NULL where its column is not?"""
    field = stream.fields.get(domain.column)
    if field is None:
        return True
    return may_be_null(expression, {field.id: replace(field, nullable=False)})
