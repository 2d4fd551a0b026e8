"""The formats of files that are written, and their options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from tqp.core.datatypes import TICKS_PER_SECOND, TypeKind
from tqp.core.errors import BindError, UnsupportedError, nearest
from tqp.core.file_kinds import kind_of_name
from tqp.core.keywords import lower_ascii
from tqp.data.column import Table
from tqp.writing.csv_writer import CsvFormat, write_csv
from tqp.writing.json_writer import write_json
from tqp.writing.options import Options
from tqp.writing.parquet_writer import parquet_format, write_parquet
from tqp.writing.texts import TimeFormats

#: Writes tables to the file of a path, and says how many rows they have.
FileWriter = Callable[[Iterable[Table], str], int]

_SPELLINGS = {
    "delim": "delimiter",
    "sep": "delimiter",
    "nullstr": "null",
    "date_format": "dateformat",
    "timestamp_format": "timestampformat",
    "codec": "compression",
    "chunk_size": "row_group_size",
}
_TIMES = ("dateformat", "timestampformat")
OPTIONS_OF_FORMATS: Mapping[str, tuple[str, ...]] = {
    "csv": (
        "header", "delimiter", "quote", "escape", "null", "compression", "force_quote", "new_line", "prefix", "suffix", *_TIMES,
    ),
    "json": ("array", "compression", *_TIMES),
    "parquet": (
        "compression", "compression_level", "row_group_size", "row_group_size_bytes", "row_groups_per_file", "field_ids", "kv_metadata", "parquet_version",
    ),
}  # fmt: skip
_LONGEST_DELIMITER = 4
_ENDINGS = {"gzip": ".gz", "zstd": ".zst"}


def format_of(path: str, options: Options, others: Sequence[str]) -> str:
    """The format that is said, or that the name of the file tells; takes it out of the options, of which none but those of the
    format and `others` may be left."""
    options.rename(_SPELLINGS)
    name = lower_ascii(path).removesuffix(".gz").removesuffix(".zst")
    by_name = "json" if name.endswith((".json", ".ndjson", ".jsonl")) else kind_of_name(path)
    form = lower_ascii(str(options.take("format", by_name if by_name in OPTIONS_OF_FORMATS else "csv")))
    if form not in OPTIONS_OF_FORMATS:
        raise UnsupportedError(
            f"the format {form!r} is not supported; choose one of {', '.join(OPTIONS_OF_FORMATS)}"
        )
    known = (*OPTIONS_OF_FORMATS[form], *others)
    for option in options.left():
        if option not in known:
            raise UnsupportedError(
                f"the option {option.upper()} of {form} files is not supported{nearest(option, known)}"
            )
    return form


def ending_of(form: str, options: Options) -> str:
    """What the names of files of a format end in, without the dot."""
    compression = lower_ascii(str(options.get("compression")))
    return form if form == "parquet" else form + _ENDINGS.get(compression, "")


def file_writer(form: str, options: Options, names: Sequence[str]) -> FileWriter:
    """What writes files of a format, whose options it takes; `names`: of the columns in each file."""
    if form == "parquet":
        parquet = parquet_format(options, names)
        return lambda tables, path: write_parquet(tables, path, parquet)
    compression = options.take("compression")
    how = None if compression in (None, "none", "auto", "uncompressed", "auto_detect") else str(compression)
    formats = _time_formats(form, options)
    if form == "json":
        array = options.flag("array")
        return lambda tables, path: write_json(tables, path, array, how, formats)
    csv = _csv_format(options, names, formats)
    return lambda tables, path: write_csv(tables, path, csv, how)


def _csv_format(options: Options, names: Sequence[str], formats: TimeFormats) -> CsvFormat:
    if ("prefix" in options) != ("suffix" in options):
        raise BindError("PREFIX and SUFFIX of a CSV file go together")
    is_said = "header" in options
    has_header = options.flag("header", True)
    if "prefix" in options and is_said and has_header:
        raise BindError("a CSV file has no HEADER beside PREFIX and SUFFIX")
    quote = options.text("quote", '"')
    delimiter = options.text("delimiter", ",").replace("\\t", "\t")
    if len(delimiter.encode()) > _LONGEST_DELIMITER:
        raise BindError(
            f"the DELIMITER of a CSV file has up to {_LONGEST_DELIMITER} bytes, not {delimiter!r}"
        )
    return CsvFormat(
        has_header,
        delimiter,
        quote,
        options.text("escape", quote),
        options.text("null"),
        frozenset(options.columns("force_quote", names)),
        options.text("new_line").replace("\\r", "\r").replace("\\n", "\n") or "\n",
        options.text("prefix"),
        options.text("suffix"),
        formats,
    )


def _time_formats(form: str, options: Options) -> TimeFormats:
    """The formats of strftime() by the kinds of the columns that are written by them.

    A CSV file holds timestamps of seconds, milliseconds and nanoseconds as they are.
    """
    found: dict[TypeKind, str] = {}
    if "dateformat" in options:
        found[TypeKind.DATE] = options.text("dateformat")
    if "timestampformat" in options:
        kinds = (TypeKind.TIMESTAMP, TypeKind.TIMESTAMP_TZ) if form == "csv" else tuple(TICKS_PER_SECOND)
        found.update(dict.fromkeys(kinds, options.text("timestampformat")))
    return found
