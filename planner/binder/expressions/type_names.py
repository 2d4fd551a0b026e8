"""Type names in CAST: which type a name and its parameters stand for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from sqlglot import exp

from tqp.core.datatypes import (
    INTERVAL,
    JSON,
    MAX_DECIMAL_PRECISION,
    MOST_MEMBERS,
    DataType,
    TypeKind,
    array,
    list_of,
    map_of,
    struct,
    union_of,
)
from tqp.core.datatypes import decimal as decimal_type
from tqp.core.datatypes import enum as enum_type
from tqp.core.errors import BindError, Error, UnsupportedError
from tqp.core.keywords import lower_ascii
from tqp.planner.parse import Span, parse, span_of
from tqp.planner.syntax.tokens import dotted_names

_TEXTS = (exp.DType.TEXT, exp.DType.VARCHAR, exp.DType.NVARCHAR, exp.DType.CHAR, exp.DType.BPCHAR)
_TYPE_KINDS: dict[exp.DType, TypeKind] = {
    **{
        exp.DType[name]: TypeKind[name]
        for name in """
        BOOLEAN TINYINT SMALLINT BIGINT UTINYINT USMALLINT UBIGINT FLOAT DOUBLE BLOB BIT
        DATE TIME TIMESTAMP TIMESTAMP_S TIMESTAMP_MS TIMESTAMP_NS INTERVAL UUID
        """.split()
    },
    exp.DType.INT: TypeKind.INTEGER,
    exp.DType.INT128: TypeKind.HUGEINT,
    exp.DType.UINT128: TypeKind.UHUGEINT,
    exp.DType.UINT: TypeKind.UINTEGER,
    **dict.fromkeys(_TEXTS, TypeKind.VARCHAR),
    **dict.fromkeys((exp.DType.VARBINARY, exp.DType.BINARY), TypeKind.BLOB),
    **dict.fromkeys((exp.DType.TIMESTAMPNTZ, exp.DType.DATETIME), TypeKind.TIMESTAMP),
    exp.DType.TIMESTAMPTZ: TypeKind.TIMESTAMP_TZ,
    exp.DType.TIMETZ: TypeKind.TIME_TZ,
}

#: Names of types that DuckDB has, and tqp has not.
_MISSING = ("bignum", "geometry", "time_ns", "timestamptz_ns", "tuple", "type", "variant", "varint")
#: Names that are no words to sqlglot.
_OTHER_NAMES = {
    "uint8": TypeKind.UTINYINT,
    "uint16": TypeKind.USMALLINT,
    "uint32": TypeKind.UINTEGER,
    "uint64": TypeKind.UBIGINT,
    "integral": TypeKind.INTEGER,
    "oid": TypeKind.BIGINT,
}
#: Elements of an array at most, as in DuckDB.
_MOST_ELEMENTS = 100_000


#: Digits after the second -> the type: seconds, up to milliseconds, microseconds, nanoseconds.
_TIMESTAMPS = (TypeKind.TIMESTAMP_S, TypeKind.TIMESTAMP_MS, TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_NS)
_BITS_OF_FLOAT, _BITS_OF_DOUBLE = 24, 53


#: Finds the type that CREATE TYPE has made under a name, which may stand behind that of its schema.
UserTypes = Callable[[Sequence[str]], DataType | None]


def type_of_text(text: object, span: Span | None) -> DataType:
    """The type that a text names; raises BindError, UnsupportedError, ParseError."""
    try:
        return bind_type(parse(f"SELECT CAST(NULL AS {text})").tree.expressions[0].args["to"], span)
    except Error as error:
        raise type(error)(error.message, span) from None


def bind_type(node: exp.Expr, span: Span | None, user_types: UserTypes = lambda _: None) -> DataType:
    """The type; raises BindError for nonsense and UnsupportedError for types that tqp does not have."""
    if isinstance(node, exp.Interval):
        return INTERVAL
    kind, span = node.this, span_of(node) or span
    found = _TYPE_KINDS.get(kind) if isinstance(kind, exp.DType) else None
    if kind is exp.DType.ARRAY and node.args.get("values"):
        size = node.args["values"][0].unnest().name
        if not size.isdigit() or not 1 <= int(size) <= _MOST_ELEMENTS:
            raise BindError(f"the size of an array is a number from 1 to {_MOST_ELEMENTS}", span)
        return array(int(size), bind_type(node.expressions[0], span, user_types))
    if kind is exp.DType.ARRAY and not node.args.get("values") and node.expressions:
        return list_of(bind_type(node.expressions[0], span, user_types))
    if kind is exp.DType.MAP:
        if len(node.expressions) != 2:
            raise BindError(
                "the type MAP takes the types of its keys and of its values: MAP(VARCHAR, INTEGER)", span
            )
        return map_of(*(bind_type(each, span, user_types) for each in node.expressions))
    if kind is exp.DType.STRUCT and node.expressions:
        return struct(_fields(node, "field", span, user_types))
    if kind is exp.DType.UNION:
        return _union(node, span, user_types)
    if kind is exp.DType.DECIMAL:
        return _decimal(_parameters(node, 2, span), span)
    if kind is exp.DType.JSON:
        _parameters(node, 0, span)
        return JSON
    if kind is exp.DType.ENUM:
        return _enum(node, span)
    if kind is exp.DType.USERDEFINED:
        names = written_names(node)
        plain = _without_schema(node) if names[1:] else None
        if plain is not None:
            return bind_type(plain, span, user_types)
        made = user_types(names)
        if made is not None:
            return made
        found = _OTHER_NAMES.get(lower_ascii(names[0])) if len(names) == 1 else None
    if found is None and kind is exp.DType.USERDEFINED and lower_ascii(names[-1]) not in _MISSING:
        raise BindError(f'there is no type "{".".join(names)}"', span)
    if found is None:
        raise UnsupportedError(f"the type {node.sql('duckdb')} is not supported", span)
    if kind in _TEXTS or found is TypeKind.BIT:  # their length says nothing
        _parameters(node, 1, span)
    elif found is TypeKind.TIMESTAMP:
        digits = _parameters(node, 1, span)
        return DataType(_TIMESTAMPS[min((digits[0] + 2) // 3, 3)] if digits else found)
    elif kind is exp.DType.FLOAT:
        return DataType(_float(_parameters(node, 1, span), span))
    else:
        _parameters(node, 0, span)
    return DataType(found)


#: Where the types that there are without CREATE TYPE may be said to stand.
_SCHEMAS_OF_TYPES = frozenset((("main",), *((database, "main") for database in ("system", "memory", "temp"))))


def _without_schema(node: exp.Expr) -> exp.Expr | None:
    """A type that is written behind a schema, without that, if there is one without CREATE TYPE."""
    *schemas, name = written_names(node)
    if tuple(map(lower_ascii, schemas)) not in _SCHEMAS_OF_TYPES:
        return None
    parameters = ", ".join(each.sql("duckdb") for each in node.expressions)
    try:
        tree = parse(f"SELECT CAST(NULL AS {name}{f'({parameters})' if parameters else ''})").tree
    except Error:
        return None
    plain: exp.Expr = tree.expressions[0].args["to"]
    is_known = plain.this is not exp.DType.USERDEFINED or lower_ascii(name) in _OTHER_NAMES
    return plain if is_known else None


def written_names(node: exp.Expr) -> Sequence[str]:
    """The names of a type that CREATE TYPE may have made, which stand with dots between."""
    written = node.args["kind"]
    text = written.sql() if isinstance(written, exp.Expr) else str(written)
    return dotted_names(text) or (text,)


def _fields(node: exp.Expr, what: str, span: Span | None, user_types: UserTypes) -> dict[str, DataType]:
    """STRUCT(a INTEGER, b VARCHAR): the fields, of a UNION the members."""
    fields: dict[str, DataType] = {}
    for each in node.expressions:
        if not isinstance(each, exp.ColumnDef):
            raise UnsupportedError(
                f"a {node.this.value} whose {what}s have no names is not supported as a type", span
            )
        if lower_ascii(each.name) in map(lower_ascii, fields):
            raise BindError(f'the {what} "{each.name}" stands twice in the type', span)
        if each.args.get("kind") is None:  # a word that says something of columns elsewhere
            raise BindError(f'the {what} "{each.name}" has a type that there is not', span)
        fields[each.name] = bind_type(each.args["kind"], span, user_types)
    return fields


def _union(node: exp.Expr, span: Span | None, user_types: UserTypes) -> DataType:
    """UNION(number INTEGER, text VARCHAR)"""
    members = _fields(node, "member", span, user_types)
    if len(members) > MOST_MEMBERS:
        raise BindError(f"a UNION has at most {MOST_MEMBERS} members, not {len(members)}", span)
    return union_of(members)


def _constants_of(node: exp.Expr) -> list[exp.Expr]:
    """What stands in the parentheses of a type name, each perhaps in parentheses of its own."""
    return [
        (each.this if isinstance(each, exp.DataTypeParam) else each).unnest() for each in node.expressions
    ]


def _parameters(node: exp.Expr, at_most: int, span: Span | None) -> list[int]:
    """The whole numbers in the parentheses of a type name."""
    written = _constants_of(node)
    numbers = [each.name for each in written if isinstance(each, exp.Literal) and not each.is_string]
    name = node.this.value
    if len(written) > at_most:
        takes = "no parameters" if at_most == 0 else f"at most {at_most}"
        raise BindError(f"the type {name} takes {takes}", span)
    if len(numbers) < len(written) or not all(number.isdecimal() for number in numbers):
        raise BindError(f"the parameters of the type {name} are whole numbers", span)
    return [int(number) for number in numbers]


def _enum(node: exp.Expr, span: Span | None) -> DataType:
    """ENUM('a', 'b', ...)"""
    written = _constants_of(node)
    values = [each.name for each in written if isinstance(each, exp.Literal) and each.is_string]
    if not values or len(values) < len(written):
        raise BindError("the type ENUM takes its values, one or more texts: ENUM('low', 'high')", span)
    repeated = next((value for value, times in Counter(values).items() if times > 1), None)
    if repeated is not None:
        raise BindError(f"the type ENUM has the value '{repeated}' twice; its values are distinct", span)
    return enum_type(values)


def _decimal(sizes: list[int], span: Span | None) -> DataType:
    precision = sizes[0] if sizes else 18
    scale = sizes[1] if len(sizes) > 1 else (0 if sizes else 3)
    if not (1 <= precision <= MAX_DECIMAL_PRECISION and scale <= precision):
        raise BindError(
            f"DECIMAL({precision},{scale}) is out of range: 1 to 38 digits, of which 0 to all after the point",
            span,
        )
    return decimal_type(precision, scale)


def _float(bits: list[int], span: Span | None) -> TypeKind:
    if bits and not 1 <= bits[0] <= _BITS_OF_DOUBLE:
        raise BindError(f"FLOAT({bits[0]}): a float has 1 to {_BITS_OF_DOUBLE} bits", span)
    return TypeKind.DOUBLE if bits and bits[0] > _BITS_OF_FLOAT else TypeKind.FLOAT
