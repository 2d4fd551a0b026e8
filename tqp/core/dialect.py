"""The DuckDB whose SQL this is, as tools ask for it."""

VERSION, CODENAME = "v2.0.0", "Cyanoptera"
