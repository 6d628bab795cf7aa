def join(customers, orders):
    joined = []
    for order, wanted in orders:
        for number, name in customers:
            if number == wanted:
                joined.append([order, name])
    return joined
