"""Random numbers of rows, for samples."""

from __future__ import annotations

import torch
from torch import Tensor

from tqp.operators.kernel import Kernel, Overload

_BITS = 62
#: Odd constants that spread the bits of a product.
_FACTORS = (-7046029254386353131, -4658895280553007687, -7723592293110705685)


def random_numbers(rows: Tensor, source: int) -> Tensor:
    """int64 [n] from 0 to below 2**62, other ones in each call; `source` tells apart calls that must differ."""
    return torch.randint(0, 2**_BITS, rows.shape, dtype=torch.int64, device=rows.device)


def seeded_numbers(rows: Tensor, seed: int) -> Tensor:
    """int64 [n] from 0 to below 2**62, by the numbers of the rows, integers [n], and the seed."""
    mixed = rows.to(torch.int64) * _FACTORS[0] + (seed * _FACTORS[1] & 2**62 - 1)
    for shift, factor in zip((30, 27), _FACTORS[1:], strict=True):
        mixed = (mixed ^ _shifted(mixed, shift)) * factor
    numbers: Tensor = (mixed ^ _shifted(mixed, 31)) & (2**_BITS - 1)
    return numbers


def _shifted(values: Tensor, bits: int) -> Tensor:
    """To the right, zeros following: int64 has a sign, which torch would repeat."""
    shifted: Tensor = (values >> bits) & ((1 << (64 - bits)) - 1)
    return shifted


RANDOM_KERNELS: dict[str, Overload] = {
    "random_number": lambda argument_types, result_type: Kernel(
        random_numbers, constant_arguments=frozenset({1})
    ),
    "seeded_number": lambda argument_types, result_type: Kernel(
        seeded_numbers, constant_arguments=frozenset({1})
    ),
}
