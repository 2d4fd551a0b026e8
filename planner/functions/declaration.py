"""What a function says of itself: the one place that the planner asks, and the forms that a declaration takes.

A family of functions is a tuple of declarations in a file of its own; `tqp.planner.functions.registry` collects them.
Kernels stand elsewhere, under the same names; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, NamedTuple

from tqp.core.datatypes import TypeKind
from tqp.planner.algebra.expressions import AggregateCall, Call, Expression, Value
from tqp.planner.functions.granularity import GranularityRule
from tqp.planner.functions.ranges import Range, Ranges

#: The range of a call's exact result, of the call and the ranges of its arguments.
RangeRule = Callable[[Call, Ranges], Range | None]
#: Can a call fail? Of the call, the ranges of its arguments and its own.
RaiseRule = Callable[[Call, Ranges, Range | None], bool]
#: Of an aggregate of at most so many rows: its range, and whether it can fail, of the range of the values.
AggregateRangeRule = Callable[[AggregateCall, Range | None, int], Range | None]
AggregateRaiseRule = Callable[[AggregateCall, Range | None, int], bool]
#: Raises BindError or ExecutionError for constant arguments that are wrong, whatever rows there are.
ConstantCheck = Callable[[Sequence[Expression]], None]
#: The value of a call of literals; NotImplemented where that is left to the kernel. It may raise ExecutionError.
Fold = Callable[..., Any]


class NullRule(Enum):
    """When a call is NULL."""

    STRICT = auto()  # exactly where an argument is
    STRICT_IF_FINITE = auto()  # where an argument is NULL or an infinite date
    PROPAGATES = auto()  # where an argument is, and perhaps elsewhere
    THREE_VALUED = auto()  # AND and OR: only where an argument is, and not everywhere there
    ALL = auto()  # where all arguments are; else it is one of them
    FIRST = auto()  # where the first argument is
    NEVER = auto()
    REFUSES = auto()  # never: an argument that is NULL is an error


class Work(Enum):
    """What a call does for a row; the physical planner knows what that costs."""

    COMPARISON = auto()
    MASKS = auto()  # combines truth values
    ARITHMETIC = auto()
    CALCULATION = auto()  # a few operations on numbers
    CALENDAR = auto()
    SEARCH = auto()  # reads text to its end
    OTHER = auto()  # what its operands say: text, arrays, or nothing known


class Infix(NamedTuple):
    """How EXPLAIN writes a call between its arguments: the operator, and how tightly it binds."""

    operator: str
    binds: int
    is_associative: bool = False


@dataclass(frozen=True, slots=True)
class ScalarFunction:
    """A scalar function or operator.

    `forms`: how SQL writes it. A key is a spelling and others that mean the same; its lines are signatures, as
    `tqp.planner.functions.overloads` reads them. One without forms is a special form of the binder.
    `raises`: never, for any arguments, or as a rule says.
    """

    name: str
    forms: Mapping[str, tuple[str, ...]]
    null: NullRule
    raises: bool | RaiseRule
    range: RangeRule | None = None
    granularity: GranularityRule | None = None  # of the instant that it takes
    fold: Fold | None = None
    work: Work = Work.OTHER
    selectivity: float | None = None  # of a predicate: the share of rows for which it is true
    infix: Infix | None = None
    one_type: bool = False  # its arguments have one type
    short_circuits: bool = False  # a later argument counts only where those before leave the answer open
    check: ConstantCheck | None = None  # of constants, which nothing reads beside a NULL
    check_types: ConstantCheck | None = None
    takes_digits: bool = (
        False  # the second argument is a number of digits, which decides the type of a DECIMAL
    )
    knows_null: bool = True  # that it is NULL for a constant NULL is known before there are rows
    computes_all: bool = (
        False  # beside a constant NULL, too, which decides a call, and so raises what they raise
    )
    bends: bool = (
        True  # where an argument is the constant NULL, the text that it gives bends as a literal does
    )
    makes_bins: bool = False  # it makes few values of many that are no integers
    slices_text: bool = False  # the strings that it gives are slices of its argument's
    reads_text: bool = False  # it reads values that are no strings out of strings, as a cast does
    constants_vary: bool = False  # nothing is planned from the values of its constants but a range: parameters may take their place
    is_random: bool = False  # it answers something else in each run

    @property
    def is_strict(self) -> bool:
        """Is it NULL exactly where an argument is?"""
        return self.null is NullRule.STRICT

    @property
    def is_null_for_null(self) -> bool:
        """Is it NULL wherever an argument is (and perhaps elsewhere)?"""
        rule = self.null
        return rule is NullRule.STRICT or rule is NullRule.STRICT_IF_FINITE or rule is NullRule.PROPAGATES


def scalar(
    names: str,
    *lines: str,
    null: NullRule = NullRule.STRICT,
    raises: bool | RaiseRule = False,
    is_call: bool = False,
    **facts: Any,
) -> ScalarFunction:
    """A declaration. `names`: the canonical name and other spellings; a line may begin with a spelling of its own.

    Unless it says otherwise, a function is NULL exactly where an argument is, and never raises.
    `is_call`: it is called by its names, though it has no lines, as the binder types it.
    """
    return ScalarFunction(names.split()[0], forms_of(names, lines, is_call), null, raises, **facts)


def forms_of(names: str, lines: Sequence[str], is_call: bool = False) -> Mapping[str, tuple[str, ...]]:
    """`"+: DATE INTEGER -> DATE"` is a signature of `+`; a line without a spelling is one of `names`."""
    forms: dict[str, tuple[str, ...]] = {names: ()} if is_call else {}
    for line in lines:
        spellings, colon, signature = line.partition(": ")
        spellings, signature = (spellings, signature) if colon else (names, line)
        forms[spellings] = (*forms.get(spellings, ()), signature)
    return forms


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate. It skips the values that are NULL, unless it counts rows.

    `forms` as of a ScalarFunction. The rules' number of rows is at least 1.
    """

    name: str
    forms: Mapping[str, tuple[str, ...]]
    of_nothing: Value = None  # its value for no rows
    fewest_values: int = 1  # it is NULL of fewer values; 0: values that are NULL count, too
    range: AggregateRangeRule | None = None
    raises: AggregateRaiseRule | None = None
    counts: bool = False  # rows or values
    picks_value: bool = False  # it is one of the values
    ignores_duplicates: bool = False  # DISTINCT changes nothing
    minds_order: bool = False  # of the rows of a group
    merged_by: str | None = None  # the aggregate that makes one value of those of parts of the rows
    check: ConstantCheck | None = None  # of arguments that must be constants
    unsupported: frozenset[TypeKind] = frozenset()  # of which DuckDB has it, and we do not


def aggregate(names: str, *lines: str, **facts: Any) -> AggregateFunction:
    """A declaration, as `scalar` makes one."""
    return AggregateFunction(names.split()[0], forms_of(names, lines), **facts)
