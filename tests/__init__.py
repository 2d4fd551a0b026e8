"""Tests of tqp, which compare it with DuckDB and with slow references."""

import os

# The workers of pytest share the processors. Threads that libraries start for every loop, by torch, LightGBM and others,
# would spin while they wait for each other; tqp's own workers use none of them.
os.environ.setdefault("OMP_NUM_THREADS", "1")
