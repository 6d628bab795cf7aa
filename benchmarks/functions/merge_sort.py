def merge_sort(items: list[int]) -> list[int]:
    """The items in order."""
    if len(items) < 2:
        return list(items)
    half = len(items) // 2
    left, right = merge_sort(items[:half]), merge_sort(items[half:])
    merged = []
    i = j = 0
    while i < len(left) and j < len(right):
        if left[i] <= right[j]:
            merged.append(left[i])
            i += 1
        else:
            merged.append(right[j])
            j += 1
    return merged + left[i:] + right[j:]
