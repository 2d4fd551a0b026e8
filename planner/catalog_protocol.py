"""What the binder asks of whoever knows the registered tables and models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tqp.core.file_kinds import FileKind
from tqp.core.models import ModelSignature
from tqp.core.schema import TableSource


class Catalog(Protocol):
    """The tables and models a query may name; names match without regard to case."""

    def lookup(self, name: str) -> TableSource | None:
        """The table of that name, or None."""
        ...

    def lookup_files(self, paths: Sequence[str], kind: FileKind | None = None) -> TableSource | None:
        """The files at these paths, which may be patterns, as one table.

        Without `kind` their names tell it; None if the name of one is not that of a file. Raises BindError if there is no
        such file, ExecutionError if one cannot be read.
        """
        ...

    def table_names(self) -> Sequence[str]:
        """Every table's name, for the "did you mean" of an error."""
        ...

    def lookup_model(self, name: str) -> ModelSignature | None:
        """The model of that name, or None."""
        ...

    def model_names(self) -> Sequence[str]:
        """Every model's name."""
        ...
