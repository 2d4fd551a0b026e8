"""Kernels of dates, times, timestamps and intervals."""
