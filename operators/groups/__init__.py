"""Group ids and aggregates."""
