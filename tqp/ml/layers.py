"""The torch modules that converted models are made of. Each maps features [n, f] to [n, g] in the dtype of its input."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn


class Affine(nn.Module):
    """x @ weight + bias: [n, f] to [n, g]."""

    def __init__(self, weight: Tensor, bias: Tensor) -> None:
        """`weight` [f, g], `bias` [g]."""
        super().__init__()
        self.weight = nn.Buffer(weight)
        self.bias = nn.Buffer(bias)

    def forward(self, features: Tensor) -> Tensor:
        # Transposed, because features come column by column: a third of the time, and so does the result.
        return torch.addmm(self.bias[:, None], self.weight.T, features.T).T


class Scale(nn.Module):
    """(x - shift) / divisor + offset, feature by feature."""

    def __init__(self, shift: Tensor, divisor: Tensor, offset: Tensor | None = None) -> None:
        """All [f]."""
        super().__init__()
        self.shift = nn.Buffer(shift)
        self.divisor = nn.Buffer(divisor)
        self.offset = None if offset is None else nn.Buffer(offset)

    def forward(self, features: Tensor) -> Tensor:
        scaled = (features - self.shift) / self.divisor
        return scaled if self.offset is None else scaled + self.offset


class Select(nn.Module):
    """Some of the features, in an order: [n, f] to [n, g]."""

    def __init__(self, places: Sequence[int]) -> None:
        super().__init__()
        self.order = [*places]
        self.first, self.last = places[0], places[-1]
        self.is_range = self.order == list(range(self.first, self.last + 1))
        self.places = nn.Buffer(torch.tensor(self.order))

    def forward(self, features: Tensor) -> Tensor:
        if self.is_range:
            return features[:, self.first : self.last + 1]
        return torch.index_select(features, 1, self.places)


class SideBySide(nn.Module):
    """The outputs of several modules on the same features, one next to the other."""

    def __init__(self, parts: Sequence[nn.Module], widths: Sequence[int]) -> None:
        """`widths`: how many columns each of them gives."""
        super().__init__()
        self.parts, self.widths = nn.ModuleList(parts), [*widths]

    def forward(self, features: Tensor) -> Tensor:
        return torch.cat([part(features) for part in self.parts], 1)


class Total(nn.Module):
    """The sum of what several modules make of the same features."""

    def __init__(self, parts: Sequence[nn.Module]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, features: Tensor) -> Tensor:
        first, *others = self.parts
        total: Tensor = first(features)
        for part in others:
            total = total + part(features)
        return total


class Apply(nn.Module):
    """A function of features as a module."""

    def __init__(self, function: Callable[[Tensor], Tensor], *, elementwise: bool = True) -> None:
        """`elementwise`: whether each number of the result depends on the one in its place only, the same way for all rows."""
        super().__init__()
        self.function, self.elementwise = function, elementwise

    def forward(self, features: Tensor) -> Tensor:
        return self.function(features)


class Fill(nn.Module):
    """Numbers in place of missing ones, which are NaN or a number themselves, feature by feature."""

    def __init__(self, values: Tensor, missing: float | None = None) -> None:
        """`values` [f]; `missing`: the number that means it, None for NaN."""
        super().__init__()
        self.missing = missing
        self.numbers: list[float] = values.tolist()
        self.values = nn.Buffer(values)

    def forward(self, features: Tensor) -> Tensor:
        if self.missing is None and _one_column_at_a_time(features):
            filled = features.clone()
            for place, number in enumerate(self.numbers):
                filled[:, place].nan_to_num_(number, torch.inf, -torch.inf)
            return filled
        return torch.where(is_missing(features, self.missing), self.values, features)


def is_missing(features: Tensor, missing: float | None) -> Tensor:
    """Where numbers are missing. `missing`: the number that means it, None for NaN."""
    return features.isnan() if missing is None else features == missing


def _one_column_at_a_time(features: Tensor) -> bool:
    """Whether a call for each column is cheaper than one for all with a number a column: on the CPU, for few columns."""
    return features.device.type == "cpu" and features.shape[1] <= 64 and features.shape[0] >= 1024


#: Functions of each number, or (softmax) of each row of them: [n, k] to [n, k]; some under the names that scikit-learn has.
_FUNCTIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda raw: raw,
    "sigmoid": torch.sigmoid,
    "logistic": torch.sigmoid,
    "clipped": lambda raw: (raw.clamp(-1, 1) + 1) / 2,
    "softmax": lambda raw: torch.softmax(raw, 1),
    "exp": torch.exp,
    "softplus": lambda raw: nn.functional.softplus(raw, threshold=1e9),
    "signed square": lambda raw: raw * raw.abs(),
    "power of two": lambda raw: -torch.exp2(-raw),
    "positive": lambda raw: (raw > 0).to(raw.dtype),
    "relu": torch.relu,
    "tanh": torch.tanh,
}


def link(name: str, factor: float = 1.0) -> nn.Module:
    """One of `_FUNCTIONS` as a module. `factor`: what numbers are multiplied by first."""
    function = _FUNCTIONS[name]
    if factor == 1.0:
        return nn.Identity() if name == "identity" else Apply(function, elementwise=name != "softmax")
    return Apply(lambda raw: function(raw * factor), elementwise=name != "softmax")


def sign(numbers: Tensor) -> Tensor:
    """-1, 0 or 1, and NaN for NaN, which is 0 to torch."""
    return torch.where(numbers.isnan(), numbers, torch.sign(numbers))


class Probabilities(nn.Module):
    """The probabilities of classes from their scores: [n, k] to [n, k], or to [n, 2] from the score of the second of two."""

    def __init__(self, name: str, factor: float = 1.0, *, shared: bool = False) -> None:
        """`name` and `factor`: see `link`. `shared`: each of several classes was held against the rest, so that what the
        function gives is divided by its sum; uniform where all are zero."""
        super().__init__()
        self.function, self.shared = link(name, factor), shared

    def forward(self, scores: Tensor) -> Tensor:
        shares: Tensor = self.function(scores)
        if scores.shape[1] == 1:
            return torch.cat([1 - shares, shares], 1)
        if not self.shared:
            return shares
        total = shares.sum(1, keepdim=True)
        return torch.where(total == 0, torch.full_like(shares, 1 / shares.shape[1]), shares / total)

    def column(self, scores: Tensor, place: int) -> Tensor:
        """The probabilities of one class [n]; of two without the other's."""
        if scores.shape[1] > 1:
            return self(scores)[:, place]  # type: ignore[no-any-return]
        positive: Tensor = self.function(scores)[:, 0]
        return positive if place == 1 else 1 - positive


class Largest(nn.Module):
    """The position of the largest score, the first of equals: [n, k] to int64 [n].

    Of one score: whether it is above the threshold or, if that is `reached` by it, at least as large.
    """

    def __init__(self, threshold: float = 0.0, *, reached: bool = False) -> None:
        super().__init__()
        self.threshold, self.reached = threshold, reached

    def forward(self, scores: Tensor) -> Tensor:
        if scores.shape[1] == 1:
            score = scores[:, 0]
            return (score >= self.threshold if self.reached else score > self.threshold).to(torch.int64)
        # argmax takes ten times as long where each column is contiguous.
        return scores.max(1).indices
