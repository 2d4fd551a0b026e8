"""The functions of SQL: their table, types and casts, and calls of constants."""
