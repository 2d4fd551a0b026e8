"""Parquet files: their footers, what these say of values, and their columns."""
