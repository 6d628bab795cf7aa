def word_count(text: str) -> dict[str, int]:
    """How often each word occurs, whatever its case."""
    counts: dict[str, int] = {}
    for word in text.lower().split():
        word = word.strip('.,;!?"-')
        if word:
            counts[word] = counts.get(word, 0) + 1
    return counts
