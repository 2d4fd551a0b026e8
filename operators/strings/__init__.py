"""Kernels of strings: compare, search, cut, put together."""
