"""What an expression of each family can look like: templates with holes, and one for every function tqp has.

`{int}` is an expression of that family, `{pattern}` a constant of a kind that `expressions` knows. Numbers of functions
whose last digits differ between engines are rounded.
"""

from __future__ import annotations

import re
from collections import defaultdict

from tests.random.values import FAMILY_OF
from tqp.core.datatypes import DataType, TypeKind
from tqp.planner.functions.overloads import Overload
from tqp.planner.functions.registry import (
    aggregate_names,
    aggregate_overloads,
    main_spelling,
    scalar_names,
    scalar_overloads,
)

#: Arguments that must be constants, or small: by function, position and kind of constant.
_CONSTANTS: dict[str, dict[int, str]] = {
    "regexp_matches": {1: "some_regex", 2: "options"},
    "regexp_full_match": {1: "some_regex", 2: "options"},
    "regexp_replace": {1: "some_regex", 2: "some_constant_text", 3: "replace_options"},
    "regexp_extract": {1: "some_regex", 2: "group", 3: "options"},
    **{name: {0: "some_part"} for name in ("date_part", "date_trunc", "date_diff", "date_sub")},
    **{name: {1: "some_pattern", 2: "escape"} for name in ("like_escape", "ilike_escape")},
    "strptime": {1: "format"},
    "try_strptime": {1: "format"},
    "timezone": {0: "zone"},
    "make_time": {0: "small", 1: "small"},
    "time_bucket": {0: "width"},
    "string_split_regex": {1: "regex", 2: "options"},
    "regexp_extract_all": {1: "regex", 2: "group", 3: "options"},
    "replace": {1: "some_constant_text", 2: "some_constant_text"},
    **{name: {1: "some_constant_text"} for name in ("trim", "ltrim", "rtrim", "split_part")},
    **{name: {1: "count", 2: "some_constant_text"} for name in ("lpad", "rpad")},
    "translate": {1: "some_constant_text", 2: "some_constant_text"},
    "repeat": {1: "count"},
    "factorial": {0: "count"},
    "binom": {0: "count", 1: "count"},
    "chr": {0: "code_point"},
    **{name: {1: "count"} for name in ("round", "round_even", "trunc", "<<", ">>", "left", "right")},
    "substring": {1: "count", 2: "count"},
    **{name: {1: "count", 2: "count"} for name in ("get_bit", "set_bit", "bitstring")},
    "make_date": {0: "year", 1: "small", 2: "small"},
    "make_timestamp": {0: "year", 1: "small", 2: "small", 3: "small", 4: "small"},
    "power": {1: "small"},
    "overlay": {2: "small", 3: "small"},
    "to_base": {1: "base", 2: "count"},
    **{name: {1: "separator"} for name in ("parse_dirname", "parse_dirpath")},
    "parse_filename": {1: "path_option", 2: "separator"},
    **{name: {1: "divisor"} for name in ("//", "%")},
}
#: Functions of DOUBLEs whose last digits differ between engines.
INEXACT = frozenset(
    "sqrt cbrt exp ln log log10 log2 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh degrees radians power atan2 cot gamma lgamma".split()
)
#: LIKE, ILIKE and GLOB, of which there are templates, and bit_position, which DuckDB answers wrongly of several bits.
_WITH_TEMPLATES = frozenset(("~~", "~~*", "~~~", "bit_position"))
#: Aggregates that take one of several rows, which are of one value here, and those whose text or list depends on the order of rows.
_OF_ONE_VALUE = frozenset(
    "any_value first last mode arg_min arg_max arg_min_null arg_max_null string_agg".split()
)
#: How those are written that a group of several values would leave open.
TAKES_ONE_VALUE = re.compile(
    r"\b(any_value|arbitrary|first|last|mode|arg_?\w*|\w+_by|\w+_agg|group_concat|listagg)\("
)
_LEFT_OUT = frozenset(
    "count_star list histogram histogram_exact approx_count_distinct approx_quantile reservoir_quantile sum_no_overflow arg_min_nulls_last arg_max_nulls_last mad bitstring_agg".split()
)
#: Aggregates whose last digits come of the order of rows; of one, or of two arguments.
INEXACT_AGGREGATES = frozenset(
    "fsum favg kahan_sum sumkahan sem skewness kurtosis kurtosis_pop entropy corr covar_pop covar_samp regr_avgx regr_avgy "
    "regr_sxx regr_syy regr_sxy regr_slope regr_intercept regr_r2".split()
)
_FAMILY_OF_PARAMETER = {"INTEGERS": "int", "ANY": "any"}

