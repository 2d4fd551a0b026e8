"""How each operator changes what is known of its columns: nullability, ranges, uniqueness, order.

Pure functions from the input's fields to the output's, for logical and physical plans alike. All facts are sound; estimates go
along with them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from tqp.core.datatypes import TypeKind
from tqp.core.schema import ColumnEstimates, ColumnFacts, Field
from tqp.planner.algebra.expressions import (
    AggregateCall,
    Call,
    ColumnRef,
    Constant,
    Expression,
    InList,
    Literal,
    Parameter,
    SortKey,
    column_ids,
    is_null_literal,
    literal_labels,
)
from tqp.planner.algebra.join_keys import KEEPS_RIGHT, LEFT_ONLY, JoinKeys, JoinType, key_column
from tqp.planner.algebra.known_fields import Fields, FieldsById
from tqp.planner.algebra.may_raise import aggregate_may_raise, may_raise
from tqp.planner.algebra.outcomes import null_rejected_columns, nullable, strict_columns
from tqp.planner.algebra.text_words import common_words, words_of_text
from tqp.planner.algebra.value_ranges import inner_facts, longest_list, operand_range, value_range
from tqp.planner.algebra.window_calls import WindowCall
from tqp.planner.functions.conditions import MIRRORED, ORDERINGS, union
from tqp.planner.functions.ranges import Range, clamped
from tqp.planner.functions.registry import AGGREGATES, WINDOWS


def with_facts(
    field: Field,
    known: Range | None,
    can_be_null: bool,
    distinct: float | None = None,
    is_unique: bool = False,
    is_sorted: bool = False,
    dictionary_size: int | None = None,
    is_checked: bool = False,
) -> Field:
    """The field with new facts and estimates in place of all its old ones."""
    low, high = known if known is not None else (None, None)
    facts = ColumnFacts(low, high, is_unique, is_sorted, dictionary_size, is_checked=is_checked)
    return Field(field.id, field.name, field.data_type, can_be_null, facts, ColumnEstimates(distinct))


def weakened(field: Field, can_be_null: bool, is_unique: bool, is_sorted: bool) -> Field:
    """The field with its range kept, nullability as given, uniqueness and order kept only if allowed."""
    facts = field.facts
    if (facts.is_unique and not is_unique) or (facts.is_sorted and not is_sorted):
        facts = facts.weakened(is_unique, is_sorted)
    elif field.nullable or not can_be_null:
        return field
    return Field(field.id, field.name, field.data_type, field.nullable or can_be_null, facts, field.estimates)


def project_field(field: Field, expression: Expression, fields: FieldsById) -> Field:
    """The field of a projected or grouped expression."""
    if isinstance(expression, ColumnRef) and (source := fields.get(expression.id)) is not None:
        if source.id == field.id and source.name == field.name:
            return source
        return Field(field.id, field.name, field.data_type, source.nullable, source.facts, source.estimates)
    made = with_facts(
        field,
        _type_safe(value_range(expression, fields), field),
        nullable(expression, fields),
        expression_distinct(expression, fields),
        dictionary_size=words_of_text(expression, fields) or None,
        is_checked=reads_checked(expression, fields) or may_raise(expression, fields),
    )
    if is_null_literal(expression):
        return made.known(True, replace(made.facts, is_null=True), made.estimates)
    if not field.data_type.is_nested:
        return made
    inner, longest = inner_facts(expression, fields), longest_list(expression, fields)
    return made.known(made.nullable, replace(made.facts, inner=inner, longest=longest), made.estimates)


def reads_checked(expression: Expression, fields: FieldsById) -> bool:
    """Whether computing a column that the expression reads may raise."""
    columns = (fields.get(identifier) for identifier in column_ids(expression))
    return any(column is not None and column.facts.is_checked for column in columns)


def expression_distinct(expression: Expression, fields: FieldsById) -> float | None:
    """An estimate of how many values the expression takes, from its columns; None if one of them is unknown."""
    if labels := literal_labels(expression):
        return float(len(labels))
    distinct: float | None = 1.0
    for identifier in column_ids(expression):
        field = fields.get(identifier)
        count = None if field is None else field_distinct(field)
        if count is None:
            distinct = None
            break
        distinct = (distinct or 1.0) * count
    known = value_range(expression, fields)
    if known is None:
        return distinct
    span = float(known[1] - known[0] + 1)
    return span if distinct is None else min(span, distinct)


def field_distinct(field: Field) -> float | None:
    """The estimated number of distinct values of a column, at most what its range allows."""
    facts, count = field.facts, field.estimates.distinct_count
    if count is None and facts.dictionary_size is not None:
        count = float(facts.dictionary_size)
    if field.data_type.kind is TypeKind.BOOLEAN:
        return 2.0
    known = facts.range
    if known is None:
        return count
    span = float(known[1] - known[0] + 1)
    return span if count is None else min(count, span)


def filter_fields(fields: Fields, parts: Iterable[Expression]) -> Fields:
    """Fields of the rows for which all `parts` are true."""
    result = dict(fields)
    for part in parts:
        _reject_null(result, null_rejected_columns(part, result))
        if isinstance(part, InList):
            if isinstance(part.input, ColumnRef):
                _narrow_to_values(result, part.input, part.values)
        elif isinstance(part, Call) and len(part.arguments) == 2:
            left, right = part.arguments
            _narrow_by_comparison(result, part.function, left, right)
            _narrow_by_comparison(result, MIRRORED.get(part.function, part.function), right, left)
    return result


def _reject_null(fields: Fields, ids: Iterable[int]) -> None:
    """Note that these columns are not NULL."""
    for id in ids:
        field = fields[id]
        fields[id] = field.known(False, field.facts, field.estimates)


def _narrow_to_values(fields: Fields, column: ColumnRef, constants: Sequence[Constant]) -> None:
    values = [constant.value for constant in constants if isinstance(constant, Literal)]
    integers = [value for value in values if type(value) is int]
    field = fields.get(column.id)
    if len(integers) == len(constants) > 0 and column.data_type.is_integer_like:
        _narrow(fields, column, min(integers), max(integers), len(set(integers)))
    elif field is not None:
        distinct = field_distinct(field)
        count = float(len(constants)) if distinct is None else min(distinct, float(len(constants)))
        fields[column.id] = field.known(field.nullable, field.facts, ColumnEstimates(count))


def _narrow_by_comparison(fields: Fields, function: str, column: Expression, other: Expression) -> None:
    if not isinstance(column, ColumnRef):
        return
    if function == "equal" and isinstance(other, Literal | Parameter):
        if other != Literal(None, other.data_type):
            _narrow_to_values(fields, column, (other,))
        return
    if not column.data_type.is_integer_like:
        return
    if function not in ORDERINGS and function != "equal":
        return
    known = operand_range(other, fields)
    if known is None:
        return
    low, high = known
    match function:
        case "equal":
            _narrow(fields, column, low, high, None)
        case "less":
            _narrow(fields, column, None, high - 1, None)
        case "less_equal":
            _narrow(fields, column, None, high, None)
        case "greater":
            _narrow(fields, column, low + 1, None, None)
        case "greater_equal":
            _narrow(fields, column, low, None, None)


def _narrow(
    fields: Fields, column: ColumnRef, low: int | None, high: int | None, count: float | None
) -> None:
    """Intersect the column's range with [low, high]."""
    field = fields.get(column.id)
    if field is None:
        return
    old, known = field.facts, field.facts.range
    bounds = known or field.data_type.bounds
    low = bounds[0] if low is None else max(low, bounds[0])
    high = bounds[1] if high is None else min(high, bounds[1])
    if low > high:  # no row is left, so any range is true of them
        low = high = bounds[0]
    if (low, high) == known and count is None:
        return
    distinct = field.estimates.distinct_count
    if distinct is not None and known is not None:
        distinct *= (high - low + 1) / (known[1] - known[0] + 1)
    distinct = max(1.0, distinct) if distinct is not None else None
    distinct = distinct if count is None else min(count, count if distinct is None else distinct)
    facts = old.between(low, high, old.is_sorted)
    fields[column.id] = field.known(field.nullable, facts, ColumnEstimates(distinct))


