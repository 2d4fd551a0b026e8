"""Modules one after the other as fewer: what is linear, or reads one category, becomes one matrix or one table.

Affine after Scale, Affine after Affine      one Affine
a sum of Affines after modules side by side  the sum of what each becomes with its rows of the weight
numbers made of Lookup or OneHot             a Lookup in the table of the results
Lookup or OneHot after Fill                  the filled value's row for missing ones
Select of Select, of Scale, of side by side  fewer columns from the beginning
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn

from tqp.ml.layers import Affine, Apply, Fill, Scale, Select, SideBySide, Total
from tqp.ml.lookup import FIRST, ByCategory, Lookup, OneHot


def composed(modules: Sequence[nn.Module]) -> nn.Module:
    """One module that does what these do, the first one first."""
    made: list[nn.Module] = []
    for module in _flat(modules):
        made.append(module)
        while len(made) > 1:
            pair = _folded(made[-2], made[-1])
            if pair is None:
                break
            made[-2:] = _flat([pair])
    if not made:
        return nn.Identity()
    return made[0] if len(made) == 1 else nn.Sequential(*made)


def _flat(modules: Sequence[nn.Module]) -> list[nn.Module]:
    """Without sequences in sequences and without what does nothing."""
    flat: list[nn.Module] = []
    for module in modules:
        if isinstance(module, nn.Sequential):
            flat += _flat(list(module))
        elif not isinstance(module, nn.Identity):
            flat.append(module)
    return flat


def _folded(first: nn.Module, then: nn.Module) -> nn.Module | None:
    """Both as one, or None if they are better kept apart."""
    match first, then:
        # What runs on a table at registration must do so on the CPU, without an error for a row that no query may have.
        case ByCategory(), _ if _is_elementwise(then) or isinstance(then, Affine | Select):
            return first.then(then)
        case Select(), ByCategory():
            return then.at(first.order[then.category.place])
        case Select(), Select():
            return Select([first.order[place] for place in then.order])
        case Scale(), Affine():
            constant = first(torch.zeros_like(first.shift))
            return Affine(then.weight / first.divisor[:, None], then.bias + constant @ then.weight)
        case Affine(), Affine():
            return _one_affine(first, then)
        case ((SideBySide() | Total()), Affine()):
            return _affine_of_parts(first, then)
        case Select(), SideBySide():
            return SideBySide([composed([first, part]) for part in then.parts], then.widths)
        case Fill(), ByCategory() if first.missing is None:
            return then.filled(float(first.values[then.category.place]))
        case Fill(), SideBySide() if first.missing is None and all(
            isinstance(part, ByCategory) for part in then.parts
        ):
            return SideBySide([composed([first, part]) for part in then.parts], then.widths)
    return None


def _one_affine(first: Affine, then: Affine) -> Affine | None:
    (inputs, between), outputs = first.weight.shape, then.weight.shape[1]
    if inputs * outputs > between * (inputs + outputs):
        return None
    return Affine(first.weight @ then.weight, first.bias @ then.weight + then.bias)


def _affine_of_parts(first: SideBySide | Total, then: Affine) -> nn.Module | None:
    """The sum of each part's share, the bias in the first one; nothing is kept of a part without weight."""
    parts = list(first.parts)
    if isinstance(first, Total):
        weights: list[Tensor] = [then.weight] * len(parts)
    else:
        weights = list(torch.split(then.weight, first.widths))
    terms: list[nn.Module] = []
    bias: Tensor = then.bias
    for part, weight in zip(parts, weights, strict=True):
        term = composed([part, Affine(weight, torch.zeros_like(bias))])
        constant = _constant(term) if inputs_read(term) == set() else None
        if constant is not None:
            bias = bias + constant
        else:
            terms += list(term.parts) if isinstance(term, Total) else [term]
    if not terms:
        return None
    terms[0] = composed([terms[0], Affine(torch.eye(bias.shape[0], dtype=bias.dtype), bias)])
    return terms[0] if len(terms) == 1 else Total(terms)


def _constant(module: nn.Module) -> Tensor | None:
    """What a module gives that reads no inputs [g], if that is easy to tell."""
    match module:
        case Lookup():
            return module.table[0]
        case Affine():
            return module.bias
        case nn.Sequential():
            return _constant(module[-1])
    return None


def with_constants(module: nn.Module, values: Mapping[int, float]) -> nn.Module:
    """The module for rows whose columns at these places hold these numbers: what they add is part of the bias.

    Of the sums that models are folded to; other modules stay as they are.
    """
    match module:
        case nn.Sequential():
            first, *rest = module
            if isinstance(first, Select):
                places = {place: values[each] for place, each in enumerate(first.order) if each in values}
                changed = with_constants(nn.Sequential(*rest), places)
                return nn.Sequential(first, *_flat([changed]))
            return nn.Sequential(with_constants(first, values), *rest)
        case Affine():
            weight, bias = module.weight.clone(), module.bias.double()
            for place, value in values.items():
                bias = bias + weight[place].double() * value
                weight[place] = 0
            return Affine(weight, bias.to(weight.dtype))
        case Total():
            rows = [_known_row(part, values) for part in module.parts]
            rest = [
                with_constants(part, values)
                for part, row in zip(module.parts, rows, strict=True)
                if row is None
            ]
            known = [row for row in rows if row is not None]
            if not rest or not known:
                return Total(rest) if rest else module
            unit = torch.eye(known[0].shape[0], dtype=known[0].dtype, device=known[0].device)
            rest[0] = composed([rest[0], Affine(unit, torch.stack(known).sum(0))])
            return rest[0] if len(rest) == 1 else Total(rest)
    return module


def _known_row(part: nn.Module, values: Mapping[int, float]) -> Tensor | None:
    """What a look-up gives where its column holds a known number that is a category [g]."""
    if not isinstance(part, Lookup) or part.category.place not in values:
        return None
    number = torch.tensor([values[part.category.place]], dtype=part.table.dtype, device=part.table.device)
    place = int(part.finder(number)[0])
    is_category = FIRST <= place < part.category.count + FIRST
    return part.table[place] if is_category else None


def inputs_read(module: nn.Module, wanted: set[int] | None = None) -> set[int] | None:
    """Which columns of its argument the `wanted` columns of a module's result depend on; None stands for all of them.

    A module of another file says it by a method `inputs_read()`.
    """
    match module:
        case nn.Sequential():
            for each in reversed(module):
                wanted = inputs_read(each, wanted)
            return wanted
        case Affine():
            weight = module.weight if wanted is None else module.weight[:, sorted(wanted)]
            return {*weight.any(1).nonzero()[:, 0].tolist()}
        case Select():
            return {module.order[each] for each in (range(len(module.order)) if wanted is None else wanted)}
        case Lookup():
            return {module.category.place} if bool((module.table != module.table[0]).any()) else set()
        case OneHot():
            return {module.category.place}
        case SideBySide() | Total():
            read: set[int] = set()
            for part in module.parts:
                of_part = inputs_read(part)
                if of_part is None:
                    return None
                read |= of_part
            return read
        case _ if _is_elementwise(module):
            return wanted
    method = getattr(module, "inputs_read", None)
    return None if method is None else set(method())


def _is_elementwise(module: nn.Module) -> bool:
    """Whether each column of the result depends on that of the argument only, and the same way for all rows."""
    if isinstance(module, Apply):
        return module.elementwise
    return isinstance(module, Scale | Fill | nn.Identity)
