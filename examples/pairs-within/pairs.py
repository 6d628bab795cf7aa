"""Pairs of points that lie within a radius of each other."""
# fmt: off
# ruff: noqa: ERA001

import numpy as np

# Points that the `blocks` and `sweep` options compare with the others at a time.
# outpace: choose 4 8 16 32 64 128
BLOCK = 32


# outpace: alternatives
# outpace: option all-at-once
def pairs_within(points, radius):
    """Rows (i, j), i < j, of points (n x 3) at most `radius` apart, sorted."""
    difference = points[:, None, :] - points[None, :, :]
    squared = (difference**2).sum(axis=2)
    return np.argwhere(np.triu(squared <= radius * radius, k=1))
# outpace: option coordinate-by-coordinate
#~ def pairs_within(points, radius):
#~     """Rows (i, j), i < j, of points (n x 3) at most `radius` apart, sorted."""
#~     squared = np.zeros((len(points), len(points)))
#~     for coordinate in points.T:
#~         difference = np.subtract.outer(coordinate, coordinate)
#~         difference *= difference
#~         squared += difference
#~     return np.argwhere(np.triu(squared <= radius * radius, k=1))
# outpace: option blocks
#~ def pairs_within(points, radius):
#~     """Rows (i, j), i < j, of points (n x 3) at most `radius` apart, sorted."""
#~     found = [np.empty((0, 2), np.int64)]
#~     x, y, z = np.ascontiguousarray(points.T)
#~     for first in range(0, len(points), BLOCK):
#~         part = slice(first, first + BLOCK)
#~         squared = (x[part, None] - x[first:]) ** 2
#~         squared += (y[part, None] - y[first:]) ** 2
#~         squared += (z[part, None] - z[first:]) ** 2
#~         found.append(np.argwhere(np.triu(squared <= radius * radius, k=1)) + first)
#~     return np.concatenate(found)
# outpace: option sweep
#~ def pairs_within(points, radius):
#~     """Rows (i, j), i < j, of points (n x 3) at most `radius` apart, sorted."""
#~     order = np.argsort(points[:, 0], kind="stable")
#~     x, y, z = np.ascontiguousarray(points[order].T)
#~     # A little more than the radius, so that rounding cannot lose a pair.
#~     ends = np.searchsorted(x, x + radius * (1 + 1e-9), side="right")
#~     found = [np.empty((0, 2), np.int64)]
#~     for first in range(0, len(points), BLOCK):
#~         part = slice(first, first + BLOCK)
#~         near = slice(first, ends[part][-1])
#~         squared = (x[part, None] - x[near]) ** 2
#~         squared += (y[part, None] - y[near]) ** 2
#~         squared += (z[part, None] - z[near]) ** 2
#~         found.append(np.argwhere(np.triu(squared <= radius * radius, k=1)) + first)
#~     pairs = np.sort(order[np.concatenate(found)], axis=1)
#~     return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
# outpace: end alternatives
