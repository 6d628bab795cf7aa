def histogram(values):
    counts = [0] * 256
    for value in values.tolist():
        counts[value] += 1
    return counts
