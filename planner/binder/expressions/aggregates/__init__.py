"""Aggregates and window functions: what stands in their calls, and what a query block makes of them."""
