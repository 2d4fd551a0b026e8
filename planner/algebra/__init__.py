"""Expressions and logical plans, what is certain about them, and how they print."""
