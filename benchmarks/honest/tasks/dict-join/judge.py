def make_input(rng):
    n, m = rng.integers(150, 180, 2).tolist()
    numbers = rng.permutation(10_000)[:n].tolist()
    customers = [[number, f"name-{number * 7}"] for number in numbers]
    orders = [[number, numbers[int(rng.integers(n))]] for number in range(m)]
    return {"customers": customers, "orders": orders}
