"""Frames of window functions: ROWS, RANGE and GROUPS, their bounds and what they exclude."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import BIGINT, NULL
from tqp.core.errors import BindError, UnsupportedError
from tqp.planner.algebra.expressions import Expression, SortKey
from tqp.planner.algebra.window_calls import (
    WHOLE_PARTITION,
    BoundKind,
    Exclusion,
    FrameBound,
    FrameMode,
    WindowFrame,
)
from tqp.planner.binder.expressions.aggregates.aggregate_arguments import sort_key
from tqp.planner.binder.expressions.coercion import cast_to, unify
from tqp.planner.binder.expressions.operators import apply
from tqp.planner.parse import Span, span_of

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder

#: From the first that a frame may start with to the last that it may end with.
_IN_ORDER = list(BoundKind)
#: The functions that lead from the key of the current row to a bound, and how SQL writes them.
_LESS, _MORE = ("subtract", "-"), ("add", "+")


def bind_frame(
    binder: ExpressionBinder,
    spec: exp.WindowSpec | None,
    order: Sequence[SortKey],
    written: Sequence[exp.Ordered],
) -> WindowFrame:
    """The frame of a call; `order`: the keys of ORDER BY that tell rows apart, of those that are written."""
    if spec is None:
        up_to_peers = FrameBound(BoundKind.UNBOUNDED_PRECEDING), FrameBound(BoundKind.CURRENT_ROW)
        return WindowFrame(FrameMode.RANGE, *up_to_peers) if order else WHOLE_PARTITION
    mode = FrameMode(str(spec.args["kind"]).upper())
    start = _kind(spec.args["start"], spec.args.get("start_side"))
    end = _kind(spec.args.get("end") or "CURRENT ROW", spec.args.get("end_side"))
    _check_kinds(start, end, span_of(spec))
    exclude = spec.args.get("exclude")
    exclusion = Exclusion.NO_OTHERS if exclude is None else Exclusion(exclude.name.upper())
    offsets = [spec.args.get("start"), spec.args.get("end")]
    nodes = [
        each if isinstance(each, exp.Expr) and not isinstance(each, exp.Var) else None for each in offsets
    ]
    if mode is not FrameMode.RANGE or not any(nodes):
        first, last = (
            FrameBound(kind, None if node is None else cast_to(binder.bind(node), BIGINT, span_of(node)))
            for kind, node in zip((start, end), nodes, strict=True)
        )
        return WindowFrame(mode, first, last, exclusion)
    if len(written) != 1:
        raise BindError("RANGE with an offset needs one key in ORDER BY", span_of(spec))
    key = order[0] if order else sort_key(binder, written[0])
    if key.expression.data_type.is_time_of_day:  # it would begin again at midnight
        raise UnsupportedError(
            f"RANGE with an offset over {key.expression.data_type} values is not supported", span_of(spec)
        )
    return _range_frame(binder, (start, end), nodes, exclusion, key)


def _range_frame(
    binder: ExpressionBinder,
    kinds: tuple[BoundKind, BoundKind],
    nodes: Sequence[exp.Expr | None],
    exclusion: Exclusion,
    key: SortKey,
) -> WindowFrame:
    """Bounds at values of the key, all of one type."""
    values: list[Expression] = [key.expression]
    for kind, node in zip(kinds, nodes, strict=True):
        if node is not None:
            name, sign = _LESS if (kind is BoundKind.PRECEDING) != key.descending else _MORE
            offset = binder.bind_flexible(node)
            if offset.data_type == NULL:
                raise BindError("the offset of a RANGE frame cannot be NULL", span_of(node))
            values.append(apply(name, (key.expression, offset), span_of(node), sign))
    place = next(span_of(node) for node in nodes if node is not None)
    (compared, *bounds), _ = unify(values, "a frame", place)
    left = iter(bounds)
    start, end = (
        FrameBound(kind, None if node is None else next(left))
        for kind, node in zip(kinds, nodes, strict=True)
    )
    return WindowFrame(FrameMode.RANGE, start, end, exclusion, compared, key.descending)


def _kind(bound: object, side: object) -> BoundKind:
    word = (
        bound.upper() if isinstance(bound, str) else bound.name.upper() if isinstance(bound, exp.Var) else ""
    )
    if word == "CURRENT ROW":
        return BoundKind.CURRENT_ROW
    return BoundKind(f"{'UNBOUNDED ' if word == 'UNBOUNDED' else ''}{str(side).upper()}")


def _check_kinds(start: BoundKind, end: BoundKind, span: Span | None) -> None:
    if start is BoundKind.UNBOUNDED_FOLLOWING or end is BoundKind.UNBOUNDED_PRECEDING:
        raise BindError("a frame cannot start at its last row or end at its first", span)
    if _IN_ORDER.index(start) > _IN_ORDER.index(end):
        raise BindError(f"a frame that starts with {start.value} cannot end with {end.value}", span)
