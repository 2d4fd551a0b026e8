"""`%load_ext tqp.notebook`, then `%%tqp` runs a cell as SQL on the notebook's own data frames.

    %%tqp totals
    SELECT region, sum(amount) AS total FROM sales GROUP BY region

shows the result; the name after `%%tqp`, if there is one, is the variable that keeps it.
"""

from __future__ import annotations

from typing import Any

import tqp


def load_ipython_extension(shell: Any) -> None:
    """Called by IPython when the extension is loaded."""

    def run(line: str, cell: str | None = None) -> tqp.Result | None:
        """`%tqp SELECT ...` or `%%tqp [variable]` over a cell; errors are shown without a traceback."""
        try:
            result = run_cell(line if cell is None else cell, shell.user_ns)
        except tqp.Error as error:
            print(f"{type(error).__name__}: {error}")
            return None
        if cell is not None and line.strip():
            shell.user_ns[line.strip()] = result
        return result

    shell.register_magic_function(run, "line_cell", "tqp")


def run_cell(query: str, variables: dict[str, Any]) -> tqp.Result:
    """Runs `query` on the data frames among `variables`.

    >>> import numpy
    >>> run_cell("SELECT sum(x) AS s FROM t", {"t": {"x": numpy.array([1, 2])}}).fetchall()
    [(3,)]
    """
    # `tqp.sql` looks for tables in the variables of its caller, so it is called from a frame that has the notebook's.
    frame_variables = {**variables, "__tqp_sql": tqp.sql, "__tqp_query": query}
    result: tqp.Result = eval("__tqp_sql(__tqp_query)", frame_variables)
    return result
