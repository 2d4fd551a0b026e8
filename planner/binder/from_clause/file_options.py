"""The options of read_csv(), read_json() and read_parquet()."""

from __future__ import annotations

import codecs
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from tqp.core.datatypes import DataType, TypeKind, holds_kind
from tqp.core.errors import BindError, UnsupportedError, nearest
from tqp.core.file_kinds import FileKind
from tqp.core.keywords import lower_ascii, quoted_text
from tqp.core.read_options import CANDIDATES, ReadOptions, RejectTables
from tqp.planner.binder.expressions.type_names import type_of_text
from tqp.planner.parse import Span, span_of


@dataclass(slots=True)
class GivenOptions:
    """`types`: what columns are cast to, by their names in lower case, or their places. `columns`: the only ones that are wanted.

    `never_null`: those, by their names in lower case, in which an empty value is no NULL. `rejects`: where errors are stored.
    """

    options: ReadOptions
    types: dict[str | int, DataType] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None
    never_null: frozenset[str] = frozenset()
    rejects: RejectTables | None = None


def read_options(kind: FileKind, function: str, nodes: Sequence[exp.Expr]) -> GivenOptions:
    """What the options of a call say. Raises UnsupportedError for those that DuckDB has and tqp has not."""
    said: dict[str, Any] = {}
    types: dict[str | int, DataType] = {}
    written: dict[str, str] = {}
    for node in nodes:
        name = lower_ascii(node.this.name)
        known = _KNOWN.get(kind, {})
        if name not in known:
            raise UnsupportedError(
                f"the option {name} of {function}() is not supported{nearest(name, known)}", span_of(node)
            )
        value = _value(node.expression, name)
        if kind in ("CSV layout", "csv") and not isinstance(value, (list, Mapping)) and name not in _ALL:
            written[name] = _as_sql(value)
        for key, each in known[name](value, span_of(node)).items():
            if key == "typed":
                types.update(each)
            else:
                said[key] = each
    if kind == "json" and any(holds_kind(each, TypeKind.UNION) for each in types.values()):
        raise UnsupportedError(
            f"UNION as the type of a column of {function}() is not supported; read objects with read_json_objects() and cast"
            " what they hold from JSON"
        )
    marks = [(name, said.get(name)) for name in ("delimiter", "quote", "comment")]
    for (name, mark), (other, within) in itertools.combinations(marks, 2):
        if mark and within and (mark in within or within in mark):
            raise BindError(
                f"the {name} {mark!r} and the {other} {within!r} of {function}() are not told apart"
            )
    formats = {kind for kind, key in _FORMATS.items() if said.get(key) is not None}
    text = {key for key, data_type in types.items() if isinstance(key, str) and data_type.kind not in formats}
    if any(isinstance(key, int) for key in types):
        said.setdefault("text_columns", None)
    if said.get("text_columns", ()) is not None:
        said["text_columns"] = frozenset(text)
    if not said.pop("finds_header", True):
        said.setdefault("header", False)
        if kind == "csv" and "columns" not in said and not said.get("names"):
            raise BindError(f"auto_detect = false of {function}() goes with columns")
    never_null = said.pop("never_null", frozenset())
    if never_null and said.get("nulls", ("",)) != ("",):
        raise UnsupportedError(f"force_not_null of {function}() beside nullstr is not supported")
    columns = said.pop("columns", None)
    if not said.pop("finds_columns", True) and columns is None:
        raise BindError(f"auto_detect = false of {function}() goes with columns")
    rejects = _rejects(said, function)
    if kind == "csv" and rejects is None:
        written.clear()  # nobody tells of them
    options = ReadOptions(**said, written=tuple(written.items()))
    return GivenOptions(options, types, columns, never_null, rejects)


