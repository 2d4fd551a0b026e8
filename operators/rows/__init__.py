"""Rows of a batch: selected, gathered, numbered, and their keys as integers."""
