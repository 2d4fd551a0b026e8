"""Random queries through tqp and DuckDB: made, mutated, compared, reduced and grouped (`make random`)."""
