"""Values read out of one text at a time, as DuckDB's casts do."""
