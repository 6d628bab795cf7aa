"""Small pack: a random part of a set, compressed, with its own exact ground truth."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from datasets import rows
from datasets.layout import VectorSet, write
from datasets.modules import need
from datasets.workshop import SEED

QUERIES = 500


def write_small(
    full: Path,
    folder: Path,
    count: int,
    dtype: type[np.generic[Any]] | None,
    say: Callable[[str], None] = lambda _: None,
) -> Path:
    """Take `count` rows and QUERIES queries of the file `full`, stored as `dtype`.

    The ground truth is of the rounded values (of angular sets: rounded, then normalised), which a reader sees.
    """
    h5py = need("h5py")
    rng = np.random.default_rng(SEED)
    with h5py.File(full, "r") as file:
        attributes = dict(file.attrs)
        train = file["train"][np.sort(rng.choice(len(file["train"]), count, replace=False))]
        test = file["test"][np.sort(rng.choice(len(file["test"]), QUERIES, replace=False))]
    if dtype is not None:
        train, test = rows.given(train.astype(dtype), test.astype(dtype))  # rounding makes new duplicates
    recipe = (
        f"{attributes['recipe']}; a random {len(train)} of the rows, {len(test)} of the queries, "
        f"stored as {train.dtype}"
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{full.stem}.small.hdf5"
    part = VectorSet(train, test, attributes["distance"], attributes["source"], attributes["licence"], recipe)
    write(path, part, compress=True, say=say)
    return path
