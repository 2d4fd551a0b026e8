"""Values written as text and read from it: numbers, dates, intervals, patterns of strftime."""
