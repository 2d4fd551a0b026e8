"""Pure functions on tensors: the kernels that tensor programs call. They know nothing of plans, names or threads."""
