"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
import uuid
from collections.abc import Iterator

import pyarrow as pa

from tqp.core.errors import BindError, Error, ExecutionError
from tqp.data.sources.file_systems import compression_of, is_remote, put


@contextlib.contextmanager
def written_beside(path: str) -> Iterator[str]:
    """Gives the path to write to: a hidden file in the same directory, which then takes the name `path`.

    Where the block raises, or the process is killed, a file of that name stays as it was. Devices and pipes are written
    to directly; a file of another file system is sent there whole, from a temporary one. Raises ExecutionError that names the
    file.
    """
    if is_remote(path):
        with writing(path), tempfile.TemporaryDirectory(prefix="tqp-") as folder:
            temporary = os.path.join(folder, "file")
            yield temporary
            put(temporary, path)
        return
    target = os.path.realpath(path)
    temporary = os.path.join(
        os.path.dirname(target), f".{os.path.basename(target)[:80]}.{os.getpid()}-{uuid.uuid4().hex[:8]}.part"
    )
    with writing(path):
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
def writing(path: str) -> Iterator[None]:
    """Turns an OSError of the block into an ExecutionError that names the file."""
    try:
        yield
    except Error:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise ExecutionError(f"cannot write {path}: {reason}") from error
