"""Proof at registration that the converted model scores as the original does."""
