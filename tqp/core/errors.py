"""Every public error, and how one points at the SQL it speaks of.

Raise with the message a user can act on: what is wrong, where, and the remedy. `span` is a half-open range of
character offsets into the query text; `with_query` turns it into a line with a caret.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class Error(Exception):
    """Base of all errors that tqp raises on purpose."""

    def __init__(self, message: str, span: tuple[int, int] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.span = span
        self._context = ""

    def with_query(self, query: str) -> Error:
        """Attach the line of `query` that the span lies in, with carets under it; returns self."""
        if self.span is not None and not self._context:
            self._context = _caret(query, *self.span)
        return self

    def __str__(self) -> str:
        return f"{self.message}\n\n{self._context}" if self._context else self.message


class ParseError(Error):
    """The text is not SQL."""


class BindError(Error):
    """The SQL names something that does not exist, or combines types that do not go together."""


class UnsupportedError(Error):
    """The SQL is valid in DuckDB but uses a feature, named in the message, that tqp does not have."""


class ExecutionError(Error):
    """A value made the query fail: overflow, a bad cast, a corrupt file, more than one row from a scalar subquery."""


class ConstraintError(ExecutionError):
    """A row breaks a constraint of its table: NOT NULL, CHECK, UNIQUE or PRIMARY KEY."""


class ResourceError(Error):
    """A limit was reached; the message names the limit and the setting that raises it."""


class InterruptError(Error):
    """`Connection.interrupt` ended the query."""


# What DuckDB calls them in Python: the class that is raised where DuckDB raises the other. Its IOException and InvalidInputException
# stand for errors of several classes here, and have no name.
ParserException = ParseError
BinderException = CatalogException = TransactionException = DependencyException = BindError
NotImplementedException = UnsupportedError
ConversionException = OutOfRangeException = ExecutionError
ConstraintException = ConstraintError
OutOfMemoryException = ResourceError
InterruptException = InterruptError


def nearest(name: str, candidates: Iterable[str], limit: int = 3) -> str:
    """`'; did you mean "a" or "b"?'` for the candidates most like `name`, or an empty string.

    >>> nearest("custmer", ["customer", "orders"])
    '; did you mean "customer"?'
    """
    by_lower = {candidate.lower(): candidate for candidate in candidates}
    close = difflib.get_close_matches(name.lower(), by_lower, n=limit, cutoff=0.6)
    if not close:
        return ""
    return "; did you mean " + " or ".join(f'"{by_lower[match]}"' for match in close) + "?"


def _caret(query: str, start: int, stop: int) -> str:
    line_start = query.rfind("\n", 0, start) + 1
    line_stop = query.find("\n", start)
    line = query[line_start : line_stop if line_stop >= 0 else len(query)]
    prefix = f"LINE {query.count(chr(10), 0, start) + 1}: "
    pad = "".join("\t" if character == "\t" else " " for character in line[: start - line_start])
    width = max(1, min(stop, line_start + len(line)) - start)
    return f"{prefix}{line}\n{' ' * len(prefix)}{pad}{'^' * width}"
