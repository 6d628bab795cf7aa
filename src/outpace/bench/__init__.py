"""Benchmarks that a user can run: the same rules for this library and for its peers."""
