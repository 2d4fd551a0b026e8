"""SQL text to physical plan. Free of torch and of `tqp.data`; sqlglot's AST ends at the binder."""
