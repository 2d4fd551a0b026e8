"""Functions of floats: roots, logarithms, angles, and what is no number or not finite."""

from __future__ import annotations

from tqp.planner.functions.declaration import NullRule, ScalarFunction, scalar

_INSTANTS = ("DATE", "TIMESTAMP", "TIMESTAMP_TZ")


def _of_floats(names: str, *signatures: str, **forms: tuple[str, ...]) -> ScalarFunction:
    """NULL where an argument is; what has no answer is NaN or infinite, and no error."""
    return scalar(names, *signatures, null=NullRule.STRICT, raises=False, forms=forms)


MATHEMATICS = (
    *(
        _of_floats(name, "DOUBLE -> DOUBLE")
        for name in (
            "sqrt cbrt exp ln log2 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh degrees radians".split()
        )
    ),
    _of_floats("log10", "DOUBLE -> DOUBLE", log=("DOUBLE -> DOUBLE",)),
    _of_floats("log", "DOUBLE DOUBLE -> DOUBLE"),
    _of_floats("power pow", "DOUBLE DOUBLE -> DOUBLE"),
    _of_floats("atan2", "DOUBLE DOUBLE -> DOUBLE"),
    _of_floats("even", "DOUBLE -> DOUBLE"),
    _of_floats("signbit", "FLOAT -> BOOLEAN", "DOUBLE -> BOOLEAN"),
    _of_floats("floored_modulo", fmod=("FLOAT FLOAT -> FLOAT", "DOUBLE DOUBLE -> DOUBLE")),
    _of_floats("is_nan", isnan=("FLOAT -> BOOLEAN", "DOUBLE -> BOOLEAN")),
    _of_floats("is_inf", isinf=("FLOAT -> BOOLEAN", "DOUBLE -> BOOLEAN")),
    _of_floats("is_finite", isfinite=("FLOAT -> BOOLEAN", "DOUBLE -> BOOLEAN")),
    _of_floats("is_inf_date", isinf=tuple(f"{each} -> BOOLEAN" for each in _INSTANTS)),
    _of_floats("is_finite_date", isfinite=tuple(f"{each} -> BOOLEAN" for each in _INSTANTS)),
)
