"""Similarity of arrays of floats: inner product, cosine and distance, as products of matrices and vectors.

Every function takes two matrices, float32 [n, size] and [m, size], and which row of each belongs to a pair: integers [p],
or None where that is its own number, and everywhere row 0 of a matrix with a single row. Rows may be -1, where an outer
join has no partner: the value of such a pair is unspecified. They give float32 [p].

Rows that many pairs share are multiplied once, without copies: all rows of one matrix by the few of the other. On the
CPU NumPy's `vecdot` reads a matrix three times as fast as torch's product with a vector (60 against 160 ns a row of 384
floats), `einsum` short rows in a third of its time, and blocks of rows that stay in the cache are read from memory once for the
product and the norm. The product of two rows is the same wherever they stand, which products of matrices do not promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tqp.core.datatypes import DataType, TypeKind
from tqp.core.errors import UnsupportedError
from tqp.data.backend import is_host
from tqp.operators import gradients
from tqp.operators.kernel import Kernel, NullRule, Overload
from tqp.operators.memory.arrays import Array
from tqp.operators.numbers.logic import any_true
from tqp.operators.operation import Operation
from tqp.operators.rows.batches import common_rows
from tqp.operators.rows.selection import take_padded

#: Bytes of a block of rows that stays in a core's second-level cache.
_BLOCK_BYTES = 3 << 18
#: Products of all rows with all others are made where they are up to so many times the pairs that are wanted.
_TAKEN_COST = 4
#: Up to so many vectors, a matrix is multiplied by one after the other.
_FEW_VECTORS = 4
#: Rows from this length on are multiplied by BLAS, which takes 10 ns a row before it takes any for its elements.
_LONG_ROW = 64
#: Squared lengths beyond these have lost digits in 32 bits.
_SHORTEST, _LONGEST = 1e-30, 1e30
#: A squared difference below this share of the squared lengths has lost digits.
_CANCELLED = 0.125


def inner_product(
    left: Tensor, right: Tensor, left_rows: Tensor | None = None, right_rows: Tensor | None = None
) -> Tensor:
    """The sum of the products of the elements."""
    pairs = _Pairs.of(left, right, left_rows, right_rows)
    if pairs.are_many:
        return pairs.look_up(_products(pairs.left, pairs.right)[0])
    return pairs.in_blocks(_dot)


def negative_inner_product(
    left: Tensor, right: Tensor, left_rows: Tensor | None = None, right_rows: Tensor | None = None
) -> Tensor:
    """The inner product with the other sign, which sorts the most similar first."""
    return inner_product(left, right, left_rows, right_rows).neg()


def cosine_similarity(
    left: Tensor, right: Tensor, left_rows: Tensor | None = None, right_rows: Tensor | None = None
) -> Tensor:
    """The inner product over the product of the lengths, from -1 to 1; NaN for a vector of zeros."""
    return _of_pairs(_cosines, _all_cosines, left, right, left_rows, right_rows)


def cosine_distance(
    left: Tensor, right: Tensor, left_rows: Tensor | None = None, right_rows: Tensor | None = None
) -> Tensor:
    """1 - the cosine similarity."""
    return 1.0 - cosine_similarity(left, right, left_rows, right_rows)


def distance(
    left: Tensor, right: Tensor, left_rows: Tensor | None = None, right_rows: Tensor | None = None
) -> Tensor:
    """The length of the difference (Euclidean)."""
    return _of_pairs(_distances, _all_distances, left, right, left_rows, right_rows)


def _of_pairs(
    by_row: Callable[..., Tensor], of_all: Callable[..., Tensor], *matrices_and_rows: Any
) -> Tensor:
    pairs = _Pairs.of(*matrices_and_rows)
    if not pairs.are_many:
        return pairs.in_blocks(by_row)
    products, squares = _products(pairs.left, pairs.right, with_squares=True)
    return pairs.look_up(of_all(products, squares, pairs.left, pairs.right))


def _measure(
    name: str, function: Callable[..., Tensor], of_rows: Callable[[Tensor, Tensor], Tensor]
) -> Operation:
    """`of_rows`: the same of two rows, for autograd."""
    return Operation(name, function, gradient=gradients.of_pairs(of_rows))


#: The functions by their names in SQL.
SIMILARITIES: dict[str, Operation] = {
    operation.__name__: operation
    for operation in (
        _measure("array_inner_product", inner_product, gradients.dot),
        _measure("array_negative_inner_product", negative_inner_product, lambda a, b: -gradients.dot(a, b)),
        _measure("array_cosine_similarity", cosine_similarity, gradients.cosine),
        _measure("array_cosine_distance", cosine_distance, lambda a, b: 1 - gradients.cosine(a, b)),
        _measure("array_distance", distance, lambda a, b: gradients.length(a - b)),
    )
}


@dataclass(frozen=True)
class _Pairs:
    """`count` pairs of rows, the right matrix being the one with fewer rows: all measures are symmetric."""

    left: Tensor
    right: Tensor
    left_rows: Tensor | None
    right_rows: Tensor | None
    count: int

    @classmethod
    def of(cls, left: Tensor, right: Tensor, left_rows: Tensor | None, right_rows: Tensor | None) -> _Pairs:
        if right.shape[0] > left.shape[0]:
            left, right, left_rows, right_rows = right, left, right_rows, left_rows
        given = left_rows if left_rows is not None else right_rows
        if given is not None:
            count = given.shape[0]
        else:
            count = left.shape[0] if right.shape[0] else 0
        return cls(left, right, left_rows, right_rows, count)

    @property
    def are_many(self) -> bool:
        """Is it cheaper to combine every row of one side with every row of the other and to look the pairs up?"""
        return self.left.shape[0] * self.right.shape[0] <= _TAKEN_COST * self.count

    def look_up(self, table: Tensor) -> Tensor:
        """The entries of [m, n], a row for each of the right matrix, that belong to the pairs."""
        if table.numel() == 0:  # only padding
            return table.new_zeros(self.count)
        if table.shape[0] == 1:
            return table[0] if self.left_rows is None else take_padded(table[0], self.left_rows)
        own = torch.arange(self.count, device=table.device)
        left = own if self.left_rows is None else self.left_rows
        right = own if self.right_rows is None else self.right_rows
        return take_padded(table.flatten(), right.to(torch.int64) * table.shape[1] + left)

    def in_blocks(self, measure: Callable[[Tensor, Tensor], Tensor]) -> Tensor:
        """What `measure` gives of rows [k, size] and as many others, or a single one: [k]."""
        result = self.left.new_empty(self.count)
        for start, stop in _blocks(self.count, self.left):
            left = _rows(self.left, self.left_rows, start, stop)
            if self.right.shape[0] == 1:
                result[start:stop] = measure(left, self.right)
            else:
                result[start:stop] = measure(left, _rows(self.right, self.right_rows, start, stop))
        return result


def _rows(matrix: Tensor, rows: Tensor | None, start: int, stop: int) -> Tensor:
    return matrix[start:stop] if rows is None else take_padded(matrix, rows[start:stop])


def _blocks(count: int, matrix: Tensor) -> Iterator[tuple[int, int]]:
    """Ranges of rows that stay in the cache of a CPU."""
    step = max(64, _BLOCK_BYTES // max(1, matrix.shape[1] * matrix.itemsize))
    if not is_host(matrix):
        step = max(1, count)
    for start in range(0, count, step):
        yield start, min(start + step, count)


# row by row


def _dot(left: Tensor, right: Tensor) -> Tensor:
    """[n]: the product of each row with the other matrix's, or with its only one."""
    if is_host(left):
        with np.errstate(all="ignore"):
            return torch.from_numpy(_row_products(left.numpy(), right.numpy()))
    return (left @ right.T)[:, 0] if right.shape[0] == 1 else (left * right).sum(1)


