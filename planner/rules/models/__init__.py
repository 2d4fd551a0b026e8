"""Rules about predictions of models."""
