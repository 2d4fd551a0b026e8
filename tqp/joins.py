"""SQL of joins, from what the method of relations takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from tqp.clauses import Side, name_of_column
from tqp.core.arguments import check_choice, check_is_text, check_name
from tqp.core.errors import BindError
from tqp.core.keywords import closed, in_quotes, in_quotes_joined, lower_ascii
from tqp.expressions import Expression, Sql

_JOINS = (
    "inner left right outer full semi anti asof".split()  # those with a condition
    + "cross natural positional".split()
)
_WITHOUT_CONDITION = _JOINS[-3:]
Condition = Sql | Sequence[str] | Callable[[Side, Side], Expression] | None


def kind_of_join(how: object) -> str:
    """The kind, in lower case. Raises BindError where there is none of that name."""
    kind = how.lower() if isinstance(how, str) else how
    check_choice("how", kind, _JOINS)
    return str(kind)


def joined(left: str, right: str, condition: Sql | Sequence[str] | None, kind: str) -> str:
    """SQL of a join in FROM. Raises BindError where there is no condition and is to be one, or the other way round."""
    word = "FULL" if kind == "outer" else kind.upper()
    return f"{left} {word} JOIN {right} {_condition_text(condition, kind)}"


def share_a_name(names: Iterable[str], others: Iterable[str]) -> bool:
    """Whether a name is among both."""
    return not {*map(lower_ascii, names)}.isdisjoint(map(lower_ascii, others))


def with_suffix(
    suffix: str,
    names: Sequence[str],
    right: str,
    others: Sequence[str],
    condition: Sql | Sequence[str] | None,
    kind: str,
) -> str:
    """What a SELECT lists of a join of columns of these names, with the suffix behind those of the right side that the left has, too.

    Raises BindError where there is another column of such a name.
    """
    check_is_text("suffix", suffix)
    known = {*map(lower_ascii, names)}
    merged = known if kind == "natural" else {*map(lower_ascii, _using(condition) or ())}
    renamed = [name for name in others if lower_ascii(name) in known - merged]
    known |= {*map(lower_ascii, others)}
    for name in renamed:
        if lower_ascii(name + suffix) in known:
            raise BindError(f'suffix={suffix!r}: there is a column "{name + suffix}" already')
    pairs = [f"{in_quotes(right)}.{in_quotes(name)} AS {in_quotes(name + suffix)}" for name in renamed]
    return f"* RENAME ({', '.join(pairs)})" if pairs else "*"


def _condition_text(condition: Sql | Sequence[str] | None, kind: str) -> str:
    """USING or ON."""
    is_given = isinstance(condition, Expression) or bool(condition)
    if kind in _WITHOUT_CONDITION:
        if is_given:
            raise BindError(f"a {kind} join has no condition; leave it out, or choose another kind of join")
        return ""
    if condition is None or not is_given:
        raise BindError(f'how="{kind}": this join needs a condition, or the names of columns that both have')
    names = _using(condition)
    if names is not None:
        return f"USING ({in_quotes_joined(names)})"
    return f"ON ({closed(condition)})"


def _using(condition: Sql | Sequence[str] | None) -> Sequence[str] | None:
    """The names of columns that both have; None for a condition that says more."""
    if condition is None:
        return None
    if isinstance(condition, Expression):
        name = name_of_column(condition)
        return None if name is None else [name]
    if not isinstance(condition, Sequence):
        raise BindError(
            f"a join is on SQL, an expression, or the names of columns, not on a {type(condition).__name__}"
        )
    if isinstance(condition, str):
        check_is_text("the condition of a join", condition)
        condition = [name.strip() for name in condition.split(",")]
        return condition if all(name.isidentifier() for name in condition) else None
    for name in condition:
        check_name("a column", name)
    return condition
