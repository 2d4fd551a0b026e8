"""Models and Python functions as the planner sees them: what a registered one takes, and what a call of it may give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from tqp.core.datatypes import DataType


@dataclass(frozen=True, slots=True)
class ModelInput:
    """One argument of a model.

    `categories`: the strings that the model knows, in the order of the numbers it has for them; None where it takes
    numbers. `size`: of a fixed-size array of floats, else 0. `takes_null`: whether the model has a way with missing values.
    `is_read`: whether any result depends on it; it does not where all its weights are zero, or a step drops it. Nothing is
    checked of an input that is not read: a category that the model would refuse may then stand in it. `refuses_unseen`:
    whether a category that the model does not know is an error when it is scored.
    """

    name: str
    categories: tuple[str, ...] | None = None
    size: int = 0
    takes_null: bool = False
    is_read: bool = True
    refuses_unseen: bool = False


@dataclass(frozen=True, slots=True)
class InputRange:
    """What is known of an input in all rows of a query: a closed range of its numbers, and whether some may be missing
    (NULL or NaN)."""

    low: float
    high: float
    may_be_missing: bool


@dataclass(frozen=True, slots=True)
class ModelOutput:
    """What a call gives of all that a model computes.

    `kind`: "label", "proba", "score" or "value"; `column`: which of several numbers, None for all of them as an array.
    `labels` are the strings that a label stands for, where it is one; sorted.
    """

    kind: str
    data_type: DataType
    column: int | None = None
    labels: tuple[str, ...] | None = None


class ModelSignature(Protocol):
    """A registered model; implemented by `tqp.ml`, free of torch here. Two are equal only if they are the same object."""

    @property
    def name(self) -> str:
        """As in the SQL."""
        ...

    @property
    def title(self) -> str:
        """In plans and programs: the name, with a mark where a smaller model stands in for it."""
        ...

    @property
    def inputs(self) -> Sequence[ModelInput]: ...

    @property
    def target(self) -> str:
        """What it predicts, for the names of columns."""
        ...

    @property
    def default_output(self) -> ModelOutput:
        """What a call by the model's name gives."""
        ...

    def output(self, kind: str) -> ModelOutput | None:
        """The output of a kind, all columns of it, or None if the model has none."""
        ...

    @property
    def cost(self) -> float:
        """Estimated nanoseconds to score one row."""
        ...

    def threshold(
        self, output: ModelOutput, comparison: str, value: float
    ) -> tuple[ModelOutput, str, float] | None:
        """A cheaper output, comparison and bound that hold on exactly the rows where `output comparison value` does.

        `comparison`: as the functions of SQL are called (less, greater_equal, ...). None if there is none.
        """
        ...

    def restricted(self, ranges: Mapping[int, InputRange]) -> ModelSignature:
        """A cheaper model that gives the same for rows whose inputs (by place) lie in the ranges; itself if there is none.

        The same object for the same ranges.
        """
        ...


@runtime_checkable
class FunctionSignature(Protocol):
    """A Python function under a name; implemented by `tqp.ml`. Two are equal only if they are the same object."""

    @property
    def name(self) -> str:
        """As in the SQL."""
        ...

    @property
    def parameters(self) -> Sequence[DataType | None]:
        """The types that it takes; None: any."""
        ...

    @property
    def result(self) -> DataType: ...

    @property
    def takes_null(self) -> bool:
        """Whether it is called for NULL; if not, NULL in is NULL out."""
        ...

    @property
    def gives_null(self) -> bool:
        """Whether it may give NULL for what is none."""
        ...

    @property
    def has_side_effects(self) -> bool:
        """Whether it counts for which rows it is called."""
        ...

    @property
    def cost(self) -> float:
        """Estimated nanoseconds to call it for one row."""
        ...