def _rejects(said: dict[str, Any], function: str) -> RejectTables | None:
    """Takes from the options what they say of the tables that tell of errors, which are ignored then."""
    is_stored, limit = said.pop("store_rejects", None), said.pop("rejects_limit", None)
    given = {key: said.pop(f"rejects_{key}") for key in ("errors", "scans") if f"rejects_{key}" in said}
    if limit is not None and not is_stored and not given:
        raise BindError(f"rejects_limit of {function}() goes with store_rejects")
    if given and is_stored is False:
        raise BindError(f"{function}() stores no rejects where store_rejects = false")
    if not is_stored and not given:
        return None
    if said.get("ignore_errors") is False:
        raise BindError(f"store_rejects of {function}() does not go with ignore_errors = false")
    if said.get("by_name"):
        raise BindError(f"store_rejects of {function}() does not go with union_by_name")
    changed = [name for name in ("comment", "encoding") if said.get(name) not in (None, "", "utf-8")]
    changed += ["delim"] if len((said.get("delimiter") or ",").encode()) > 1 else []
    if changed or said.get("delimiter") == "":
        raise UnsupportedError(
            f"store_rejects of {function}() beside {(changed or ['delim'])[0]} is not supported"
        )
    tables = RejectTables(**given, limit=limit or None)
    if lower_ascii(tables.errors) == lower_ascii(tables.scans):
        raise BindError(f"rejects_table and rejects_scan of {function}() need names of their own")
    said["ignore_errors"] = True
    return tables


def _as_sql(value: Any) -> str:
    return quoted_text(value) if isinstance(value, str) else str(value).lower()


#: Types that a format says how to read.
_FORMATS = {TypeKind.DATE: "date_format", TypeKind.TIMESTAMP: "timestamp_format"}


def _value(node: exp.Expr, name: str) -> Any:
    """A constant as a Python value; a list, or a mapping of one written {'a': 1}."""
    match node:
        case exp.Boolean():
            return bool(node.this)
        case exp.Literal():
            return (
                node.this
                if node.is_string
                else int(node.this)
                if str(node.this).isdigit()
                else float(node.this)
            )
        case exp.Array():
            return [_value(each, name) for each in node.expressions]
        case exp.Struct():
            return {each.this.name: _value(each.expression, name) for each in node.expressions}
        case exp.Paren():
            return _value(node.this, name)
        case exp.Neg():
            return -_value(node.this, name)
        case exp.Column():
            return node.name
    raise UnsupportedError(f"the option {name} takes constants here", span_of(node))


Meaning = Callable[[Any, Span | None], Mapping[str, Any]]


def _one(key: str, kind: type) -> Meaning:
    def meaning(value: Any, span: Span | None) -> Mapping[str, Any]:
        if kind is bool and value in (0, 1, "true", "false"):
            value = value in (1, "true")
        if not isinstance(value, kind):
            raise BindError(f"this option takes a {_SHOWN[kind]}, not {value!r}", span)
        return {key: value}

    return meaning


_SHOWN = {str: "text", bool: "truth value", int: "whole number"}


def _character(key: str) -> Meaning:
    def meaning(value: Any, span: Span | None) -> Mapping[str, Any]:
        if not isinstance(value, str) or len(value.replace("\\t", "\t")) != 1:
            raise UnsupportedError(f"{value!r} is not supported here: it takes one character", span)
        return {key: value.replace("\\t", "\t")}

    return meaning


def _one_of(key: str, *allowed: str) -> Meaning:
    """One of these; the first says nothing."""

    def meaning(value: Any, span: Span | None) -> Mapping[str, Any]:
        if value not in allowed:
            raise BindError(f"this option is one of {', '.join(map(repr, allowed))}, not {value!r}", span)
        return {} if value == allowed[0] else {key: value}

    return meaning


def _nothing_or_character(key: str) -> Meaning:
    """A character, or an empty text where there is none of the kind."""
    return lambda value, span: {key: ""} if value == "" else _character(key)(value, span)


def _delimiter(value: Any, span: Span | None) -> Mapping[str, Any]:
    """None, or some characters, of which a line may have none."""
    text = value.replace("\\t", "\t") if isinstance(value, str) else ""
    if not isinstance(value, str) or len(text.encode()) > _LONGEST_DELIMITER:
        raise BindError(f"a delimiter is a text of up to {_LONGEST_DELIMITER} bytes, not {value!r}", span)
    return {"delimiter": text}


_LONGEST_DELIMITER = 4


def _candidates(value: Any, span: Span | None) -> Mapping[str, Any]:
    if not isinstance(value, list) or not value:
        raise BindError("auto_type_candidates takes a list of types", span)
    types = [type_of_text(each, span) for each in value]
    for each in types:
        if each.kind not in CANDIDATES:
            raise UnsupportedError(f"{each} among the types that are looked for is not supported", span)
    return {"candidates": frozenset(each.kind for each in types)}


