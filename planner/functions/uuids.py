"""Functions of UUIDs."""

from __future__ import annotations

from tqp.planner.functions.declaration import scalar

#: The version of a UUID is a digit of base 16; letters count from the code of 0.
_LAST_VERSION = ord("f") - ord("0")

UUIDS = (
    scalar("uuid_extract_version", "UUID -> UINTEGER", range=lambda *_: (0, _LAST_VERSION)),
    scalar("uuid_extract_timestamp", "UUID -> TIMESTAMP_TZ", raises=True),
    # of random numbers, and of the time; no SQL calls them
    scalar("random_uuid"),
    scalar("time_ordered_uuid"),
)
