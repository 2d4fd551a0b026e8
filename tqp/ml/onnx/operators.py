"""What each ONNX operator that neural networks are made of does, in torch. Attributes have their ONNX names and defaults.

Definitions: the operator schemas of ONNX (github.com/onnx/onnx, docs/Operators.md), default domain, opset 13 and later.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tqp.ml.layers import sign

Attributes = Mapping[str, Any]
#: Inputs (at run time None for one left out) and attributes to outputs.
Operator = Callable[[Sequence[Tensor], Attributes], Any]


def _integers(value: Tensor) -> list[int]:
    return [int(each) for each in value.tolist()]


def _elementwise(function: Callable[..., Tensor]) -> Operator:
    return lambda inputs, attributes: function(*inputs)


def _gemm(inputs: Sequence[Tensor], attributes: Attributes) -> Tensor:
    left: Tensor = inputs[0].T if attributes.get("transA") else inputs[0]
    right: Tensor = inputs[1].T if attributes.get("transB") else inputs[1]
    product: Tensor = (left @ right) * attributes.get("alpha", 1.0)
    if len(inputs) > 2 and inputs[2] is not None:
        product = product + inputs[2] * attributes.get("beta", 1.0)
    return product


def _reshape(inputs: Sequence[Tensor], attributes: Attributes) -> Tensor:
    values, shape = inputs[0], _integers(inputs[1])
    if not attributes.get("allowzero"):
        shape = [values.shape[place] if size == 0 else size for place, size in enumerate(shape)]
    return values.reshape(shape)


def _flatten(inputs: Sequence[Tensor], attributes: Attributes) -> Tensor:
    values, axis = inputs[0], attributes.get("axis", 1)
    return values.reshape(math.prod(values.shape[:axis]), -1)


def _axes(inputs: Sequence[Tensor], attributes: Attributes) -> list[int] | None:
    """Axes are an input since opset 13 and an attribute before."""
    if len(inputs) > 1 and inputs[1] is not None:
        return _integers(inputs[1])
    return attributes.get("axes")


def _squeeze(inputs: Sequence[Tensor], attributes: Attributes) -> Tensor:
    axes = _axes(inputs, attributes)
    return inputs[0].squeeze() if axes is None else inputs[0].squeeze(tuple(axes))


def _unsqueeze(inputs: Sequence[Tensor], attributes: Attributes) -> Tensor:
    values, axes = inputs[0], _axes(inputs, attributes) or []
    rank = values.dim() + len(axes)
    for axis in sorted(axis % rank for axis in axes):
        values = values.unsqueeze(axis)
    return values


def _slice(inputs: Sequence[Tensor], attributes: Attributes) -> Tensor:
    values = inputs[0]
    starts, ends = _integers(inputs[1]), _integers(inputs[2])
    axes = _integers(inputs[3]) if len(inputs) > 3 and inputs[3] is not None else range(len(starts))
    steps = _integers(inputs[4]) if len(inputs) > 4 and inputs[4] is not None else [1] * len(starts)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        places = range(values.shape[axis])[start:end:step]
        if step == 1:
            values = values.narrow(axis, places.start, len(places))
        else:
            values = values.index_select(axis, torch.tensor(list(places), device=values.device))
    return values


def _reduce(function: Callable[..., Tensor]) -> Operator:
    def reduce(inputs: Sequence[Tensor], attributes: Attributes) -> Tensor:
        axes = _axes(inputs, attributes)
        if not axes and attributes.get("noop_with_empty_axes"):
            return inputs[0]
        every = tuple(range(inputs[0].dim())) if not axes else tuple(axes)
        return function(inputs[0], every, bool(attributes.get("keepdims", 1)))

    return reduce


def _arg_extreme(function: Callable[..., Tensor]) -> Operator:
    return lambda inputs, attributes: function(
        inputs[0], attributes.get("axis", 0), bool(attributes.get("keepdims", 1))
    )


def _clip(inputs: Sequence[Tensor], attributes: Attributes) -> Tensor:
    low = inputs[1] if len(inputs) > 1 else attributes.get("min")
    high = inputs[2] if len(inputs) > 2 else attributes.get("max")
    return inputs[0] if low is None and high is None else torch.clamp(inputs[0], low, high)


def _batch_normalization(inputs: Sequence[Tensor], attributes: Attributes) -> Tensor:
    values, scale, bias, mean, variance = inputs[:5]
    return F.batch_norm(values, mean, variance, scale, bias, eps=attributes.get("epsilon", 1e-5))


def _layer_normalization(inputs: Sequence[Tensor], attributes: Attributes) -> Tensor:
    values, axis = inputs[0], attributes.get("axis", -1) % inputs[0].dim()
    bias = inputs[2] if len(inputs) > 2 else None
    return F.layer_norm(values, values.shape[axis:], inputs[1], bias, attributes.get("epsilon", 1e-5))


def _split(inputs: Sequence[Tensor], attributes: Attributes) -> tuple[Tensor, ...]:
    values, axis = inputs[0], attributes.get("axis", 0)
    sizes = _integers(inputs[1]) if len(inputs) > 1 and inputs[1] is not None else attributes.get("split")
    if sizes is None:
        parts = attributes["num_outputs"]
        sizes = -(-values.shape[axis] // parts)
    return torch.split(values, sizes, axis)


def _gather(inputs: Sequence[Tensor], attributes: Attributes) -> Tensor:
    values, places, axis = inputs[0], inputs[1], attributes.get("axis", 0)
    places = torch.where(places < 0, places + values.shape[axis], places)
    found = values.index_select(axis, places.reshape(-1))
    return found.reshape(*values.shape[:axis], *places.shape, *values.shape[axis:][1:])


#: ONNX's numbers of element types.
DTYPES: dict[int, torch.dtype] = {
    1: torch.float32,
    2: torch.uint8,
    3: torch.int8,
    5: torch.int16,
    6: torch.int32,
    7: torch.int64,
    9: torch.bool,
    10: torch.float16,
    11: torch.float64,
    16: torch.bfloat16,
}

#: Those that torch has under the same name.
_SAME_NAME = """
    Abs Add Ceil Erf Exp Floor Log MatMul Mul Neg Reciprocal Relu Sigmoid Sqrt Sub Tanh Where
