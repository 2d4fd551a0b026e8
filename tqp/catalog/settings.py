"""The settings of a connection, as queries see them; `tqp.statements.settings` says which of them SET may change."""

from __future__ import annotations

from collections.abc import Mapping

from tqp.core.datatypes import BIGINT, BOOLEAN, VARCHAR
from tqp.core.process.memory_budget import current_budget
from tqp.data.sharing import processors
from tqp.planner.catalog_protocol import Setting

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")
#: Those that have one value here.
_FIXED: Mapping[str, Setting] = {
    "TimeZone": Setting("Etc/UTC", VARCHAR, "The time zone of times with one."),
    "schema": Setting("main", VARCHAR, "The schema in which names are looked up."),
    "search_path": Setting("", VARCHAR, "The schemas in which names are looked up, with commas between."),
    "preserve_insertion_order": Setting(True, BOOLEAN, "Whether rows keep their order without ORDER BY."),
    "default_order": Setting("ASCENDING", VARCHAR, "The order of ORDER BY without ASC or DESC."),
    "default_null_order": Setting(
        "NULLS_LAST", VARCHAR, "Where ORDER BY puts NULLs without NULLS FIRST or LAST."
    ),
    "python_enable_replacements": Setting(
        True, BOOLEAN, "Whether tables are looked up among variables of Python."
    ),
}


def current_settings(threads: int | None) -> Mapping[str, Setting]:
    """All settings by their names, for a query of this thread. `threads`: None for one of each processor."""
    number = Setting(threads or processors(), BIGINT, "The threads that a query runs on.")
    budget = current_budget()
    limit = None if budget is None else budget.limit
    memory = Setting(_size(limit or 0), VARCHAR, "The memory that queries may take.")
    shows = Setting(
        budget is not None and budget.shows_progress, BOOLEAN, "Whether a bar shows how far a query is."
    )
    return {
        **_FIXED,
        "enable_progress_bar": shows,
        **dict.fromkeys(("threads", "worker_threads"), number),
        **dict.fromkeys(("memory_limit", "max_memory"), memory),
    }


def _size(count: float) -> str:
    """Bytes as text.

    >>> _size(2**31), _size(100)
    ('2.0 GiB', '100 bytes')
    """
    place = 0
    while count >= 1024 and place < len(_UNITS) - 1:
        count, place = count / 1024, place + 1
    return f"{count:.1f} {_UNITS[place]}" if place else f"{count:.0f} {_UNITS[0]}"
