"""Compiled queries that a connection keeps, each no longer than the tables and models that it reads are registered."""

from __future__ import annotations

import hashlib
from collections import OrderedDict, deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Generic, TypeVar

import numpy as np
import torch

from tqp.catalog.snapshot import Meanings, Snapshot
from tqp.core.arguments import list_elements
from tqp.planner.algebra.expressions import Literal
from tqp.planner.binder.text_constants import Constants, GivenValue, Place, place_of_parameter
from tqp.planner.shapes import ShapeConstants
from tqp.planner.templates import Template, Varied
from tqp.runtime.program import TensorProgram

#: Compiled queries that a connection keeps. Plans are kept, results never are.
_MAX_PROGRAMS = 256
#: Programs with parameters of one shape, and texts of it that are remembered: of those that come at random out of many, few
#: come again so soon.
_MAX_VARIANTS, _MAX_TEXTS = 4, 16
#: Texts with the same words that templates are made of.
_MAX_TEMPLATES = 8
#: Values of parameters that are longer are known by a digest.
_LONG_KEY = 4096

Item = TypeVar("Item")

#: Values for `?` and `$1`, or by name.
Parameters = Sequence[object] | Mapping[str, object]


class Kept(Generic[Item]):
    """Items by key, the last used of them, each no longer than what it was made of is so.

    Not safe to use from several threads: the connection's lock guards it.
    """

    def __init__(self) -> None:
        self._items: OrderedDict[Hashable, tuple[Item, Meanings]] = OrderedDict()

    def find(self, key: Hashable, now: Snapshot) -> Item | None:
        """The item kept under `key`, if all that it reads is still the same."""
        item, read = self._items.get(key, (None, {}))
        if item is None or not now.agrees(read):
            return None
        self._items.move_to_end(key)
        return item

    def find_unchanged(self, key: Hashable, now: Snapshot) -> Item | None:
        """As `find`, but None also where files of the tables that the item reads have changed since they were looked at last."""
        item = self.find(key, now)
        return item if item is not None and now.has_same_files(self._items[key][1]) else None

    def keep(self, key: Hashable, item: Item, read: Meanings, now: Snapshot) -> None:
        """Keep an item, unless what it reads was replaced while it was made."""
        if now.agrees(read):
            self._items[key] = item, read
            self._items.move_to_end(key)
            while len(self._items) > _MAX_PROGRAMS:
                self._items.popitem(last=False)

    def known(self, key: Hashable, make: Callable[[], Item], read: Meanings, now: Snapshot) -> Item:
        """The item kept under `key`; where there is none, a new one, which is kept."""
        item = self.find(key, now)
        if item is None:
            item = make()
            self.keep(key, item, read, now)
        return item

    def forget_others(self, now: Snapshot) -> None:
        """Drop what reads something that is no longer so: it would keep its memory."""
        for key, (_, read) in list(self._items.items()):
            if not now.agrees(read):
                del self._items[key]

    def clear(self) -> None:
        """Drop everything."""
        self._items.clear()

    def __len__(self) -> int:
        return len(self._items)

    def __iter__(self) -> Iterator[Item]:
        return (item for item, _ in self._items.values())


@dataclass(slots=True)
class KnownShape:
    """Programs of one shape with parameters, each with the shares of the rows that it was planned for.

    `texts`: the last ones that have been sent.
    """

    variants: list[tuple[tuple[float, ...], TensorProgram]] = field(default_factory=list)
    texts: deque[Hashable] = field(default_factory=partial(deque, maxlen=_MAX_TEXTS))

    def is_worth_parameters(self, text: Hashable, has_varied: bool = False) -> bool:
        """Is this another text than the first, and than the last ones? What is soon sent again has a program of its own.

        `has_varied`: there was another before, of another shape.
        """
        is_worth = (has_varied or bool(self.texts)) and text not in self.texts
        self.texts.append(text)
        return is_worth

    def program_for(self, constants: ShapeConstants) -> TensorProgram | None:
        """A program made for about such shares of the rows."""
        return next(
            (program for selectivities, program in self.variants if constants.keep_alike(selectivities)), None
        )

    def keep(self, constants: ShapeConstants, program: TensorProgram) -> None:
        """One more program, in place of the oldest where there are many."""
        self.variants = [*self.variants[1 - _MAX_VARIANTS :], (constants.selectivities, program)]


