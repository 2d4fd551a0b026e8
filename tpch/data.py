"""The tables of TPC-H."""

from __future__ import annotations

from tqp.measuring.data import DataSet

#: Table names, the largest last.
TABLES = ("region", "nation", "supplier", "customer", "part", "partsupp", "orders", "lineitem")

DATA = DataSet("tpch", "TPC-H", TABLES)
