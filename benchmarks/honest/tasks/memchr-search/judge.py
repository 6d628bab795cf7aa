def make_input(rng):
    length, letters = int(rng.integers(150_000, 180_000)), int(rng.integers(5, 9))
    text = rng.integers(97, 123, length, dtype="uint8")
    word = rng.integers(97, 123, letters, dtype="uint8")
    for at in rng.integers(0, length - letters, 50):
        text[at : at + letters] = word
    return {"text": text.tobytes(), "length": length, "word": word.tobytes(), "letters": letters}