TEMPLATES: dict[str, tuple[str, ...]] = {
    "int": (
        *("({int} + {int})", "({int} - {int})", "({int} * {small})", "({int} * {int})", "(- {int})", "(+ {int})"),
        *("({int} % {int})", "({int} // {divisor})", "CAST({any} AS {integer_type})", "TRY_CAST({any} AS {integer_type})"),
        *("TRY_CAST({str} AS {integer_type})", "TRY_CAST({num} AS {integer_type})", "CAST({int} AS HUGEINT)"),
        *("extract({part_name} FROM {date})", "extract({part_name} FROM {ts})", "bit_length({str})", "- -{small}", "(@ {int} - {int})", "(abs({count})!)"),
        "TRY_CAST(CAST([{int}, {int}] AS VARCHAR) AS INTEGER[])[{small}]",
        *("timezone({timetz})", "timezone_minute({timetz})", "epoch_us({timetz})", "timetz_byte_comparable({timetz})"),
        *("try(get_bit({bit}, {count}))", "TRY_CAST({bit} AS {integer_type})", "bit_position(b'1', {bit})"),
        *("try({int} // {int})", "try(CAST({str} AS INTEGER))", "try({int} + 9223372036854775807)"),
        "list_transform([{int}, {int}], lambda x: try({int} // x))[{small}]",
        "equi_width_bins({small}, {small} + abs({int} % 1000), {count} + 1, {bool})[{small}]",
    ),
    "dec": (
        *("({dec} + {dec})", "({dec} - {int})", "({dec} * {dec})", "({dec} * {small})", "(- {dec})", "({dec} % {dec})"),
        *("TRY_CAST({any} AS {decimal_type})", "TRY_CAST({num} AS {decimal_type})", "TRY_CAST({str} AS {decimal_type})"),
        *("(@ {dec})", "CAST({num} AS {decimal_type})", "round({dec}, {count})", "({int} * {dec})"),
    ),
    "float": (
        *("({float} + {num})", "({float} - {float})", "({float} * {small})", "({num} / {num})", "({float} // {num})"),
        *("CAST({num} AS {float_type})", "TRY_CAST({str} AS {float_type})", "TRY_CAST({any} AS {float_type})", "pi()"),
        *("round(array_distance([{exact}, 1]::FLOAT[2], [0.5, 2]::FLOAT[2]), 3)", "({float} % {float})"),
    ),
    "str": (
        *("try({str})", "try(CAST({date} AS VARCHAR))", "(lower({str}) COLLATE NOCASE)", "upper(lower({str}) COLLATE NOCASE)"),
        *("({str} || {str})", "({str} || {any})", "CAST({any} AS VARCHAR)", "concat({any}, {any})", "typeof({any})"),
        *("concat_ws({constant_text}, {any}, {str}, {any})", "concat(NULL, {str})", "CAST({str} AS VARCHAR)"),
        *("string_split_regex({str}, '[0-9]+')[{small}]", "regexp_extract_all({str}, '[a-z]')[{small}]"),
        *("regexp_extract({str}, '([a-z])([0-9]?)', ['l', 'n']).n", "date_part(['month', 'day'], {date}).day::VARCHAR"),
        *("format('{}|{:>6}|{}', {int}, {str}, {date})", "printf('%5s|%d', {str}, {int})", "format('{:.2f}', {exact})"),
        *("TRY_CAST({str} AS {enum_type})", "TRY_CAST({any} AS {enum_type})"),
        *(
            "CAST(MAP {'a': {any}, 'b': NULL} AS VARCHAR)",
            "typeof(MAP {1: [{any}]})",
            "CAST(parse_path({str}) AS VARCHAR)",
            "CAST(ARRAY({subquery}) AS VARCHAR)",
            "list_reduce(list_filter([{str}, {str}], lambda e: e > {str}), lambda e, f: e || f || {any}, {str})",
            "CAST(struct_update(struct_insert({'a': {any}}, b := {any}), a := {any}) AS VARCHAR)",
            "CAST(struct_values(struct_concat({'a': {any}}, {'b': {any}})) AS VARCHAR)",
            "CAST(array_value({any}, NULL) AS VARCHAR)",
            "CAST(TRY_CAST(CAST([{any}] AS VARCHAR[]) AS VARCHAR[1]) AS VARCHAR)",
            "CAST(TRY_CAST({str} AS VARCHAR[]) AS VARCHAR)",
            "TRY_CAST(CAST([CAST({any} AS VARCHAR), {str}] AS VARCHAR) AS VARCHAR[])[{small}]",
            "TRY_CAST(CAST({'a': {str}, 'b': {any}} AS VARCHAR) AS STRUCT(b VARCHAR, a VARCHAR)).a",
            "CAST(TRY_CAST(CAST(MAP {{int}: {any}} AS VARCHAR) AS MAP(BIGINT, VARCHAR)) AS VARCHAR)",
            "typeof(array_value({any}))",
            "CAST(list_transform(list_distinct([{any}]), lambda k: MAP {k: k}) AS VARCHAR)",
            "CAST(CAST(MAP {'1': {any}, '02': NULL} AS MAP(INTEGER, VARCHAR)) AS VARCHAR)",
            "CAST(union_value(k := {any}) AS VARCHAR)",
            "CAST([union_value(k := {any}), {'a': union_value(k := {any})}.a] AS VARCHAR)",
            "CAST(union_tag(CASE WHEN {bool} THEN TRY_CAST({int} AS INTEGER)::UNION(n INTEGER, s VARCHAR) ELSE CAST({str} AS VARCHAR) END) AS VARCHAR)",
            "CAST(to_json(union_value(k := {small})) AS VARCHAR)",
            "typeof(union_value(k := {any}))",
            "({str})[{small}:{small}]",
            "({str})[{small}:]",
        ),
    ),
    "uuid": ("TRY_CAST({str} AS UUID)", "TRY_CAST({any} AS UUID)", "CAST(CAST({uuid} AS VARCHAR) AS UUID)"),
    "bit": (
        *("TRY_CAST({str} AS BIT)", "TRY_CAST({any} AS BIT)", "CAST({int} AS BIT)", "CAST({bool} AS BIT)", "CAST({float} AS BIT)"),
        *("try({bit} & {bit})", "try({bit} | {bit})", "try(xor({bit}, {bit}))", "TRY_CAST({blob} AS BIT)", "try(set_bit({bit}, {count}, {count}))"),
        *("TRY_CAST(({bit} || {bit}) AS BIT)", "try(bitstring({bit}, {count}))", "CAST(CAST({bit} AS VARCHAR) AS BIT)", "({bit} & (~{literal}))"),
    ),
    "blob": ("CAST({bit} AS BLOB)", "CAST({uuid} AS BLOB)", "CAST({str} AS BLOB)", "TRY_CAST({str} AS BLOB)", "({blob} || {blob})"),
    "date": (
        *("({date} + {small})", "({date} - {small})", "TRY_CAST({str} AS DATE)", "CAST({ts} AS DATE)"),
        *("TRY_CAST({any} AS DATE)", "CAST({tz} AS DATE)"),
    ),
    "time": ("TRY_CAST({str} AS TIME)", "CAST({ts} AS TIME)", "({time} + {interval})", "TRY_CAST({any} AS TIME)", "CAST({timetz} AS TIME)"),
    "timetz": (
        *("TRY_CAST({str} AS TIMETZ)", "CAST({ts} AS TIMETZ)", "({timetz} + {interval})", "TRY_CAST({any} AS TIMETZ)"),
        *("CAST({tz} AS TIMETZ)", "timezone(INTERVAL {small} HOUR, {timetz})", "CAST({time} AS TIMETZ)"),
    ),
    "ts": (
        *("({ts} + {interval})", "({date} - {interval})", "CAST({date} AS {timestamp_type})", "({date} + {time})"),
        *("TRY_CAST({str} AS {timestamp_type})", "TRY_CAST({ts} AS {timestamp_type})", "TRY_CAST({any} AS {timestamp_type})"),
        *("date_add({date}, {interval})", "({tz} AT TIME ZONE {zone})"),
    ),
    "tz": ("(CAST({ts} AS TIMESTAMP) AT TIME ZONE {zone})", "CAST({ts} AS TIMESTAMPTZ)", "TRY_CAST({str} AS TIMESTAMPTZ)", "CAST({date} AS TIMESTAMPTZ)", "({date} + {timetz})"),
    "interval": ("({interval} + {interval})", "({interval} * {small})", "({ts} - {ts})", "TRY_CAST({str} AS INTERVAL)", "(- {interval})"),
    "bool": (
        "try({bool})",
        "CAST({int} AS BOOLEAN)",
        "is_histogram_other_bin({any})",
        "TRY_CAST({any} AS BOOLEAN)",
        "xor({int}, {int}) = {small}",
        "today() > {date}",
        "{date} <= current_date",
    ),
}  # fmt: skip

