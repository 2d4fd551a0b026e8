"""Sums of products by group, where what a value is multiplied by has few values: it is multiplied after grouping.

sum(price * (1 - discount) * (1 + tax)) by status is made of the sums of price by status, discount and tax: products of
few hundred groups instead of products of all rows, and sums of the same column with other factors, or with none, are
the same sums. It is the distributive law, as in factorised aggregation (Olteanu and Schleich, SIGMOD Record 2016).

So is the sum of a column by itself, as each of its values times how many rows have it. Where the same is asked for its
least or greatest value too, those counts tell all: one addition a row instead of one for each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from tqp.core.datatypes import BIGINT
from tqp.planner.algebra.expressions import AggregateCall, Call, ColumnRef, Expression, column_ids, walk
from tqp.planner.algebra.field_facts import key_codes
from tqp.planner.algebra.known_fields import FieldsById
from tqp.planner.algebra.outcomes import nullable
from tqp.planner.algebra.value_ranges import operand_range, value_range
from tqp.planner.functions.ranges import Range, within
from tqp.planner.functions.registry import AGGREGATES
from tqp.planner.physical.plan import FactoredSum, Factors, KeyPacking, KeyPart, Table

#: Values of a column that may be a factor, at most, and groups by the keys and all factors: their accumulators are in the
#: nearest caches.
_MOST_VALUES, _MOST_GROUPS = 128, 4096
#: Rows for each of these groups at least: what is done for each of them must not matter.
_ROWS_PER_GROUP = 256
#: As many groups by the keys and the values of a column that are only counted, and rows for each of them at least.
_MOST_COUNTED, _ROWS_PER_COUNT = 65_536, 8
#: A column more to group by costs as much as so many calculations or sums less.
_WORTH_OF_COLUMN = 2
_SUMS = ("sum", "avg")
_EXTREMES = ("min", "max")
_FACTORED = (*_SUMS, *_EXTREMES)


def choose_factors(
    aggregates: Sequence[AggregateCall],
    fields: FieldsById,
    packing: KeyPacking,
    estimated_rows: float,
    max_rows: int,
) -> Factors | None:
    """Which columns to group by besides the keys, and what each sum or extreme is made of then; None where it does not pay.

    For counts, sums and extremes of integers and decimals only, of which neither products nor sums can overflow.
    """
    if not all(map(_is_plain, aggregates)):
        return None
    arguments = [call.arguments[0] for call in aggregates if call.function in _SUMS]
    extremes = {call.arguments[0] for call in aggregates if call.function in _EXTREMES}
    size, most = packing.size, min(_MOST_GROUPS, estimated_rows / _ROWS_PER_GROUP)
    if extremes:
        most = min(_MOST_COUNTED, estimated_rows / _ROWS_PER_COUNT)
    pays = len(extremes) == 1 and extremes <= {*arguments} if extremes else any(map(_is_product, arguments))
    if size >= most or not pays:
        return None
    tables = _Tables(fields, _MOST_COUNTED if extremes else _MOST_VALUES)
    columns = {
        part.id: part
        for argument in extremes or arguments
        for factor in _multiplied(argument)
        if tables.of(factor) is not None
        for part in walk(factor)
        if isinstance(part, ColumnRef)
    }
    parts: list[KeyPart] = []
    chosen: list[ColumnRef] = []
    found = [(KeyPart(*codes), column) for column in columns.values() if (codes := key_codes(column, fields))]
    for part, column in sorted(found, key=lambda pair: pair[0].span):
        if size * part.span <= most:
            size *= part.span
            parts.append(part)
            chosen.append(column)
    if not chosen:
        return None
    sums = [_factored(call, [column.id for column in chosen], tables, max_rows) for call in aggregates]
    bases = {found.base for found in sums if found is not None and found.base is not None}
    saved = len(set(arguments)) - len(bases) + _calculations(arguments) - _calculations(bases)
    if bases if extremes else saved <= _WORTH_OF_COLUMN * len(chosen):
        return None
    if any(
        found is None and call.function in _FACTORED for found, call in zip(sums, aggregates, strict=True)
    ):
        return None
    refined = KeyPacking((*packing.parts, *parts), size)
    return Factors(tuple(chosen), refined, tuple(sums))


def _is_plain(call: AggregateCall) -> bool:
    if call.distinct or call.filter is not None:
        return False
    if call.function in _FACTORED:
        return call.arguments[0].data_type.is_integer or call.arguments[0].data_type.is_decimal
    return AGGREGATES[call.function].counts


def _multiplied(expression: Expression) -> Iterator[Expression]:
    """What is multiplied to the expression; itself where it is no product. Of integers: decimals by their scale."""
    if _is_product(expression):
        for argument in expression.inputs:
            yield from _multiplied(argument)
    else:
        yield expression


def _is_product(expression: Expression) -> bool:
    return isinstance(expression, Call) and expression.function == "multiply"


class _Tables:
    """Expressions over one column of few values, by value; a column itself may have up to `most_values`."""

    def __init__(self, fields: FieldsById, most_values: int) -> None:
        self.fields, self.most_values = fields, most_values
        self._found: dict[Expression, tuple[int, Table] | None] = {}

    def of(self, expression: Expression) -> tuple[int, Table] | None:
        """The column's id, and the expression's value for each of its values; None for other expressions."""
        if expression not in self._found:
            self._found[expression] = self._made(expression)
        return self._found[expression]

    def _made(self, expression: Expression) -> tuple[int, Table] | None:
        ids = column_ids(expression)
        if len(ids) != 1 or nullable(expression, self.fields):
            return None
        (id,) = ids
        field = self.fields.get(id)
        if field is None or field.nullable or not field.data_type.is_integer_like:
            return None
        is_column, known = isinstance(expression, ColumnRef), field.facts.range
        if known is None or known[1] - known[0] >= (self.most_values if is_column else _MOST_VALUES):
            return None
        low, high = known
        if is_column:
            return id, range(low, high + 1)
        values = []
        for value in range(low, high + 1):
            # the range of an expression where its column has one value is its value there, if that is known exactly
            facts = replace(field.facts, minimum=value, maximum=value)
            found = value_range(expression, {id: replace(field, facts=facts)})
            if found is None or found[0] != found[1] or not within(found, expression.data_type):
                return None
            values.append(found[0])
        return id, tuple(values)


def _factored(call: AggregateCall, ids: Sequence[int], tables: _Tables, max_rows: int) -> FactoredSum | None:
    """How the sum or the extreme that the call needs is made of sums by the columns `ids` too; None if it is not."""
    if call.function not in _FACTORED:
        return None
    (argument,) = call.arguments
    known = value_range(argument, tables.fields)
    by_column: dict[int, Table] = {}
    rest = []
    for part in _multiplied(argument):
        found = tables.of(part)
        if found is None or found[0] not in ids:
            rest.append(part)
        else:
            id, values = found
            before = by_column.get(id)
            if before is not None:
                values = tuple(a * b for a, b in zip(before, values, strict=True))
            by_column[id] = values
    if len(rest) > 1 and by_column or known is None or not _exact(argument, tables.fields):
        return None
    base = argument if not by_column else rest[0] if rest else None
    summed = (0, 1) if base is None else operand_range(base, tables.fields)
    if summed is None or not _fits(summed, max_rows) or not _fits(known, max_rows):
        return None
    if not all(within(_extremes(values), BIGINT) for values in by_column.values()):
        return None  # nothing but zeros is multiplied then
    total = known if call.function in _EXTREMES else _of_rows(known, max_rows)
    return FactoredSum(base, tuple(by_column.get(id) for id in ids), total)


def _extremes(values: Table) -> Range:
    return (values[0], values[-1]) if isinstance(values, range) else (min(values), max(values))


def _exact(expression: Expression, fields: FieldsById) -> bool:
    """Is a product exactly that of its operands' integers? No result overflows, and none is rounded to another scale."""
    if not _is_product(expression):
        return True
    return within(value_range(expression, fields), expression.data_type) and all(
        _exact(argument, fields) for argument in expression.inputs
    )


def _calculations(expressions: Iterable[Expression]) -> int:
    """How many different calls there are in the expressions."""
    return len({part for each in expressions for part in walk(each) if isinstance(part, Call)})


def _of_rows(known: Range, rows: int) -> Range:
    """Where the sum of at most so many values lies."""
    return min(0, known[0] * rows), max(0, known[1] * rows)


def _fits(known: Range, rows: int) -> bool:
    return within(_of_rows(known, rows), BIGINT)
