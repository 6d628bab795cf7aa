def topological_order(graph):
    """Nodes of a graph, each before those it points to.

    >>> topological_order({"a": ["b"], "b": []})
    ['a', 'b']
    """
    order, seen = [], set()

    def visit(node):
        if node not in seen:
            seen.add(node)
            for other in graph[node]:
                visit(other)
            order.append(node)

    for node in graph:
        visit(node)
    return order[::-1]
