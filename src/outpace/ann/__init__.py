"""The vector index: build, search, filter, change, save; imports NumPy and its native half, nothing else."""

from outpace.ann._native import IndexFileError
from outpace.ann.index import Filter, Index

__all__ = ["Filter", "Index", "IndexFileError"]
