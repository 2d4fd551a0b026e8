"""SELECT blocks and set operations: what they put out, and in which order."""
