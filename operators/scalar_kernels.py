"""Which kernel implements a scalar function for given types: the one place where the tables of all modules meet."""

from __future__ import annotations

from tqp.core.datatypes import DataType
from tqp.core.errors import UnsupportedError, nearest
from tqp.operators.groups.averages import AVERAGE_KERNELS
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.nested.bins import BIN_KERNELS
from tqp.operators.nested.functions import FUNCTION_KERNELS
from tqp.operators.nested.hashes import HASH_KERNELS
from tqp.operators.nested.lists import LIST_KERNELS
from tqp.operators.nested.maps import MAP_KERNELS
from tqp.operators.nested.regexp_lists import REGEXP_LIST_KERNELS
from tqp.operators.nested.several import SEVERAL_KERNELS
from tqp.operators.nested.unions import UNION_KERNELS
from tqp.operators.numbers.extremes import EXTREME_KERNELS
from tqp.operators.numbers.integers import INTEGER_KERNELS
from tqp.operators.numbers.math import MATH_KERNELS
from tqp.operators.numbers.random_numbers import RANDOM_KERNELS
from tqp.operators.numbers.unsigned_wide import UNSIGNED_WIDE_KERNELS
from tqp.operators.numbers.wide_forms import fix_form
from tqp.operators.strings.bit_strings import BIT_KERNELS
from tqp.operators.strings.digits import DIGIT_KERNELS
from tqp.operators.strings.distances import DISTANCE_KERNELS
from tqp.operators.strings.functions import STRING_KERNELS
from tqp.operators.strings.recoded import RECODED_KERNELS
from tqp.operators.temporal.ages import AGE_KERNELS
from tqp.operators.temporal.clocks import CLOCK_KERNELS
from tqp.operators.temporal.date_parts import DATE_PART_KERNELS
from tqp.operators.temporal.date_spans import SPAN_KERNELS
from tqp.operators.temporal.epochs import EPOCH_KERNELS
from tqp.operators.temporal.functions import FORMAT_KERNELS
from tqp.operators.temporal.intervals import INTERVAL_KERNELS
from tqp.operators.temporal.time_buckets import BUCKET_KERNELS
from tqp.operators.temporal.zones import ZONE_KERNELS
from tqp.operators.text.bit_casts import BIT_CAST_KERNELS
from tqp.operators.text.json_functions import JSON_KERNELS
from tqp.operators.text.nested_texts import NESTED_TEXT_KERNELS
from tqp.operators.text.printed import PRINTED_KERNELS
from tqp.operators.text.sizes import SIZE_KERNELS
from tqp.operators.text.uuids import UUID_KERNELS
from tqp.operators.vectors import VECTOR_KERNELS

_KERNELS: dict[str, Overload] = {
    **MATH_KERNELS,
    **INTEGER_KERNELS,
    **UNSIGNED_WIDE_KERNELS,
    **EXTREME_KERNELS,
    **AVERAGE_KERNELS,
    **RANDOM_KERNELS,
    **DATE_PART_KERNELS,
    **SPAN_KERNELS,
    **AGE_KERNELS,
    **BUCKET_KERNELS,
    **ZONE_KERNELS,
    **EPOCH_KERNELS,
    **FORMAT_KERNELS,
    **INTERVAL_KERNELS,
    **STRING_KERNELS,
    **DIGIT_KERNELS,
    **DISTANCE_KERNELS,
    **RECODED_KERNELS,
    **SIZE_KERNELS,
    **UUID_KERNELS,
    **BIT_KERNELS,
    **BIT_CAST_KERNELS,
    **CLOCK_KERNELS,
    **PRINTED_KERNELS,
    **VECTOR_KERNELS,
    **LIST_KERNELS,
    **FUNCTION_KERNELS,
    **HASH_KERNELS,
    **REGEXP_LIST_KERNELS,
    **MAP_KERNELS,
    **UNION_KERNELS,
    **BIN_KERNELS,
    **SEVERAL_KERNELS,
    **JSON_KERNELS,
    **NESTED_TEXT_KERNELS,
}

#: Every function that `resolve` knows.
SCALAR_FUNCTIONS: frozenset[str] = frozenset(_KERNELS)


def resolve(function: str, argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
    """The kernel of a function for bound types; raises UnsupportedError naming the function if there is none."""
    overload = _KERNELS.get(function)
    if overload is None:
        raise UnsupportedError(f'The function "{function}" is not supported' + nearest(function, _KERNELS))
    kernel = overload(argument_types, result_type)
    if kernel is None:
        types = ", ".join(str(data_type) for data_type in argument_types)
        raise UnsupportedError(f'The function "{function}" has no form for ({types})')
    return fix_form(kernel, result_type)
