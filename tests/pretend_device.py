"""A pretended accelerator, for tests: torch device "pretend", which computes on the CPU and is not the CPU.

Its tensors refuse `.numpy()` and operations with tensors of the CPU, as those of a GPU do, and what goes on is counted:
launches, reads that the host waits for, and tensors copied to the host. It says nothing of a real device's speed, memory or
dtypes. Importing this registers the device for the whole process and replaces some functions of torch: `python -m
tests.pretend_device slt` and the like run, in a process of their own, what tests want to know, and print it as JSON.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow.compute as pc
import pyarrow.parquet as pq
import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils import backend_registration

import tqp
from tests import sqllogic
from tests.conftest import TPCH_SCALE_FACTOR
from tqp.tpch.data import DATA
from tqp.tpch.query import QUERY_NUMBERS, load_query

NAME = "pretend"
backend_registration._setup_privateuseone_for_python_backend(NAME)
_DEVICE = torch.device(f"{NAME}:0")
_CPU = torch.device("cpu")
_CONVERT = torch.ops.aten._to_copy.default

#: Operations that tell the host something that only the device knows, a number or the size of what they make.
_BLOCKING = frozenset(
    "_local_scalar_dense equal is_nonzero item masked_select nonzero repeat_interleave unique _unique2 bincount".split()
)
#: Operations that may have tensors of both devices: copies, and indexing by a mask or numbers of the host.
_MIXING = frozenset("copy_ _to_copy index index_put index_put_ _index_put_impl_ set_".split())


#: What the device has been asked for: "launches", "reads", "copies" to the host and the elements of the "longest copy".
counts: Counter[str] = Counter()


class PretendTensor(Tensor):
    """A tensor of the device: `inner` has its values."""

    inner: Tensor
    __slots__ = ("inner",)
    __torch_function__ = torch._C._disabled_torch_function_impl

    @staticmethod
    def __new__(cls, inner: Tensor) -> Self:
        made = Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=_DEVICE,
        )
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(cls, operation: Any, types: Any, arguments: Any = (), keywords: Any = None) -> Any:
        return _run(operation, arguments, keywords or {})

    def __repr__(self, **keywords: Any) -> str:
        return f"{NAME}({self.inner})"

    def to(self, *arguments: Any, **keywords: Any) -> Tensor:
        """By hand: where operations run without autograd, torch's own would lose its way between two devices."""
        wanted = [*arguments, *keywords.values()]
        dtype = next((each for each in wanted if isinstance(each, torch.dtype)), self.dtype)
        device = next((each for each in wanted if isinstance(each, (str, torch.device))), _DEVICE)
        made = self if dtype == self.dtype else _run(_CONVERT, (self,), {"dtype": dtype})
        return made.cpu() if torch.device(device).type == "cpu" else made

    def cpu(self, *arguments: Any, **keywords: Any) -> Tensor:
        return _note_copy(self.inner)

    def tolist(self) -> Any:
        return self.cpu().tolist()

    def new_tensor(self, data: Any, **keywords: Any) -> Tensor:
        return torch.tensor(data, dtype=keywords.get("dtype", self.dtype)).to(_DEVICE)

    def numpy(self, *arguments: Any, **keywords: Any) -> Any:
        raise TypeError(f"can't convert {_DEVICE} device type tensor to numpy")

    __array__ = numpy

    def data_ptr(self) -> int:
        return self.inner.data_ptr()

    def untyped_storage(self) -> Any:
        return self.inner.untyped_storage()


