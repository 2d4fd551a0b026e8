"""What OVER says, with the definitions of the WINDOW clause that it names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sqlglot import exp

from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.planner.parse import head_span, span_of


class Definition(NamedTuple):
    """What stands behind OVER, names of windows replaced by what they stand for."""

    partition: Sequence[exp.Expr]
    order: Sequence[exp.Ordered]
    frame: exp.WindowSpec | None


def check_definitions(windows: Sequence[exp.Window]) -> None:
    """Raise BindError for a name in a WINDOW clause that stands twice, or that no earlier definition has."""
    seen: set[str] = set()
    for place, definition in enumerate(windows):
        if lower_ascii(definition.name) in seen:
            raise BindError(f'the window "{definition.name}" is defined twice', head_span(definition.this))
        seen.add(lower_ascii(definition.name))
        definition_of(definition, windows[:place])


def check_windows(tree: exp.Expr) -> None:
    """Raise BindError for a window of this query, or of one in it, whose name there is not or that changes what is named.

    As in DuckDB, that is part of the syntax: it is wrong also where nobody reads the query.
    """
    for block in tree.find_all(exp.Select):
        check_definitions(block.args.get("windows") or ())
    for window in tree.find_all(exp.Window):
        around = window.find_ancestor(exp.Select)
        definitions = () if around is None else around.args.get("windows") or ()
        if not any(window is each for each in definitions):
            definition_of(window, definitions)


def definition_of(over: exp.Window, windows: Sequence[exp.Window]) -> Definition:
    """What an OVER clause, or a definition in a WINDOW clause, says; `windows` are those that it may name."""
    order, frame = over.args.get("order"), over.args.get("spec")
    if frame is not None and frame.args.get("start") is None:
        word = frame.args["kind"]
        raise UnsupportedError(f'a window called "{word}" in parentheses is not supported', span_of(over))
    own = Definition(over.args.get("partition_by") or (), () if order is None else order.expressions, frame)
    base = over.args.get("alias")
    if base is None:
        return own
    place = next(
        (i for i, each in enumerate(windows) if lower_ascii(each.name) == lower_ascii(base.name)), None
    )
    if place is None:
        raise BindError(f'there is no window "{base.name}"', head_span(base))
    named = definition_of(windows[place], windows[:place])
    if "spec" not in over.args:  # OVER w, not OVER (w)
        return named
    for what, mine, others in (
        ("PARTITION BY", own.partition, named.partition),
        ("ORDER BY", own.order, named.order),
    ):
        if mine and others:
            raise BindError(f'the window "{base.name}" has {what} already', head_span(base))
    if named.frame is not None:
        raise BindError(f'the window "{base.name}" has a frame, and cannot be changed', head_span(base))
    return Definition(own.partition or named.partition, own.order or named.order, own.frame)
