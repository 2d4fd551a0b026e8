"""PIVOT whose values are not written as constants: the queries of those that its rows have or calls give, and the query with them in it.

The columns of such a query are known when its tables have been read. So it is run in steps, and planned with what they found.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from sqlglot import exp

from tqp.core.errors import BindError
from tqp.core.keywords import lower_ascii
from tqp.planner.parse import ParsedStatement, Query, parse, span_of, text_of, without_places

#: More than PIVOT takes, which the binder says.
_MOST_VALUES = 5000
_IN_ORDER = without_places(
    parse(
        "SELECT CAST(value AS VARCHAR) FROM (SELECT value, row_number() OVER () AS place FROM pivoted AS q(value)) "
        f"GROUP BY 1 ORDER BY min(place) LIMIT {_MOST_VALUES}"
    ).tree
)
_TEXT = without_places(parse("VALUES (CAST(value AS VARCHAR))").tree)
_DISTINCT = without_places(
    parse(f"SELECT DISTINCT CAST(value AS VARCHAR) FROM pivoted LIMIT {_MOST_VALUES}").tree
)


def with_values(query: Query, texts_of: Callable[[ParsedStatement], Sequence[str | None]]) -> Query:
    """The query with the values of each PIVOT; itself if all are written. `texts_of`: the one column of a query's rows.

    The values are sorted as texts, those of IN (SELECT ...) in the order of its rows. NULL is none of them.
    """
    if "pivot" not in lower_ascii(text_of(query)):
        return query
    statement = parse(query) if isinstance(query, str) else query
    if not _unknown(statement.tree) and not _computed(statement.tree):
        return query
    statement = replace(statement, tree=statement.tree.copy())
    found: tuple[tuple[str | None, ...], ...] = ()
    for value in _computed(statement.tree):
        tree = _TEXT.copy()
        (place,) = tree.find_all(exp.Column)
        place.replace(value.copy())
        (text,) = texts_of(
            replace(statement, tree=tree, explain=None, is_part=True, variant=("values", found))
        )
        value.replace(exp.Null() if text is None else exp.Literal.string(text))
        found = (*found, (text,))
    while fields := _unknown(statement.tree):
        queries = ((field, _query_of(field)) for field in fields)
        field, tree = next((field, tree) for field, tree in queries if not _unknown(tree))
        part = replace(statement, tree=tree, explain=None, is_part=True, variant=("values", found))
        texts = [text for text in texts_of(part) if text is not None]
        if len(field.expressions) == 1:
            texts.sort(key=str.encode)
        values = exp.Tuple(expressions=[exp.Literal.string(text) for text in texts])
        field.set("expressions", [field.expressions[0], values])
        found = (*found, tuple(texts))
    return replace(statement, variant=found)


def _computed(tree: exp.Expr) -> list[exp.Expr]:
    """The values that are written as calls of functions, of which a query finds the texts."""
    pivots = (pivot for pivot in tree.find_all(exp.Pivot) if not pivot.unpivot)
    lists = (part for pivot in pivots for field in pivot.fields for part in field.expressions[1:])
    written = (
        value.unalias() for values in lists if isinstance(values, exp.Tuple) for value in values.expressions
    )
    parts = (
        part for each in written for part in (each.expressions if isinstance(each, exp.Tuple) else [each])
    )
    return [part for part in parts if part.find(exp.Anonymous) and not part.find(exp.Query, exp.Column)]


def _unknown(tree: exp.Expr) -> list[exp.Expr]:
    """What PIVOTs compare with values that are not written."""
    pivots = (pivot for pivot in tree.find_all(exp.Pivot) if not pivot.unpivot)
    fields = (field for pivot in pivots for field in pivot.fields)
    return [
        field for field in fields if not isinstance((*field.expressions, None)[1], exp.Tuple | exp.DataType)
    ]


def _query_of(field: exp.Expr) -> exp.Expr:
    """The query of the values of one field, with the common table expressions that it may read."""
    header, *values = field.expressions
    assert field.parent is not None and field.parent.parent is not None
    select = field.parent.parent.parent
    assert isinstance(select, exp.Select)
    query = (_IN_ORDER if values else _DISTINCT).copy()
    (source,) = query.find_all(exp.Table)
    if values:
        inner = values[0].this
        if isinstance(inner, exp.Select) and len(inner.expressions) > 1:
            raise BindError("the query behind IN of PIVOT must have one column", span_of(inner))
        source.replace(exp.Subquery(this=inner.copy(), alias=source.args["alias"].copy()))
    else:
        (value,) = query.find_all(exp.Column)
        value.replace(header.copy())
        query.set("from_", select.args["from_"].copy())
    return _in_surroundings(query, select)


def _in_surroundings(query: exp.Expr, select: exp.Expr) -> exp.Expr:
    """The query with the WITH of those around the PIVOT, the nearest inside; of a WITH that it stands in, what comes before."""
    path: list[exp.Expr] = []
    node: exp.Expr | None = select
    while node is not None:
        clause = node.args.get("with_")
        if clause is not None:
            tables = list(clause.expressions)
            if path and path[-1] is clause:
                tables = tables[: next(i for i, table in enumerate(tables) if table is path[-2])]
            query = _under(query, tables, bool(clause.args.get("recursive")))
        path.append(node)
        node = node.parent
    return query


def _under(query: exp.Expr, tables: Sequence[exp.Expr], recursive: bool) -> exp.Expr:
    if not tables:
        return query
    if query.args.get("with_") is not None:
        query = exp.Select(expressions=[exp.Star()], from_=exp.From(this=exp.Subquery(this=query)))
    query.set("with_", exp.With(expressions=[table.copy() for table in tables], recursive=recursive))
    return query
