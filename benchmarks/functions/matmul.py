def matmul(a: list[list[float]], b: list[list[float]]) -> list[list[float]]:
    """The product of two matrices."""
    return [[sum(x * b[k][j] for k, x in enumerate(row)) for j in range(len(b[0]))] for row in a]
