"""Which way a key of ORDER BY goes, and where its NULLs are."""

from __future__ import annotations

from sqlglot import exp

from tqp.planner.catalog_protocol import Catalog
from tqp.planner.syntax.parser import ORDER_WORDS


def direction_of(key: exp.Ordered, catalog: Catalog) -> tuple[bool, bool]:
    """Whether the key descends, and whether NULLs come first: what is written, or else what settings say."""
    words = key.meta.get(ORDER_WORDS)
    if words is None:  # made of something else
        return bool(key.args.get("desc")), bool(key.args.get("nulls_first"))
    defaults = catalog.order_defaults()
    descends = words.startswith("DESC") or (defaults.descends and not words.startswith("ASC"))
    nulls_first = words.endswith("FIRST") or (not words.endswith("LAST") and defaults.nulls_first(descends))
    return descends, nulls_first
