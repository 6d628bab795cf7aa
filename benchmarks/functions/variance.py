def variance(data: list[float]) -> float:
    """The variance of a sample."""
    mean = sum(data) / len(data)
    return sum((each - mean) ** 2 for each in data) / (len(data) - 1)