#: Of JSON, whose texts stand in these as VARCHAR.
_JSON = "to_json({'a': {any}, 'b': [to_json({int}), to_json({str})], 'c': {'d': {any}}})"
for _family, _templates in {
    "str": (
        f"CAST({{json_change}}({_JSON}, {{json_path}}, to_json({{any}})) AS VARCHAR)",
        f"CAST(json_remove({_JSON}, {{json_path}}) AS VARCHAR)",
        f"CAST({{json_merge}}({_JSON}, to_json({{'c': {{any}}, 'b': {{any}}, 'a': {{any}}}})) AS VARCHAR)",
        f"json_normalize(json_strip_nulls({_JSON}))",
        f"(SELECT string_agg(concat(fullkey, '=', value), ',' ORDER BY id) FROM {{json_rows}}({_JSON}))",
        "json_transform(to_json([{any}, {str}]), '[\"VARCHAR\"]')[{small}]",
        f'json_transform({_JSON}, \'{{"b": ["VARCHAR"]}}\').b[{{small}}]',
    ),
    "int": (
        "json_transform(to_json({any}), '\"BIGINT\"')",
        "TRY_CAST(to_json({any}) AS {integer_type})",
        f"(SELECT sum(id) FROM {{json_rows}}({_JSON}, '$.b'))",
    ),
    "float": ("json_transform(to_json({any}), '\"DOUBLE\"')", "TRY_CAST(to_json({str}) AS {float_type})"),
    "date": ("json_transform(to_json({any}), '\"DATE\"')",),
    "bool": (f"EXISTS (SELECT * FROM {{json_rows}}({_JSON}) WHERE type = 'UBIGINT')",),
}.items():
    TEMPLATES[_family] += _templates

