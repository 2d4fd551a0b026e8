"""Dataclasses that mypy holds to be frozen, and that are made as quickly as others.

At run time `frozen` would set each attribute by a call of its own: an object of four attributes takes four times as long to make,
and a query is planned with some thousand of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:
    import dataclasses

    def dataclass(cls=None, *, frozen=False, eq=True, **options):
        """As `dataclasses.dataclass`; `frozen` makes it hashable, and is for the type checker otherwise."""

        def made(cls):
            has_own_hash = cls.__dict__.get("__hash__") is not None
            return dataclasses.dataclass(
                cls, eq=eq, unsafe_hash=frozen and eq and not has_own_hash, **options
            )

        return made if cls is None else made(cls)
