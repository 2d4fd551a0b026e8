"""Rules that take subqueries apart."""