#: Any family can look like this; {same} is an expression of the same family.
_NESTED = (TypeKind.LIST, TypeKind.STRUCT, TypeKind.MAP)

GENERAL = (
    *("CASE WHEN {bool} THEN {same} END", "CASE WHEN {bool} THEN {same} ELSE {same} END"),
    "CASE WHEN {bool} THEN {literal} WHEN {bool} THEN {same} END",
    "CASE WHEN {bool} THEN {same} WHEN {bool} THEN {literal} WHEN {bool} THEN {same} ELSE {literal} END",
    *(
        "CASE {int} WHEN {small} THEN {same} WHEN {int} THEN {same} ELSE {same} END",
        "coalesce({same}, {same})",
    ),
    *("coalesce({same}, {same}, {literal})", "ifnull({same}, {same})", "nullif({same}, {same})"),
    *(
        "if({bool}, {same}, {same})",
        "greatest({same}, {same})",
        "least({same}, {same}, {literal})",
        "({subquery})",
    ),
    *("CASE WHEN {bool} THEN {guarded} END", "({same})", "CASE WHEN NULL THEN {same} ELSE {same} END"),
    # nested values
    *("[{same}, {same}][{small}]", "([{same}, NULL] || [{same}])[{small}]", "({'a': {same}, 'b': {any}}).a"),
    *("list_sort([{same}, {same}, {same}])[2]", "list_reverse_sort([{same}, {same}], 'NULLS FIRST')[1]"),
    *(
        "list_filter([{same}, {same}], lambda e: e IS NOT NULL)[1]",
        "list_reduce([{same}, {same}, {same}], lambda e, f, place: CASE WHEN place = {small} THEN {same} ELSE f END)",
        "list_reduce([{same}, {same}], lambda e, f: coalesce(e, f), {same})",
        "[[{same}], [{same}, {same}]][2][{small}]",
    ),
    "list_transform([{same}, {same}], lambda e, place: {'e': e, 'p': place})[{small}].e",
    *(
        "MAP {1: {same}, 2: {same}, -1: {same}}[{small}]",
        "map(['a', 'b'], [{same}, {same}])[{constant_text}]",
    ),
    "list_transform(list_sort(list_distinct([{same}, {same}])), lambda k: MAP {k: k})[1][{same}]",
    *(
        "map_concat(MAP {1: {same}, 2: {same}}, MAP {2: {same}, 0: {same}})[{small}]",
        "map_values(MAP {'k': {same}, 'l': {same}})[{small}]",
        "map_extract(map_from_entries([('p', {same}), ('q', {same})]), 'q')[1]",
        "(MAP {'k': {same}, 'l': {same}}).l",
    ),
    *("list_reverse([{same}, {same}])[1:2][{small}]", "flatten([[{same}], NULL, [{same}]])[{small}]"),
    *("list_min([{same}, {same}])", "list_max([{same}, {same}])"),
    "[e FOR e IN [{same}, {same}] IF e IS NOT NULL][{small}]",
    "flatten([[e FOR e IN l IF {bool}] FOR l IN [[{same}], NULL, [{same}, {same}]]])[{small}]",
    "list_transform([[{same}], [{same}, NULL]], lambda l, i: list_transform(l, lambda e, j: if(i = j, e, {same})))[{small}][1]",
    "list_reduce([[{same}], [{same}, {same}]], lambda a, l: a || l)[{small}]",
    "list_sort([[{same}, NULL], [{same}]], 'DESC')[1][1]",
    "list_transform(map_entries(MAP {1: {same}, 2: {same}}), lambda e: if(e.key = {small}, e.value, {same}))[1]",
    "element_at(MAP {'a': {same}, 'b': {same}}, {constant_text})[1]",
    "map_keys(MAP {{same}: 1})[1]",
    *(
        "union_extract(union_value(k := {same}), 'k')",
        "(CASE WHEN {bool} THEN union_value(k := {same}) ELSE union_value(k := {same}) END).k",
        "[union_value(k := {same}), NULL, union_value(k := {same})][{small}].k",
        "list_sort([union_value(k := {same}), union_value(k := {same})])[1].k",
    ),
    *(
        "list_zip([{same}, {same}], [{small}])[{small}][1]",
        "array_value({same}, {same}, {same})[{small}]",
        "list_select([{same}, {same}], [{small}, 1])[{small}]",
        "list_where([{same}, {same}, {same}], [true, false, true, true])[{small}]",
        "list_resize([{same}, {same}], 3, {same})[{small}]",
        "list_intersect([{same}, {same}], [{same}])[1]",
        "repeat([{same}, {same}], 2)[{small}]",
        "list_first([{same}, {same}])",
        "list_last([{same}, {same}])",
    ),
)

