"""Queries measured beside DuckDB, answers compared, reports: what all benchmarks share, on tqp's public API only."""