class KnownWords:
    """The templates of texts with the same words, the shapes that they have, and what they read.

    That is not the same for all: `FROM 'a.csv'` and `FROM 'b.csv'` have the same words.
    """

    def __init__(self) -> None:
        self._templates: list[tuple[Template, KnownShape, Meanings]] = []
        self._tried = 0
        self._first: tuple[Constants, tuple[Literal, ...]] | None = None
        self._varied = Varied()

    def varied(self, constants: Constants, operands: tuple[Literal, ...]) -> Varied:
        """What texts were seen to vary in, this one among them."""
        if self._first is None or len(self._first[1]) != len(operands):
            self._first, self._varied = (constants, operands), Varied()
        known, literals = self._first
        places = {place for place, constant in constants.items() if constant != known.get(place)}
        pairs = enumerate(zip(literals, operands, strict=True))
        others = {place for place, (first, other) in pairs if first != other}
        self._varied = Varied(self._varied.places | places, self._varied.operands | others)
        return self._varied

    def find(
        self, constants: Constants, now: Snapshot
    ) -> tuple[KnownShape, ShapeConstants, tuple[str, ...]] | None:
        """The shape of a text with these constants, if a template fits, and the names of its columns."""
        for template, shape, read in self._templates:
            found = template.constants_of(constants)
            if found is not None and now.agrees(read):
                return shape, found, template.names
        return None

    def forget_others(self, now: Snapshot) -> None:
        """Drop what reads something that is no longer so."""
        self._templates = [each for each in self._templates if now.agrees(each[2])]

    def is_worth_learning(self) -> bool:
        """Has not yet been learnt from `_MAX_TEMPLATES` texts? Where these do not fit the others, more will not either."""
        self._tried += 1
        return self._tried <= _MAX_TEMPLATES

    def learn(self, template: Template, shape: KnownShape, read: Meanings) -> None:
        """One more template."""
        self._templates.append((template, shape, read))


class CompiledQueries:
    """Programs by text and parameters, and by shape; what shapes texts have, by their words."""

    def __init__(self) -> None:
        self.programs, self.shapes, self.words = Kept[TensorProgram](), Kept[KnownShape](), Kept[KnownWords]()

    def forget_others(self, now: Snapshot) -> None:
        """Drop the programs that read what is no longer so."""
        self.programs.forget_others(now)
        self.shapes.forget_others(now)
        self.words.forget_others(now)
        for known in self.words:
            known.forget_others(now)

    def clear(self) -> None:
        """Drop all programs."""
        self.programs.clear()
        self.shapes.clear()
        self.words.clear()


def text_key(query: str, params: Parameters | None) -> Hashable:
    """What a text and the values of its parameters are known by."""
    return query if params is None else (query, *given_values(params).items())


def given_values(params: Parameters | None) -> dict[Place, GivenValue]:
    """The values of parameters by their places, in the order of these, and what each is known by."""
    if params is None:
        return {}
    items = sorted(params.items()) if isinstance(params, Mapping) else enumerate(params, 1)
    return {
        place_of_parameter(key): GivenValue(value, (type(value), _value_key(value))) for key, value in items
    }


def _value_key(value: object) -> object:
    """What tells a parameter from others of its type."""
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        return value.dtype.str, value.shape, _digest(value.tobytes())
    text = repr(_written_out(value))
    return text if len(text) <= _LONG_KEY else _digest(text.encode("utf-8", "surrogatepass"))


def _written_out(value: object) -> object:
    """Lists and dicts for what others, which may leave out the middle, print of themselves."""
    if isinstance(value, Mapping):
        return [(key, _written_out(each)) for key, each in value.items()]
    elements = list_elements(value)
    if elements is None or set(map(type, elements)) <= _PLAIN:
        return value if elements is None else elements
    return list(map(_written_out, elements))


_PLAIN = {type(None), bool, int, float, str, bytes}


def _digest(data: bytes) -> bytes:
    """The bytes, or, of many, 32 that no other bytes give."""
    return data if len(data) <= _LONG_KEY else hashlib.blake2b(data, digest_size=32).digest()
