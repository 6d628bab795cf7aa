import numpy as np


def average(values, width):
    sums = np.cumsum(values)
    sums[width:] = sums[width:] - sums[:-width]
    return sums[width - 1 :] / width