def join_fields(
    left: Fields,
    right: Fields,
    join_type: JoinType,
    keys: JoinKeys,
    mark: Field | None = None,
    *,
    left_once: bool,
    right_once: bool,
    keeps_left_order: bool,
) -> Fields:
    """Fields of a join. `left_once`: a left row comes out at most once (`right_once` likewise)."""
    left_padded = join_type in KEEPS_RIGHT
    right_padded = join_type in (JoinType.LEFT, JoinType.FULL, JoinType.SINGLE)
    one_side = join_type in LEFT_ONLY
    result = {
        identifier: weakened(field, left_padded, left_once or one_side, keeps_left_order)
        for identifier, field in left.items()
    }
    if not one_side:
        for identifier, field in right.items():
            result[identifier] = weakened(field, right_padded, right_once, False)
    if mark is not None:
        result[mark.id] = mark
    if join_type in (JoinType.INNER, JoinType.SEMI):
        _equate(result, left, right, keys, keeps_left_order)
        residual = [
            part for part in keys.residual if all(identifier in result for identifier in column_ids(part))
        ]
        if residual:
            return filter_fields(result, residual)
    return result


def _equate(result: Fields, left: Fields, right: Fields, keys: JoinKeys, keeps_left_order: bool) -> None:
    """Both sides of a matched key hold one value: it is in both ranges, and not NULL unless NULLs match."""
    for left_key, right_key, null_equal in zip(keys.left, keys.right, keys.null_equal, strict=True):
        known = _intersection(operand_range(left_key, left), operand_range(right_key, right))
        left_column = key_column(left_key)
        left_field = None if left_column is None else left.get(left_column)
        if not null_equal:
            for key in (left_key, right_key):
                _reject_null(result, strict_columns(key, result))
        for key in (left_key, right_key):
            field = result.get(key.id) if isinstance(key, ColumnRef) else None
            if field is None:
                continue
            old = field.facts
            in_order = left_field is not None and left_field.facts.is_sorted and keeps_left_order
            is_sorted = old.is_sorted or (in_order and not field.nullable)
            if known is not None and known != old.range or is_sorted != old.is_sorted:
                low, high = known or (old.minimum, old.maximum)
                facts = old.between(low, high, is_sorted)
                result[field.id] = field.known(field.nullable, facts, field.estimates)


