"""A guard: every part of a parsed node that the binder does not know is an error, never silently dropped.

sqlglot keeps a clause, a negation or an option as an argument of the node it belongs to. What is not listed here for a
node, and is there, is refused by name; so a construct the binder was not written for cannot change an answer.
"""

from __future__ import annotations

from sqlglot import exp

from tqp.core.errors import UnsupportedError
from tqp.planner.parse import span_of

_BINARY = "this expression"
_UNDERSTOOD: dict[type, frozenset[str]] = {
    node: frozenset(names.split())
    for node, names in {
        exp.Select: "with_ expressions distinct from_ joins where group having windows qualify sample order limit offset",
        exp.Table: "this alias db catalog joins sample ordinality",
        exp.Subquery: "this alias with_ joins sample order limit offset",
        exp.Join: "this on side kind using method",
        exp.Lateral: "this alias",
        exp.Group: "expressions all",
        exp.Order: "expressions",
        exp.Ordered: "this desc nulls_first",
        exp.Union: "with_ this expression distinct by_name order limit offset",
        exp.Intersect: "with_ this expression distinct order limit offset",
        exp.Except: "with_ this expression distinct order limit offset",
        exp.Values: "expressions alias order limit offset",
        exp.CTE: "this alias materialized key_expressions",
        exp.With: "expressions recursive",
        exp.TableAlias: "this columns",
        exp.Distinct: "expressions on",
        exp.Limit: "this expression offset limit_options",
        exp.Offset: "expression",
        exp.Fetch: "direction count limit_options",
        exp.Star: "except_ replace rename",
        exp.Column: "this table db catalog",
        exp.Like: f"{_BINARY} negate",
        exp.ILike: f"{_BINARY} negate",
        exp.Is: f"{_BINARY} negate",
        exp.Div: f"{_BINARY} typed safe",
        exp.DPipe: f"{_BINARY} safe",
        exp.RegexpLike: _BINARY,
        exp.RegexpILike: _BINARY,
        exp.RegexpFullMatch: _BINARY,
        exp.Cast: "this to",
        exp.TryCast: "this to safe",
        exp.In: "this expressions query field",
        exp.Between: "this low high",
        exp.Case: "this ifs default",
        exp.Interval: "this unit",
        exp.Extract: _BINARY,
        exp.StrPosition: "this substr",
        exp.Exists: "this",
        exp.Placeholder: "this",
        exp.HexString: "this is_integer",
    }.items()
}


def check_understood(node: exp.Expr) -> None:
    """Raise UnsupportedError if the node carries something the binder would not look at."""
    known = _UNDERSTOOD.get(type(node))
    if known is None:
        return
    for name, value in node.args.items():
        if value and name not in known:
            part = value[0] if isinstance(value, list) else value
            span = span_of(part if isinstance(part, exp.Expr) else node) or span_of(node)
            feature = f"{name.strip('_').replace('_', ' ').upper()} in {node.key.upper()}"
            raise UnsupportedError(f"{feature} is not supported", span)
