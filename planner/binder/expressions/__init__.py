"""Scalar expressions and aggregates: names resolved, types given, casts made explicit."""
