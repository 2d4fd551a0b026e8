"""Benchmarks of single operators, written on tqp's public API and on `tqp.measuring`."""
