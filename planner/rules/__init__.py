"""The rewrite rules of the logical optimizer: one rule, or one idea that several rules share, per file."""
