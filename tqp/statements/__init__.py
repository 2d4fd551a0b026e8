"""Statements other than queries, executed: tables and views made, changed and described, settings, transactions."""
