import numpy as np


def histogram(values):
    return np.bincount(values, minlength=256).tolist()
