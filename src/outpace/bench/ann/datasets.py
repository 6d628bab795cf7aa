"""Data sets: HDF5 files as ann-benchmarks lays them out, by path, by name, or fetched."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from outpace.errors import OutpaceError

Metric = Literal["l2", "cosine"]
Floats = npt.NDArray[np.float32]
Ids = npt.NDArray[np.int64]

SITE = "https://ann-benchmarks.com"
_METRICS: dict[str, Metric] = {"euclidean": "l2", "angular": "cosine"}
_PARTS = ("train", "test", "neighbors")


class DataError(OutpaceError):
    """A data set is missing, damaged, or of a kind that the benchmark has no rules for."""


@dataclass(frozen=True)
class Shape:
    """What configurations may depend on: they never see the vectors."""

    count: int
    dimension: int
    metric: Metric


@dataclass(frozen=True)
class Dataset:
    """Vectors, queries and the true neighbours, nearest first; float32, and of unit length under cosine."""

    name: str
    key: str
    metric: Metric
    train: Floats
    queries: Floats
    neighbors: Ids

    @property
    def shape(self) -> Shape:
        """Its size and metric."""
        return Shape(len(self.train), self.train.shape[1], self.metric)


def data_folder() -> Path:
    """Where data sets are looked for by name, and kept once fetched."""
    return Path.home() / ".cache" / "outpace" / "data"


def locate(data: str, folder: Path) -> Path:
    """The file of this path or name; a known name that is not here is fetched."""
    given = Path(data)
    if given.is_file():
        return given
    if given.suffix in (".hdf5", ".h5") or len(given.parts) > 1:
        raise DataError(f"{data} is not a file: give the path of an HDF5 file, or the name of a data set")
    kept = folder / f"{data}.hdf5"
    return kept if kept.is_file() else _fetched(data, kept)


def load(path: Path) -> Dataset:
    """Read and check a data set."""
    arrays, attributes = _read(path, _PARTS)
    told = str(attributes.get("distance", path.name.removesuffix(".hdf5").rpartition("-")[2]))
    if told not in _METRICS:
        raise DataError(f"{path} has the distance {told!r}: this benchmark knows {' and '.join(_METRICS)}")
    metric = _METRICS[told]
    train, test = arrays["train"], arrays["test"]
    neighbors = arrays["neighbors"].astype(np.int64)
    if train.ndim != 2 or test.ndim != 2 or train.shape[1] != test.shape[1] or len(neighbors) != len(test):
        shapes = ", ".join(f"{name} {arrays[name].shape}" for name in _PARTS)
        raise DataError(f"the parts of {path} do not fit together: {shapes}")
    if neighbors.size == 0 or neighbors.min() < 0 or neighbors.max() >= len(train):
        raise DataError(f"{path} names neighbours outside its {len(train):,} vectors")
    name = path.name.removesuffix(".hdf5").removesuffix(".h5")
    key = fingerprint(train, test, neighbors)
    return Dataset(name, key, metric, prepared(train, metric), prepared(test, metric), neighbors)


def vectors(path: Path, part: Literal["train", "test"], metric: Metric) -> Floats:
    """One part of a file that `load` has checked, as every library gets it."""
    arrays, _ = _read(path, (part,))
    return prepared(arrays[part], metric)


def prepared(given: npt.NDArray[Any], metric: Metric) -> Floats:
    """The vectors as float32 rows without gaps; of unit length under cosine, where a zero vector stays zero."""
    # A copy of float16 and uint8 sets costs memory, but then every library is given one and the same array.
    rows = np.ascontiguousarray(given, dtype=np.float32)
    if not np.isfinite(rows).all():
        raise DataError("the data set holds NaN or infinity: no distance is defined for those vectors")
    if metric == "l2":
        return rows
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.ascontiguousarray(rows / np.where(lengths == 0, 1, lengths), dtype=np.float32)


def fingerprint(*arrays: npt.NDArray[Any]) -> str:
    """A short name for the contents, from the shapes and a thousand rows of each."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.shape}{array.dtype}".encode())
        digest.update(np.ascontiguousarray(array[:: max(len(array) // 1000, 1)]).tobytes())
    return digest.hexdigest()[:12]


def _read(path: Path, parts: tuple[str, ...]) -> tuple[dict[str, npt.NDArray[Any]], dict[str, Any]]:
    with _opened(path) as file:
        missing = [part for part in parts if part not in file]
        if missing:
            raise DataError(f"{path} has no {', '.join(missing)}: ann-benchmarks files have {', '.join(_PARTS)}")
        return {part: file[part][...] for part in parts}, dict(file.attrs)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        h5py: Any = importlib.import_module("h5py")
    except ImportError:
        raise DataError("reading HDF5 needs the extra `bench`: pip install 'outpace[bench]'") from None
    try:
        with h5py.File(path, "r") as file:
            yield file
    except OSError as fault:
        raise DataError(f"{path} cannot be read as HDF5 ({fault})") from fault


def _fetched(name: str, kept: Path) -> Path:
    address = f"{SITE}/{name}.hdf5"
    kept.parent.mkdir(parents=True, exist_ok=True)
    number, part = tempfile.mkstemp(prefix=f".{name}.", dir=kept.parent)
    try:
        # Their host refuses the library's own name for itself.
        asked = urllib.request.Request(address, headers={"User-Agent": "Mozilla/5.0"})
        with os.fdopen(number, "wb") as file, urllib.request.urlopen(asked, timeout=30) as answer:
            while block := answer.read(1 << 20):
                file.write(block)
        Path(part).replace(kept)
    except (urllib.error.URLError, OSError) as fault:
        raise DataError(
            f"no data set {name} in {kept.parent}, and {address} cannot be fetched ({fault}): "
            "put the file there, or give its path"
        ) from None
    finally:
        Path(part).unlink(missing_ok=True)
    return kept


def train_count(path: Path) -> int:
    """How many vectors a file holds, without reading them."""
    with _opened(path) as file:
        return int(file["train"].shape[0])
