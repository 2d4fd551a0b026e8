"""Whether an object comes from a library that is not imported here."""

from __future__ import annotations


def is_from(data: object, package: str, class_name: str) -> bool:
    """Whether `data` is an instance of package.….class_name, without importing the package.

    >>> import fractions
    >>> is_from(fractions.Fraction(1), "numbers", "Rational"), is_from(1, "pandas", "Series")
    (True, False)
    """
    return any(
        kind.__name__ == class_name and kind.__module__.partition(".")[0] == package
        for kind in type(data).__mro__
    )
