"""Ways in: files, frames, arrays and tensors as registered tables."""
