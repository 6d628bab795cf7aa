def run_length(text: str) -> list[tuple[str, int]]:
    """Each run of equal letters, with its length."""
    runs: list[tuple[str, int]] = []
    for letter in text:
        if runs and runs[-1][0] == letter:
            runs[-1] = (letter, runs[-1][1] + 1)
        else:
            runs.append((letter, 1))
    return runs
