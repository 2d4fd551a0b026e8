"""What the names of a connection mean: immutable states, and what a query is bound to."""
