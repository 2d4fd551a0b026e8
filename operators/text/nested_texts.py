"""Lists, structs and maps that are read from text. Each distinct text is parsed once, in Python."""

from __future__ import annotations

from torch import Tensor

from tqp.core.datatypes import DataType
from tqp.core.text.nested import parts_of_text
from tqp.data.nested import Values
from tqp.data.strings import Strings
from tqp.operators.kernel import Kernel, Overload
from tqp.operators.text.distinct_values import column_of_texts


def _parts_of_text(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel:
    """The parts as text; what is malformed raises, or is NULL where the constant says that the cast is tried."""

    def call(
        strings: Strings, is_try: bool, target: str, *, validity: Tensor | None = None
    ) -> tuple[Values, Tensor]:
        return column_of_texts(
            strings, validity, lambda text: parts_of_text(text, result_type, target, is_try), result_type
        )

    return Kernel(call, constant_arguments=frozenset((1, 2)), returns_validity=True, checks=True)


NESTED_TEXT_KERNELS: dict[str, Overload] = {"parts_of_text": _parts_of_text}
