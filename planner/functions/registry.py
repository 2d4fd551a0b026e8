"""The functions of SQL, by canonical name and by spelling: what the binder, the rules and the physical planner ask."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tqp.planner.functions.aggregates import AGGREGATE_FUNCTIONS
from tqp.planner.functions.arithmetic import ARITHMETIC
from tqp.planner.functions.arrays import ARRAYS
from tqp.planner.functions.bits import BITS
from tqp.planner.functions.conditions import CONDITIONS
from tqp.planner.functions.declaration import AggregateFunction, ScalarFunction
from tqp.planner.functions.intervals import INTERVALS
from tqp.planner.functions.json import JSON_FUNCTIONS
from tqp.planner.functions.mathematics import MATHEMATICS
from tqp.planner.functions.nested import NESTED
from tqp.planner.functions.overloads import Overload, overloads_of
from tqp.planner.functions.temporal import TEMPORAL
from tqp.planner.functions.text import TEXT
from tqp.planner.functions.uuids import UUIDS
from tqp.planner.functions.windows import WINDOW_FUNCTIONS, WindowFunction

#: By the canonical name, which is what plans and kernels call them.
SCALARS: Mapping[str, ScalarFunction] = {
    function.name: function
    for family in (
        CONDITIONS,
        ARITHMETIC,
        MATHEMATICS,
        TEMPORAL,
        INTERVALS,
        TEXT,
        ARRAYS,
        NESTED,
        JSON_FUNCTIONS,
        UUIDS,
        BITS,
    )
    for function in family
}
#: Calls that answer something else in each run.
RANDOM_CALLS = frozenset(name for name, function in SCALARS.items() if function.is_random)
AGGREGATES: Mapping[str, AggregateFunction] = {function.name: function for function in AGGREGATE_FUNCTIONS}
WINDOWS: Mapping[str, WindowFunction] = {function.name: function for function in WINDOW_FUNCTIONS}


class _Spellings:
    """How SQL writes the functions of one kind."""

    def __init__(self, functions: Iterable[ScalarFunction | AggregateFunction | WindowFunction]) -> None:
        #: What each spelling may mean, as canonical names and lines, and the spelling that each other one stands for.
        self.written: dict[str, list[tuple[str, tuple[str, ...]]]] = {}
        self.aliases: dict[str, str] = {}
        self._read: dict[str, tuple[Overload, ...]] = {}
        for function in functions:
            for names, lines in function.forms.items():
                main, *aliases = names.split()
                self.aliases.update(dict.fromkeys(aliases, main))
                self.written.setdefault(main, []).append((function.name, lines))

    def overloads(self, name: str) -> tuple[Overload, ...] | None:
        """Overloads of a function by any of its SQL spellings (lower case), or None; () of one that the binder types."""
        name = self.aliases.get(name, name)
        found = self._read.get(name)
        if found is None and name in self.written:
            overloads = (each for lines in self.written[name] for each in overloads_of(*lines))
            found = self._read[name] = tuple(overloads)
        return found


_scalars = _Spellings(SCALARS.values())
_aggregates = _Spellings(AGGREGATES.values())
_windows = _Spellings(WINDOWS.values())
scalar_overloads = _scalars.overloads
aggregate_overloads = _aggregates.overloads
window_overloads = _windows.overloads  # of functions that are no aggregates


def main_spelling(name: str) -> str:
    """The spelling that `name` (lower case) stands for, which is itself of most."""
    return _scalars.aliases.get(name) or _aggregates.aliases.get(name, name)


def counts_rows_before(function: str) -> bool:
    """Is the window function, by its canonical name, one that tells how many rows come before? No aggregate is."""
    known = WINDOWS.get(function)
    return known is not None and known.counts_rows_before


def scalar_names() -> tuple[str, ...]:
    """Every SQL spelling of a scalar function that is declared, operators among them."""
    return (*_scalars.written, *_scalars.aliases)


def aggregate_names() -> tuple[str, ...]:
    """Every SQL spelling of an aggregate."""
    return (*_aggregates.written, *_aggregates.aliases)


def window_names() -> tuple[str, ...]:
    """Every SQL spelling of a window function that is no aggregate."""
    return (*_windows.written, *_windows.aliases)


def signatures() -> Iterator[tuple[str, str, str | None, Sequence[Overload]]]:
    """Every spelling that is a name: its kind, the spelling that it stands for, if that is another, and its overloads."""
    for kind, spellings in (("scalar", _scalars), ("aggregate", _aggregates), ("window", _windows)):
        for name in sorted((*spellings.written, *spellings.aliases)):
            if name.isidentifier():
                yield kind, name, spellings.aliases.get(name), spellings.overloads(name) or ()
