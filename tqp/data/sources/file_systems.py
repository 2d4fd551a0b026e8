"""Where files lie: on this computer, or wherever fsspec finds them by their address, such as `s3://bucket/sales.parquet`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tqp.core.errors import BindError

#: Device, inode, size, and the times of the last change of the content and of the inode; of a remote file a checksum of what
#: its file system says of it, zero, its size, and the time of its last change, if that is known.
Identity = tuple[int, int, int, int, int]

_PARQUET_FILES = "**/*.parquet"


def is_remote(path: str) -> bool:
    """Is it an address of another file system? A local path with `://` in it is one, too."""
    scheme, separator, _ = path.partition("://")
    return bool(separator) and scheme.isalnum() and scheme.lower() != "file" and not os.path.exists(path)


def remote_files(pattern: str, directories: bool = True) -> list[str]:
    """The addresses of the files that an address, a pattern or, with `directories`, one of Parquet files stands for, in a fixed order.

    Raises BindError for a file system that fsspec does not know, or for which a package is missing.
    """
    system, path = _system(pattern)
    with _asking(pattern):
        system.invalidate_cache()
        if directories and system.exists(path):
            found = [path] if system.isfile(path) else system.glob(f"{path.rstrip('/')}/{_PARQUET_FILES}")
        else:
            found = [each for each in system.glob(path) if system.isfile(each)]
        return sorted(system.unstrip_protocol(each) for each in found)


def identity_of(path: str) -> Identity:
    """Raises OSError if there is no such file."""
    if not is_remote(path):
        status = os.stat(path)
        return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
    system, inner = _system(path)
    with _asking(path):
        system.invalidate_cache(inner)
        changed = 0
        with contextlib.suppress(NotImplementedError, KeyError):
            changed = int(system.modified(inner).timestamp() * 1_000_000)
        return system.checksum(inner), 0, system.size(inner) or 0, changed, 0


def state_of_directory(path: str) -> int:
    """What changes when a file comes to a directory, or to those of a remote pattern, or goes from it; of what is not there, zero."""
    if is_remote(path):
        return hash(tuple(remote_files(path)))
    try:
        return os.stat(path).st_mtime_ns
    except (FileNotFoundError, NotADirectoryError):
        return 0


@contextlib.contextmanager
def opened(path: str) -> Iterator[Any]:
    """What pyarrow reads a file from: its path, or the open remote file, which is closed afterwards."""
    if not is_remote(path):
        yield path
        return
    system, inner = _system(path)
    with system.open(inner, "rb") as stream:
        yield stream


def bytes_of(path: str) -> bytes:
    """All that a file holds, as it is."""
    with opened(path) as place:
        if not isinstance(place, str):
            return bytes(place.read())
        with open(place, "rb") as stream:
            return stream.read()


def content_of(path: str) -> bytes:
    """All that a file holds, decompressed if its name says so."""
    if not is_remote(path):
        with pa.input_stream(path, compression=compression_of(path)) as stream:
            return bytes(stream.read())
    content = bytes_of(path)
    compression = compression_of(path)
    if compression is None:
        return content
    with pa.input_stream(pa.py_buffer(content), compression=compression) as stream:
        return bytes(stream.read())


@contextlib.contextmanager
def content_stream(path: str) -> Iterator[pa.NativeFile]:
    """`content_of` as a stream, which is closed afterwards."""
    with opened(path) as place, pa.input_stream(place, compression=compression_of(path)) as stream:
        yield stream


def compression_of(path: str) -> str | None:
    """What Arrow calls the compression that the name of a file ends in; None without one."""
    return {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".lz4": "lz4"}.get(
        os.path.splitext(path)[1].lower()
    )


@contextlib.contextmanager
def _asking(path: str) -> Iterator[None]:
    """Whatever the package of a file system raises becomes an OSError."""
    try:
        yield
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"{path}: {error}") from error


def _system(path: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise BindError(f"to read {path} takes fsspec: pip install fsspec") from error
    try:
        system, inner = url_to_fs(path)
    except (ImportError, ValueError) as error:
        raise BindError(f"cannot read {path}: {error}") from None
    return system, inner