PREDICATES = (
    *(
        "({bool} AND {bool})",
        "({bool} OR {bool})",
        "({bool} OR {bool})",
        "(NOT {bool})",
        "({bool} AND NOT {bool})",
    ),
    *("({x} {compare} {x})",) * 4,
    *("({num} {compare} {num})", "({num} {compare} {num})", "({x} {not}BETWEEN {x} AND {x})"),
    *(
        "({x} {not}IN ({x_literal}, {x_literal}, {x_literal}))",
        "({x} {not}IN ({x}, {x}))",
        "({x} IS {not}NULL)",
    ),
    *(
        "({any} IS {not}NULL)",
        "({bool} IS {not}TRUE)",
        "({bool} IS {not}FALSE)",
        "({x} IS {not}DISTINCT FROM {x})",
    ),
    *(
        "coalesce({bool}, {truth})",
        "ifnull({bool}, {truth})",
        "coalesce(({x} {compare} {x} OR {bool}), {truth})",
    ),
    "coalesce(({x} BETWEEN {x} AND {x} AND {bool}), {truth})",
    *(
        "coalesce(({x} {not}IN ({x}, {x})), {truth})",
        "nullif({bool}, {truth})",
        "({str} {not}LIKE {some_pattern})",
        "({str} {not}GLOB {some_glob})",
        "({str} COLLATE {collation} {compare} {str})",
        "({str} COLLATE {collation} {not}IN ({str}, {str}, {constant_text}))",
        "({str} COLLATE NOCASE {not}BETWEEN {str} AND {constant_text})",
        "({str} {not}LIKE {some_pattern} COLLATE {collation})",
        "(coalesce({str} COLLATE {collation}, {str}) || {str} {compare} {str})",
        "(CASE WHEN {bool} THEN {str} ELSE {str} COLLATE {collation} END {compare} {str})",
        "([{str} COLLATE {collation}][{small}] {compare} {str})",
        "contains({str} COLLATE {collation}, {str})",
        "({str} {compare} (SELECT {str} COLLATE {collation}))",
        "({str} {order} {quantifier} (SELECT {str} COLLATE NOCASE UNION SELECT {str}))",
        "list_contains([{str} COLLATE NOCASE, {str}], {str})",
        "(substring({str} COLLATE {collation}, {small}, {count}) {order} {str})",
    ),
    *(
        "({str} {not}ILIKE {some_pattern})",
        "({str} SIMILAR TO {some_regex})",
        "({str} LIKE {pattern} ESCAPE {escape})",
    ),
    *(
        "(({x}, {int}) {order} ({x}, {small}))",
        "(({int}, {x}) {not}BETWEEN ({small}, {x}) AND ({int}, {x_literal}))",
    ),
    *("(({x}, {int}) = ({x}, {small}))", "(({x}, {int}) {not}IN (({x}, {small}), ({x_literal}, {int})))"),
    *("({not}EXISTS ({exists}))", "({x} {not}IN ({x_rows}))", "({x} {compare} ({x_subquery}))"),
    *("([{x}, {x}] {compare} [{x}, {x}])", "({'a': {x}, 'b': {int}} {compare} {'a': {x}, 'b': {int}})"),
    *(
        "list_contains([{x}, {x}], {x})",
        "struct_contains(row({x}, {any}), {x})",
        "(struct_position(row({any}, {x}), {x}) = {small})",
        "([{x}] IS {not}DISTINCT FROM [{x}])",
        "({x} {order} {quantifier} ([{x}, {x}]))",
    ),
    *(
        "(MAP {1: {x}, 2: {x}} {compare} MAP {1: {x}, 2: {x}})",
        "(MAP {'a': {x}} IS {not}DISTINCT FROM MAP {'a': {x}})",
        "map_contains_value(MAP {1: {x}, 2: {x}}, {x})",
        "map_contains_entry(MAP {1: {x}}, {small}, {x})",
        "map_contains(list_transform(list_sort(list_distinct([{x}, {x}])), lambda k: MAP {k: 1})[1], {x})",
    ),
    *(
        "(union_value(k := {x}) {compare} union_value(k := {x}))",
        "(union_value(k := {x}) IS {not}DISTINCT FROM union_value(k := {x}))",
        "(union_value(k := {x}) {not}IN (union_value(k := {x}), union_value(k := {x_literal})))",
        "(union_value(k := {x}) {not}BETWEEN union_value(k := {x}) AND union_value(k := {x}))",
        "([union_value(k := {x})] {compare} [union_value(k := {x})])",
        "list_contains([union_value(k := {x}), union_value(k := {x})], union_value(k := {x}))",
        "(CASE WHEN {bool} THEN 'x'::UNION(n INTEGER, s VARCHAR) ELSE TRY_CAST({int} AS INTEGER) END = TRY_CAST({int} AS INTEGER))",
        "(CASE WHEN {bool} THEN 'x'::UNION(n INTEGER, s VARCHAR) ELSE CAST({str} AS VARCHAR) END {compare} 'k')",
        "(union_value(k := union_value(l := {x})) {compare} union_value(k := union_value(l := {x})))",
    ),
    *(
        "list_has_any([{x}, {x}], [{x}])",
        "(array_value({x}, {x}) {compare} array_value({x}, {x}))",
        "({x} IN array_value({x}, {x}))",
        "list_has_all([{x}, {x}], [{x}])",
        "([{x}] && [{x}, {x}])",
        "([{x}] <@ [{x}, {x}])",
        "(len(list_grade_up([{x}, {x}, {x}])) = {small})",
    ),
    *("(list_position([{x}, {x}], {x}) = {small})", "(len(list_distinct([{x}, {x}])) = {small})"),
    *("({x} {order} {quantifier} ({x_rows}))", "({str} {compare} {any})", "({any} {compare} {any})"),
)


