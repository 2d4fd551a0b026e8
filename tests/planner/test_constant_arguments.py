"""Arguments that must be constants: a column is an error, what a function computes of constants is not supported yet."""

import pytest

import tqp


@pytest.mark.parametrize(
    "call",
    [
        "list_sort([2, 1], {0})",
        "string_agg(s, {0})",
        "list_aggregate([1, 2], {0})",
        "getvariable({0})",
        "struct_extract({{'a': 1}}, {0})",
        "struct_extract_at({{'a': 1}}, {1})",
        "row(1, 2)[{1}]",
        "quantile_cont(i, {1})",
        "round(1.25::DECIMAL(5, 2), {1})",
    ],
)
def test_constants_that_functions_compute_are_not_supported(call: str) -> None:
    with tqp.connect() as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS i, 'a' AS s")
        for error, arguments in (
            (tqp.BindError, ("s", "i")),
            (tqp.UnsupportedError, ("lower('A')", "abs(1)")),
        ):
            with pytest.raises(error, match="constant"):
                connection.sql(f"SELECT {call.format(*arguments)} FROM t")
