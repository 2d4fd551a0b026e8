"""Converters of scikit-learn's classes."""
