"""Arithmetic of integers, decimals and floats: + - * / // %, bits and rounding, with ranges, overflow and exact folding."""

from __future__ import annotations

import math
import operator as operators
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tqp.core.datatypes import VARCHAR, TypeKind
from tqp.core.errors import ExecutionError
from tqp.planner.algebra.expressions import Call, Expression, Literal, Parameter
from tqp.planner.functions.declaration import Fold, Infix, RangeRule, ScalarFunction, Work, scalar
from tqp.planner.functions.literal_casts import cast_value
from tqp.planner.functions.ranges import Range, Ranges, added, operand, operands_of, subtracted, within

_NUMBERS = ("INTEGERS -> same", "FLOAT -> FLOAT", "DOUBLE -> DOUBLE", "DECIMAL -> same")
_SIGNED = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT")
#: The least HUGEINT.
_LEAST = -(2**127)


def _pair(decimal_rule: str) -> tuple[str, ...]:
    return (
        "INTEGERS INTEGERS -> same",
        "FLOAT FLOAT -> FLOAT",
        "DOUBLE DOUBLE -> DOUBLE",
        f"DECIMAL DECIMAL -> {decimal_rule}",
    )


# ---- ranges ----


def _multiply(call: Call, ranges: Ranges) -> Range | None:
    left, right = (operand(known, each.data_type) for known, each in zip(ranges, call.arguments, strict=True))
    exact = sum(argument.data_type.scale for argument in call.arguments) == call.data_type.scale
    if left is None or right is None or not exact:
        return None
    corners = [x * y for x in left for y in right]
    return min(corners), max(corners)


def _negate(call: Call, ranges: Ranges) -> Range | None:
    known = operand(ranges[0], call.arguments[0].data_type)
    return None if known is None else (-known[1], -known[0])


def _absolute(call: Call, ranges: Ranges) -> Range | None:
    known = operand(ranges[0], call.arguments[0].data_type)
    if known is None:
        return None
    low, high = known
    return (0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))


def _modulo(call: Call, ranges: Ranges) -> Range | None:
    """The result takes the dividend's sign and is smaller than the divisor."""
    if (operands := operands_of(call, ranges)) is None:
        return None
    (low, high), (c, d) = operands
    largest = max(abs(c), abs(d), 1) - 1
    return max(min(low, 0), -largest), min(max(high, 0), largest)


def _integer_divide(call: Call, ranges: Ranges) -> Range | None:
    """Truncates towards zero; a zero divisor raises."""
    if not call.data_type.is_integer or (operands := operands_of(call, ranges)) is None:
        return None
    (low, high), (c, d) = operands
    if low >= 0 and d > 0 and c >= 0:
        return low // d, high // max(c, 1)
    largest = max(abs(low), abs(high))
    return -largest, largest


