"""Python functions that SQL calls: their types, and a call of one for columns, as Arrow arrays, tensors or single values."""

from __future__ import annotations

import datetime
import decimal
import inspect
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import torch
from torch import Tensor

from tqp.core.arguments import check_choice
from tqp.core.datatypes import VARCHAR, DataType, TypeKind
from tqp.core.errors import BindError, ExecutionError, UnsupportedError
from tqp.data.arrow_types import arrow_type_of, data_type_of
from tqp.data.column import Column
from tqp.data.encoding.columns import encode_chunks
from tqp.data.encoding.nested import vector_of
from tqp.data.nested import Vector, element_dtype
from tqp.data.results.to_arrow import column_to_arrow
from tqp.data.results.to_python import python_values
from tqp.data.results.to_tensors import column_tensor

#: How a function is called: with Arrow arrays, with tensors, or with Python values row by row.
KINDS = ("arrow", "torch", "native")

_OF_PYTHON: dict[Any, str] = {
    bool: "BOOLEAN",
    int: "BIGINT",
    float: "DOUBLE",
    str: "VARCHAR",
    bytes: "BLOB",
    decimal.Decimal: "DECIMAL(18,3)",
    datetime.date: "DATE",
    datetime.time: "TIME",
    datetime.datetime: "TIMESTAMP",
    datetime.timedelta: "INTERVAL",
}
#: Types of which functions make no values.
_GIVEN_ONLY = (TypeKind.UUID, TypeKind.TIME_TZ, TypeKind.UHUGEINT, TypeKind.BIT)
#: Estimated nanoseconds for a row.
_COSTS = {"arrow": 30.0, "torch": 10.0, "native": 200.0}
_MOST_SHOWN = 80


@dataclass(frozen=True, eq=False)
class PythonFunction:
    """A Python function under a name. Implements `tqp.core.models.FunctionSignature`."""

    name: str
    function: Callable[..., Any]
    parameters: tuple[DataType | None, ...]
    result: DataType
    kind: str
    takes_null: bool = False
    #: Of "native": what it raises is NULL.
    hides_exceptions: bool = False

    @property
    def has_side_effects(self) -> bool:
        return False

    @property
    def gives_null(self) -> bool:
        return self.takes_null or self.hides_exceptions

    @property
    def cost(self) -> float:
        return _COSTS[self.kind]

    def call(self, columns: Sequence[Column], num_rows: int, device: torch.device) -> Vector:
        """What it gives for the rows, on the device. Raises ExecutionError where it fails, or gives what is not of its type."""
        if not num_rows:
            return self.nulls(0, device)
        if self.kind == "torch":
            return Vector(self._of_tensors(columns, num_rows), None)
        made = self._of_values(columns, num_rows) if self.kind == "native" else self._of_arrays(columns)
        made = self._checked(made, num_rows)
        return vector_of(encode_chunks(self.name, [made], self.result, device))

    def nulls(self, num_rows: int, device: torch.device) -> Vector:
        """NULL for every row."""
        nothing = pa.nulls(num_rows, arrow_type_of(self.result))
        made = vector_of(encode_chunks(self.name, [nothing], self.result, device))
        return Vector(made.values, torch.zeros(num_rows, dtype=torch.bool, device=device))

    def _of_arrays(self, columns: Sequence[Column]) -> Any:
        return self._called([column_to_arrow(self.name, column) for column in columns])

    def _of_values(self, columns: Sequence[Column], num_rows: int) -> list[Any]:
        rows = zip(*map(python_values, columns), strict=True) if columns else iter([()] * num_rows)
        if not self.hides_exceptions:
            return [self._called(row) for row in rows]
        made = []
        for row in rows:
            try:
                made.append(self.function(*row))
            except Exception:  # noqa: BLE001 (the user wants whatever it is to be NULL)
                made.append(None)
        return made

    def _of_tensors(self, columns: Sequence[Column], num_rows: int) -> Tensor:
        made = self._called([self._own_tensor(column) for column in columns])
        shape = (num_rows, *([self.result.size] if self.result.kind is TypeKind.ARRAY else []))
        if not isinstance(made, Tensor) or made.shape != shape:
            got = f"a tensor {list(made.shape)}" if isinstance(made, Tensor) else f"a {type(made).__name__}"
            raise self._wrong(f"gave {got} for {num_rows} rows, and should give a tensor {list(shape)}")
        dtype = element_dtype(self.result)
        assert dtype is not None
        if made.is_floating_point() > dtype.is_floating_point or (dtype == torch.bool) > (
            made.dtype == dtype
        ):
            raise self._wrong(f"gave {made.dtype} for {self.result}: convert it in the function")
        if not dtype.is_floating_point and dtype != torch.bool:
            low, high = self.result.bounds
            wide = made.to(torch.int64)
            if bool(((wide < low) | (wide > high)).any()):
                raise self._wrong(f"gave an integer that {self.result} cannot hold")
        return made.detach().to(columns[0].tensors()[0].device, dtype).contiguous()

    def _own_tensor(self, column: Column) -> Tensor:
        """The values, in memory that the function may write to."""
        values = column_tensor(self.name, column)
        is_shared = any(
            values.untyped_storage().data_ptr() == each.untyped_storage().data_ptr()
            for each in column.tensors()
        )
        return values.clone() if is_shared else values

    def _called(self, arguments: Sequence[Any]) -> Any:
        try:
            return self.function(*arguments)
        except Exception as error:
            hint = ""
            if self.kind == "native":
                shown = ", ".join(map(repr, arguments))
                hint = f" for ({shown if len(shown) <= _MOST_SHOWN else shown[:_MOST_SHOWN] + '...'})"
            elif isinstance(error, TypeError | AttributeError):
                whole = "Arrow arrays" if self.kind == "arrow" else "tensors"
                hint = f' (it is called with {whole}; type="native" is for functions of single values)'
            raise self._wrong(f"failed{hint}: {type(error).__name__}: {error}") from error

    def _checked(self, made: Any, num_rows: int) -> pa.Array:
        """As an array of the result's type."""
        wanted = arrow_type_of(self.result)
        if isinstance(made, pa.ChunkedArray):
            made = made.combine_chunks()
        if self.kind == "arrow" and not isinstance(made, pa.Array):
            raise self._wrong(f"gave a {type(made).__name__}, and should give an Arrow array (pyarrow.Array)")
        try:
            array = made.cast(wanted) if isinstance(made, pa.Array) else pa.array(made, wanted)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise self._wrong(f"gave what is no {self.result}: {error}") from error
        if len(array) != num_rows:
            raise self._wrong(f"gave {len(array)} values for {num_rows} rows")
        if array.null_count and not self.gives_null:
            raise self._wrong('gave NULL, which null_handling="special" allows')
        return array

    def _wrong(self, what: str) -> ExecutionError:
        return ExecutionError(f'the Python function "{self.name}" {what}')


