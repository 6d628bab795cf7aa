"""What a peer is: a library that can build an index, load it again, and answer queries at a stated effort."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from outpace.bench.ann.datasets import Floats, Shape

Value = int | float | str | bool
Parameters = Mapping[str, Value]

# Every library may enter as many configurations as every other; more of them would be more tuning.
CONFIGURATIONS = 4


@dataclass(frozen=True)
class Configuration:
    """One index: how it is built and opened, and the efforts it is searched with.

    The first key of an effort is what makes a search slower and better; the other keys, re-ranking depth above all,
    tell strands of the sweep apart, and each strand is a curve of its own. Configurations that differ only in how they
    are opened share one index, which is built once.
    """

    name: str
    build: Parameters
    efforts: tuple[Parameters, ...]
    opened: Parameters = field(default_factory=dict)


class Searcher(Protocol):
    """A loaded index."""

    def set(self, effort: Parameters) -> None:
        """Choose the effort of the searches to come."""

    def search(self, query: Floats, k: int) -> Any:
        """Ids of the k nearest to one query, through the library's public call and nothing more."""

    def search_many(self, queries: Floats, k: int) -> Any:
        """The same for many queries in one call, with one thread."""


class Peer(Protocol):
    """A library in the benchmark; nothing but `version`, `build` and `load` may import it."""

    name: str
    install: str

    def version(self) -> str:
        """The version that is installed; ImportError where it is not."""

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        """What it enters with, the one to enter alone first; empty where it cannot serve such data."""

    def build(self, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
        """Build an index and leave it in the folder."""

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        """Load an index for searching with one thread; the parameters are those of building and of opening it."""


class Vectors(Protocol):
    """The data set's vectors, for the libraries that do not store them in their index."""

    def __call__(self) -> Floats:
        """Read them."""


def module(name: str) -> Any:
    """A peer's module, which has no types worth the name."""
    return importlib.import_module(name)


def installed(module_name: str, package: str) -> str:
    """The version of a package whose module can really be imported."""
    module(module_name)
    return importlib.metadata.version(package)


def told(peer: str, what: str) -> str | None:
    """What the environment says of a peer that was built from source: its PATH or its VERSION."""
    return os.environ.get(f"OUTPACE_PEER_{what}_{peer.upper().replace('-', '_')}")


def from_source(peer: str, *modules: str) -> str:
    """The version of a library that carries none: the commit that the user tells, and a digest of its modules.

    The modules are found and not imported, because some of them cannot be in one process.
    """
    digest = hashlib.sha256()
    for name in modules:
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:
            raise ImportError(f"no module named {name}")
        digest.update(Path(found.origin).read_bytes())
    return f"{told(peer, 'VERSION') or 'unknown'}+{digest.hexdigest()[:8]}"


def swept(name: str, values: Iterable[Value], **others: Sequence[Value]) -> tuple[Parameters, ...]:
    """Efforts: every value, slowest last, with every combination of the others."""
    every = tuple(values)  # once for each strand, which a generator would serve only the first time
    strands: list[dict[str, Value]] = [{}]
    for other, settings in others.items():
        strands = [{**strand, other: setting} for strand in strands for setting in settings]
    return tuple({name: value, **strand} for strand in strands for value in every)


def beams(least: int = 10, most: int = 1600) -> tuple[int, ...]:
    """Beam widths of a graph search, each a quarter wider than the one before."""
    widths = [least]
    while widths[-1] < most:
        widths.append(min(max(round(widths[-1] * 1.25), widths[-1] + 1), most))
    return tuple(widths)


def probes(lists: int) -> tuple[int, ...]:
    """How many lists a partitioned search looks into: from one to all of them, at most a third more each time."""
    counts = [1]
    while counts[-1] < lists:
        counts.append(min(max(round(counts[-1] * 1.33), counts[-1] + 1), lists))
    return tuple(counts)


def partitions(shape: Shape, factor: float) -> int:
    """A number of lists: a multiple of the square root of the number of vectors."""
    return max(min(round(factor * math.sqrt(shape.count)), shape.count // 10), 1)


def divisor(dimension: int, at_most: int) -> int:
    """The largest divisor of the dimension that is no larger than this."""
    found: int = max(part for part in range(1, max(at_most, 1) + 1) if dimension % part == 0)
    return found


def ids_of(answer: Any, count: int, k: int) -> npt.NDArray[np.int64]:
    """Answers as rows of k ids; -1 where there are fewer."""
    rows = np.full((count, k), -1, dtype=np.int64)
    for at, row in enumerate(answer):
        ids = np.asarray(row).reshape(-1)[:k]
        # Unsigned ids of missing neighbours are the largest number there is, which wraps to a negative one.
        rows[at, : len(ids)] = ids.astype(np.int64)
    return rows
