"""Ways out: results as Arrow, pandas, tensors, Python objects and text."""
