def join(customers, orders):
    names = dict(customers)
    return [[order, names[wanted]] for order, wanted in orders]
