"""Tests of models in queries run on both backends, where they are quick."""

from __future__ import annotations

import pytest
import torch

from tqp import connection
from tqp.core.backends import Backend
from tqp.data.backend import choose_backend

#: Files whose tests run on both; those of the others register models more than they query.
BOTH = ("test_model_calls", "test_prediction_rules", "test_vectors")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    backends = ["host", "torch"] if metafunc.module.__name__.rpartition(".")[2] in BOTH else ["host"]
    metafunc.parametrize("backend", backends, indirect=True)


@pytest.fixture(autouse=True)
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What a connection on the CPU has that does not say which it wants."""

    def choose(name: str, device: torch.device) -> Backend:
        return choose_backend(request.param if name == "auto" and device.type == "cpu" else name, device)

    monkeypatch.setattr(connection, "choose_backend", choose)
    return str(request.param)
