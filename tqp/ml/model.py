"""A registered model: its converted form, what a call of it may give, and how far it is from the original."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any

import torch
from torch import Tensor, nn

from tqp.core.datatypes import BIGINT, BOOLEAN, DOUBLE, VARCHAR, DataType, array
from tqp.core.models import InputRange, ModelInput, ModelOutput
from tqp.ml.folding import inputs_read, with_constants
from tqp.ml.layers import Probabilities
from tqp.ml.scorer import Scorer
from tqp.ml.threshold import RAW, score_threshold

#: A smaller model is used if it costs no more than this share of the whole one.
_WORTH_RESTRICTING = 0.6

#: A class that a classifier tells apart.
Label = str | bool | int | float


@dataclass
class Trial:
    """What the proof puts into an input: `values` that matter to the model and numbers near them; categories that it has
    not seen, unless it raises for them; and None rather than NaN for missing strings if that is a category. A column that
    `is_category` is one of pandas' dtype category to the original."""

    values: list[float] = field(default_factory=list)
    takes_unseen: bool = True
    missing_is_none: bool = False
    is_category: bool = False


@dataclass(frozen=True)
class Feature:
    """One column of the matrix between two steps. `raw`: the input that it still is, perhaps with its missing values
    filled; `missing`: the inputs whose NULLs would be in it."""

    raw: int | None = None
    missing: frozenset[int] = frozenset()


@dataclass(eq=False)
class Converted:
    """A model as torch modules, before it has a name; or its last step, before what follows `given` is known.

    `body` maps features [n, f] to raw scores [n, k]. `outputs` maps a kind ("proba", "score", "value") to a module from
    raw scores to [n, columns], and "label" to one from raw scores to positions in `classes`, int64 [n]. `margin`: from raw
    scores to how clear the label is [n], for the proof; by default the difference of the two largest. `cancels`: whether
    the original itself loses more digits than the tolerance leaves when it sums squares of extremes or of tiny
    differences; the proof then makes up none. `columns` says how many columns an output has, and `RAW` how many raw scores.
    """

    body: nn.Module
    outputs: Mapping[str, nn.Module]
    classes: Sequence[Label] = ()
    cost: float = 100.0
    margin: nn.Module | None = None
    cancels: bool = False
    #: Of a transformer: the features that its "value" is.
    given: list[Feature] | None = None
    inputs: tuple[ModelInput, ...] = ()
    columns: Mapping[str, int] = field(default_factory=dict)
    #: In which it may compute; the first that is exact is taken.
    dtypes: tuple[torch.dtype, ...] = (torch.float32, torch.float64)
    trials: Sequence[Trial] = ()


def with_one_output(
    body: nn.Module,
    inputs: tuple[ModelInput, ...],
    kind: str,
    columns: int,
    dtype: torch.dtype,
    cost: float = 100.0,
) -> Converted:
    """A model whose raw scores are its only output."""
    return Converted(
        body,
        {kind: nn.Identity()},
        cost=cost,
        inputs=inputs,
        columns={RAW: columns, kind: columns},
        dtypes=(dtype,),
        trials=[Trial() for _ in inputs],
    )


@dataclass(frozen=True)
class Proof:
    """A comparison with the original: rows compared, the largest difference, for each output its own, and what kinds of
    values no row held, as the original raises for them or loses its digits."""

    rows: int
    difference: float
    by_output: Mapping[str, float] = field(default_factory=dict)
    left_out: tuple[str, ...] = ()

    def __str__(self) -> str:
        without = f" (without {', '.join(self.left_out)})" if self.left_out else ""
        return f"differs from the original by up to {self.difference:.1e} on {self.rows} rows{without}"


