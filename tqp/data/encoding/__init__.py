"""How columns become tensors, and what is kept of their values: dictionaries, indexes, runs."""
