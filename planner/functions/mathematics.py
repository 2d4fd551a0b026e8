"""Functions of floats: roots, logarithms, angles, and what is no number or not finite."""

from __future__ import annotations

from tqp.planner.functions.declaration import NullRule, ScalarFunction, scalar

_INSTANTS = ("DATE", "TIMESTAMP", "TIMESTAMP_TZ")


def _of_floats(names: str, *lines: str) -> ScalarFunction:
    """NULL where an argument is; what has no answer is NaN or infinite, and no error."""
    return scalar(names, *lines, null=NullRule.STRICT, raises=False)


MATHEMATICS = (
    *(
        _of_floats(name, "DOUBLE -> DOUBLE")
        for name in (
            "sqrt cbrt exp ln log2 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh degrees radians even"
        ).split()
    ),
    _of_floats("log10", "DOUBLE -> DOUBLE", "log: DOUBLE -> DOUBLE"),
    *(_of_floats(names, "DOUBLE DOUBLE -> DOUBLE") for names in ("log", "power pow", "atan2")),
    _of_floats("signbit", "FLOAT -> BOOLEAN", "DOUBLE -> BOOLEAN"),
    _of_floats("is_nan", "isnan: FLOAT -> BOOLEAN", "isnan: DOUBLE -> BOOLEAN"),
    _of_floats("is_inf", "isinf: FLOAT -> BOOLEAN", "isinf: DOUBLE -> BOOLEAN"),
    _of_floats("is_finite", "isfinite: FLOAT -> BOOLEAN", "isfinite: DOUBLE -> BOOLEAN"),
    _of_floats("is_inf_date", *(f"isinf: {each} -> BOOLEAN" for each in _INSTANTS)),
    _of_floats("is_finite_date", *(f"isfinite: {each} -> BOOLEAN" for each in _INSTANTS)),
)
