"""The judge: builds a candidate in a jail, checks its answers and times it against the reference."""
