"""Benchmarks of single operators, written on tqp's public API and on the measuring that `tqp.tpch` does."""
