"""Ensembles of decision trees, whichever library they come from."""
