"""CSV and JSON files: how they are written, the types of what they hold, whole and in blocks."""
