"""Kernels of numbers and truth values: arithmetic, comparisons, logic, CASE, casts, 128-bit integers."""
