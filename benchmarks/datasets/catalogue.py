"""Catalogue: the sets that can be made, what each needs, and how much of it the small pack keeps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from datasets import digits, photographs, sentences, speech, tiny_images, words
from datasets.layout import VectorSet
from datasets.workshop import Workshop


@dataclass(frozen=True)
class Entry:
    """How to make one set."""

    make: Callable[[Workshop], VectorSet]
    about: str
    modules: tuple[str, ...]  # beside NumPy and h5py
    clients: tuple[str, ...]
    small_rows: int
    small_dtype: type[np.generic[Any]] | None = None  # None keeps the set's own


SETS = {
    "mnist-784-euclidean": Entry(
        digits.make, "60,000 / 10,000 uint8: the published MNIST", (), ("npm",), small_rows=10_000
    ),
    "glove6b-100-angular": Entry(
        words.make,
        "331,479 / 10,000 float32: GloVe 6B word vectors",
        (),
        ("npm",),
        small_rows=15_000,
        small_dtype=np.float16,
    ),
    "mfcc-26-euclidean": Entry(
        speech.make,
        "656,730 / 10,000 float32: cepstra of spoken prompts",
        (),
        ("apt-get", "dpkg-deb"),
        small_rows=20_000,
        small_dtype=np.float16,
    ),
    "photosift-128-euclidean": Entry(
        photographs.make,
        "716,051 / 5,000 uint8: SIFT of wallpapers, textures, documentation images (not SIFT1M)",
        ("cv2",),
        ("apt-get", "dpkg-deb"),
        small_rows=20_000,
    ),
    "cifargist-960-euclidean": Entry(
        tiny_images.make,
        "118,000 / 1,000 float32: GIST of CIFAR-10 images and their mirror images",
        ("cv2",),
        ("npm",),
        small_rows=3_500,
        small_dtype=np.float16,
    ),
    "minilm-384-angular": Entry(
        sentences.make,
        "102,567 / 5,000 float32: all-MiniLM-L6-v2 of WordNet definitions and examples",
        ("torch", "tokenizers", "safetensors"),
        ("npm", "pip"),
        small_rows=7_000,
        small_dtype=np.float16,
    ),
}
