import math

import numpy as np


def distances(a, b):
    found = np.empty((len(a), len(b)))
    for i, one in enumerate(a.tolist()):
        for j, other in enumerate(b.tolist()):
            found[i, j] = math.dist(one, other)
    return found