def _run(operation: Any, arguments: Any, keywords: Any) -> Any:
    """An operation on the values of its tensors; its results are tensors of the device again."""
    name = operation._schema.name.removeprefix("aten::")
    given, _ = pytree.tree_flatten((arguments, keywords))
    ours = [each for each in given if isinstance(each, PretendTensor)]
    others = [each for each in given if isinstance(each, Tensor) and not isinstance(each, PretendTensor)]
    if ours and any(each.dim() > 0 for each in others) and name not in _MIXING:
        raise RuntimeError(
            f"Expected all tensors to be on the same device, but found {_DEVICE} and cpu ({name})"
        )
    counts["launches"] += not _is_view(operation)
    counts["reads"] += name in _BLOCKING
    to_host = name == "copy_" and not isinstance(arguments[0], PretendTensor)
    if name == "_to_copy" and keywords.get("device") is not None:
        to_host = torch.device(keywords["device"]).type == "cpu"
    if to_host:
        _note_copy(ours[0].inner)
    compute = _as_on_devices(name, operation, given)
    result = compute(*pytree.tree_map(_inner, arguments), **pytree.tree_map(_inner, keywords))
    made = {id(each.inner): each for each in ours}

    def outer(value: Any) -> Any:
        if not isinstance(value, Tensor) or isinstance(value, PretendTensor) or to_host:
            return value
        return made.get(id(value)) if id(value) in made else PretendTensor(value)  # written in place, or new

    return pytree.tree_map(outer, result)


def _as_on_devices(name: str, operation: Any, given: Sequence[Any]) -> Callable[..., Any]:
    """What CUDA computes otherwise than the CPU, where an answer may show it."""
    if name == "fmod" and given[0].is_floating_point():
        return _remainder
    if (
        name == "div"
        and given[0].is_floating_point()
        and len(given) == 2
        and not isinstance(given[1], PretendTensor)
    ):
        return _times_reciprocal
    if name == "scatter_" and isinstance(given[3], PretendTensor) and given[2].inner.dim() == 1:
        return _scatter_from_the_end
    return operation


def _times_reciprocal(a: Tensor, b: Tensor | float) -> Tensor:
    """By a number of the host CUDA does not divide."""
    return a * (1.0 / float(b))


def _scatter_from_the_end(a: Tensor, dim: int, index: Tensor, source: Tensor) -> Tensor:
    """Which of several values for one place stays is anybody's guess: not the last, as on the CPU."""
    return a.scatter_(dim, index.flip(0), source[: len(index)].flip(0))


def _remainder(a: Tensor, b: Tensor | float) -> Tensor:
    """As devices have it: torch's for CPUs gives NaN where the quotient is large."""
    divisor = b.numpy() if isinstance(b, Tensor) else b
    with np.errstate(invalid="ignore"):
        return torch.from_numpy(np.fmod(a.numpy(), divisor)).to(a.dtype)


def _is_view(operation: Any) -> bool:
    """Whether a result is another look at an argument, for which no kernel runs."""
    aliases = [each.alias_info for each in operation._schema.returns]
    return any(alias is not None and not alias.is_write for alias in aliases)


def _inner(value: Any) -> Any:
    if isinstance(value, PretendTensor):
        return value.inner
    return _CPU if isinstance(value, torch.device) and value.type == NAME else value


def _note_copy(values: Tensor) -> Tensor:
    """The values, on their way to the host."""
    counts["reads"] += 1
    counts["copies"] += 1
    counts["longest copy"] = max(counts["longest copy"], values.numel())
    return values


_library = torch.library.Library("_", "IMPL")
_library.fallback(
    lambda operation, *arguments, **keywords: _run(operation, arguments, keywords), "PrivateUse1"
)


