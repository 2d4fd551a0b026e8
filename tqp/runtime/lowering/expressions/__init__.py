"""Scalar expressions as nodes of a pipeline's graph."""