def _row_products(left: Array, right: Array, out: Array | None = None) -> Array:
    """[n]: the products of the rows of [n, size] and of as many others, of one, or of a vector [size]."""
    if left.shape[1] < _LONG_ROW:
        return np.einsum("...j,...j->...", left, right, out=out)
    return np.vecdot(left, right, out=out)


def _distances(left: Tensor, right: Tensor) -> Tensor:
    difference = left - right
    return _dot(difference, difference).sqrt_()


def _cosines(left: Tensor, right: Tensor) -> Tensor:
    squares, others = _dot(left, left), _dot(right, right)
    cosines = _dot(left, right) / (squares.sqrt() * others.sqrt())
    lost = _lost_digits(squares) | _lost_digits(others)
    if lost.any():
        rows = lost.nonzero()[:, 0]
        one, other = left[rows].double(), right.expand_as(left)[rows].double()
        cosines[rows] = (_dot(one, other) / (_length(one) * _length(other))).to(cosines.dtype)
    return cosines.clamp_(-1.0, 1.0)


def _lost_digits(squares: Tensor) -> Tensor:
    return ~((squares >= _SHORTEST) & (squares <= _LONGEST))


def _length(rows: Tensor) -> Tensor:
    return _dot(rows, rows).sqrt()


# all rows with all others