def _intersection(first: Range | None, second: Range | None) -> Range | None:
    if first is None or second is None:
        return None
    low, high = max(first[0], second[0]), min(first[1], second[1])
    return (low, high) if low <= high else (low, low)


def aggregate_fields(
    fields: Fields,
    key_fields: Sequence[Field],
    keys: Sequence[Expression],
    aggregate_fields: Sequence[Field],
    aggregates: Sequence[AggregateCall],
    max_rows: int,
) -> list[Field]:
    """Fields of a group-by over at most `max_rows` rows: the keys', then the aggregates'."""
    result: list[Field] = []
    for field, key in zip(key_fields, keys, strict=True):
        source = project_field(field, key, fields)
        facts = replace(source.facts, is_unique=len(keys) == 1, is_sorted=False)
        result.append(source.known(source.nullable, facts, source.estimates))
    for field, call in zip(aggregate_fields, aggregates, strict=True):
        result.append(_aggregate_field(field, call, fields, bool(keys), max_rows))
    return result


def _aggregate_field(
    field: Field, call: AggregateCall, fields: Fields, grouped: bool, max_rows: int
) -> Field:
    function = AGGREGATES[call.function]
    is_checked = reads_checked(call, fields) or aggregate_may_raise(call, fields, max_rows)
    if function.counts:
        least = 1 if not call.arguments and grouped and call.filter is None else 0
        # d different counts need 0 + 1 + ... + (d - 1) rows
        distinct_counts = (1.0 + math.sqrt(1.0 + 8.0 * max_rows)) / 2.0 if grouped else 1.0
        return with_facts(field, (least, max(least, max_rows)), False, distinct_counts, is_checked=is_checked)
    argument = call.arguments[0]
    can_be_null = (
        (not grouped and function.of_nothing is None)
        or function.fewest_values > 1
        or call.filter is not None
        or any(nullable(each, fields) for each in call.arguments)
    )
    if function.picks_value:
        distinct = expression_distinct(argument, fields)
        known = _type_safe(value_range(argument, fields), field)
        return with_facts(field, known, can_be_null, distinct, is_checked=is_checked)
    known = None
    if function.range is not None:
        known = function.range(call, operand_range(argument, fields), max(1, max_rows))
    return with_facts(field, _type_safe(known, field), can_be_null, None, is_checked=is_checked)


def union_field(field: Field, branches: Sequence[Field]) -> Field:
    """The field of a UNION ALL column over the fields of its branches."""
    ranges = [branch.facts.range for branch in branches if not branch.facts.is_null]
    counts = [field_distinct(branch) for branch in branches]
    low = [known[0] for known in ranges if known is not None]
    high = [known[1] for known in ranges if known is not None]
    words = [0 if branch.facts.is_null else branch.facts.dictionary_size for branch in branches]
    return with_facts(
        field,
        (min(low), max(high)) if low and len(low) == len(ranges) else None,
        any(branch.nullable for branch in branches),
        sum(count for count in counts if count is not None) if None not in counts else None,
        dictionary_size=(common_words(words) or None) if field.data_type.is_string else None,
        is_checked=any(branch.facts.is_checked for branch in branches),
    )


def renamed_fields(fields: Sequence[Field], sources: Sequence[Field]) -> Fields:
    """Fields that stand for others, one for one: each with the facts of its source."""
    return {
        field.id: Field(
            field.id, field.name, field.data_type, source.nullable, source.facts, source.estimates
        )
        for field, source in zip(fields, sources, strict=True)
    }


