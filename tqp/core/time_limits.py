"""The units in which times are counted, and the first and last day and instant that DuckDB's types hold."""

from __future__ import annotations

SECONDS_PER_DAY = 86_400
MICROSECONDS_PER_SECOND = 1_000_000
MICROSECONDS_PER_DAY = SECONDS_PER_DAY * MICROSECONDS_PER_SECOND
MONTHS_PER_YEAR = 12
#: Of a month of an INTERVAL, where it is compared or becomes text.
DAYS_PER_MONTH = 30

#: Storage of 'infinity'::DATE and its negative; the same for timestamps with the largest int64.
INFINITE_DAY = 2**31 - 1
INFINITE_TICK = 2**63 - 1
#: The days DuckDB's DATE holds: 5877642-06-25 (BC) to 5881580-07-10.
FIRST_DAY, LAST_DAY = -(2**31) + 2, 2**31 - 2
#: Microseconds DuckDB's TIMESTAMP holds: 290309-12-22 (BC) 00:00:00 to one before 'infinity'.
FIRST_MICROSECOND, LAST_MICROSECOND = -9_223_372_022_400_000_000, INFINITE_TICK - 1
