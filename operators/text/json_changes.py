"""JSON documents that are changed: at a path, by another document, or in all their parts. Pure functions of parsed values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tqp.core.json.paths import (
    MISSING,
    Path,
    Step,
    array_index,
    field_name,
    is_behind_the_end,
    part_at,
    place_of,
)
from tqp.core.json.values import write_json

# ---- at a path -------------------------------------------------------------------------------------------------------


def with_value(document: Any, path: Path, value: Any, *, adds: bool, replaces: bool) -> Any:
    """The document with the value at a path: if `adds` where there was nothing, if `replaces` where there was something.

    Objects and arrays on the way to it are made. In an array only the place behind the last element can be added.
    """
    return document if path.impossible else _with_value(document, path.steps, value, adds, replaces)


def _with_value(document: Any, steps: Sequence[Step], value: Any, adds: bool, replaces: bool) -> Any:
    if not steps:
        return value if replaces else document
    step, *rest = steps
    place = _changed_place(document, step)
    if place is None:
        return _extended(document, step, _made(rest, value)) if adds else document
    if rest:
        return _with_part(document, place, _with_value(part_at(document, place), rest, value, adds, replaces))
    return _with_part(_without_doubles(document, place), place, value) if replaces else document


def _changed_place(document: Any, step: Step) -> int | None:
    is_behind = isinstance(document, list) and is_behind_the_end(step)
    return None if is_behind else place_of(document, step)


def _made(steps: Sequence[Step], value: Any) -> Any:
    """The value with what stands around it on the way of these steps; MISSING if there is no such way."""
    for step in reversed(steps):
        name = field_name(step)
        if name is None and step != 0 and not is_behind_the_end(step):
            return MISSING
        value = [value] if name is None else ((name, value),)
    return value


def _extended(document: Any, step: Step, value: Any) -> Any:
    """With one more field or element, if the step names a place for it."""
    if value is MISSING:
        return document
    name = field_name(step)
    if isinstance(document, tuple) and name is not None:
        return (*document, (name, value))
    if isinstance(document, list):
        length = len(document)
        if is_behind_the_end(step) or array_index(step, length) == length:
            return [*document, value]
    return document


def _with_part(document: Any, place: int, value: Any) -> Any:
    if isinstance(document, list):
        return [*document[:place], value, *document[place + 1 :]]
    return (*document[:place], (document[place][0], value), *document[place + 1 :])


def _without_doubles(document: Any, place: int) -> Any:
    """An object in which the key at a place, the first of its name, stands once."""
    if isinstance(document, list):
        return document
    name = document[place][0]
    return tuple(pair for number, pair in enumerate(document) if number == place or pair[0] != name)


def without(document: Any, path: Path) -> Any:
    """The document without what is at a path; MISSING if that is all of it."""
    return document if path.impossible else _without(document, path.steps)


def _without(document: Any, steps: Sequence[Step]) -> Any:
    if not steps:
        return MISSING
    step, *rest = steps
    place = _changed_place(document, step)
    if place is None:
        return document
    if rest:
        return _with_part(document, place, _without(part_at(document, place), rest))
    document = _without_doubles(document, place)
    return document[:place] + document[place + 1 :]


# ---- by another document ---------------------------------------------------------------------------------------------


def patched(document: Any, patch: Any) -> Any:
    """The document as the patch changes it; what is no object gives way to the patch as it is."""
    return _merged_patch(document, patch) if _are_objects(document, patch) else patch


def _are_objects(left: Any, right: Any) -> bool:
    return isinstance(left, tuple) and isinstance(right, tuple)


def _merged_patch(document: Any, patch: Any) -> Any:
    """Fields that the patch has not, then those that it has: null takes one away, an object changes one that is an object."""
    if not isinstance(patch, tuple):
        return patch
    fields = document if isinstance(document, tuple) else ()
    known, changed = dict(reversed(fields)), dict(patch)
    kept = [(key, value) for key, value in fields if key not in changed]
    made = [(key, _merged_patch(known.get(key), value)) for key, value in patch if value is not None]
    return (*kept, *made)


def deeply_merged(document: Any, other: Any) -> Any:
    """The fields of both, those of objects in both merged in the same way; null leaves what there is."""
    if not _are_objects(document, other):
        return document if other is None else other
    known, others = dict(reversed(document)), dict(reversed(other))
    kept = [(key, value) for key, value in document if others.get(key) is None]
    made = [(key, _merged_part(known, key, value)) for key, value in other if value is not None]
    return (*kept, *made)


def _merged_part(known: dict[str, Any], key: str, value: Any) -> Any:
    return deeply_merged(known[key], value) if key in known else value


def patch_between(old: Any, new: Any) -> Any:
    """The patch that makes the new document of the old one: null for keys that are gone, then what is new or another value."""
    if not _are_objects(old, new):
        return new
    known, kept = dict(reversed(old)), {key for key, _ in new}
    patch = [(key, None) for key, _ in old if key not in kept]
    for key, value in new:
        before = known.get(key, MISSING)
        if _are_objects(before, value):
            value = patch_between(before, value)
            if not value:
                continue
        elif before is not MISSING and _are_equal(before, value):
            continue
        patch.append((key, value))
    return tuple(patch)


def _are_equal(left: Any, right: Any) -> bool:
    """Objects in any order of their keys."""
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_are_equal, left, right))
    if not _are_objects(left, right):
        return write_json(left) == write_json(right)
    if len(left) != len(right):
        return False
    place = 0  # each key is looked for behind the one that was found last, then from the beginning
    for key, value in left:
        found = next((at for at in (*range(place, len(right)), *range(place)) if right[at][0] == key), None)
        if found is None or not _are_equal(value, right[found][1]):
            return False
        place = found + 1
    return True


# ---- in all parts ----------------------------------------------------------------------------------------------------


def without_nulls(value: Any) -> Any:
    """Without fields that are null, at any level; elements of arrays stay."""
    if isinstance(value, list):
        return list(map(without_nulls, value))
    if isinstance(value, tuple):
        return tuple((key, without_nulls(each)) for key, each in value if each is not None)
    return value


def normalized(value: Any) -> Any:
    """With the keys of objects in order."""
    if isinstance(value, list):
        return list(map(normalized, value))
    if isinstance(value, tuple):
        return tuple(sorted(((key, normalized(each)) for key, each in value), key=lambda pair: pair[0]))
    return value
