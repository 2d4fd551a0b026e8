"""Options of what writes files: values by their names in lower case, taken one by one and checked."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tqp.core.errors import BindError
from tqp.core.keywords import lower_ascii

_TRUE = ("true", "t", "yes", "y", "on", "1")
_FALSE = ("false", "f", "no", "n", "off", "0")


class Options:
    """The options of one statement or call, as COPY has them; what is taken is gone, so that the rest can be refused."""

    def __init__(self, values: dict[str, Any]) -> None:
        self._values = {lower_ascii(name): value for name, value in values.items() if value is not None}

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def left(self) -> dict[str, Any]:
        """Those that nobody has taken."""
        return dict(self._values)

    def rename(self, spellings: dict[str, str]) -> None:
        """Gives options their usual names. Raises BindError where one is there under two."""
        for spelling, name in spellings.items():
            if spelling in self._values:
                if name in self._values:
                    raise BindError(
                        f"the options {spelling.upper()} and {name.upper()} are one: give one of them"
                    )
                self._values[name] = self._values.pop(spelling)

    def get(self, name: str) -> Any:
        """The value, which is left; None where there is none."""
        return self._values.get(name)

    def take(self, name: str, default: Any = None) -> Any:
        """The value as it is."""
        return self._values.pop(name, default)

    def flag(self, name: str, default: bool = False) -> bool:
        """True or false."""
        value = self.take(name, default)
        word = lower_ascii(value) if isinstance(value, str) else value
        if isinstance(word, int | float):
            return bool(word)
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
        raise BindError(f"the option {name.upper()} is true or false, not {value!r}")

    def text(self, name: str, default: str = "") -> str:
        """A text."""
        value = self.take(name, default)
        if not isinstance(value, str):
            raise BindError(f"the option {name.upper()} is a text, not {value!r}")
        return value

    def number(self, name: str, default: int, least: int = 0, kept: bool = False) -> int:
        """An integer, `least` or more; `kept`: it is not taken."""
        value = self._values.get(name, default) if kept else self.take(name, default)
        try:
            number = int(value)
        except (TypeError, ValueError):
            number = least - 1
        if number < least or isinstance(value, bool):
            raise BindError(f"the option {name.upper()} is an integer of at least {least}, not {value!r}")
        return number

    def columns(self, name: str, names: Sequence[str]) -> list[int]:
        """The places of the columns that are named, or of all by `*`; none where there is no such option.

        Raises BindError for those that are not there, or twice.
        """
        if name not in self:
            return []
        value = self.take(name)
        if value == "*":
            return list(range(len(names)))
        said = list(value) if isinstance(value, list | tuple) else [] if value is True else [value]
        if not said:
            raise BindError(f"the option {name.upper()} is a list of columns, or *")
        lowered = [lower_ascii(each) for each in names]
        places: list[int] = []
        for each in said:
            if lower_ascii(str(each)) not in lowered:
                raise BindError(f'{name.upper()}: there is no column "{each}"')
            place = lowered.index(lower_ascii(str(each)))
            if place in places:
                raise BindError(f'{name.upper()} names the column "{each}" twice')
            places.append(place)
        return places