def _by_way_of_the_host(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """For what torch makes in C++ and resizes, where no operation of ours learns of it: made on the CPU, then moved."""

    def made(*arguments: Any, device: Any = None, **keywords: Any) -> Tensor:
        if device is None or torch.device(device).type != NAME or isinstance(arguments[0], Tensor):
            return make(*arguments, device=device, **keywords)
        return make(*arguments, **keywords).to(_DEVICE)

    return made


for _name in ("tensor", "as_tensor", "arange"):
    setattr(torch, _name, _by_way_of_the_host(getattr(torch, _name)))


def run_slt() -> dict[str, str]:
    """The records of the `.slt` files that go wrong on the device, by place, each with what is wrong."""
    problems = {}
    for path in sorted(sqllogic.DIRECTORY.glob("**/*.slt")):
        records = sqllogic.parse(path.read_text(encoding="utf-8"))
        with tqp.connect(NAME) as connection:
            sqllogic.register_tables(records, connection)
            for record in records:
                if record.kind.startswith(("query", "statement error", "statement unsupported")):
                    try:
                        sqllogic.check(record, connection)
                    except Exception:  # noqa: BLE001 - the next record may tell more
                        problems[f"{path.stem}:{record.line}"] = traceback.format_exc(limit=-3)
    return problems


def run_tpch(data: str, answers: str) -> dict[str, dict[str, int]]:
    """What each query of TPC-H asks of the device when it runs for the second time; answers go to a folder, as Parquet."""
    found = {}
    with tqp.connect(NAME) as connection:
        for table, path in DATA.paths(Path(data)).items():
            connection.register(table, str(path))
        for number in QUERY_NUMBERS:
            text = load_query(number, TPCH_SCALE_FACTOR).text
            pq.write_table(connection.sql(text).to_arrow(), Path(answers) / f"{number}.parquet")
            program = connection.compile(text)
            counts.clear()
            program()
            found[str(number)] = {"launches": counts["launches"], "reads": counts["reads"]}
    return found


def run_registered() -> dict[str, int]:
    """What is copied to the host of columns that are tensors of the device."""
    rows = 30_000
    places = torch.arange(rows)
    columns = {
        "sorted": places,
        "repeated": places % 100,
        "apart": places * 1_000_003,
        "unsigned": (places % 200).to(torch.uint8),
        "truth": places % 3 == 0,
        "half": (places % 8).to(torch.float16),
        "real": places / 7,
        "vector": torch.ones(rows, 3),
    }
    with tqp.connect(NAME) as connection:
        connection.register("t", {name: values.to(_DEVICE) for name, values in columns.items()})
        counts.clear()
        answer = connection.sql(
            "SELECT sum(sorted), sum(apart), sum(unsigned), count(*) FILTER (WHERE truth), sum(half), max(real), "
            "sum(array_inner_product(vector, vector)) FROM t WHERE repeated < 50"
        )
        assert len(answer.fetchall()) == 1
    return dict(counts)


def run_functions() -> list[list[object]]:
    """What Python functions give for rows of the device, and where they computed."""
    with tqp.connect(NAME) as connection:
        connection.sql("CREATE TABLE t AS SELECT i, 'w' || i AS s FROM (VALUES (1), (NULL), (4)) v(i)")
        connection.create_function("root", torch.sqrt, ["DOUBLE"], "DOUBLE", type="torch")
        connection.create_function(
            "device", lambda x: x * 0 + (x.device == _DEVICE), ["INTEGER"], "INTEGER", type="torch"
        )
        connection.create_function("upper_s", pc.utf8_upper, ["VARCHAR"], "VARCHAR")
        connection.create_function(
            "pair", lambda a, b: [a, b], ["INTEGER", "INTEGER"], "INTEGER[]", type="native"
        )
        found = connection.sql(
            "SELECT root(i), device(i), upper_s(s), pair(i, 2) FROM t WHERE i IS NULL OR i > 1"
        )
        return [[*row] for row in found.fetchall()]


def run_quotients() -> list[list[list[object]]]:
    """Quotients by numbers that programs have in themselves, of the device and of the CPU."""
    rows = """SELECT (9999 + i)::DECIMAL(9, 1) / 10 AS d, 144.146248e0 + i AS f, i,
        TIMESTAMP '2024-01-01 00:00:00.999999' + to_days(i::INTEGER) AS t FROM range(50) r(i)"""
    query = """SELECT d::DOUBLE, d::FLOAT, f / 10, round(f, 6), round(f * 1e6, -1), cbrt(i), epoch(t), julian(t), avg(d) OVER (),
        jaro_similarity('abcdef', 'abxd' || i), INTERVAL 1 MONTH * (f / 7) FROM t"""
    answers = []
    for device in (NAME, "cpu"):
        with tqp.connect(device) as connection:
            connection.sql(f"CREATE TABLE t AS {rows}")
            answers.append([[str(each) for each in row] for row in connection.sql(query).fetchall()])
    return answers


if __name__ == "__main__":
    print(json.dumps(globals()[f"run_{sys.argv[1]}"](*sys.argv[2:])))
