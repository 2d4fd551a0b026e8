"""Kernels of nested values: lists, structs and what they hold."""
