"""How many words texts have that the runtime stores as codes into a dictionary: columns with one, constants, and what is chosen of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tqp.core.schema import Field
from tqp.planner.algebra.expressions import Call, Case, ColumnRef, Expression, Literal, literal_labels
from tqp.planner.algebra.known_fields import FieldsById

#: Words of several dictionaries, at most, of which one is made while a program is built.
MOST_WORDS = 1024


def words_of_text(expression: Expression, fields: FieldsById) -> int | None:
    """At most how many words the dictionary has into which the runtime stores the text as codes; None if it may be no codes.

    So it stores columns with dictionaries, and what CASE and coalesce() choose between these and constants.
    """
    if not expression.data_type.is_string:
        return None
    match expression:
        case ColumnRef():
            field = fields.get(expression.id)
            return None if field is None else field.facts.dictionary_size
        case Case():
            parts: Sequence[Expression] = (*(value for _, value in expression.branches), expression.default)
        case Call("coalesce", parts):
            pass
        case _:
            return None
    if labels := literal_labels(expression):
        return len(labels)
    return common_words([_words_of_part(part, fields) for part in parts])


def _words_of_part(part: Expression, fields: FieldsById) -> int | None:
    return int(part.value is not None) if isinstance(part, Literal) else words_of_text(part, fields)


def common_words(sizes: Sequence[int | None]) -> int | None:
    """Of dictionaries of such sizes, the size of one that has all their words, if the runtime makes it."""
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) and sum(known) <= MOST_WORDS else None


def with_labels(fields: Sequence[Field], outputs: Sequence[Expression]) -> list[Field]:
    """The fields of a projection below a UNION ALL: of a constant text as what has a dictionary of this word, into which that puts it."""
    return [
        field.known(field.nullable, replace(field.facts, dictionary_size=1), field.estimates)
        if field.data_type.is_string and isinstance(output, Literal) and output.value is not None
        else field
        for field, output in zip(fields, outputs, strict=True)
    ]
