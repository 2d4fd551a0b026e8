"""Values written as JSON: what their casts to it are made of."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from tqp.core.json.values import write_float, write_string
from tqp.data.strings import Strings
from tqp.operators.strings import layout
from tqp.operators.strings.build import join
from tqp.operators.text.distinct_values import texts_of_each


def quoted_strings(strings: Strings) -> Strings:
    """Texts as JSON."""
    return texts_of_each([strings], write_string)


def float_texts(values: Tensor) -> Strings:
    """Floats as JSON."""
    return texts_of_each([values], write_float)


def struct_texts(names: Sequence[str], *fields: Strings) -> Strings:
    """Objects, of their fields as JSON; arrays where these have no names."""
    device = fields[0].starts.device
    before = [f"{write_string(name)}:" if name else "" for name in names]
    opened, closed = "{}" if names[0] else "[]"
    parts: list[Strings] = []
    for place, (name, field) in enumerate(zip(before, fields, strict=True)):
        parts += [layout.from_list([f"{',' if place else opened}{name}".encode()], device), field]
    return join([*parts, layout.from_list([closed.encode()], device)])
