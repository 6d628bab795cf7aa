"""The vector search benchmark: indexes built once, queries timed in interleaved rounds, curves with intervals."""
