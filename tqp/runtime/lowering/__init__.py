"""Physical plan to tensor program: one torch.fx graph per pipeline, and the breakers between them."""
