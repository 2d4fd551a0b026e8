"""TABLESAMPLE and USING SAMPLE: rows by random numbers, some of all rows or as many as are asked for.

`bernoulli` keeps each row or not; so does `system` here, where DuckDB keeps whole vectors of rows. `reservoir` keeps an exact number.
"""

from __future__ import annotations

from sqlglot import exp

from tqp.core.datatypes import BIGINT, BOOLEAN, DOUBLE
from tqp.core.errors import BindError, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.planner.algebra.expressions import Call, Cast, Literal, SortKey
from tqp.planner.algebra.logical_plan import Filter, LogicalPlan, Sort
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.select.row_numbers import counted, numbered
from tqp.planner.parse import head_span, span_of

#: Random numbers are below it.
_NUMBERS = 2**62


def sampled(context: BindContext, plan: LogicalPlan, sample: exp.Expr | None) -> LogicalPlan:
    """The plan's rows that a sample keeps, in their order, with more columns. Raises BindError, UnsupportedError."""
    if sample is None:
        return plan
    span = span_of(sample) or head_span(sample)
    method = lower_ascii(sample.args["method"].name) if sample.args.get("method") else ""
    percent, size = sample.args.get("percent"), sample.args.get("size")
    share = None if percent is None else _number(percent) / 100.0
    if share is not None and not 0.0 <= share <= 1.0:
        raise BindError("a sample is of 0 to 100 percent of the rows", span)
    if method not in ("", "reservoir", "bernoulli", "system"):
        raise BindError(f'there is no way to sample called "{method}"', span)
    if share is None and method in ("bernoulli", "system"):
        raise BindError(f"{method} samples by percent; reservoir takes a number of rows", span)
    seed = sample.args.get("seed")
    window, number = numbered(context, plan)
    if not seed:  # samples of one query differ, and so do those of its runs
        drawn = Call("random_number", (number, Literal(context.new_shared(), BIGINT)), BIGINT)
    else:
        drawn = Call("seeded_number", (number, Literal(int(_number(seed)), BIGINT)), BIGINT)
    if share is not None and method != "reservoir":
        most = Literal(int(share * _NUMBERS), BIGINT)
        return Filter(window, Call("less", (drawn, most), BOOLEAN))
    ranked, rank = numbered(context, window, order=(SortKey(drawn),))
    if share is None:
        kept = Call("less_equal", (rank, Literal(round(_number(size)), BIGINT)), BOOLEAN)
        return Sort(Filter(ranked, kept), (SortKey(number),))
    rows, total = counted(context, ranked)
    wanted = Call("multiply", (Literal(share, DOUBLE), Cast(total, DOUBLE)), DOUBLE)
    wanted = Call("add", (wanted, Literal(0.5, DOUBLE)), DOUBLE)  # as the nearest number of rows
    kept = Call("less_equal", (Cast(rank, DOUBLE), wanted), BOOLEAN)
    return Sort(Filter(rows, kept), (SortKey(number),))


def _number(node: exp.Expr | None) -> float:
    """The constant that the grammar allows here."""
    literal = None if node is None else node.unnest()
    if not isinstance(literal, exp.Literal) or literal.is_string:
        raise UnsupportedError("a sample with a parameter is not supported; write the number", span_of(node))
    return float(literal.name)