def _skip(value: Any, span: Span | None) -> Mapping[str, Any]:
    if not isinstance(value, int) or value < 0:
        raise BindError(f"skip takes a number of lines, not {value!r}", span)
    return {"skip": value}


def _limit(value: Any, span: Span | None) -> Mapping[str, Any]:
    if not isinstance(value, int) or value < 0:
        raise BindError(f"rejects_limit takes a number that is not negative, not {value!r}", span)
    return {"rejects_limit": value}


def _table_name(key: str) -> Meaning:
    def meaning(value: Any, span: Span | None) -> Mapping[str, Any]:
        if not isinstance(value, str) or not value:
            raise BindError(f"the name of a table is a text that is not empty, not {value!r}", span)
        return {key: value}

    return meaning


def _encoding(value: Any, span: Span | None) -> Mapping[str, Any]:
    try:
        return {"encoding": codecs.lookup(value).name}
    except (LookupError, TypeError):
        raise BindError(
            f"the encoding {value!r} is not known; 'utf-8', 'latin-1', 'utf-16' and 'cp1252' are", span
        ) from None


def _nulls(value: Any, span: Span | None) -> Mapping[str, Any]:
    return {"nulls": tuple([value] if isinstance(value, str) else value)}


def _names(value: Any, span: Span | None) -> Mapping[str, Any]:
    return {"names": tuple(value)}


def _types(value: Any, span: Span | None) -> Mapping[str, Any]:
    """By name, or a list in the order of the columns."""
    pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
    return {
        "typed": {
            lower_ascii(key) if isinstance(key, str) else key: type_of_text(each, span) for key, each in pairs
        }
    }


def _columns(value: Any, span: Span | None) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BindError("columns takes names with their types: {'a': 'INTEGER'}", span)
    types = {lower_ascii(name): type_of_text(each, span) for name, each in value.items()}
    return {"names": tuple(value), "typed": types, "types": tuple(types.values())}


def _json_columns(value: Any, span: Span | None) -> Mapping[str, Any]:
    said = _columns(value, span)
    if any(holds_kind(each, TypeKind.BIT) for each in said["types"]):
        raise UnsupportedError("BIT in a JSON file is not supported; read it as VARCHAR and cast it", span)
    return {"typed": said["typed"], "columns": said["names"]}


def _only(*allowed: Any) -> Meaning:
    """An option that has only one value here, which says nothing."""

    def meaning(value: Any, span: Span | None) -> Mapping[str, Any]:
        if value not in allowed:
            raise UnsupportedError(f"{value!r} for this option is not supported; it is {allowed[0]!r}", span)
        return {}

    return meaning


def _ignored(value: Any, span: Span | None) -> Mapping[str, Any]:
    return {}


def _filename(value: Any, span: Span | None) -> Mapping[str, Any]:
    """Whether there is a column "filename", or the name of that column."""
    if isinstance(value, str):
        return {"filename": value}
    (said,) = _one("filename", bool)(value, span).values()
    return {"filename": "filename" if said else ""}


def _hive_types(value: Any, span: Span | None) -> Mapping[str, Any]:
    typed = _types(value, span)
    return {**typed, "text_partitions": frozenset(typed["typed"])}


def _json_records(value: Any, span: Span | None) -> Mapping[str, Any]:
    if value not in (True, False, "auto", "true", "false"):
        raise BindError(f"records is true, false or 'auto', not {value!r}", span)
    return {} if value == "auto" else {"json_records": value in (True, "true")}


def _json_depth(value: Any, span: Span | None) -> Mapping[str, Any]:
    if not isinstance(value, int) or value < -1:
        raise BindError(f"maximum_depth takes a number of levels, or -1, not {value!r}", span)
    return {"json_depth": value}


def _format(key: str) -> Meaning:
    """A format of strptime; 'iso' says nothing."""
    meaning = _one(key, str)
    return lambda value, span: {} if value == "iso" else meaning(value, span)


def _never_null(value: Any, span: Span | None) -> Mapping[str, Any]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise BindError(f"force_not_null takes a list of names of columns, not {value!r}", span)
    return {"never_null": frozenset(map(lower_ascii, value))}


