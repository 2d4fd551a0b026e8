"""The settings that no answer may depend on."""

from __future__ import annotations

from tqp.planner.optimizer import REQUIRED, RULES
from tqp.planner.physical_planner import PHYSICAL_RULES


def switchable_rules() -> tuple[str, ...]:
    """Every optimizer rule and physical choice that can be switched off."""
    return (*(name for name, _ in RULES if name not in REQUIRED), *PHYSICAL_RULES)
