"""What a graph calls: one object with the forms of a computation, and what it may take part in."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from torch import Tensor

from tqp.data.backend import is_host
from tqp.operators.memory.arrays import as_array, as_tensor


class Operation:
    """A computation in its forms.

    `device(*arguments)`: of tensors, with torch's own operations, on any device; a string is the name of a method, None stands
    for whatever it is that a graph calls.
    `host(*arguments)`: the same of arrays, for the CPU; None if there is no such form. A graph is lowered for one of them;
    whoever calls the operation itself gets the form for what it is given and for the backend of the calling thread.

    `gradient`: the form that autograd follows, if any. `is_row_by_row`: each row of the result depends on that row of the
    arguments alone, so that it may be computed in blocks of rows. `is_mask`: such a result is bool [n]. `can_fuse`: inductor
    gives the same bits. `only_of_arrays`: the host's form is only worth it where an argument is an array anyway.
    `owns_result`: what the host's form gives shares no memory with what it is given. `takes_out`: but it may be given one of
    its arguments as `out` too, which nobody reads after it, and then writes there what fits.
    """

    def __init__(
        self,
        name: str,
        device: Callable[..., Any] | str | None,
        host: Callable[..., Any] | None = None,
        *,
        gradient: Callable[..., Any] | None = None,
        is_row_by_row: bool = False,
        is_mask: bool = False,
        can_fuse: bool = False,
        only_of_arrays: bool = False,
        owns_result: bool = False,
        takes_out: bool = False,
    ) -> None:
        self.__name__ = self.__qualname__ = name
        self.__module__ = "tqp.operators"
        self.device, self.host, self.gradient = device, host, gradient
        self.is_row_by_row, self.is_mask, self.can_fuse = is_row_by_row or is_mask, is_mask, can_fuse
        self.only_of_arrays = only_of_arrays
        self.owns_result, self.takes_out = owns_result or takes_out, takes_out

    def __repr__(self) -> str:
        return self.__name__

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        assert callable(self.device)
        if self.host is None:
            return self.device(*arguments, **keywords)
        for argument in arguments:
            if isinstance(argument, np.ndarray):
                return self.host(*arguments)
            if isinstance(argument, Tensor):
                if is_host(argument):
                    return as_tensor(self.host(*map(as_array, arguments)))
                break
        return self.device(*arguments)
