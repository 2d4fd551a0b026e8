"""ONNX models in SQL: each operator against ONNX's own reference, whole networks, and what is said of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

import tqp
from tqp.ml.onnx.operators import OPERATORS

RANDOM = np.random.default_rng(0)


def weights(*shape: int) -> Any:
    return RANDOM.normal(size=shape).astype(np.float32)


def model_of(
    nodes: list[Any],
    constants: dict[str, Any],
    width: int | None = 4,
    kind: int = TensorProto.FLOAT,
    shape: list[Any] | None = None,
) -> Any:
    """A model from input "x" [n, width] to output "y"."""
    graph = helper.make_graph(
        nodes,
        "test",
        [helper.make_tensor_value_info("x", kind, ["rows", width])],
        [helper.make_tensor_value_info("y", kind, shape)],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)


def network() -> Any:
    return model_of(
        [
            helper.make_node("Gemm", ["x", "w1", "b1"], ["h"], transB=1),
            helper.make_node("Relu", ["h"], ["r"]),
            helper.make_node("MatMul", ["r", "w2"], ["s"]),
            helper.make_node("Softmax", ["s"], ["y"]),
        ],
        {"w1": weights(8, 4), "b1": weights(8), "w2": weights(8, 3)},
        shape=["rows", 3],
    )


UNARY = (
    "Abs Ceil Dropout Elu Erf Exp Flatten Floor Gelu HardSigmoid HardSwish Identity LeakyRelu LogSoftmax Mish Neg "
    "Reciprocal Relu Selu Sigmoid Sign Softmax Softplus Softsign Tanh Transpose"
).split()
BINARY = "Add Div Max Min Mul PRelu Sub Sum".split()
OTHERS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "Clip": (
        [helper.make_node("Clip", ["x", "low", "high"], ["y"])],
        {"low": np.float32(-0.5), "high": np.float32(1)},
    ),
    "Concat": ([helper.make_node("Concat", ["x", "x"], ["y"], axis=1)], {}),
    "Gather": ([helper.make_node("Gather", ["x", "places"], ["y"], axis=1)], {"places": np.array([2, -1])}),
    "Slice": (
        [helper.make_node("Slice", ["x", "a", "b", "axes", "steps"], ["y"])],
        {"a": np.array([-1]), "b": np.array([-100]), "axes": np.array([1]), "steps": np.array([-2])},
    ),
    "Split": (
        [
            helper.make_node("Split", ["x"], ["p", "q"], axis=1, num_outputs=2),
            helper.make_node("Sub", ["p", "q"], ["y"]),
        ],
        {},
    ),
    "Reshape": ([helper.make_node("Reshape", ["x", "shape"], ["y"])], {"shape": np.array([0, -1])}),
    "Squeeze": (
        [
            helper.make_node("Unsqueeze", ["x", "axes"], ["u"]),
            helper.make_node("Squeeze", ["u", "axes"], ["y"]),
        ],
        {"axes": np.array([1])},
    ),
    **{
        name: ([helper.make_node(name, ["x", "axes"], ["y"], keepdims=1)], {"axes": np.array([1])})
        for name in ("ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum")
    },
    "ArgMax": (
        [
            helper.make_node("ArgMax", ["x"], ["i"], axis=1),
            helper.make_node("Cast", ["i"], ["y"], to=TensorProto.FLOAT),
        ],
        {},
    ),
    "Where": (
        [
            helper.make_node("Greater", ["x", "zero"], ["m"]),
            helper.make_node("Not", ["m"], ["n"]),
            helper.make_node("Or", ["m", "n"], ["o"]),
            helper.make_node("And", ["o", "m"], ["a"]),
            helper.make_node("Where", ["a", "x", "zero"], ["y"]),
        ],
        {"zero": np.float32(0)},
    ),
    "Sqrt": (
        [
            helper.make_node("Pow", ["x", "two"], ["p"]),
            helper.make_node("Sqrt", ["p"], ["s"]),
            helper.make_node("Log", ["s"], ["y"]),
        ],
        {"two": np.float32(2)},
    ),
    "BatchNormalization": (
        [helper.make_node("BatchNormalization", ["x", "s", "b", "m", "v"], ["y"], epsilon=1e-3)],
        {"s": weights(4), "b": weights(4), "m": weights(4), "v": weights(4) ** 2},
    ),
    "LayerNormalization": (
        [helper.make_node("LayerNormalization", ["x", "s", "b"], ["y"])],
        {"s": weights(4), "b": weights(4)},
    ),
    "Gemm": (
        [helper.make_node("Gemm", ["x", "w", "b"], ["y"], alpha=0.5, beta=2.0)],
        {"w": weights(4, 2), "b": weights(2)},
    ),
}


@pytest.mark.parametrize("name", [*UNARY, *BINARY, *OTHERS])
def test_operators_agree_with_the_reference(name: str) -> None:
    if name in UNARY:
        options = {"perm": [0, 1]} if name == "Transpose" else {}
        nodes, constants = [helper.make_node(name, ["x"], ["y"], **options)], {}
    elif name in BINARY:
        nodes, constants = [helper.make_node(name, ["x", "w"], ["y"])], {"w": weights(4)}
    else:
        nodes, constants = OTHERS[name]
    model = model_of(nodes, constants)
    values = weights(50, 4)
    wanted = ReferenceEvaluator(model).run(None, {"x": values})[0].reshape(50, -1)
    with tqp.connect(batch_rows=7) as con:
        con.register("t", {name: values[:, i].copy() for i, name in enumerate("abcd")})
        con.register_model("m", model)
        found = np.array([np.atleast_1d(row[0]) for row in con.sql("SELECT m(a, b, c, d) FROM t").fetchall()])
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_every_operator_is_one_of_onnx() -> None:
    assert all(onnx.defs.has(name) for name in OPERATORS)


def test_a_file_is_read_and_proved(tmp_path: Path) -> None:
    onnx.save(network(), tmp_path / "net.onnx")
    with tqp.connect() as con:
        con.register("t", {name: weights(20) for name in "abcd"})
        con.register_model("net", str(tmp_path / "net.onnx"), inputs=["a", "b", "c", "d"], output="proba")
        (model,) = con.models()
        assert model.proof is not None and model.proof.difference <= 1e-5
        for (probabilities,) in con.sql("SELECT net(a, b, c, d) FROM t").fetchall():
            assert sum(probabilities) == pytest.approx(1)


def test_what_torch_exports_comes_back_as_it_was(tmp_path: Path) -> None:
    net = torch.nn.Sequential(
        torch.nn.Linear(3, 5), torch.nn.Tanh(), torch.nn.Linear(5, 1), torch.nn.Sigmoid()
    )
    nodes = [
        helper.make_node("Gemm", ["x", "w1", "b1"], ["a"], transB=1),
        helper.make_node("Tanh", ["a"], ["t"]),
        helper.make_node("Gemm", ["t", "w2", "b2"], ["s"], transB=1),
        helper.make_node("Sigmoid", ["s"], ["y"]),
    ]
    constants = {
        "w1": net[0].weight.detach().numpy(),
        "b1": net[0].bias.detach().numpy(),
        "w2": net[2].weight.detach().numpy(),
        "b2": net[2].bias.detach().numpy(),
    }
    with tqp.connect() as con:
        con.register("t", {name: weights(100) for name in "abc"})
        con.register_model("from_torch", net, inputs=["a", "b", "c"])
        con.register_model("from_onnx", model_of(nodes, constants, 3))
        query = "SELECT max(abs(from_torch(a, b, c) - from_onnx(a, b, c))) FROM t"
        assert con.sql(query).fetchall()[0][0] < 1e-6


def test_a_session_runs_what_has_no_tensor_form() -> None:
    model = model_of([helper.make_node("Hardmax", ["x"], ["y"])], {})
    values = weights(30, 4)
    with tqp.connect(batch_rows=7) as con:
        con.register("t", {name: values[:, i].copy() for i, name in enumerate("abcd")})
        with pytest.raises(tqp.UnsupportedError, match="Hardmax has no tensor form; register an onnxruntime"):
            con.register_model("m", model)
        session = onnxruntime.InferenceSession(model.SerializeToString())
        with pytest.raises(tqp.BindError, match="names 3 inputs, and the ONNX model takes 4"):
            con.register_model("m", session, inputs=["a", "b", "c"])
        con.register_model("m", session)
        found = [row[0] for row in con.sql("SELECT m(a, b, c, d) FROM t").fetchall()]
        assert np.argmax(found, 1).tolist() == values.argmax(1).tolist()


@pytest.mark.parametrize(
    ("make", "keywords", "message"),
    [
        (lambda folder: folder / "none.onnx", {}, "there is no file"),
        (lambda folder: _broken(folder), {}, "is no ONNX model"),
        (lambda folder: network(), {"inputs": ["a"]}, "takes 4"),
        (
            lambda folder: model_of([helper.make_node("Relu", ["x"], ["y"])], {}, None),
            {},
            "name them with inputs",
        ),
        (
            lambda folder: model_of([helper.make_node("Relu", ["x"], ["y"])], {}, 4, TensorProto.INT64),
            {},
            "floats",
        ),
        (
            lambda folder: model_of([helper.make_node("ReduceSum", ["x"], ["y"], keepdims=0)], {}),
            {},
            "the rows",
        ),
        (
            lambda folder: model_of([helper.make_node("Softmax", ["x"], ["y"], axis=0)], {}),
            {},
            "depends on the others",
        ),
        (
            lambda folder: model_of([helper.make_node("Cast", ["x"], ["y"], to=TensorProto.STRING)], {}),
            {},
            "fails for two rows of 4 features",
        ),
        (
            lambda folder: model_of(
                [
                    helper.make_node("Abs", ["x"], ["a"]),
                    helper.make_node("Neg", ["a"], ["n"]),
                    helper.make_node("Sqrt", ["n"], ["y"]),
                ],
                {},
            ),
            {},
            "only missing values",
        ),
    ],
)
def test_files_that_cannot_be_registered(
    tmp_path: Path, make: Any, keywords: dict[str, Any], message: str
) -> None:
    with tqp.connect() as con, pytest.raises(tqp.Error, match=message):
        con.register_model("m", make(tmp_path), **keywords)


def _broken(folder: Path) -> Path:
    path = folder / "broken.onnx"
    path.write_bytes(b"this is text")
    return path
