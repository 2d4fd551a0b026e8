"""Functions of floats: roots, logarithms, angles, and what is no number or not finite. What has no answer is NaN or infinite, and no error."""

from __future__ import annotations

from tqp.planner.functions.declaration import scalar

_INSTANTS = ("DATE", "TIMESTAMP", "TIMESTAMP_TZ")


MATHEMATICS = (
    *(
        scalar(name, "DOUBLE -> DOUBLE")
        for name in (
            "sqrt cbrt exp ln log2 sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh degrees radians even cot gamma lgamma"
        ).split()
    ),
    scalar("log10", "DOUBLE -> DOUBLE", "log: DOUBLE -> DOUBLE"),
    *(
        scalar(names, "DOUBLE DOUBLE -> DOUBLE", constants_vary=True)
        for names in ("log", "power pow", "atan2")
    ),
    scalar("nextafter", "DOUBLE DOUBLE -> DOUBLE", "FLOAT FLOAT -> FLOAT"),
    scalar("signbit", "FLOAT -> BOOLEAN", "DOUBLE -> BOOLEAN"),
    scalar("is_nan", "isnan: FLOAT -> BOOLEAN", "isnan: DOUBLE -> BOOLEAN"),
    scalar("is_inf", "isinf: FLOAT -> BOOLEAN", "isinf: DOUBLE -> BOOLEAN"),
    scalar("is_finite", "isfinite: FLOAT -> BOOLEAN", "isfinite: DOUBLE -> BOOLEAN"),
    scalar("is_inf_date", *(f"isinf: {each} -> BOOLEAN" for each in _INSTANTS)),
    scalar("is_finite_date", *(f"isfinite: {each} -> BOOLEAN" for each in _INSTANTS)),
)
