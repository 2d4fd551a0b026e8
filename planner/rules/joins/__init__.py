"""Rules about joins: their order, and which are not needed."""
