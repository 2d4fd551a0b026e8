"""Window functions over rows sorted by partition and order: boundaries, frames, ranks, values and aggregates of frames."""