"""
_SAME_NAME_IN_FUNCTIONAL = "HardSwish Mish Selu Softplus Softsign"

OPERATORS: dict[str, Operator] = {
    **{name: _elementwise(getattr(torch, name.lower())) for name in _SAME_NAME.split()},
    **{name: _elementwise(getattr(F, name.lower())) for name in _SAME_NAME_IN_FUNCTIONAL.split()},
    "And": _elementwise(torch.logical_and),
    "ArgMax": _arg_extreme(torch.argmax),
    "ArgMin": _arg_extreme(torch.argmin),
    "BatchNormalization": _batch_normalization,
    "Cast": lambda inputs, attributes: inputs[0].to(DTYPES[attributes["to"]]),
    "Clip": _clip,
    "Concat": lambda inputs, attributes: torch.cat(list(inputs), attributes["axis"]),
    "Div": lambda inputs, attributes: (
        torch.div(*inputs) if inputs[0].is_floating_point() else torch.div(*inputs, rounding_mode="trunc")
    ),
    "Dropout": lambda inputs, attributes: inputs[0],
    "Elu": lambda inputs, attributes: F.elu(inputs[0], attributes.get("alpha", 1.0)),
    "Equal": _elementwise(torch.eq),
    "Expand": lambda inputs, attributes: inputs[0] * torch.ones(_integers(inputs[1]), dtype=inputs[0].dtype),
    "Flatten": _flatten,
    "Gather": _gather,
    "Gelu": lambda inputs, attributes: F.gelu(inputs[0], approximate=attributes.get("approximate", "none")),
    "Gemm": _gemm,
    "Greater": _elementwise(torch.gt),
    "GreaterOrEqual": _elementwise(torch.ge),
    "HardSigmoid": lambda inputs, attributes: torch.clamp(
        attributes.get("alpha", 0.2) * inputs[0] + attributes.get("beta", 0.5), 0, 1
    ),
    "Identity": lambda inputs, attributes: inputs[0],
    "LayerNormalization": _layer_normalization,
    "LeakyRelu": lambda inputs, attributes: F.leaky_relu(inputs[0], attributes.get("alpha", 0.01)),
    "Less": _elementwise(torch.lt),
    "LessOrEqual": _elementwise(torch.le),
    "LogSoftmax": lambda inputs, attributes: torch.log_softmax(inputs[0], attributes.get("axis", -1)),
    "Max": lambda inputs, attributes: functools.reduce(torch.maximum, inputs),
    "Min": lambda inputs, attributes: functools.reduce(torch.minimum, inputs),
    "Not": _elementwise(torch.logical_not),
    "Or": _elementwise(torch.logical_or),
    "PRelu": lambda inputs, attributes: torch.where(inputs[0] < 0, inputs[0] * inputs[1], inputs[0]),
    "Pow": lambda inputs, attributes: torch.pow(inputs[0], inputs[1]),
    "ReduceMax": _reduce(torch.amax),
    "ReduceMean": _reduce(torch.mean),
    "ReduceMin": _reduce(torch.amin),
    "ReduceSum": _reduce(torch.sum),
    "Reshape": _reshape,
    "Shape": lambda inputs, attributes: torch.tensor(list(inputs[0].shape)),
    "Sign": _elementwise(sign),
    "Slice": _slice,
    "Softmax": lambda inputs, attributes: torch.softmax(inputs[0], attributes.get("axis", -1)),
    "Split": _split,
    "Squeeze": _squeeze,
    "Sum": lambda inputs, attributes: sum(inputs[1:], inputs[0]),
    "Swish": lambda inputs, attributes: inputs[0] * torch.sigmoid(attributes.get("alpha", 1.0) * inputs[0]),
    "Transpose": lambda inputs, attributes: inputs[0].permute(
        attributes.get("perm") or tuple(reversed(range(inputs[0].dim())))
    ),
    "Unsqueeze": _unsqueeze,
}