@dataclass(eq=False)
class Model:
    """A model under a name. Implements `tqp.core.models.ModelSignature`."""

    name: str
    inputs: Sequence[ModelInput]
    target: str
    scorer: Scorer
    converted: Converted
    default_output: ModelOutput
    source: str  # what was registered, for people
    proof: Proof | None = None
    is_restricted: bool = False

    def __post_init__(self) -> None:
        self._heads: dict[ModelOutput, Head] = {}
        self._restricted: dict[tuple[tuple[int, InputRange], ...], Model] = {}
        self._thresholds: dict[tuple[ModelOutput, str, float], tuple[ModelOutput, str, float] | None] = {}

    @property
    def title(self) -> str:
        return f"{self.name}_pruned" if self.is_restricted else self.name

    @property
    def cost(self) -> float:
        return self.converted.cost

    def output(self, kind: str) -> ModelOutput | None:
        return output_of(self.converted, kind)

    def head(self, output: ModelOutput) -> Head:
        """The module from raw scores to what a call with this output gives; the same one every time."""
        head = self._heads.get(output)
        if head is None:
            made = make_head(self.converted, output)
            made.to(next(iter(self.scorer.buffers()), torch.empty(0)).device)
            head = self._heads.setdefault(output, made)  # the first, if several threads make one
        return head

    def threshold(
        self, output: ModelOutput, comparison: str, value: float
    ) -> tuple[ModelOutput, str, float] | None:
        """See `ModelSignature`; remembered, as a bound is found by trying scores."""
        asked = (output, comparison, value)
        if asked not in self._thresholds:
            self._thresholds[asked] = score_threshold(self, output, comparison, value)
        return self._thresholds[asked]

    def restricted(self, ranges: Mapping[int, InputRange]) -> Model:
        """See `ModelSignature`; for bodies that have such a method themselves (trees), and for constants in sums."""
        if any(size != 1 for size in self.scorer.sizes) or not ranges:
            return self
        asked = tuple(sorted(ranges.items(), key=operator.itemgetter(0)))
        known = self._restricted.get(asked)
        if known is None:
            known = self._restricted.setdefault(asked, self._smaller(ranges))
        return known

    def _smaller(self, ranges: Mapping[int, InputRange]) -> Model:
        whole: Any = self.scorer.body
        if not hasattr(whole, "restricted"):
            return self._with_constants(ranges)
        # To the body, a range without an upper end is one that may hold missing values, unless it is told otherwise.
        closed = {
            place: (each.low, inf if each.may_be_missing else each.high) for place, each in ranges.items()
        }
        present = [place for place, each in ranges.items() if not each.may_be_missing]
        body = whole.restricted(closed, present)
        cost = self.cost - whole.cost + body.cost
        if cost > _WORTH_RESTRICTING * self.cost:
            return self
        return self._with_body(body, body.inputs_read(), cost)

    def _with_constants(self, ranges: Mapping[int, InputRange]) -> Model:
        """Inputs of which one value is known are part of the bias."""
        constants = {
            place: each.low
            for place, each in ranges.items()
            if each.low == each.high and not each.may_be_missing and self.inputs[place].is_read
        }
        body = with_constants(self.scorer.body, constants) if constants else self.scorer.body
        read = inputs_read(body)
        if read is None or read.issuperset(constants):
            return self
        return self._with_body(body, read, self.cost * (1 - len(constants) / len(self.inputs)))

    def _with_body(self, body: nn.Module, read: Collection[int], cost: float) -> Model:
        """The model with a smaller body that reads fewer inputs."""
        inputs = tuple(
            replace(item, is_read=item.is_read and place in read) for place, item in enumerate(self.inputs)
        )
        scorer = Scorer(body, self.scorer.sizes, self.scorer.dtype, self.scorer.scores, bf16=self.scorer.bf16)
        converted = replace(self.converted, body=body, cost=cost, inputs=inputs)
        return replace(self, inputs=inputs, scorer=scorer, converted=converted, is_restricted=True)

    def __repr__(self) -> str:
        call = f"{self.name}({', '.join(item.name for item in self.inputs)})"
        told = f"{call} -> {self.default_output.data_type}: {self.default_output.kind} of {self.source}"
        if self.proof is None:
            return told
        precision = "bfloat16" if self.scorer.bf16 else str(self.scorer.dtype).removeprefix("torch.")
        return f"{told}; {self.proof}, in {precision}"


def output_of(converted: Converted, kind: str, column: int | None = None) -> ModelOutput | None:
    """What a call gives for a kind of output, or None if the model has no such output.

    Without a `column`, the only one there is, the positive class of two, or all as an array.
    """
    if kind not in converted.outputs:
        return None
    if kind == "label":
        return ModelOutput(kind, *_label_type(converted.classes))
    columns = converted.columns[kind]
    if column is None and columns == 1:
        column = 0
    elif column is None and kind == "proba" and columns == 2:
        column = 1
    return ModelOutput(kind, DOUBLE if column is not None else array(columns), column)


def _label_type(classes: Sequence[Label]) -> tuple[DataType, int | None, tuple[str, ...] | None]:
    if all(isinstance(label, str) for label in classes):
        return VARCHAR, None, tuple(str(label) for label in classes)
    if all(isinstance(label, bool) for label in classes):
        return BOOLEAN, None, None
    if all(isinstance(label, int) for label in classes):
        return BIGINT, None, None
    return DOUBLE, None, None


def make_head(converted: Converted, output: ModelOutput) -> Head:
    """The module from raw scores to what a call with this output gives."""
    transform = nn.Identity() if output.kind == RAW else converted.outputs[output.kind]
    if output.kind == "label":
        if output.labels is not None:
            return Head(transform, None, None)
        dtype = {BOOLEAN: torch.bool, BIGINT: torch.int64}.get(output.data_type, torch.float64)
        return Head(transform, None, torch.tensor([*converted.classes], dtype=dtype))
    return Head(transform, output.column, None)


class Head(nn.Module):
    """From raw scores to the values of a column: bool, int64 or float64 [n], or float32 [n, columns]."""

    def __init__(self, transform: nn.Module, column: int | None, labels: Tensor | None) -> None:
        super().__init__()
        self.transform = transform
        self.column = column
        self.labels = None if labels is None else nn.Buffer(labels)

    def forward(self, raw: Tensor) -> Tensor:
        if self.column is not None and isinstance(self.transform, Probabilities):
            return self.transform.column(raw, self.column).to(torch.float64)
        values: Tensor = self.transform(raw)
        if self.labels is not None:
            return torch.index_select(self.labels, 0, values)
        if not values.is_floating_point():
            return values  # positions of labels that are strings
        if self.column is not None:
            return values[:, self.column].to(torch.float64)
        return values.to(torch.float32).contiguous()
