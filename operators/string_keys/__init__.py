"""Strings as integers: for sorting, grouping and joins."""
