"""Runs the notebooks in `docs/`, cell by cell in one namespace, and puts what the cells show into the files.

`python -m tests.notebooks` runs all of them and writes their outputs.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
from pathlib import Path
from typing import Any

NOTEBOOKS = sorted((Path(__file__).parent.parent / "docs").glob("*.ipynb"))


def read(path: Path) -> dict[str, Any]:
    """The notebook as it is stored."""
    notebook: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return notebook


def run(path: Path) -> dict[str, Any]:
    """The notebook with the outputs of this run; raises what a cell raises."""
    notebook = read(path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    count = 0
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            count += 1
            cell["execution_count"] = count
            cell["outputs"] = _outputs("".join(cell["source"]), namespace, count, path)
    return notebook


def _outputs(source: str, namespace: dict[str, Any], count: int, path: Path) -> list[dict[str, Any]]:
    """What the cell prints, and its last line's value if that is an expression."""
    module = ast.parse(source, f"{path.name}, cell {count}")
    last = module.body.pop() if module.body and isinstance(module.body[-1], ast.Expr) else None
    printed, value = io.StringIO(), None
    with contextlib.redirect_stdout(printed):
        exec(compile(module, f"{path.name}, cell {count}", "exec"), namespace)  # noqa: S102 - our own documents
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), f"{path.name}, cell {count}", "eval"), namespace)
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"name": "stdout", "output_type": "stream", "text": _lines(printed.getvalue())})
    if value is not None:
        data = {"text/plain": _lines(str(value))}
        if hasattr(value, "_repr_html_"):
            data["text/html"] = _lines(value._repr_html_())
        outputs.append(
            {"data": data, "execution_count": count, "metadata": {}, "output_type": "execute_result"}
        )
    return outputs


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def write(path: Path) -> None:
    """Run the notebook and store what its cells show."""
    text = json.dumps(run(path), indent=1, ensure_ascii=False, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    for each in NOTEBOOKS:
        write(each)
