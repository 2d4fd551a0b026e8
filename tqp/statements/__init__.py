"""Statements other than queries, executed: tables and views made, changed and described, settings, transactions.

A statement that changes rows asks one query, which is made of its own tokens and words of ours (`Command.query`), so that errors
point into the text: `UPDATE t SET a = b + 1 WHERE c` asks `SELECT t.rowid, CAST((b + 1) AS INTEGER) FROM t WHERE c`, INSERT asks for
rows of the table's types, DELETE for the numbers of rows. That query is bound, optimized and lowered as any other.

The next state of the catalog is made under its lock for writers. The threads of a connection share its transaction, and a failed
statement fails the transaction around it, as in DuckDB.
"""
