"""Models as torch modules inside a query (not there yet)."""
