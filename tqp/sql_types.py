"""Types as texts of SQL, put together of others: `cast`, `create_function` and `select_types` take them.

An element is SQL text, a type of tqp or DuckDB, or a Python class such as `int`, which is BIGINT.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tqp.core.arguments import check_integer, check_name
from tqp.core.errors import BindError
from tqp.core.keywords import quoted
from tqp.ml.python_functions import type_text


def sql_type(data_type: object) -> str:
    """Its name in SQL. Raises BindError for what is no type."""
    name = type_text(data_type)
    if name is None:
        raise BindError('None is no type to cast to or to put into another; give one, such as "BIGINT"')
    return name


def list_type(element: object) -> str:
    """Lists of any length.

    >>> import tqp
    >>> tqp.sql("SELECT '[1, 2]' AS s").select(tqp.col("s").cast(tqp.list_type(int))).types
    (BIGINT[],)
    """
    return f"{sql_type(element)}[]"


def array_type(element: object, size: int) -> str:
    """Lists of one length."""
    return f"{sql_type(element)}[{check_integer('size', size)}]"


def struct_type(fields: Mapping[str, object] | Iterable[object]) -> str:
    """Structs of these fields; of types without names they are called v1, v2, ...

    >>> struct_type({"a": int, "b c": "DATE[]"}), struct_type(["INTEGER"])
    ('STRUCT(a BIGINT, "b c" DATE[])', 'STRUCT(v1 INTEGER)')
    """
    return f"STRUCT({_named(fields)})"


def row_type(fields: Mapping[str, object] | Iterable[object]) -> str:
    """`struct_type`."""
    return struct_type(fields)


def union_type(members: Mapping[str, object] | Iterable[object]) -> str:
    """Values of one of these types each."""
    return f"UNION({_named(members)})"


def map_type(key: object, value: object) -> str:
    """Maps from keys to values."""
    return f"MAP({sql_type(key)}, {sql_type(value)})"


def decimal_type(width: int, scale: int) -> str:
    """Numbers of `width` digits, `scale` of them behind the point."""
    return f"DECIMAL({check_integer('width', width)}, {check_integer('scale', scale)})"


def _named(types: Mapping[str, object] | Iterable[object]) -> str:
    if isinstance(types, str) or not isinstance(types, Iterable):
        raise BindError("give a dict of types by their names, or a list of types")
    given = types if isinstance(types, Mapping) else {f"v{n}": each for n, each in enumerate(types, 1)}
    if not given:
        raise BindError("at least one type is wanted")
    for name in given:
        check_name("a field", name)
    return ", ".join(f"{quoted(name)} {sql_type(each)}" for name, each in given.items())
