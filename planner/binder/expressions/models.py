"""Calls of registered models and Python functions: `churn(a, b)`, `ML_PREDICT('churn', a, b)` and `ML_PREDICT_PROBA('churn', a, b)`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from sqlglot import exp

from tqp.core.datatypes import DOUBLE, INTEGER, VARCHAR, TypeKind
from tqp.core.errors import BindError, nearest
from tqp.core.models import FunctionSignature, ModelInput, ModelOutput, ModelSignature
from tqp.planner.algebra.expressions import Call, Expression, Literal, Predict, PythonCall, is_null_literal
from tqp.planner.binder.context import BindContext
from tqp.planner.binder.expressions.coercion import cast_to, folded
from tqp.planner.binder.expressions.operators import no_overload
from tqp.planner.functions.overloads import ANY, NoOverloadError, Overload, resolve
from tqp.planner.parse import Span

if TYPE_CHECKING:
    from tqp.planner.binder.expressions.scalars import ExpressionBinder

#: Of a model named by a string: the kinds of output that the function gives, the first that the model has.
MODEL_CALLS = {"ml_predict": ("label", "value"), "ml_predict_proba": ("proba",)}
#: Types whose values do not enter a model as they are stored; those of DECIMAL do not, either.
_CAST = (TypeKind.NULL, TypeKind.HUGEINT, TypeKind.UBIGINT, TypeKind.UHUGEINT)


def bind_registered(
    binder: ExpressionBinder, name: str, nodes: Sequence[exp.Expr], span: Span | None
) -> Expression | None:
    """A call of a model or Python function by its own name, or of a model through ML_PREDICT; None if `name` is neither."""
    if name in MODEL_CALLS:
        if not nodes:
            raise BindError(f"{name}() takes the name of a model and what it is to score", span)
        if any(isinstance(node, exp.Query) and not isinstance(node, exp.Subquery) for node in nodes):
            raise BindError(f"{name}() of whole rows stands in FROM, not where a value does", span)
        model = named_model(binder.context, binder.bind(nodes[0]), name, span)
        arguments = [binder.bind(node) for node in nodes[1:]]
        return predict(model, arguments, generic_output(model, name, span), span)
    found = binder.context.catalog.lookup_function(name)
    if found is None:
        return None
    if isinstance(found, FunctionSignature):
        return _python_call(found, [binder.bind_flexible(node) for node in nodes], span)
    arguments = [binder.bind(node) for node in nodes]
    return predict(found, arguments, found.default_output, span)


def _python_call(
    function: FunctionSignature, arguments: Sequence[Expression], span: Span | None
) -> Expression:
    """The call, its arguments cast as those of any function are. NULL for the constant NULL, if it is not called for it."""
    overload = Overload(function.name, tuple(each or ANY for each in function.parameters), function.result)
    try:
        types = resolve([overload], arguments).argument_types
    except NoOverloadError as error:
        raise no_overload(error, arguments, span, f"{function.name}()") from None
    fitted = tuple(cast_to(each, wanted, span) for each, wanted in zip(arguments, types, strict=True))
    if not function.takes_null and any(map(is_null_literal, fitted)):
        return Literal(None, function.result)
    return PythonCall(function, fitted, span)


def named_model(context: BindContext, name: Expression, function: str, span: Span | None) -> ModelSignature:
    """The model that the first argument of ML_PREDICT names."""
    if not isinstance(name, Literal) or not isinstance(name.value, str):
        raise BindError(f"{function}() takes the name of a model, as a string, before its inputs", span)
    model = context.catalog.lookup_function(name.value)
    if isinstance(model, FunctionSignature):
        raise BindError(f'"{model.name}" is a Python function, which is called as {model.name}(...)', span)
    if model is None:
        known = context.catalog.function_names()
        hint = nearest(name.value, known) or (f" (models: {', '.join(known)})" if known else "")
        raise BindError(f'there is no model "{name.value}"{hint}; register it first', span)
    return model


def generic_output(model: ModelSignature, function: str, span: Span | None) -> ModelOutput:
    """What ML_PREDICT or ML_PREDICT_PROBA gives of a model. Raises BindError where there are no probabilities."""
    for kind in MODEL_CALLS[function]:
        output = model.output(kind)
        if output is not None:
            return output
    if function == "ml_predict":  # a module whose only output is a score or a probability
        return model.default_output
    raise BindError(f'the model "{model.name}" has no probabilities; use ml_predict()', span)


def predict(
    model: ModelSignature,
    arguments: Sequence[Expression],
    output: ModelOutput,
    span: Span | None,
) -> Expression:
    """The model's call, its arguments in the forms that it takes. Raises BindError, naming the input that does not fit."""
    inputs = model.inputs
    if len(arguments) != len(inputs):
        names = ", ".join(item.name for item in inputs)
        raise BindError(
            f"{model.name}() takes {len(inputs)} inputs ({names}), and {len(arguments)} are given", span
        )
    fitted = tuple(
        _fitted(model, item, argument, span) for item, argument in zip(inputs, arguments, strict=True)
    )
    return Predict(model, output, fitted, span=span)


def _fitted(model: ModelSignature, item: ModelInput, argument: Expression, span: Span | None) -> Expression:
    """One argument as the input takes it: a code of a category, an array, or a number; anything if it is not read."""
    kind = argument.data_type.kind
    if item.categories is not None:
        text = cast_to(argument, VARCHAR, span)
        words = tuple(Literal(word, VARCHAR) for word in item.categories)
        return folded(Call("category_code", (text, *words), INTEGER, span))
    if item.size:
        if not argument.data_type.is_vector or argument.data_type.size != item.size:
            raise _unfit(model, item, argument, f"an array FLOAT[{item.size}]", span)
        return argument
    if kind in _CAST or argument.data_type.is_decimal:
        return cast_to(argument, DOUBLE, span)
    if argument.data_type.is_numeric or kind in (TypeKind.BOOLEAN, TypeKind.DATE):
        return argument
    if not item.is_read:
        return Literal(0.0, DOUBLE)
    raise _unfit(model, item, argument, "a number, BOOLEAN or DATE", span)


def _unfit(
    model: ModelSignature, item: ModelInput, argument: Expression, wanted: str, span: Span | None
) -> BindError:
    return BindError(
        f'{model.name}(): the input "{item.name}" is {wanted}, and this is {argument.data_type}; cast it',
        span,
    )
