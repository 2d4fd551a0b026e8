"""Models inside queries."""
