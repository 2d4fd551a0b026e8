"""The names of the two backends, for which queries are planned and lowered; see `tqp.data.backend`."""

from __future__ import annotations

from enum import Enum


class Backend(Enum):
    """HOST: arrays on the CPU. TORCH: torch's own operations, on any device."""

    HOST = "host"
    TORCH = "torch"


#: What `tqp.connect(backend=...)` may be. "auto" is HOST on the CPU and TORCH on every other device.
BACKEND_CHOICES = ("auto", *(backend.value for backend in Backend))
