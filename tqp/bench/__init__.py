"""Benchmarks of single operators, of predictions and of TPC-DS, written on tqp's public API and on `tqp.measuring`."""
