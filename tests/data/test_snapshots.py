"""A table is what it was when it was registered; a result is what it was when it was made, and the caller's own."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

import tqp
from tqp.core.names import ObjectName


def overwrite_frame(frame: pd.DataFrame) -> None:
    frame.iloc[0, 0] = frame.iloc[1, 0]


def overwrite_array(frame: pd.DataFrame) -> None:
    frame["a"].array[0] = frame["a"].array[1]


def overwrite(values: Any) -> None:
    values[0] = values[1]


def frame_of(values: Any, dtype: Any = None) -> tuple[Any, list[Callable[[Any], None]]]:
    frame = pd.DataFrame({"a": pd.Series(values, dtype=dtype)})
    # To write to the array of a plain column is to go round pandas, whose own copies would change with it.
    is_plain = isinstance(frame["a"].dtype, np.dtype)
    return frame, [overwrite_frame] if is_plain else [overwrite_frame, overwrite_array]


def dict_of(values: Any) -> tuple[Any, list[Callable[[Any], None]]]:
    return {"a": values}, [lambda data: overwrite(data["a"])]


#: What is registered, of two different rows, and the ways to write the second over the first.
MUTABLE: dict[str, tuple[Any, list[Callable[[Any], None]]]] = {
    **{
        f"numpy {np.dtype(dtype)}": dict_of(np.array([1, 2]).astype(dtype))
        for dtype in ("i1", "i4", "i8", "u8", "f2", "f4", "f8", ">i4", "U5", "S5", "O", "M8[us]", "M8[D]", "m8[us]")
    },
    "numpy bool": dict_of(np.array([True, False])),
    "numpy vectors": dict_of(np.array([[1, 2], [3, 4]], np.float32)),
    "numpy masked": dict_of(np.ma.array([1.0, 2.0], mask=[False, False])),
    "numpy view": dict_of(np.arange(4.0)[::2]),
    **{
        f"tensor {dtype}": dict_of(torch.tensor([1, 2]).to(dtype))
        for dtype in (torch.int8, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64)
    },
    "tensor bool": dict_of(torch.tensor([True, False])),
    "tensor vectors": dict_of(torch.tensor([[1.0, 2.0], [3.0, 4.0]])),
    "list": dict_of([1, 2]),
    "series": dict_of(pd.Series([1, 2])),
    "array": (np.array([1.0, 2.0]), [overwrite]),
    **{
        f"pandas {dtype}": frame_of([1, 2], dtype)
        for dtype in (
            "int64", "int8", "float64", "Int64", "Float64", "object", "category", "str", "string[python]", "int64[pyarrow]",
        )
    },
    "pandas bool": frame_of([True, False], "boolean"),
    "pandas timestamp": frame_of(pd.to_datetime(["2024-01-01", "2024-01-02"])),
    "pandas zone": frame_of(pd.to_datetime(["2024-01-01", "2024-01-02"]).tz_localize("UTC")),
    "polars": (pl.DataFrame({"a": [1.0, 2.0]}), [lambda data: data.__setitem__((0, "a"), 2.0)]),
}  # fmt: skip


@pytest.mark.parametrize("name", MUTABLE)
@pytest.mark.parametrize("touched", [False, True], ids=["before a query", "after a query"])
def test_a_table_is_what_was_registered(name: str, touched: bool) -> None:
    original, writes = MUTABLE[name]
    for write in writes:
        data = (
            {key: _copy(value) for key, value in original.items()}
            if isinstance(original, dict)
            else _copy(original)
        )
        expected = tqp.sql("FROM t", {"t": _copy(original)}).fetchall()
        with tqp.connect(threads=1) as connection:
            connection.register("t", data)
            result = connection.sql("FROM t") if touched else None
            write(data)
            assert connection.sql("FROM t").fetchall() == expected
            assert result is None or result.fetchall() == expected
        assert expected[0] != expected[1]


def _copy(values: Any) -> Any:
    if isinstance(values, dict):
        return {key: _copy(value) for key, value in values.items()}
    if isinstance(values, pd.DataFrame):
        return values.copy(deep=True)
    return values.clone() if isinstance(values, (torch.Tensor, pl.DataFrame)) else values.copy()


def test_writing_to_a_result_changes_neither_the_table_nor_another_result() -> None:
    data = {
        "f": np.array([1.0, 2.0]),
        "i": torch.tensor([1, 2]),
        "e": np.ones((2, 2), np.float32),
        "n": [1, None],
    }
    with tqp.connect(threads=1) as connection:
        connection.register("t", data)
        result = connection.sql("FROM t")
        expected = result.fetchall()
        for tensor in result.to_torch().values():
            tensor.zero_()
        frame = result.to_pandas()
        frame.loc[0, "f"] = 9.0
        for name in ("f", "i"):
            values = frame[name].to_numpy()
            if values.flags.writeable:
                values[0] = 9
        frame["e"][0][:] = 9
        for column in result.to_arrow().columns[:2]:
            assert not column.chunk(0).to_numpy().flags.writeable
        assert result.fetchall() == expected == connection.sql("FROM t").fetchall()


@pytest.mark.parametrize(
    "values", [np.arange(5_000.0), np.arange(5_000) - 2**40, np.arange(5_000, dtype=np.int16)]
)
def test_memory_that_nobody_can_write_to_is_shared(values: np.ndarray[Any, Any]) -> None:
    values.flags.writeable = False
    with tqp.connect(threads=1) as connection:
        connection.register("t", {"a": values})
        assert (
            connection._catalog.state.tables[ObjectName.of("t")].column("a").values.data_ptr()
            == values.ctypes.data
        )


@pytest.mark.parametrize("dtype", ["float64", "int64", "datetime64[ms]"])
def test_a_result_outlives_the_table_whose_memory_it_shares(dtype: str) -> None:
    frame = pd.DataFrame({"a": (np.arange(100_000) * 10**13).astype(dtype)})
    result = tqp.sql("SELECT a FROM t", {"t": frame})
    expected = result.fetchall()
    overwrite_frame(frame)
    assert frame.iloc[0, 0] == frame.iloc[1, 0]
    assert result.fetchall() == expected


def test_trained_tensors_are_read_when_a_program_with_gradients_runs() -> None:
    weights = torch.tensor([1.0, 2.0], requires_grad=True)
    with tqp.connect(threads=1) as connection:
        connection.register("t", {"w": weights})
        program = connection.compile("SELECT sum(w) AS s FROM t", differentiable=True)
        with torch.no_grad():
            weights.fill_(5.0)
        assert program()["s"].tolist() == [10.0]
        assert connection.sql("SELECT sum(w) FROM t").fetchall() == [(3.0,)]
