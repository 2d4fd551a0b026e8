"""The table form of a model's call: `FROM ML_PREDICT('churn', TABLE customers)`, its inputs matched by name."""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from tqp.core.errors import BindError, UnsupportedError, nearest
from tqp.core.keywords import lower_ascii
from tqp.core.models import ModelSignature
from tqp.planner.algebra.expressions import Expression
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.models import generic_output, named_model, predict
from tqp.planner.binder.expressions.scalars import ExpressionBinder
from tqp.planner.binder.scope import Relation, Scope, ScopeColumn
from tqp.planner.binder.select.output import BoundQuery, Item, lazy_project
from tqp.planner.parse import Span, span_of

_FUNCTION = "ml_predict"


def bind_table_function(
    context: BindContext, call: exp.Anonymous, siblings: Scope, span: Span | None
) -> BoundQuery:
    """The rows that ML_PREDICT is given, all their columns kept, and what the model predicts of each.

    Added are `predicted_<target>` (the label or value) and, if the model has them, `predicted_<target>_probs`.
    """
    name = lower_ascii(call.name)
    if name != _FUNCTION:
        if context.catalog.lookup_macro(name) is not None:
            raise BindError(f'the macro "{name}" gives a value, and stands in no FROM', span)
        raise UnsupportedError(
            f"the table function {call.name}() is not supported; register the table instead", span
        )
    if len(call.expressions) != 2 or not isinstance(call.expressions[1], exp.Query):
        raise BindError(
            "ML_PREDICT() in FROM takes the name of a model and rows: ML_PREDICT('model', TABLE name), or a query",
            span,
        )
    named, rows = call.expressions
    binder = ExpressionBinder(context, Scope(parent=siblings, ctes=siblings.ctes), "FROM")
    model = named_model(context, binder.bind(named), _FUNCTION, span_of(named))
    given = context.bind_query.bind_lazy(rows, siblings)
    relation = Relation("", given.columns)
    arguments = [column.reference() for column in _inputs(model, relation, span_of(rows) or span)]
    outputs = {
        f"predicted_{model.target}": predict(model, arguments, generic_output(model, _FUNCTION, span), span)
    }
    probabilities = model.output("proba")
    if probabilities is not None:
        outputs[f"predicted_{model.target}_probs"] = predict(model, arguments, probabilities, span)
    items = [Item(None, column.name, column.name, column) for column in relation.columns]
    values: list[Expression | None] = [None] * len(items) + list(outputs.values())
    items += [Item(None, output, output) for output in outputs]
    names = [column.name for column in relation.columns] + list(outputs)
    return lazy_project(context, given.plan, items, names, values)


def _inputs(model: ModelSignature, relation: Relation, span: Span | None) -> Sequence[ScopeColumn]:
    """The column for each input, by name. Raises BindError with all inputs that have none."""
    missing = [item.name for item in model.inputs if lower_ascii(item.name) not in relation.by_name]
    if missing:
        names = [column.name for column in relation.columns]
        wanted = ", ".join(_with_hint(name, names) for name in missing)
        raise BindError(
            f"the rows lack what the model {model.name} takes: {wanted}; "
            f"name columns so in a query (columns: {', '.join(names[:12])}{', ...' * (len(names) > 12)})",
            span,
        )
    return [relation.by_name[lower_ascii(item.name)] for item in model.inputs]


def _with_hint(name: str, known: Sequence[str]) -> str:
    hint = nearest(name, known).removeprefix("; ")
    return f'"{name}" ({hint})' if hint else f'"{name}"'
