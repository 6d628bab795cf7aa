"""Layout: a set of vectors as one HDF5 file, laid out as the ann-benchmarks files are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from datasets.errors import DataError
from datasets.modules import need
from datasets.rows import unit
from datasets.truth import Metric, ground_truth
from datasets.whole import whole

COMPRESSED = {"compression": "gzip", "compression_opts": 9, "shuffle": True}


@dataclass(frozen=True)
class VectorSet:
    """Points to index, queries, and where they are from."""

    train: npt.NDArray[Any]
    test: npt.NDArray[Any]
    metric: Metric
    source: str
    licence: str
    recipe: str


def write(
    path: Path, vectors: VectorSet, *, compress: bool = False, say: Callable[[str], None] = lambda _: None
) -> None:
    """Write a set with its ground truth, which is of the rows as stored; of angular sets, of their directions."""
    h5py = need("h5py")
    train, test = vectors.train, vectors.test
    if vectors.metric == "angular":
        train, test = unit(train), unit(test)  # stored rows, of float16 above all, are only nearly unit
        if (len(train), len(test)) != (len(vectors.train), len(vectors.test)):
            raise DataError(f"{path.name}: an angular set holds rows of length zero; drop them with `unit` first")
    neighbours, distances = ground_truth(train, test, vectors.metric, say=say)
    options = COMPRESSED if compress else {}
    with whole(path) as temporary, h5py.File(temporary, "w") as file:
        file.create_dataset("train", data=vectors.train, **options)
        file.create_dataset("test", data=vectors.test, **options)
        file.create_dataset("neighbors", data=neighbours, **options)
        file.create_dataset("distances", data=distances, **options)
        file.attrs["distance"] = vectors.metric
        file.attrs["source"] = vectors.source
        file.attrs["licence"] = vectors.licence
        file.attrs["recipe"] = vectors.recipe
