"""docs/functions.md says what of DuckDB's list of functions is bound today."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.function_overloads import report

_DOCUMENT = Path(__file__).parent.parent / "docs" / "functions.md"
_BLOCK = re.compile(r"(<!-- overloads -->\n).*?(<!-- end of overloads -->)", re.DOTALL)


def test_the_list_of_overloads_is_up_to_date() -> None:
    text, made = _DOCUMENT.read_text(encoding="utf-8"), report()
    print(made.partition("\n\n")[0])
    new = _BLOCK.sub(lambda match: f"{match[1]}{made}\n{match[2]}", text)
    if os.environ.get("TQP_UPDATE_DOCS") == "1" and new != text:
        _DOCUMENT.write_text(new, encoding="utf-8")
        text = new
    assert new == text, "write it anew with TQP_UPDATE_DOCS=1 pytest tests/test_function_overloads.py"
