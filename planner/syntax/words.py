"""The words of DuckDB's SQL, by the places in which they may stand as a name.

A word that is in none of these sets is a name everywhere. `tests/planner/test_syntax_words.py` asks DuckDB about every
word in every place.
"""

from __future__ import annotations

from tqp.core.keywords import (
    COLUMN_AND_FUNCTION_WORDS,
    COLUMN_WORDS,
    FUNCTION_WORDS,
    KEYWORDS,
    UNRESERVED,
)

#: Names of columns, which a label without AS cannot be: they go on with the expression before them.
_NO_BARE_LABELS = frozenset(
    """
    CENTURIES CENTURY DAY DAYS DECADE DECADES ESCAPE EXCLUDE EXPORT_STATE FILTER HOUR HOURS IGNORE
    MICROSECOND MICROSECONDS MILLENNIA MILLENNIUM MILLISECOND MILLISECONDS MINUTE MINUTES MONTH MONTHS
    OVER PRECISION QUARTER QUARTERS RENAME REPLACE RESPECT SECOND SECONDS VARYING WEEK WEEKS WITHIN
    WITHOUT YEAR YEARS
    """.split()
)

#: Words for columns that also name a type.
BUILT_IN_TYPES = frozenset(
    """
    BIGINT BIT BOOLEAN CHAR CHARACTER DEC DECIMAL FLOAT INT INTEGER INTERVAL NCHAR NUMERIC REAL ROW
    SMALLINT TIME TIMESTAMP VARCHAR
    """.split()
)

#: How `tokens.py` calls what is no keyword.
NAME, TEXT, NUMBER, OPERATOR, END = "name", "text", "number", "operator", "end"

#: Columns, tables, aliases, CTEs.
COLUMN_NAMES = UNRESERVED | COLUMN_WORDS | COLUMN_AND_FUNCTION_WORDS | {NAME}
FUNCTION_NAMES = UNRESERVED | FUNCTION_WORDS | COLUMN_AND_FUNCTION_WORDS | {NAME}
TYPE_NAMES = UNRESERVED | FUNCTION_WORDS | {"COLUMNS", "TRY_CAST", NAME}
BARE_LABELS = (COLUMN_NAMES - _NO_BARE_LABELS) | {"ISNULL", "NOTNULL"}
#: What may follow a dot or AS.
LABELS = KEYWORDS | {NAME}
