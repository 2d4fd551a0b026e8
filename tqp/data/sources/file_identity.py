"""What tells one state of a file from another, so that no query mixes two of them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from tqp.core.errors import Error, ExecutionError
from tqp.core.file_kinds import FileKind
from tqp.core.read_options import NO_OPTIONS, ReadOptions
from tqp.data.sources.file_systems import Identity, identity_of, is_remote, state_of_directory

Outcome = TypeVar("Outcome")

#: How often a file that is replaced while it is read is read again.
_ATTEMPTS = 10


class ReadAgainError(ExecutionError):
    """What a query has read of files is of no use to it; reading all of it again may succeed."""


class FileChangedError(ReadAgainError):
    """A file was replaced or written to while a query read it; reading all of it again may succeed."""

    @staticmethod
    def of(file: str) -> FileChangedError:
        """The error that names the file."""
        return FileChangedError(f"cannot read {file}: it changed while it was read; run the query again")


@contextlib.contextmanager
def reading(file: str, identity: Identity | None = None, part: str = "") -> Iterator[None]:
    """Turns what the block raises into an ExecutionError that names the file, and the part of it, such as 'column "x" of '.

    With `identity`, raises FileChangedError if the file has another one before or after the block (a remote one, after it).
    """
    try:
        if identity is not None and not is_remote(file):  # to ask of a remote one takes long
            _check_identity(file, identity)
        try:
            yield
        except Error:
            raise
        except Exception:
            if identity is not None:
                _check_identity(file, identity)
            raise
        if identity is not None:
            _check_identity(file, identity)
    except Error:
        raise
    except Exception as error:
        reason = str(error) or type(error).__name__
        raise ExecutionError(f"cannot read {part}{file}: {reason}") from error


def _check_identity(file: str, identity: Identity) -> None:
    if identity_of(file) != identity:
        raise FileChangedError.of(file)


def read_again_if_changed(read: Callable[[], Outcome]) -> Outcome:
    """`read()`, again if it raises ReadAgainError, as where a file changed meanwhile; one that never stays the same raises its own."""
    for _ in range(_ATTEMPTS - 1):
        with contextlib.suppress(ReadAgainError):
            return read()
    return read()


@dataclass(frozen=True, slots=True)
class FileSet:
    """The files of one table as they were when it was read, and the directories that were searched for them."""

    #: A path, a pattern, a directory or a list of these, as registered.
    registered: Any
    #: In order; the same one may stand several times.
    files: Sequence[str]
    identities: Mapping[str, Identity]
    directories: Mapping[str, int]
    #: What they were said to be; None: their names or first bytes tell.
    kind: FileKind | None = None
    options: ReadOptions = NO_OPTIONS

    @staticmethod
    def of(
        registered: Any,
        files: Sequence[str],
        directories: Iterable[str],
        kind: FileKind | None = None,
        options: ReadOptions = NO_OPTIONS,
    ) -> FileSet:
        """With the identities that the files have now. Raises ExecutionError naming a file that cannot be read."""
        identities = {}
        for file in files:
            with reading(file):
                identities[file] = identity_of(file)
        states = {path: state_of_directory(path) for path in directories}
        return FileSet(registered, files, identities, states, kind, options)

    def are_unchanged(self) -> bool:
        """Whether all files are still the same, and no file came to or went from a directory that was searched.

        A file that cannot be looked at is not: it is read again, which says why that fails.
        """
        try:
            return all(identity_of(file) == identity for file, identity in self.identities.items()) and all(
                state_of_directory(path) == state for path, state in self.directories.items()
            )
        except (OSError, Error):
            return False
