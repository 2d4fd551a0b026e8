"""What a Python program holds: frames, Arrow tables, arrays, tensors, lists of rows."""
