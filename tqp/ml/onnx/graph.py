"""ONNX models: neural networks as torch modules; other graphs through an onnxruntime session that the user made."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from tqp.core.errors import BindError, UnsupportedError
from tqp.core.models import ModelInput
from tqp.ml.model import Converted, with_one_output
from tqp.ml.onnx.operators import OPERATORS


def is_onnx(model: object) -> bool:
    """Is it the path of an ONNX file, or a loaded one?"""
    if isinstance(model, (str, os.PathLike)):
        return os.fspath(model).endswith(".onnx")
    return type(model).__module__.startswith("onnx.") and type(model).__name__ == "ModelProto"


def is_session(model: object) -> bool:
    """Is it an onnxruntime.InferenceSession?"""
    return type(model).__module__.startswith("onnxruntime") and hasattr(model, "get_inputs")


def load(model: Any) -> Any:
    """The ModelProto of a path, or itself. Raises BindError where onnx is not installed or the file is none of its."""
    try:
        import onnx
    except ImportError:
        raise BindError(
            "reading ONNX files needs the onnx library: pip install 'tensor-query-processor[models]'"
        ) from None
    if not isinstance(model, (str, os.PathLike)):
        return model
    try:
        loaded = onnx.load(os.fspath(model))
        onnx.checker.check_model(loaded)
    except FileNotFoundError:
        raise BindError(f'there is no file "{os.fspath(model)}"') from None
    except Exception as error:
        raise BindError(f'"{os.fspath(model)}" is no ONNX model: {str(error).splitlines()[0]}') from error
    return loaded


class OnnxModule(nn.Module):
    """A graph as it stands in the file, node after node: features [n, f] to its first output [n] or [n, k]."""

    def __init__(self, model: Any) -> None:
        from onnx import helper, numpy_helper

        super().__init__()
        graph = model.graph
        self.output: str = graph.output[0].name
        self._names: dict[str, str] = {}  # of a constant in the graph -> of the buffer
        for tensor in graph.initializer:
            self._keep(tensor.name, numpy_helper.to_array(tensor))
        self.graph_inputs = [each.name for each in _graph_inputs(graph)]
        self.steps: list[tuple[str, list[str], list[str], dict[str, Any]]] = []
        for node in graph.node:
            attributes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
            if node.op_type == "Constant":
                self._keep(node.output[0], _constant(attributes, numpy_helper))
                continue
            if node.domain not in ("", "ai.onnx") or node.op_type not in OPERATORS:
                where = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
                raise UnsupportedError(
                    f"the ONNX operator {where} has no tensor form; register an onnxruntime.InferenceSession of the model instead"
                )
            self.steps.append((node.op_type, list(node.input), list(node.output), attributes))

    def _keep(self, name: str, array: Any) -> None:
        self._names[name] = f"constant_{len(self._names)}"
        self.register_buffer(self._names[name], torch.from_numpy(np.array(array)))

    def forward(self, features: Tensor) -> Tensor:
        values: dict[str, Any] = {name: getattr(self, buffer) for name, buffer in self._names.items()}
        values.update(_by_input(self.graph_inputs, features))
        for operator, inputs, outputs, attributes in self.steps:
            given: list[Any] = [values[name] if name else None for name in inputs]
            made = OPERATORS[operator](given, attributes)
            values.update(zip(outputs, made if isinstance(made, tuple) else (made,), strict=False))
        result: Tensor = values[self.output]
        return result.flatten(1) if result.dim() > 2 else result

    def extra_repr(self) -> str:
        return ", ".join(operator for operator, _, _, _ in self.steps)


def _constant(attributes: dict[str, Any], numpy_helper: Any) -> Any:
    if "value" in attributes:
        return numpy_helper.to_array(attributes["value"])
    ((name, value),) = attributes.items()
    return np.array(value, dtype=np.float32 if "float" in name else np.int64)


def _by_input(names: Sequence[str], features: Any) -> dict[str, Any]:
    """A matrix, array or tensor, as a model's one input, or column by column as its several ones."""
    if len(names) == 1:
        return {names[0]: features}
    return {name: features[:, i : i + 1] for i, name in enumerate(names)}


def _graph_inputs(graph: Any) -> list[Any]:
    """The inputs that are no constants."""
    constants = {tensor.name for tensor in graph.initializer}
    return [each for each in graph.input if each.name not in constants]


def convert_onnx(model: Any, names: Sequence[str] | None, kind: str) -> Converted:
    """A neural network as a torch module; `kind` is what its first output is called.

    Raises UnsupportedError for an operator without tensor form, BindError for inputs that do not fit.
    """
    from onnx import TensorProto

    given = _graph_inputs(model.graph)
    for each in given:
        if each.type.tensor_type.elem_type not in (TensorProto.FLOAT, TensorProto.DOUBLE):
            raise UnsupportedError(
                f'the ONNX input "{each.name}" does not hold floats; only such are supported'
            )
    wide = any(each.type.tensor_type.elem_type == TensorProto.DOUBLE for each in given)
    dtype = torch.float64 if wide else torch.float32
    module = OnnxModule(model).to(dtype)
    inputs = _inputs([(each.name, _width(each)) for each in given], names)
    columns = _columns(module, len(inputs), dtype)
    return with_one_output(module, inputs, kind, columns, dtype, 1_000.0)


