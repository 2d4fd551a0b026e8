"""The vocabulary every layer shares: types, fields, what is known of columns, errors. Free of torch and sqlglot."""