def _function_templates() -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """Calls of every function of the function table by family of result: scalar ones and aggregates."""
    scalars: defaultdict[str, list[str]] = defaultdict(list)
    aggregates: defaultdict[str, list[str]] = defaultdict(list)
    for name in scalar_names():
        if name in _WITH_TEMPLATES:
            continue
        for overload in scalar_overloads(name) or ():
            if any(
                isinstance(each, DataType) and each.kind is TypeKind.TIMESTAMP_TZ
                for each in overload.parameters
            ):
                continue  # in DuckDB they come with an extension
            if any(
                isinstance(each, DataType) and each.kind in _NESTED
                for each in (*overload.parameters, overload.result)
            ):
                continue  # see the templates of nested values
            parameters = _parameters(overload, main_spelling(name))
            call = f"{name}({', '.join(parameters)})"
            if not name.isidentifier():
                call = (
                    f"({name} {parameters[0]})"
                    if len(parameters) == 1
                    else f"({parameters[0]} {name} {parameters[1]})"
                )
            family = _result_family(overload)
            is_inexact = main_spelling(name) in INEXACT or name.startswith("array_")
            rounded = f"round({call}, 3)" if is_inexact else call
            scalars[family].append(rounded)
    for name in aggregate_names():
        main = main_spelling(name)
        for overload in aggregate_overloads(name) or () if main not in _LEFT_OUT else ():
            first, *others = _parameters(overload, main)
            if main in _OF_ONE_VALUE:
                first = "{key}"
            elif first == "{float}" and main not in ("min", "max", "count", "median"):
                first = "{exact}"
            others = ["{exact}" if each == "{float}" else each for each in others]
            if main.startswith("quantile"):
                others = ["{fraction}"]
            elif main == "string_agg":
                others = ["', '" for _ in others]
            if main == "quantile_cont" and first != "{exact}":
                continue  # DuckDB computes these through DOUBLEs
            family = "str" if main == "string_agg" else _result_family(overload)
            distinct = "" if main in _OF_ONE_VALUE or others else "{distinct}"
            aggregates[family].append(f"{name}({distinct}{', '.join((first, *others))})")
    aggregates["int"] += [
        "cardinality(histogram({any}))",
        "list_sum(map_values(histogram({distinct}{any})))",
        "histogram({int})[{small}]",
        "histogram({int}, [{small}, {small}])[{small}]",
        "list_sum(map_values(histogram({distinct}{str}, [{constant_text}, {constant_text}])))",
        "cardinality(histogram_exact({exact}, [{small}, {small}]))",
        "list_sum(map_values(histogram_exact({date}, ['2000-01-01', '2001-05-05']))[:1])",
    ]
    aggregates["int"] += ["len(list({any}))", "list_unique(list({any}))", "list_sum(list({int}))"]
    aggregates["int"] += [
        "quantile_disc({int}, [{fraction}, {fraction}])[{small}]",
        "reservoir_quantile({distinct}{int}, {fraction}, 400000)",
        "list_sum(max({distinct}{int}, 2))",
        "len(min({any}, 3))",
        "max([{int}, {int}])[{small}]",
        "min({'a': {int}, 'b': {any}}).a",
        "cardinality(histogram({distinct}[{any}]))",
        "len(list(DISTINCT {'a': {int}}))",
        "median([{int}])[1]",
        "quantile_disc({'a': {int}}, {fraction}).a",
        "arg_max({key}, [{int}])",
    ]
    aggregates["bit"] += [
        "bitstring_agg({distinct}{int} % 7, -6, 9)",
        "bit_xor({distinct}try(bitstring({bit}, 33)))",
        "bit_or({int}::BIGINT::BIT)",
    ]
    aggregates["str"] += ["min({str}, 2)[1]", "max({'a': {str}, 'b': {int}}).a"]
    aggregates["int"] += ["count(*)", "count_if({bool})", "count(DISTINCT {any})"]
    return {key: tuple(value) for key, value in scalars.items()}, {
        key: tuple(value) for key, value in aggregates.items()
    }


def _parameters(overload: Overload, name: str) -> list[str]:
    constants = _CONSTANTS.get(name, {})
    parameters = list(overload.parameters)
    if "days" in overload.canonical or overload.canonical == "to_interval":
        constants = {index: "small" for index, each in enumerate(parameters) if _family(each) == "int"}
    if name == "strftime":
        format_position = 1 if parameters[0] != parameters[-1] and not overload.swapped else 0
        constants = {format_position: "format"}
    return [f"{{{constants.get(index) or _family(each)}}}" for index, each in enumerate(parameters)]


def _family(parameter: DataType | str) -> str:
    if isinstance(parameter, str):
        return _FAMILY_OF_PARAMETER[parameter]
    if parameter.kind is TypeKind.DECIMAL:
        return "dec"
    if parameter.kind is TypeKind.ARRAY:
        return "array"
    return FAMILY_OF.get(parameter.kind.value, "int")


def _result_family(overload: Overload) -> str:
    if isinstance(overload.result, DataType):
        return _family(overload.result)
    if overload.result == "similarity":
        return "float"
    family = _family(overload.parameters[0])
    return "same" if family == "any" else family


CALLS, AGGREGATE_CALLS = _function_templates()