def _inputs(given: Sequence[tuple[str, int | None]], names: Sequence[str] | None) -> tuple[ModelInput, ...]:
    """The numbers that a model takes of each row, by the `names` if there are any. `given`: its inputs and their widths,
    None for one that it does not say. Raises BindError for a wrong number of names, UnsupportedError for several matrices.
    """
    known = [name for name, _ in given]
    if len(given) > 1:
        if any(width not in (1, None) for _, width in given):
            raise UnsupportedError(
                "an ONNX model with several inputs of which some are matrices is not supported"
            )
    elif (width := given[0][1]) is not None:
        known = [f"x{i}" for i in range(width)] if width > 1 else known
    elif names is None:
        raise BindError("the ONNX model does not say how many inputs it takes: name them with inputs=[...]")
    else:
        known = list(names)
    if names is not None and len(names) != len(known):
        raise BindError(f"inputs= names {len(names)} inputs, and the ONNX model takes {len(known)}")
    return tuple(ModelInput(name, takes_null=True) for name in names or known)


def _columns(module: OnnxModule, count: int, dtype: torch.dtype) -> int:
    """How many numbers the network makes of each row. Raises UnsupportedError if it fails, or mixes rows."""
    rows = torch.linspace(-1, 1, 2 * count, dtype=dtype).reshape(2, count)
    try:
        with torch.no_grad():
            made, *alone = (module(some) for some in (rows, rows[:1], rows[1:]))
    except (RuntimeError, IndexError, KeyError, TypeError, ValueError) as error:
        raise UnsupportedError(
            f"the ONNX model fails for two rows of {count} features as tensors: {error!r}; register an "
            "onnxruntime.InferenceSession of it instead"
        ) from error
    if made.shape[:1] != (2,):
        raise UnsupportedError(
            f"the ONNX model makes {tuple(made.shape)} of two rows; its first dimension must be the rows"
        )
    together: Tensor = made.double().reshape(2, -1)
    apart = torch.stack([each.double().flatten() for each in alone])
    if not torch.allclose(together, apart, rtol=1e-4, atol=1e-4, equal_nan=True):
        raise UnsupportedError(
            "what the ONNX model makes of a row depends on the others; so it can score no table"
        )
    return together.shape[1]


def _width(described: Any) -> int | None:
    """The second dimension of an input, if the file says it."""
    dimensions = described.type.tensor_type.shape.dim
    if len(dimensions) < 2:
        return 1
    return int(dimensions[1].dim_value) or None


class ReferenceModel:
    """The original that a converted network is compared with: ONNX's own reference implementation."""

    def __init__(self, model: Any) -> None:
        from onnx.reference import ReferenceEvaluator

        self._evaluator = ReferenceEvaluator(model)
        self._inputs = [each.name for each in _graph_inputs(model.graph)]
        self._types = [each.type.tensor_type.elem_type for each in model.graph.input]

    def rows(self, count: int) -> Any:
        """Ordinary rows [512, count] to compare on: the reference overflows where networks do not."""
        return np.random.default_rng(0).normal(0, 2, (512, count))

    def predict(self, rows: Any) -> Any:
        """The first output for rows [n, inputs]."""
        matrix = np.asarray(rows).astype(np.float64 if 11 in self._types else np.float32)
        made: Any = self._evaluator.run(None, _by_input(self._inputs, matrix))
        return made[0].reshape(made[0].shape[0], -1)

    predict_proba = decision_function = predict


class SessionModule(nn.Module):
    """An onnxruntime session as a module: on the host, one matrix in, the chosen output out."""

    def __init__(self, session: Any, output: int) -> None:
        super().__init__()
        self.session, self.place = session, output
        self.names = [each.name for each in session.get_inputs()]

    def forward(self, features: Tensor) -> Tensor:
        matrix = np.ascontiguousarray(features.cpu().numpy(), dtype=np.float32)
        given = _by_input(self.names, matrix)
        made = np.asarray(self.session.run([self.session.get_outputs()[self.place].name], given)[0])
        return torch.from_numpy(made).to(features.device)


def convert_session(session: Any, names: Sequence[str] | None, kind: str) -> Converted:
    """An onnxruntime session: "proba" is its second output where it has two, everything else the first.

    Raises UnsupportedError for inputs that are not floats and for outputs that are no tensor of numbers.
    """
    given = session.get_inputs()
    for each in given:
        if each.type != "tensor(float)":
            raise UnsupportedError(
                f'the input "{each.name}" of the session is {each.type}; only tensor(float) is supported'
            )
    outputs = session.get_outputs()
    place = 1 if kind == "proba" and len(outputs) > 1 else 0
    if not outputs[place].type.startswith("tensor("):
        raise UnsupportedError(
            f'the output "{outputs[place].name}" of the session is {outputs[place].type}; export it as a tensor (zipmap=False)'
        )
    widths = [each.shape[1] if len(each.shape) > 1 else 1 for each in given]
    sizes = [width if isinstance(width, int) else None for width in widths]
    inputs = _inputs([(each.name, size) for each, size in zip(given, sizes, strict=True)], names)
    module = SessionModule(session, place)
    made = module(torch.zeros(2, len(inputs)))
    columns = made.shape[1] if made.dim() == 2 else 1
    return with_one_output(module, inputs, kind, columns, torch.float32, 5_000.0)
