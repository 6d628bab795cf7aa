def unique(words):
    seen = []
    for word in words:
        if word not in seen:
            seen.append(word)
    return seen
