"""Columns and tables in tensors: encodings, and the ways in and out (Arrow, Parquet, pandas, ...)."""
