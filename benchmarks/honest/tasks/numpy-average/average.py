import numpy as np


def average(values, width):
    values = values.tolist()
    total = sum(values[:width])
    found = [total / width]
    for i in range(width, len(values)):
        total += values[i] - values[i - width]
        found.append(total / width)
    return np.array(found)
