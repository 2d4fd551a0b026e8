"""FROM: tables, derived tables, CTEs, table functions and joins."""
