"""Kernels that also work on numpy arrays, for graphs on the CPU that go from call to call without tensors in between.

A tensor over an array takes a microsecond to make and to drop, and the interpreter lock is given away and taken again with
it, where another thread may step in; of a call on 100 thousand rows that is a tenth (see docs/performance.md).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tqp.operators import elementwise
from tqp.operators.rows import row_indices, row_indices_of_array

#: By kernel the function that takes arrays where the kernel takes tensors, and gives an array.
ARRAY_FORMS: Mapping[Any, Callable[..., Any]] = {
    elementwise.equal: np.equal,
    elementwise.not_equal: np.not_equal,
    elementwise.less: np.less,
    elementwise.less_equal: np.less_equal,
    elementwise.greater: np.greater,
    elementwise.greater_equal: np.greater_equal,
    elementwise.all_of: elementwise.all_of,
    elementwise.any_of: elementwise.any_of,
    elementwise.put_where: elementwise.put_where_array,
    row_indices: row_indices_of_array,
}
#: Operators that mean the same for arrays and tensors, of masks and of integers of any width.
OPERATORS = frozenset({operator.and_, operator.or_, operator.xor, operator.invert, operator.gt, operator.ge})
