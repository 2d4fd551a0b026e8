"""From what a user registers to a `Model`: conversion, choice of precision, proof, and the default output."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import nn

from tqp.core.errors import BindError
from tqp.core.models import ModelInput, ModelOutput
from tqp.ml.conversion import convert
from tqp.ml.layers import Apply
from tqp.ml.model import Converted, Label, Model, output_of, with_one_output
from tqp.ml.onnx.graph import ReferenceModel, convert_onnx, convert_session, is_onnx, is_session, load
from tqp.ml.proof.prove import prove
from tqp.ml.proof.rows_alone import check_rows_alone
from tqp.ml.scorer import Scorer, is_dense, kind_of_scores
from tqp.ml.threshold import RAW
from tqp.ml.trees.boosted import original_of

#: "label", "proba", ("proba", class), "score" or "value"; None: what is usual for the model.
Output = str | tuple[str, Label] | None

_KINDS = ("label", "proba", "score", "value")


def make_model(
    name: str,
    model: Any,
    inputs: Sequence[str] | Mapping[str, int] | None,
    output: Output,
    sample: Any,
    device: torch.device,
    target: str | None = None,
    *,
    bf16: bool = False,
) -> Model:
    """The model under a name, on a device. See `Connection.register_model`; `bf16`: `tqp.connect(ml_precision="bf16")`."""
    _check_names(name, inputs)
    original: Any = None  # what the converted form is compared with, if it is another computation
    dtype = torch.float32
    # Functions, partial ones, and objects that are called like them; estimators are not, and classes make estimators.
    is_torch = callable(model) and not isinstance(model, type)
    if is_torch:
        converted = _of_tensors(model, inputs, output)
        (dtype,) = converted.dtypes
    elif isinstance(inputs, Mapping):
        raise BindError("inputs= with sizes is for torch modules and functions: name the inputs in a list")
    elif is_session(model):
        converted = convert_session(model, inputs, _kind(output))
    elif is_onnx(model):
        loaded = load(model)
        converted, original = convert_onnx(loaded, inputs, _kind(output)), ReferenceModel(loaded)
        sample = original.rows(len(converted.inputs)) if sample is None else sample
    else:
        converted, original = convert(model, inputs), original_of(model)
    default = _default_output(name, converted, output)
    body, proof = converted.body, None
    if original is not None:
        dtype, proof = prove(name, original, converted, sample, bf16=bf16)
        body = body.to(dtype)
    sizes = [item.size or 1 for item in converted.inputs]
    scorer = Scorer(body, sizes, dtype, converted.columns[RAW], bf16=bf16 and dtype is torch.float32).to(
        device
    )
    scorer.is_differentiable = is_torch
    source = type(model).__qualname__
    target = target or ("label" if "label" in converted.outputs else "value")
    return Model(name, converted.inputs, target, scorer, converted, default, source, proof)


def _default_output(name: str, converted: Converted, output: Output) -> ModelOutput:
    if isinstance(output, tuple) and (len(output) != 2 or output[0] != "proba"):
        raise BindError(
            f'output={output!r}: of a pair the first is "proba" and the second one of the classes'
        )
    kind, label = output if isinstance(output, tuple) else (output, None)
    if kind is None:
        kind = "label" if "label" in converted.outputs else "value"
    if kind not in converted.outputs:
        known = ", ".join(f'"{each}"' for each in _KINDS if each in converted.outputs)
        raise BindError(f'model "{name}" has no output "{kind}"; it has {known}')
    column = None
    if label is not None:
        if label not in converted.classes:
            raise BindError(f'model "{name}" has no class {label!r}; it has {list(converted.classes)!r}')
        column = list(converted.classes).index(label)
    found = output_of(converted, kind, column)
    assert found is not None
    return found


def _kind(output: Output) -> str:
    """What the one output of a model is that does not say it."""
    kind = (output[0] if isinstance(output, tuple) else output) or "value"
    if kind not in ("proba", "score", "value"):
        raise BindError(
            f'output="{kind}": of a model that only computes numbers it is "proba", "score" or "value"'
        )
    return kind


def _evaluating(module: nn.Module) -> nn.Module:
    """The module in evaluation mode; those that torch.export made have no modes."""
    try:
        return module.eval()
    except NotImplementedError:
        return module


def _check_names(name: str, inputs: Sequence[str] | Mapping[str, int] | None) -> None:
    """Raises BindError for names of inputs that are one string, or not all different."""
    if isinstance(inputs, str):
        raise BindError(f'inputs="{inputs}": give a list of names, [...]')
    twice = {item for item in inputs or () if list(inputs or ()).count(item) > 1}
    if twice:
        raise BindError(f'model "{name}": inputs= names {", ".join(sorted(twice))} more than once')


def _of_tensors(model: Any, inputs: Sequence[str] | Mapping[str, int] | None, output: Output) -> Converted:
    """A module or function of features [n, f]; its outputs are taken as they are. A module keeps its precision."""
    if not inputs:
        raise BindError("a torch module does not name its inputs: give inputs=[...]")
    sizes = inputs if isinstance(inputs, Mapping) else dict.fromkeys(inputs, 1)
    if any(size < 1 for size in sizes.values()):
        raise BindError("an input is at least one feature: 1 for a number, n for FLOAT[n]")
    described = tuple(ModelInput(name, size=size if size > 1 else 0) for name, size in sizes.items())
    body = _evaluating(model) if isinstance(model, nn.Module) else Apply(model, elementwise=False)
    parameter = next((each for each in body.parameters() if each.is_floating_point()), torch.empty(0))
    zeros = torch.zeros(2, sum(sizes.values()), dtype=parameter.dtype, device=parameter.device)
    try:
        with torch.no_grad():
            made = body(zeros)
    except Exception as error:
        raise BindError(
            f"the model fails for a tensor of two rows of {zeros.shape[1]} features: {type(error).__name__}: {error}; where "
            'an input is an array, give its size: inputs={"name": size, ...}; of a model that takes several tensors, register '
            "a function of one that divides it, such as lambda f: model(f[:, :1], f[:, 1:])"
        ) from error
    if not is_dense(made) or made.shape[:1] != (2,) or made.dim() > 2:
        raise BindError(
            "a model is a function from features [n, inputs] to [n] or [n, outputs]; for two rows this one gave "
            + kind_of_scores(made)
        )
    check_rows_alone(body, zeros)
    kind = _kind(output)
    columns = made.shape[1] if made.dim() == 2 else 1
    return with_one_output(body, described, kind, columns, parameter.dtype)
