"""Data sets: real vectors for nearest-neighbour benchmarks, made from packages that are fetched by name."""
