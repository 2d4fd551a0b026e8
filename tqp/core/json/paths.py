"""Paths into JSON: `$.a[0].b`, `$.*`, `$.a[#-1]`, the pointer `/a/0`, the key `a`, the index 0."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tqp.core.text.numbers import ParseFailure


@dataclass(frozen=True, slots=True)
class Wildcard:
    """All values of an object, or all elements of an array; None: of either."""

    of_objects: bool | None


@dataclass(frozen=True, slots=True)
class Deep:
    """A value and all that lies within it, what is less deep first: `**` and `..`."""


@dataclass(frozen=True, slots=True)
class Pointed:
    """A part of a pointer: a key, or an index if it is one."""

    name: str


#: A key, an index from the beginning or (below zero) from the end, or one of the above.
Step = str | int | Pointed | Wildcard | Deep

#: What stands for nothing in a document, as `null` is a value.
MISSING = object()


@dataclass(frozen=True, slots=True)
class Path:
    """The steps from the root. A path that is `impossible` leads nowhere."""

    steps: tuple[Step, ...]
    impossible: bool = False

    @property
    def has_wildcards(self) -> bool:
        return any(isinstance(step, Wildcard | Deep) for step in self.steps)

    def value(self, document: Any) -> Any:
        """What it leads to, or MISSING; of a path without wildcards."""
        if self.impossible:
            return MISSING
        for step in self.steps:
            found = _step(document, step)
            if not found:
                return MISSING
            document = found[0]
        return document

    def values(self, document: Any) -> Iterator[Any]:
        """All that it leads to, in the document's order."""
        found: Iterator[Any] = iter(()) if self.impossible else iter((document,))
        for step in self.steps:
            found = _steps(found, step)
        return found


def _steps(values: Iterator[Any], step: Step) -> Iterator[Any]:
    return (each for value in values for each in _step(value, step))


def _step(value: Any, step: Step) -> Sequence[Any]:
    if isinstance(step, Deep):
        found = [value]
        for each in found:
            found += parts_of(each)
        return found
    if isinstance(step, Wildcard) and step.of_objects is None:
        return parts_of(value)
    if isinstance(step, Wildcard):
        is_such = isinstance(value, tuple if step.of_objects else list)
        return parts_of(value) if is_such else ()
    place = place_of(value, step)
    return () if place is None else (part_at(value, place),)


def place_of(value: Any, step: Step) -> int | None:
    """The place among the fields of an object, or the elements of an array, to which a step leads that is no wildcard."""
    if isinstance(value, list):
        index = array_index(step, len(value))
        return None if index is None or index >= len(value) else index
    if isinstance(value, tuple):
        name = field_name(step)
        return next((place for place, (key, _) in enumerate(value) if key == name), None)
    return None


def part_at(value: list[Any] | tuple[tuple[str, Any], ...], place: int) -> Any:
    """An element of an array, or the value of a field."""
    return value[place] if isinstance(value, list) else value[place][1]


def parts_of(value: Any) -> Sequence[Any]:
    """The elements of an array, the values of an object's fields; of any other value none."""
    if isinstance(value, tuple):
        return [part for _, part in value]
    return value if isinstance(value, list) else ()


def field_name(step: Step) -> str | None:
    """The key that a step names; None of an index."""
    return step.name if isinstance(step, Pointed) else step if isinstance(step, str) else None


def array_index(step: Step, length: int) -> int | None:
    """The index from the beginning that a step names in an array of this length, perhaps behind its end; None of a key."""
    if isinstance(step, Pointed):
        step = int(step.name) if re.fullmatch("0|[1-9][0-9]{0,18}", step.name) else step.name
    if not isinstance(step, int):
        return None
    return step if step >= 0 else length + step if -step <= length else None


_PART = re.compile(
    r"""
    \.(?:(?P<deep>(?:\*\*|\.\*)(?=[.\[]|$)|\.(?=[^.*]))
       |(?P<star>\*(?![^.\[])|"\*")
       |"(?P<quoted>(?:[^"\\]|\\.)+)"
       |(?P<key>[^"*.\[][^.\[]*))
    |\[(?:(?P<every>\*)
       |\#-(?P<back>[0-9]{1,19})
       |-(?P<minus>[0-9]{1,19})
       |(?P<index>[0-9]{1,19})
       |(?P<end>\#))\]
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r'\\(["\\])')
#: `[#]`, an index that no array has.
_BEHIND_THE_END = 2**64


class _MinusZero(int):
    """`[-0]` and `[#-0]`: the first element where they are read, and behind the last one where something is added, as in DuckDB."""


def is_behind_the_end(step: Step) -> bool:
    """Whether a step names, in an array that is changed, the place behind its last element: `[#]`, `[-0]` and the pointer `-`."""
    return step == _BEHIND_THE_END or isinstance(step, _MinusZero) or step == Pointed("-")


@lru_cache(maxsize=1024)
def parse_path(text: str) -> Path:
    """The path that a text says. Raises ParseFailure."""
    if not text:
        return Path(())
    if text[0] == "/":
        return _pointer(text)
    if text[0] != "$":
        return _pointer("/" + text) if '"' in text else parse_path(f'$."{text}"')
    steps: list[Step] = []
    place = 1
    while place < len(text):
        found = _PART.match(text, place)
        if found is None:
            raise ParseFailure(f"JSON path error near '{text[place:]}' in '{text}'")
        place = found.end()
        if found["deep"] == "." and text[place] != "[":
            place -= 1  # the second point belongs to the key
        steps.append(Deep() if found["deep"] else _step_of(found))
    if steps and isinstance(steps[-1], Deep):
        steps.append(Wildcard(None))
    return Path(tuple(steps))


def path_of_rows(text: str) -> tuple[Path, str]:
    """The path of json_each() and json_tree(), and how it is written before the keys of what is there. Raises ParseFailure."""
    if not text.startswith("$"):
        if not text or text[0] == "/" or '"' in text:
            raise ParseFailure(
                f"the path of json_each() and json_tree() is to begin with '$', not as '{text}'"
            )
        text = f'$."{text}"'
    path = parse_path(text)
    if path.has_wildcards:
        raise ParseFailure(
            f"the path of json_each() and json_tree() must not have wildcards, as '{text}' has"
        )
    return path, text


def index_path(index: int) -> Path:
    """The path to an element of an array."""
    return Path((index,))


def _step_of(part: re.Match[str]) -> Step:
    if part["star"] or part["every"]:
        return Wildcard(of_objects=bool(part["star"]))
    if part["quoted"] is not None:
        return _ESCAPE.sub(r"\1", part["quoted"])
    if part["key"] is not None:
        return part["key"]
    if part["end"]:
        return _BEHIND_THE_END
    return int(part["index"]) if part["index"] else -int(part["back"] or part["minus"]) or _MinusZero()


def _pointer(text: str) -> Path:
    """`~1` stands for `/` and `~0` for `~`."""
    parts = text.split("/")[1:]
    impossible = re.search("~(?![01])", text) is not None
    return Path(tuple(Pointed(part.replace("~1", "/").replace("~0", "~")) for part in parts), impossible)