def make_function(
    name: str,
    function: Any,
    parameters: object,
    return_type: object,
    kind: str,
    null_handling: str,
    exception_handling: str,
    side_effects: bool,
    types_of: Callable[[Sequence[str]], Sequence[DataType]],
) -> PythonFunction:
    """The function under a name. `types_of`: the types that SQL means by some texts. See `Connection.create_function`."""
    if not callable(function):
        raise BindError(f'"{name}" is to be a function, and this is a {type(function).__name__}')
    check_choice("type", kind, KINDS)
    check_choice("null_handling", null_handling, ("default", "special"))
    check_choice("exception_handling", exception_handling, ("default", "return_null"))
    if side_effects:
        raise UnsupportedError(
            "side_effects=True is not supported: equal calls of a query may run once, and calls that nobody reads do not run"
        )
    if kind == "torch" and null_handling == "special":
        raise UnsupportedError(
            'a tensor has no NULL: null_handling="special" is for type="arrow" and "native"'
        )
    if kind != "native" and exception_handling == "return_null":
        raise UnsupportedError(
            f'exception_handling="return_null" is for type="native": of type="{kind}" nobody knows which row failed'
        )
    annotated, returned = _annotations(name, function)
    if parameters is None:
        given = annotated
        if given is None:
            raise BindError(f'"{name}" takes any number of arguments: give parameters=[...], their types')
    elif isinstance(parameters, str) or not isinstance(parameters, Sequence):
        raise BindError(
            "parameters is a list of types, one for each argument, such as ['INTEGER', 'VARCHAR']"
        )
    else:
        given = list(parameters)
    if kind != "native" and not given:
        raise BindError(f'"{name}" has no arguments to tell it how many rows there are: give type="native"')
    texts = [type_text(each) for each in given]
    result = type_text(returned if return_type is None else return_type)
    if result is None:
        raise BindError(f'"{name}" does not say what it returns: give return_type="..." or annotate it')
    found = iter(types_of([text for text in (*texts, result) if text is not None]))
    bound = tuple(None if text is None else next(found) for text in texts)
    data_type = next(found)
    _check_result(name, data_type, kind)
    return PythonFunction(
        name,
        function,
        bound,
        data_type,
        kind,
        takes_null=null_handling == "special",
        hides_exceptions=exception_handling == "return_null",
    )


def _check_result(name: str, data_type: DataType, kind: str) -> None:
    if data_type.is_enum or data_type.kind in _GIVEN_ONLY:
        shown = "an ENUM" if data_type.is_enum else f"a {data_type}"
        raise UnsupportedError(f'"{name}" cannot return {shown}; return {VARCHAR} and cast it in the query')
    if kind != "torch":
        return
    is_number = data_type.is_float or data_type.is_integer or data_type.kind is TypeKind.BOOLEAN
    if not data_type.is_vector and not (is_number and element_dtype(data_type) is not None):
        raise UnsupportedError(f'"{name}" cannot return {data_type} as a tensor; type="arrow" can')


def _annotations(name: str, function: Callable[..., Any]) -> tuple[list[Any] | None, Any]:
    """Of each parameter, and of the result, if they are types that SQL has; None for any. No list: any number of them."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of some functions that are written in C
        return None, None
    try:
        hints = typing.get_type_hints(function)
    except (NameError, AttributeError, TypeError, SyntaxError):  # they may name what is not there
        hints = {}
    known = {key: hint for key, hint in hints.items() if _is_type(hint)}
    parameters = signature.parameters.values()
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return None, known.get("return")
    positional = (
        each for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)
    )
    return [known.get(each.name) for each in positional if each.default is each.empty], known.get("return")


def _is_type(hint: Any) -> bool:
    try:
        return type_text(hint) is not None
    except BindError:
        return False


def type_text(given: Any) -> str | None:
    """What SQL calls a type: of a text, a Python or Arrow type, a type of tqp or DuckDB. Raises BindError for other classes."""
    if given is None or isinstance(given, str):
        return given
    if isinstance(given, pa.DataType):
        return str(data_type_of(given, "the function"))
    if given in _OF_PYTHON:
        return _OF_PYTHON[given]
    origin, arguments = typing.get_origin(given), typing.get_args(given)
    if origin is list and len(arguments) == 1:
        return f"{type_text(arguments[0])}[]"
    if origin in (types.UnionType, typing.Union):  # X | None
        (first, *others) = [each for each in arguments if each is not type(None)]
        if not others:
            return type_text(first)
    if isinstance(given, type) or origin is not None or given is Any:
        raise BindError(f"{given!r} is not a type that SQL has; give its name, such as 'INTEGER'")
    return str(given)
