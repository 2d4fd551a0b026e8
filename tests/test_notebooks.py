"""The notebooks in `docs/` run from top to bottom; `python -m tests.notebooks` writes what their cells show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import notebooks


@pytest.mark.parametrize("path", notebooks.NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_is_for(path: Path) -> None:
    notebook = notebooks.run(path)
    stored = notebooks.read(path)
    shown = [len(cell.get("outputs", ())) for cell in stored["cells"]]
    assert shown == [len(cell.get("outputs", ())) for cell in notebook["cells"]], (
        "run python -m tests.notebooks"
    )
    assert any(shown)
