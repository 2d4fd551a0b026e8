"""The `%%tqp` magic, on a stand-in for IPython's shell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest

from tqp.notebook import load_ipython_extension


class Shell:
    """What the extension needs of IPython."""

    def __init__(self) -> None:
        self.user_ns: dict[str, Any] = {"sales": pd.DataFrame({"amount": [1, 2, 3]})}
        self.magics: dict[str, Callable[..., Any]] = {}

    def register_magic_function(self, function: Callable[..., Any], kind: str, name: str) -> None:
        assert kind == "line_cell"
        self.magics[name] = function


def test_magic(capsys: pytest.CaptureFixture[str]) -> None:
    shell = Shell()
    load_ipython_extension(shell)
    magic = shell.magics["tqp"]
    assert magic("SELECT sum(amount) FROM sales").fetchall() == [(6,)]
    assert magic("total", "SELECT max(amount) AS m FROM sales") is shell.user_ns["total"]
    assert shell.user_ns["total"].fetchall() == [(3,)]
    assert magic("SELECT amont FROM sales") is None
    assert 'did you mean "amount"' in capsys.readouterr().out
