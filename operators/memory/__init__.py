"""Arrays and tensors over the same memory, and where large ones come from."""
