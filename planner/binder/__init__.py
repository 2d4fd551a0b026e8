"""Binding: names become column ids, operators become typed functions, a parsed query becomes a logical plan.

The entry is `tqp.planner.bind`.
"""
