"""json_each(j, path) and json_tree(j, path) in FROM: the parts of a document, or of one for each row of other tables, as rows.

It is an unnest of lists, one for each column that is read, all of which are fields of one list of structs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from sqlglot import exp

from tqp.core.datatypes import BIGINT, JSON, NULL, UBIGINT, VARCHAR, list_of, struct
from tqp.core.errors import BindError
from tqp.core.json.paths import path_of_rows
from tqp.core.keywords import lower_ascii
from tqp.core.schema import Field
from tqp.core.text.numbers import ParseFailure
from tqp.planner.algebra.expressions import Call, Expression, Literal, is_null_literal
from tqp.planner.algebra.logical_plan import Unnest, Values
from tqp.planner.algebra.node import grow
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.coercion import cast_to
from tqp.planner.binder.from_clause.row_arguments import row_arguments
from tqp.planner.binder.scope import Scope, ScopeColumn
from tqp.planner.binder.select.output import BoundQuery
from tqp.planner.functions.type_rules import implicit_cast_cost, settle
from tqp.planner.parse import Span, head_span

_COLUMNS = {
    "key": VARCHAR,
    "value": JSON,
    "type": VARCHAR,
    "atom": JSON,
    "id": UBIGINT,
    "parent": UBIGINT,
    "fullkey": VARCHAR,
    "path": VARCHAR,
    "rowid": BIGINT,
}


def bind_json_rows(context: BindContext, call: exp.Anonymous, siblings: Scope) -> BoundQuery:
    """The parts and their columns, of which each comes into being when it is referred to, as those of a table do."""
    name, span = lower_ascii(call.name), head_span(call)
    arguments = _arguments(context, call, siblings, span)

    def lists(columns: Sequence[str]) -> tuple[Expression, ...]:
        """One call makes them all."""
        rows = struct({column: _COLUMNS[column] for column in columns})
        made = Call(name, arguments, list_of(rows), span)
        return tuple(
            Call("list_of_fields", (made, Literal(place, BIGINT)), list_of(rows.children[place - 1]), span)
            for place in range(1, len(columns) + 1)
        )

    counted = context.new_field("id", UBIGINT)  # which list counts the rows where no column is read
    plan = Unnest(Values(((),), ()), lists(("id",)), (counted,))

    def make(column: str) -> Field:
        made = context.new_field(column, _COLUMNS[column])
        fields = (*(each for each in plan.fields if each is not counted), made)
        grow(plan, lists=lists([each.name for each in fields]), fields=fields)
        return made

    columns = [ScopeColumn(column, partial(make, column), is_hidden=column == "rowid") for column in _COLUMNS]
    return BoundQuery(plan, columns)


def _arguments(
    context: BindContext, call: exp.Anonymous, siblings: Scope, span: Span | None
) -> tuple[Expression, ...]:
    """The document, and the path if there is one. Raises BindError."""
    name = lower_ascii(call.name)
    if not 1 <= len(call.expressions) <= 2:
        raise BindError(f"{name}() takes JSON and perhaps a path", span)
    if any(isinstance(node, exp.PropertyEQ) for node in call.expressions):
        raise BindError(f"{name}() takes no named arguments", span)
    binder, nodes = row_arguments(context, call.expressions, siblings, "FROM")
    document, *path = map(binder.bind_flexible, nodes)
    if document.data_type != VARCHAR:
        if implicit_cast_cost(document, JSON) is None:
            raise BindError(f"{name}() takes JSON, not {document.data_type}; cast it", span)
        document = cast_to(document, JSON, span)
    if not path:
        return (settle(document),)
    if path[0].data_type not in (VARCHAR, NULL):
        raise BindError(f"the path of {name}() is VARCHAR, not {path[0].data_type}", span)
    written = cast_to(path[0], VARCHAR, span)
    if isinstance(written, Literal) and not is_null_literal(written):
        try:
            path_of_rows(str(written.value))
        except ParseFailure as failure:
            raise BindError(str(failure), span) from None
    return settle(document), written
