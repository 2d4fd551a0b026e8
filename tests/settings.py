"""The settings that no answer may depend on."""

from __future__ import annotations

from tqp.planner.optimizer import REQUIRED, RULES
from tqp.planner.physical.planner import PHYSICAL_RULES
from tqp.runtime import fuse


def switchable_rules() -> tuple[str, ...]:
    """Every optimizer rule and physical choice that can be switched off."""
    return (*(name for name, _ in RULES if name not in REQUIRED), *PHYSICAL_RULES)


def fuse_everything() -> None:
    """With `fuse="on"`, compile regions of two calls and few rows too, and keep them however slow they are."""
    fuse._MIN_CALLS = fuse._MIN_ROWS = 2
    fuse._MEASURED_CALLS = 1
    fuse._MIN_GAIN = 1e9
