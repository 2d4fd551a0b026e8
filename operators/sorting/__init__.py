"""ORDER BY, whole and of the first rows only."""