def _round(call: Call, ranges: Ranges) -> Range | None:
    """round, floor, ceil, trunc to zero or more digits move a value by less than one."""
    known = operand(ranges[0], call.arguments[0].data_type)
    if known is None or not call.data_type.is_integer_like:
        return None
    if len(call.arguments) > 1:
        digits = call.arguments[1]
        if not isinstance(digits, Literal) or type(digits.value) is not int or digits.value < 0:
            return None
    source, target = call.arguments[0].data_type.scale, call.data_type.scale
    if source == 0 and target == 0:
        return known
    unit, scale = 10**source, 10**target
    return (known[0] * scale // unit) - scale, -(-known[1] * scale // unit) + scale


_HIGHEST_FACTORIAL = 33  # that fits HUGEINT


def _factorial(call: Call, ranges: Ranges) -> Range | None:
    low, high = ranges[0] or (0, _HIGHEST_FACTORIAL)
    bounds = (min(max(each, 0), _HIGHEST_FACTORIAL) for each in (low, high))
    first, last = map(math.factorial, bounds)
    return first, last


# ---- errors ----


def _no_factorial(call: Call, ranges: Ranges, result: Range | None) -> bool:
    known = ranges[0]
    return known is None or known[0] < 0 or known[1] > _HIGHEST_FACTORIAL


def _overflows(call: Call, ranges: Ranges, result: Range | None) -> bool:
    """Arithmetic of integers and decimals, unless the ranges of its operands keep it in its type's bounds."""
    return call.data_type.is_integer_like and not within(result, call.data_type)


def _division_raises(call: Call, ranges: Ranges, result: Range | None) -> bool:
    """A zero divisor, or the one quotient that does not fit; the remainder of two floats has neither."""
    dividend, divisor = call.arguments
    if call.data_type.is_float:
        is_zero = divisor.value == 0 if isinstance(divisor, Literal) else not isinstance(divisor, Parameter)
        return call.function != "modulo" and is_zero
    known = operand(ranges[1], divisor.data_type)
    if known is None or known[0] <= 0 <= known[1]:
        return True
    low = operand(ranges[0], dividend.data_type)
    return known[0] <= -1 <= known[1] and (low is None or low[0] <= dividend.data_type.bounds[0])


# ---- calls of literals ----


def _checked(call: Call, value: Any, sign: str) -> Any:
    """Arithmetic results: DuckDB raises where an integer or decimal leaves its type."""
    if isinstance(value, int):
        low, high = call.data_type.bounds
        if not low <= value <= high:
            shown = f" {sign} ".join(_show(argument) for argument in call.arguments)
            raise ExecutionError(
                f"overflow: {shown} does not fit {call.data_type}; cast an operand to a wider type first"
            )
    return value


def _show(argument: Expression) -> str:
    if isinstance(argument, Literal) and isinstance(argument.value, int):
        return str(cast_value(argument.value, argument.data_type, VARCHAR))
    return str(getattr(argument, "value", argument))


def _product(left: Any, right: Any) -> Any:
    """As `wide.multiply` has it: of magnitudes, so that -(2**127) is out of reach unless an operand is that number."""
    product = left * right
    is_minimum = product == _LEAST and type(product) is int and _LEAST not in (left, right)
    return product - 1 if is_minimum else product


def _is_float32(call: Call) -> bool:
    return call.data_type.kind is TypeKind.FLOAT


def _folded(sign: str, compute: Callable[..., Any]) -> Callable[..., Any]:
    """Of integers, decimals and doubles; floats of 32 bits are left to the kernels."""
    return lambda call, *values: (
        NotImplemented if _is_float32(call) else _checked(call, compute(*values), sign)
    )


def _fold_trunc(call: Call, value: Any, *digits: Any) -> Any:
    if digits or not isinstance(value, float):
        return NotImplemented
    return math.copysign(math.trunc(value), value) if math.isfinite(value) else value


def _fold_negate(call: Call, value: Any) -> Any:
    return _checked(call, -value, "negated")


def _fold_divide(call: Call, left: float, right: float) -> Any:
    return NotImplemented if _is_float32(call) or right == 0 else left / right


def _fold_integer_divide(call: Call, left: Any, right: Any) -> Any:
    if not isinstance(left, int) or not isinstance(right, int) or right == 0:
        return NotImplemented
    quotient = abs(left) // abs(right)
    return _checked(call, quotient if (left < 0) == (right < 0) else -quotient, "//")


def _fold_modulo(call: Call, left: Any, right: Any) -> Any:
    if not isinstance(left, int) or not isinstance(right, int) or right == 0:
        return NotImplemented
    if right == -1:
        _checked(call, -left, "%")  # DuckDB divides, and the quotient of the smallest value does not fit
    rest = abs(left) % abs(right)
    return rest if left >= 0 else -rest


def _operation(name: str, infix: Infix, decimal_rule: str, range: RangeRule, compute: Any) -> ScalarFunction:
    """+, - and *."""
    fold = _folded(infix.operator, compute)
    lines = _pair(decimal_rule)
    return scalar(
        name,
        *lines,
        raises=_overflows,
        range=range,
        fold=fold,
        work=Work.ARITHMETIC,
        infix=infix,
        constants_vary=True,
    )


def _division(name: str, infix: Infix, lines: Sequence[str], fold: Fold, **facts: Any) -> ScalarFunction:
    return scalar(name, *lines, fold=fold, work=Work.CALCULATION, infix=infix, constants_vary=True, **facts)


_OF_FLOATS = ("FLOAT FLOAT -> FLOAT", "DOUBLE DOUBLE -> DOUBLE")
_TO_WHOLE = ("DECIMAL -> whole", "FLOAT -> FLOAT", "DOUBLE -> DOUBLE")
_TO_DIGITS = ("FLOAT INTEGER -> FLOAT", "DOUBLE INTEGER -> DOUBLE")


def _leaves_64_bits(call: Call, *_: object) -> bool:
    return call.data_type.kind is not TypeKind.HUGEINT


def _of_unsigned() -> Iterator[ScalarFunction]:
    """The same of UHUGEINT, which is stored in another way."""
    pair = "UHUGEINT UHUGEINT -> UHUGEINT"
    for name, spellings, infix in (
        ("add_unsigned", "add", Infix("+", 6, is_associative=True)),
        ("subtract_unsigned", "subtract", Infix("-", 6)),
        ("multiply_unsigned", "multiply", Infix("*", 7, is_associative=True)),
        ("divide_unsigned", "// divide", Infix("//", 7)),
        ("modulo_unsigned", "% mod", Infix("%", 7)),
    ):
        yield scalar(name, f"{spellings}: {pair}", raises=True, infix=infix, work=Work.CALCULATION)
    yield scalar("negate_unsigned", "-: UHUGEINT -> UHUGEINT", raises=True)
    yield scalar("magnitude_of_unsigned", "abs: UHUGEINT -> UHUGEINT", "trunc: UHUGEINT -> UHUGEINT")
    yield scalar("sign_of_unsigned", "sign: UHUGEINT -> TINYINT", range=lambda *_: (0, 1))
    yield scalar("trunc_unsigned", "trunc: UHUGEINT INTEGER -> UHUGEINT", work=Work.CALCULATION)
    for name, spelling in (("and", "&"), ("or", "|"), ("xor", "xor"), ("shift_right", ">>")):
        yield scalar(f"{name}_unsigned", f"{spelling}: {pair}")
    yield scalar("shift_left_unsigned", f"<<: {pair}", raises=True)
    yield scalar("not_unsigned", "~: UHUGEINT -> UHUGEINT")


_OF_LARGE = ("BIGINT BIGINT -> BIGINT", "HUGEINT HUGEINT -> HUGEINT")

ARITHMETIC = (
    _operation("add", Infix("+", 6, is_associative=True), "sum", added, operators.add),
    _operation("subtract", Infix("-", 6), "sum", subtracted, operators.sub),
    _operation("multiply", Infix("*", 7, is_associative=True), "product", _multiply, _product),
    scalar(
        "negate",
        *(f"-: {line}" for line in _NUMBERS),
        raises=_overflows,
        range=_negate,
        fold=_fold_negate,
        work=Work.ARITHMETIC,
    ),
    _division("divide", Infix("/", 7), [f"/: {line}" for line in _OF_FLOATS], _fold_divide),
    _division(
        "integer_divide",
        Infix("//", 7),
        [f"// divide: {line}" for line in ("INTEGERS INTEGERS -> same", *_OF_FLOATS)],
        _fold_integer_divide,
        raises=_division_raises,
        range=_integer_divide,
    ),
    _division(
        "modulo",
        Infix("%", 7),
        [f"% mod: {line}" for line in _pair("remainder")],
        _fold_modulo,
        raises=_division_raises,
        range=_modulo,
    ),
    _division("modulo_of_decimals", Infix("%", 7), (), _fold_modulo, raises=_division_raises),
    scalar(
        "average", work=Work.CALCULATION
    ),  # a sum and a count, which is 0 where the sum is NULL; no SQL calls it
    # of samples: a number from 0 to 2**62 for each row, another in each run, or by the row's number and a seed
    *(
        scalar(name, work=Work.CALCULATION, range=lambda *_: (0, 2**62 - 1), is_random=True)
        for name in ("random_number", "seeded_number")
    ),
    scalar("abs", *_NUMBERS, raises=_overflows, range=_absolute, work=Work.CALCULATION),
    scalar("sign", "INTEGERS -> TINYINT", "FLOAT -> TINYINT", "DOUBLE -> TINYINT", range=lambda *_: (-1, 1)),
    scalar("floor", *_TO_WHOLE, range=_round, makes_bins=True),
    scalar("ceil ceiling", *_TO_WHOLE, range=_round, makes_bins=True),
    scalar(
        "round",
        *(*_TO_WHOLE, "DECIMAL INTEGER -> rounded", *_TO_DIGITS),
        *(f"{each} -> {each}" for each in _SIGNED),
        *(f"{each} INTEGER -> {each}" for each in _SIGNED),
        raises=_overflows,
        range=_round,
        makes_bins=True,
        takes_digits=True,
        constants_vary=True,
    ),
    scalar(
        "round_even roundbankers",
        *("DECIMAL INTEGER -> rounded", *_TO_DIGITS),
        *(f"{each} INTEGER -> {each}" for each in _SIGNED),
        raises=_overflows,
        range=_round,
        makes_bins=True,
        takes_digits=True,
        constants_vary=True,
    ),
    scalar(
        "trunc",
        *(*_TO_WHOLE, "INTEGERS -> same", "DECIMAL INTEGER -> cut", *_TO_DIGITS, "INTEGERS INTEGER -> same"),
        raises=_overflows,
        range=_round,
        makes_bins=True,
        fold=_fold_trunc,
        takes_digits=True,
        constants_vary=True,
    ),
    scalar("binom", "INTEGER INTEGER -> HUGEINT", raises=True),
    scalar("factorial", "INTEGER -> HUGEINT", raises=_no_factorial, range=_factorial),
    scalar("bit_and", "&: INTEGERS INTEGERS -> same", constants_vary=True),
    scalar("bit_or", "|: INTEGERS INTEGERS -> same", constants_vary=True),
    scalar("bit_xor", "xor: INTEGERS INTEGERS -> same", constants_vary=True),
    scalar("bit_not", "~: INTEGERS -> same"),
    scalar("bit_count", *(f"{each} -> TINYINT" for each in _SIGNED)),
    scalar("shift_left", "<<: INTEGERS INTEGERS -> same", raises=True, constants_vary=True),
    scalar("shift_right", ">>: INTEGERS INTEGERS -> same", constants_vary=True),
    *_of_unsigned(),
    scalar("gcd greatest_common_divisor", *_OF_LARGE, raises=_leaves_64_bits),
    scalar("lcm least_common_multiple", *_OF_LARGE, raises=_leaves_64_bits),
)
