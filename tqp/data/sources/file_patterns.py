"""The local files that a pattern stands for, as DuckDB finds them: `*`, `?` and `[a-z]` in a name, `**` for any directories."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from tqp.core.errors import BindError
from tqp.core.patterns import expression_of_glob

_ANY_DIRECTORIES = "**"


@dataclass(slots=True)
class Found:
    """`paths` in a fixed order: those of a directory by name, before those of the directories in it. And the `directories` that were
    looked into, there or not: what a change of one may change."""

    paths: list[str] = field(default_factory=list)
    directories: set[str] = field(default_factory=set)


def is_pattern(path: str) -> bool:
    """Whether the path has a wildcard.

    >>> is_pattern("sales/*.csv"), is_pattern("sales.csv")
    (True, False)
    """
    return any(letter in path for letter in "*?[")


def matching_paths(pattern: str) -> Found:
    """What matches a pattern: files; directories only where a name without a wildcard, or a slash, ends it. Names are compared by bytes.

    Hidden files match. `**` follows no symbolic links. Raises BindError for two `**`.
    """
    found = Found()
    if not is_pattern(pattern):
        found.directories.add(os.path.dirname(pattern) or os.curdir)
        if os.path.isfile(pattern):
            found.paths.append(pattern)
        return found
    pattern = pattern.replace("\\", os.sep)
    parts = os.path.normpath(pattern).split(os.sep)
    if parts.count(_ANY_DIRECTORIES) > 1:
        raise BindError(f"{pattern}: ** may stand once in a pattern")
    of_directories = [""] if pattern.endswith(os.sep) and is_pattern(parts[-1]) else []
    _search(os.sep if parts[0] == "" else "", [*filter(None, parts), *of_directories], found)
    found.paths.sort(key=lambda path: _place(path, bool(of_directories)))
    return found


def _place(path: str, is_directory: bool) -> list[tuple[bool, bytes]]:
    """What paths are ordered by: the files of a directory come before those of the directories in it."""
    *parents, last = map(os.fsencode, path.split(os.sep))
    return [*((True, each) for each in parents), (is_directory, last)]


def _search(directory: str, parts: Sequence[str], found: Found) -> None:
    """Add what `parts` of a pattern find in a directory; the part "" is the directory itself."""
    part, rest = parts[0], parts[1:]
    path = os.path.join(directory, part)
    if part == "":
        found.paths.append(directory or os.curdir)
    elif part == _ANY_DIRECTORIES:
        _search_everywhere(directory, rest or ["*"], found)
    elif is_pattern(part):
        for each in _matching(_entries(directory, found), part):
            if rest and _holds(each.is_dir):
                _search(os.path.join(directory, each.name), rest, found)
            elif not rest and _holds(each.is_file):
                found.paths.append(os.path.join(directory, each.name))
    elif not rest:
        found.directories.add(directory or os.curdir)
        found.paths += [path] if os.path.isfile(path) or os.path.isdir(path) else []
    elif os.path.isdir(path):
        _search(path, rest, found)
    else:
        found.directories.add(path)


def _search_everywhere(directory: str, parts: Sequence[str], found: Found) -> None:
    """In the directory, then in those in it."""
    _search(directory, parts, found)
    for each in _entries(directory, found):
        if each.is_dir(follow_symlinks=False):
            _search_everywhere(os.path.join(directory, each.name), parts, found)


def _entries(directory: str, found: Found) -> list[os.DirEntry[str]]:
    """What is in a directory; nothing where it cannot be read."""
    found.directories.add(directory or os.curdir)
    try:
        with os.scandir(directory or os.curdir) as entries:
            return list(entries)
    except OSError:
        return []


def _holds(question: Callable[[], bool]) -> bool:
    """Whether an entry is what is asked; what cannot be looked at is nothing."""
    try:
        return question()
    except OSError:
        return False


def _matching(entries: Sequence[os.DirEntry[str]], part: str) -> list[os.DirEntry[str]]:
    """Those whose names match one part of a pattern."""
    expression = expression_of_glob(part)
    if expression is None:
        return []
    names = pa.array([os.fsencode(each.name) for each in entries], pa.binary())
    matches = pc.match_substring_regex(names, expression)
    return [each for each, is_match in zip(entries, matches.to_pylist(), strict=True) if is_match]
