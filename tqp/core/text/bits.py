"""BIT as text: the digits 0 and 1."""

from __future__ import annotations

from tqp.core.text.numbers import ParseFailure

EMPTY_TEXT = "Cannot cast empty string to BIT"


def invalid_character(text: str) -> str:
    """Why the text is no BIT."""
    wrong = next(character for character in text if character not in "01")
    return f"Invalid character encountered in string -> bit conversion: '{wrong}'"


def parse_bits(text: str) -> str:
    """The text itself, or the bit 0 of an empty one, as in DuckDB. Raises ParseFailure."""
    if text.strip("01"):
        raise ParseFailure(invalid_character(text))
    return text or "0"
