"""The vocabulary every layer shares: types, fields, statistics, errors. Free of torch and sqlglot."""
