"""Join algorithms: what each builds, and how pairs of rows come out of it."""
