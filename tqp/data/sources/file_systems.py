"""Where files lie: on this computer, or wherever fsspec finds them by their address, such as `s3://bucket/sales.parquet`."""

from __future__ import annotations

import contextlib
import os
import urllib.parse
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


def located(path: str | bytes | os.PathLike[Any]) -> str:
    """The path of a local file, also where it is given as `file://` or begins with `~`; an address of another file system as it is.

    Raises BindError for what is neither.
    """
    try:
        text = os.fsdecode(path)
    except TypeError:
        raise BindError(f"{path!r} is no path of a file") from None
    if "\0" in text:
        raise BindError(f"a path cannot contain a NUL character: {text!r}")
    scheme, separator, _ = text.partition("://")
    if separator and scheme.lower() == "file":
        parsed = urllib.parse.urlsplit(text)
        if parsed.netloc not in ("", "localhost"):
            raise BindError(f"{text} is on another computer; give the path of a local file")
        return urllib.parse.unquote(parsed.path)
    return text if is_remote(text) else os.path.expanduser(text)


def remote_files(pattern: str, directories: bool = True) -> list[str]:
    """The addresses of the files that an address, a pattern or, with `directories`, one of Parquet files stands for, in a fixed order.

    Raises BindError for a file system that fsspec does not know, or for which a package is missing.
    """
    system, path = _system(pattern)
    with _asking(pattern):
        system.invalidate_cache()
        kind = _kind_of(system, path) if directories else None
        if kind is None:
            found = [each for each in system.glob(path) if system.isfile(each)]
        else:
            found = [path] if kind == "file" else system.glob(f"{path.rstrip('/')}/{_PARQUET_FILES}")
        if not found:  # glob() leaves out what it cannot look at
            _kind_of(system, path.partition("*")[0].rpartition("/")[0])
        return sorted(system.unstrip_protocol(each) for each in found)


def _kind_of(system: Any, path: str) -> str | None:
    """ "file" or "directory"; None of what is not there. (`exists` and `isfile` of fsspec say no where they get no answer.)"""
    try:
        return str(system.info(path)["type"])
    except FileNotFoundError:
        return None


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
    with _asking(path):
        stream = system.open(inner, "rb")
    with stream:
        yield stream


def as_native_file(source: Any) -> pa.NativeFile:
    """What `opened` gives, as a file of Arrow's."""
    return pa.OSFile(source) if isinstance(source, str) else pa.PythonFile(source, mode="r")


def put(local: str, address: str) -> None:
    """Copy a local file to an address, in place of what is there. Raises OSError."""
    system, inner = _system(address)
    with _asking(address):
        system.put_file(local, inner)


def make_directory(path: str) -> None:
    """With those that it is in, where it is not there; of another file system they come with their files. Raises OSError."""
    if not is_remote(path):
        os.makedirs(path, exist_ok=True)


def holds_files(path: str) -> bool:
    """Whether there is anything in a directory. Raises OSError."""
    if not is_remote(path):
        return bool(os.listdir(path))
    system, inner = _system(path)
    with _asking(path):
        system.invalidate_cache()
        return bool(system.find(inner))


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
    """Whatever the package of a file system raises becomes an OSError that says something."""
    try:
        yield
    except TimeoutError as error:
        raise OSError(f"{path} has not answered in time") from error
    except OSError:
        raise
    except Exception as error:
        raise OSError(f"{path}: {error}") from error


def _system(path: str) -> tuple[Any, str]:
    """The file system of an address, and the path in it."""
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise BindError(f"{path} takes fsspec, which is not installed: pip install fsspec") from error
    try:
        system, inner = url_to_fs(path)
    except Exception as error:  # whatever the package of a file system raises
        raise BindError(f"cannot open {path}: {error}") from error
    return system, inner