def _products(left: Tensor, right: Tensor, with_squares: bool = False) -> tuple[Tensor, Tensor]:
    """[m, n]: the products of all rows of both matrices; and [n]: those of the left one's rows with themselves."""
    num_rows, vectors = left.shape[0], right.shape[0]
    if not is_host(left):
        return right @ left.T, (left * left).sum(1)
    squares = left.new_empty(num_rows)
    one_by_one = vectors <= _FEW_VECTORS
    products = left.new_empty((vectors, num_rows)) if one_by_one else right @ left.T
    if not one_by_one and not with_squares:
        return products, squares
    # NumPy's calls take half the time of torch's, and there are several for each block
    rows, into, into_squares = left.numpy(), products.numpy(), squares.numpy()
    with np.errstate(all="ignore"):
        for start, stop in _blocks(num_rows, left):
            block = rows[start:stop]
            if one_by_one:
                for place, vector in enumerate(right.numpy()):
                    _row_products(block, vector, into[place, start:stop])
            if with_squares:
                _row_products(block, block, into_squares[start:stop])
    return products, squares


def _all_distances(products: Tensor, squares: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """[m, n], from what `_products` gives; where the difference is small against both, digits cancel, it is computed."""
    both = squares + _dot(right, right)[:, None]
    result = products.mul_(-2.0).add_(both)
    lost = ~(result > both.mul_(_CANCELLED))
    result.sqrt_()
    for place in range(right.shape[0]):
        rows = lost[place].nonzero()[:, 0]
        for start, stop in _blocks(rows.shape[0], left):
            some = rows[start:stop]
            result[place, some] = _distances(left[some], right[place : place + 1])
    return result


def _all_cosines(products: Tensor, squares: Tensor, left: Tensor, right: Tensor) -> Tensor:
    """[m, n], from what `_products` gives."""
    others = _dot(right, right)
    cosines = products.div_(squares.sqrt()).div_(others.sqrt()[:, None])
    is_zero = right.eq(0.0).all(1)  # has no direction, whatever the digits
    lost = _lost_digits(squares) | (_lost_digits(others) & ~is_zero).any()
    if lost.any():
        exact = right.double()
        lengths = _length(exact)[:, None]
        for start, stop in _blocks(left.shape[0], left):
            rows = lost[start:stop].nonzero()[:, 0] + start
            if rows.shape[0]:
                again = left[rows].double()
                cosines[:, rows] = (exact @ again.T / lengths / _length(again)).to(cosines.dtype)
    return cosines.clamp_(-1.0, 1.0)


# arrays of elements


def make_arrays(
    *elements: tuple[Tensor, Tensor | None], validity: Tensor | None = None
) -> tuple[Tensor, None]:
    """float32 [n, size] of one column for each element; `validity`: bool [n], the rows that count.

    Raises UnsupportedError for a NULL in a row that counts: arrays do not hold any.
    """
    for _, present in elements:
        if present is not None and any_true(~present if validity is None else ~present & validity):
            raise UnsupportedError(
                "an array with a NULL in it is not supported; write coalesce(...) around the element"
            )
    num_rows = common_rows(values.shape[0] for values, _ in elements)
    return torch.stack([values.expand(num_rows) for values, _ in elements], 1), None


_MAKE_ARRAYS = Operation("array_value", make_arrays, gradient=make_arrays)


def _similarity(function: Callable[..., Tensor]) -> Overload:
    def resolve(argument_types: tuple[DataType, ...], result_type: DataType) -> Kernel | None:
        if any(each.kind is not TypeKind.ARRAY for each in argument_types):
            return None
        return Kernel(function)

    return resolve


VECTOR_KERNELS: dict[str, Overload] = {
    **{name: _similarity(function) for name, function in SIMILARITIES.items()},
    "array_value": lambda argument_types, result_type: Kernel(_MAKE_ARRAYS, NullRule.CUSTOM, checks=True),
}
