"""Physical plans to tensor programs, and tensor programs to results."""
