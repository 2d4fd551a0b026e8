"""JSON as DuckDB reads and writes it: values, paths into them, their structure."""
