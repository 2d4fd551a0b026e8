"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import uuid
from collections.abc import Iterator

import pyarrow as pa

from tqp.core.errors import BindError, Error, ExecutionError
from tqp.data.sources.file_systems import compression_of


@contextlib.contextmanager
def written_beside(path: str) -> Iterator[str]:
    """Gives the path to write to: a hidden file in the same directory, which then takes the name `path`.

    Where the block raises, or the process is killed, a file of that name stays as it was. Devices and pipes are written
    to directly. Raises ExecutionError that names the file.
    """
    target = os.path.realpath(path)
    temporary = os.path.join(
        os.path.dirname(target), f".{os.path.basename(target)[:80]}.{os.getpid()}-{uuid.uuid4().hex[:8]}.part"
    )
    with _naming(path):
        if os.path.isdir(target):
            raise BindError(f"cannot write {path}: it is a directory")
        if os.path.exists(target) and not stat.S_ISREG(os.stat(target).st_mode):
            yield target
            return
        try:
            with open(temporary, "wb"):
                pass  # whether it can be written at all
            yield temporary
            if os.path.exists(target):
                shutil.copymode(target, temporary)
            os.replace(temporary, target)
        finally:
            with contextlib.suppress(OSError):
                os.remove(temporary)


@contextlib.contextmanager
def stream_beside(path: str, compression: str | None) -> Iterator[pa.NativeFile]:
    """As `written_beside`, the stream to write to; what goes into it is compressed as is said, or as the name ends."""
    with (
        written_beside(path) as temporary,
        pa.output_stream(temporary, compression=compression or compression_of(path)) as stream,
    ):
        yield stream


@contextlib.contextmanager
def _naming(path: str) -> Iterator[None]:
    try:
        yield
    except Error:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise ExecutionError(f"cannot write {path}: {reason}") from error


def local_path(path: str | os.PathLike[str]) -> str:
    """The path as text. Raises BindError for what is no path of a local file."""
    text = os.fspath(path)
    if not isinstance(text, str) or not text or "\0" in text:
        raise BindError(f"{path!r} is no path of a file")
    scheme, separator, rest = text.partition("://")
    if separator and scheme.lower() == "file":
        return rest
    if separator and scheme.isalnum():
        raise BindError(f"tqp writes local files, not {scheme}:// ({text})")
    return os.path.expanduser(text)
