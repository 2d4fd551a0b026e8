"""WITH ORDINALITY: the number of each row that a table function gives."""

from __future__ import annotations

import itertools

from sqlglot import exp

from tqp.core.errors import UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.from_clause.histograms import HISTOGRAMS
from tqp.planner.binder.from_clause.query_functions import QUERY_FUNCTIONS
from tqp.planner.binder.scope import ScopeColumn
from tqp.planner.binder.select.output import BoundQuery
from tqp.planner.binder.select.row_numbers import numbered
from tqp.planner.functions.json import ROW_FUNCTIONS
from tqp.planner.parse import span_of

#: What is a query in DuckDB, behind which it says nothing.
_QUERIES = frozenset((*QUERY_FUNCTIONS, *HISTOGRAMS))


def with_ordinality(context: BindContext, bound: BoundQuery, call: exp.Expr) -> BoundQuery:
    """The rows with their numbers, from 1, behind the other columns."""
    name = lower_ascii(call.name)
    if name in _QUERIES:
        return bound
    if name in ROW_FUNCTIONS and call.find(exp.Column) is not None:
        raise UnsupportedError(
            f"WITH ORDINALITY of {name}() of columns of other tables is not supported", span_of(call)
        )
    known = {lower_ascii(column.name) for column in bound.columns}
    names = itertools.chain(("ordinality",), (f"ordinality{number}" for number in itertools.count()))
    plan, _ = numbered(context, bound.plan)
    number = ScopeColumn(next(each for each in names if each not in known), lambda: plan.fields[0])
    hidden = [column for column in bound.columns if column.is_hidden]
    return BoundQuery(plan, [*(each for each in bound.columns if not each.is_hidden), number, *hidden])
