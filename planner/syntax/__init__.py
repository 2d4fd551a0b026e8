"""SQL text, cut into tokens and checked against the grammar that DuckDB has for queries."""
