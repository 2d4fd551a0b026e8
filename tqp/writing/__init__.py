"""Results to files: Parquet, CSV and JSON, written block by block beside the target, which they take the place of at the end."""
