"""Which frames stay in the parts that batches left: those that later pipelines read batch by batch only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tqp.runtime.breakers.aggregate import FoldGroups
from tqp.runtime.breakers.collect import Collect
from tqp.runtime.breakers.collect_groups import CollectGroups
from tqp.runtime.breakers.concatenate import Concatenate
from tqp.runtime.lowering.stream import InputKind
from tqp.runtime.pipeline import Pipeline

#: Inputs for which a frame must have whole columns.
_WHOLE = frozenset({InputKind.ALL_VALUES, InputKind.ALL_VALIDITY, InputKind.OBJECT})


def leave_in_parts(pipelines: Sequence[Pipeline], result_slots: Iterable[str]) -> None:
    """Tell the breakers of a program whose rows nobody reads as whole columns.

    A frame that one reader needs whole is put together once, when its breaker finishes, for all its readers.
    """
    whole = set(result_slots)
    for pipeline in pipelines:
        whole.update(item.slot for item in pipeline.inputs if item.kind in _WHOLE)
    for pipeline in pipelines:
        breaker = pipeline.breaker
        if isinstance(breaker, (FoldGroups, Collect, CollectGroups, Concatenate)):
            breaker.in_parts = breaker.slot not in whole