_ALL = {
    "filename": _filename,
    "union_by_name": _one("by_name", bool),
    "hive_partitioning": _one("hive", bool),
    "hive_types": _hive_types,
    "hive_types_autocast": lambda value, span: (
        {} if value in (True, 1, "true") else {"text_partitions": None}
    ),
}
_CSV: Mapping[str, Meaning] = {
    **_ALL,
    **dict.fromkeys(("delim", "delimiter", "sep"), _delimiter),
    "quote": _nothing_or_character("quote"),
    "escape": _one_of("escape", "", '"', "\\"),
    "comment": _nothing_or_character("comment"),
    "header": _one("header", bool),
    "skip": _skip,
    "auto_type_candidates": _candidates,
    **dict.fromkeys(("nullstr", "null"), _nulls),
    **dict.fromkeys(("names", "column_names"), _names),
    "columns": _columns,
    **dict.fromkeys(("types", "dtypes", "column_types"), _types),
    "all_varchar": lambda value, span: {"text_columns": None} if value in (True, 1, "true") else {},
    **dict.fromkeys(("dateformat", "date_format"), _one("date_format", str)),
    **dict.fromkeys(("timestampformat", "timestamp_format"), _one("timestamp_format", str)),
    "auto_detect": _one("finds_header", bool),
    "ignore_errors": _one("ignore_errors", bool),
    "store_rejects": _one("store_rejects", bool),
    "rejects_table": _table_name("rejects_errors"),
    "rejects_scan": _table_name("rejects_scans"),
    "rejects_limit": _limit,
    "strict_mode": _one("strict", bool),
    "null_padding": _one("null_padding", bool),
    "normalize_names": _one("normalize_names", bool),
    "force_not_null": _never_null,
    "allow_quoted_nulls": _one("quoted_nulls", bool),
    "encoding": _encoding,
    "decimal_separator": _one_of("decimal_separator", ".", ","),
    "thousands": _character("thousands"),
    "compression": _only("auto", "auto_detect", "gzip", "none", "zstd"),
    **dict.fromkeys(
        ("sample_size", "parallel", "buffer_size", "max_line_size", "maximum_line_size"),
        _ignored,
    ),
    **dict.fromkeys(("new_line", "files_to_sniff"), _ignored),
}
_OF_COLUMNS = (
    *("hive_types", "columns", "types", "dtypes", "column_types", "filename", "union_by_name"),
    *("force_not_null", "store_rejects", "rejects_table", "rejects_scan", "rejects_limit"),
)
_JSON: Mapping[str, Meaning] = {
    **_ALL,
    "format": _one_of("json_form", "auto", "array", "newline_delimited", "unstructured"),
    "ignore_errors": _only(False, 0),
    "compression": _only("auto", "auto_detect", "gzip", "none"),
    "maximum_object_size": _ignored,
}
#: By what is read; nothing else has options.
_KNOWN: Mapping[FileKind, Mapping[str, Meaning]] = {
    "csv": _CSV,
    "parquet": {
        **_ALL,
        "file_row_number": _one("row_numbers", bool),
        "binary_as_string": _only(False, 0),
        # the file says itself, or they are about estimates
        **dict.fromkeys(("compression", "parquet_version", "can_have_nan", "explicit_cardinality"), _ignored),
    },
    "json": {
        **_ALL,
        "columns": _json_columns,
        "format": _one_of("json_form", "auto", "array", "newline_delimited", "unstructured"),
        "auto_detect": _one("finds_columns", bool),
        "ignore_errors": _one("ignore_errors", bool),
        "records": _json_records,
        "maximum_depth": _json_depth,
        **dict.fromkeys(("dateformat", "date_format"), _format("date_format")),
        **dict.fromkeys(("timestampformat", "timestamp_format"), _format("timestamp_format")),
        "compression": _only("auto", "auto_detect", "gzip", "none"),
        "map_inference_threshold": _only(-1),
        "convert_strings_to_integers": _only(False, 0),
        **dict.fromkeys(("sample_size", "maximum_sample_files", "maximum_object_size"), _ignored),
    },
    "JSON values": _JSON,
    "JSON lines": {name: meaning for name, meaning in _JSON.items() if name != "format"},
    "CSV layout": {
        **{name: meaning for name, meaning in _CSV.items() if name not in _OF_COLUMNS},
        "auto_detect": _only(True, 1),
    },
}
