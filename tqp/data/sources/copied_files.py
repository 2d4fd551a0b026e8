"""Copies of what open files hold, which are read as other files are."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import weakref
from typing import Any, Protocol, runtime_checkable

from tqp.core.errors import BindError, ExecutionError


@runtime_checkable
class SupportsRead(Protocol):
    """An open file, of text or bytes, such as `io.BytesIO`."""

    def read(self) -> Any:
        """All that is left of it."""


class CopiedFiles:
    """A folder that is there as long as this object is. Safe to use from several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folder = ""
        self._count = 0

    def path_of(self, place: object) -> Any:
        """The path of a copy of what is left in an open file; anything else as it is.

        Raises ExecutionError where the file cannot be read.
        """
        if not isinstance(place, SupportsRead) or isinstance(place, os.PathLike):
            return place
        try:
            content = place.read()
        except (OSError, ValueError) as error:
            raise ExecutionError(f"cannot read {place!r}: {error}") from error
        if isinstance(content, str):
            content = content.encode()
        if not isinstance(content, bytes):
            raise BindError(f"{place!r} gives neither text nor bytes when it is read")
        with self._lock:
            if not self._folder:
                self._folder = tempfile.mkdtemp(prefix="tqp-")
                weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
            self._count += 1
            path = os.path.join(self._folder, f"file_{self._count}")
        with open(path, "wb") as copy:
            copy.write(content)
        return path
