"""The TPC-H benchmark, written on tqp's public API only."""