def sorted_fields(keys: Sequence[SortKey], below: Fields) -> Fields:
    """Fields after a sort: only the first key is in order, if ascending and free of NULLs."""
    first = keys[0] if keys else None
    in_order = (
        first.expression.id
        if first is not None and not first.descending and isinstance(first.expression, ColumnRef)
        else None
    )
    result: Fields = {}
    for identifier, field in below.items():
        if identifier == in_order and not field.nullable:
            facts = replace(field.facts, is_sorted=True)
            result[identifier] = Field(field.id, field.name, field.data_type, False, facts, field.estimates)
        else:
            result[identifier] = weakened(field, False, True, False)
    return result


def window_fields(
    below: Fields,
    partition: Sequence[Expression],
    order: Sequence[SortKey],
    fields: Sequence[Field],
    calls: Sequence[WindowCall],
    max_rows: int,
) -> Fields:
    """Fields of at most `max_rows` rows, and of window functions over them.

    With `order` the rows are sorted by partition and order; without it they are in any, or as they come if there is no partition.
    """
    result = sorted_fields((*map(SortKey, partition), *order), below) if order else dict(below)
    if partition and not order:
        result = {id: weakened(field, False, True, False) for id, field in below.items()}
    for field, call in zip(fields, calls, strict=True):
        result[field.id] = _window_field(field, call, below, max_rows)
    return result


def _window_field(field: Field, call: WindowCall, below: Fields, max_rows: int) -> Field:
    function = WINDOWS.get(call.function)
    is_checked = any(reads_checked(part, below) or may_raise(part, below) for part in call.expressions)
    is_checked = is_checked or any(bound.value is not None for bound in (call.frame.start, call.frame.end))
    if function is None:
        of_all = _aggregate_field(field, call.aggregate, below, True, max_rows)
        counts = AGGREGATES[call.function].counts
        facts = of_all.facts
        known = facts.range and (min(0, facts.range[0]), max(0, facts.range[1])) if counts else facts.range
        can_be_null = not counts and (of_all.nullable or not call.frame.has_current_row)
        return with_facts(field, known, can_be_null, is_checked=is_checked or facts.is_checked)
    known = (1, max(1, max_rows)) if function.numbers_rows else None
    if function.picks_value:
        ranges = [value_range(each, below) for each in (call.arguments[0], *call.arguments[2:])]
        lows, highs = [each[0] for each in ranges if each], [each[1] for each in ranges if each]
        known = (min(lows), max(highs)) if len(lows) == len(ranges) else None
    return with_facts(
        field, _type_safe(known, field), function.nullable, is_checked=is_checked or function.raises
    )


def key_codes(key: Expression, fields: FieldsById) -> tuple[int, int, bool] | None:
    """The least value of a group key, how many it can take, NULL included, and whether NULL is one; None if that is not known.

    Of a bare dictionary-encoded string, and of a CASE between literals, the codes in the dictionary; of a boolean 0 and 1.
    """
    known, can_be_null = value_range(key, fields), nullable(key, fields)
    if known is None:
        field = fields.get(key.id) if isinstance(key, ColumnRef) else None
        size = 2 if key.data_type.kind is TypeKind.BOOLEAN else words_of_text(key, fields)
        if not size and field is not None and field.facts.dictionary_size is not None:
            size = 1  # of a dictionary without words
        if not size:
            return None
        known = (0, size - 1)
    return known[0], known[1] - known[0] + 1 + can_be_null, can_be_null


def key_span(key: Expression, fields: FieldsById) -> int | None:
    """How many values a group key can take, NULL included, if that is known."""
    codes = key_codes(key, fields)
    return None if codes is None else codes[1]


def fit_table(keys: Sequence[Expression], fields: FieldsById, rows: float) -> bool:
    """Is there a number for each combination of the group keys' values, and no more of these than of rows?"""
    spans = [span for key in keys if (span := key_span(key, fields)) is not None]
    return len(spans) == len(keys) and math.prod(spans) <= rows


def most_groups(keys: Sequence[Expression], fields: Fields, rows: int) -> int:
    """At most so many groups has a group-by of so many rows."""
    groups = 1
    for key in keys:
        if not column_ids(key):  # a constant
            continue
        span = key_span(key, fields)
        if span is None:
            return rows
        groups *= span
    return min(groups, rows)


def values_field(field: Field, column: Sequence[Expression]) -> Field:
    """The field of one column of VALUES."""
    known = union(column, [value_range(value, {}) for value in column])
    can_be_null = any(nullable(value, {}) for value in column)
    return with_facts(field, _type_safe(known, field), can_be_null, float(len(column)))


def _type_safe(known: Range | None, field: Field) -> Range | None:
    """A column's values passed their overflow check, so they fit its type."""
    return clamped(known, field.data_type) if known and field.data_type.is_integer_like else None
