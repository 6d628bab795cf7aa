def inversions(numbers):
    """How many pairs stand in the wrong order."""
    return sum(numbers[i] > numbers[j] for i in range(len(numbers)) for j in range(i + 1, len(numbers)))
