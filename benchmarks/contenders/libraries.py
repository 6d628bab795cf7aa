"""The libraries: each with a filter, additions and removals, through its public Python calls and with one thread."""

from __future__ import annotations

import contextlib
import importlib
import importlib.metadata
from collections.abc import Collection, Iterator, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from outpace.bench.ann.datasets import Floats, Ids, Metric, Shape
from outpace.bench.ann.peers.base import beams, partitions, probes
from outpace.bench.ann.peers.outpace_ import OutpacePeer
from outpace.errors import OutpaceError

OURS, HNSWLIB = "outpace", "hnswlib"
M, EF_CONSTRUCTION = 16, 200
_SIZE = f"M={M}, ef_construction={EF_CONSTRUCTION}"
_GRAPH = f"HNSW of float32 vectors, {_SIZE}"
WIDEST = 51_200  # with a filter that lets a thousandth through, a beam finds ten answers only if it is this wide

Masks = Sequence[npt.NDArray[np.bool_]]


class Library(Protocol):
    """What is asked of each. An effort makes a search slower and better; ids are numbers of rows until rows change."""

    def version(self) -> str: ...

    def built(self) -> str:
        """How its index was built, in a few words."""

    def efforts(self, shape: Shape) -> tuple[float, ...]:
        """From the cheapest on."""

    def build(self, vectors: Floats, metric: Metric, capacity: int, threads: int) -> None:
        """An index of rows 0, 1, 2 and so on, with room for `capacity`; what comes after uses one thread."""

    def allow(self, masks: Masks) -> None:
        """Make filters ready for the searches to come."""

    def set(self, effort: float) -> None: ...

    def search(self, query: Floats, k: int) -> Any: ...

    def search_allowed(self, query: Floats, k: int, mask: int) -> Any: ...

    def add(self, vectors: Floats, ids: Ids) -> None: ...

    def remove(self, ids: Ids) -> None: ...


class Outpace:
    """Ours with its defaults: the effort is the recall that is asked for."""

    profile = "fast"

    def __init__(self) -> None:
        self._ann = importlib.import_module("outpace.ann")

    def version(self) -> str:
        return OutpacePeer().version()

    def built(self) -> str:
        return f"profile={self.profile}, which chose {' and '.join(self._index.stats()['engines'])}"

    def efforts(self, shape: Shape) -> tuple[float, ...]:
        del shape
        return (0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.88, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99, 0.995, 0.999)

    def build(self, vectors: Floats, metric: Metric, capacity: int, threads: int) -> None:
        del capacity
        self._index = self._ann.Index.build(vectors, metric=metric, threads=threads, profile=self.profile)

    def allow(self, masks: Masks) -> None:
        self._filters = [self._ann.Filter(mask) for mask in masks]

    def set(self, effort: float) -> None:
        self._recall = effort

    def search(self, query: Floats, k: int) -> Any:
        return self._index.search(query, k, recall=self._recall)[0]

    def search_allowed(self, query: Floats, k: int, mask: int) -> Any:
        return self._index.search(query, k, recall=self._recall, where=self._filters[mask])[0]

    def add(self, vectors: Floats, ids: Ids) -> None:
        self._index.add(vectors, ids=ids, threads=1)

    def remove(self, ids: Ids) -> None:
        self._index.remove(ids, threads=1)


class OutpaceCompact(Outpace):
    """Ours where memory is dear."""

    profile = "compact"


class Hnswlib:
    """Its filter is a Python function, which costs about the same whether a set, a list or bytes are looked into."""

    def __init__(self) -> None:
        self._hnswlib = importlib.import_module("hnswlib")

    def version(self) -> str:
        return importlib.metadata.version("hnswlib")

    def built(self) -> str:
        return _GRAPH

    def efforts(self, shape: Shape) -> tuple[float, ...]:
        return _widths(shape.count)

    def build(self, vectors: Floats, metric: Metric, capacity: int, threads: int) -> None:
        self._index = self._hnswlib.Index(space={"l2": "l2", "cosine": "ip"}[metric], dim=vectors.shape[1])
        self._index.init_index(capacity, M=M, ef_construction=EF_CONSTRUCTION, allow_replace_deleted=True)
        self._index.add_items(vectors, np.arange(len(vectors)), num_threads=threads)
        self._index.set_num_threads(1)

    def allow(self, masks: Masks) -> None:
        self._filters = [set(np.flatnonzero(mask).tolist()).__contains__ for mask in masks]

    def set(self, effort: float) -> None:
        self._index.set_ef(int(effort))

    def search(self, query: Floats, k: int) -> Any:
        return self._index.knn_query(query, k)[0]

    def search_allowed(self, query: Floats, k: int, mask: int) -> Any:
        try:
            return self._index.knn_query(query, k, num_threads=1, filter=self._filters[mask])[0]
        except RuntimeError:  # it found fewer than k, and keeps those to itself
            return ()

    def add(self, vectors: Floats, ids: Ids) -> None:
        self._index.add_items(vectors, ids, num_threads=1, replace_deleted=True)

    def remove(self, ids: Ids) -> None:
        for each in ids.tolist():
            self._index.mark_deleted(each)


class HnswlibFetch(Hnswlib):
    """Without its filter: more than k are fetched, and those that are not allowed dropped."""

    def allow(self, masks: Masks) -> None:
        self._masks = masks

    def set(self, effort: float) -> None:
        super().set(effort)
        self._fetched = int(effort)

    def search_allowed(self, query: Floats, k: int, mask: int) -> Any:
        found = self._index.knn_query(query, self._fetched)[0][0]
        return found[self._masks[mask][found]][:k]


class Usearch:
    """Its Python package has no filter: more than k are fetched, and those that are not allowed dropped."""

    def __init__(self) -> None:
        self._usearch = importlib.import_module("usearch.index")

    def version(self) -> str:
        return importlib.metadata.version("usearch")

    def built(self) -> str:
        return f"HNSW of {str(self._index.dtype).lower().split('.')[-1]} vectors, {_SIZE}"

    def efforts(self, shape: Shape) -> tuple[float, ...]:
        return _widths(shape.count)

    def build(self, vectors: Floats, metric: Metric, capacity: int, threads: int) -> None:
        del capacity
        # What vectors are stored as is left to it, as it is with ours: half the width where the processor is fast so.
        self._index = self._usearch.Index(
            ndim=vectors.shape[1],
            metric={"l2": "l2sq", "cosine": "ip"}[metric],
            connectivity=M,
            expansion_add=EF_CONSTRUCTION,
        )
        self._index.add(np.arange(len(vectors)), vectors, threads=threads)

    def allow(self, masks: Masks) -> None:
        self._masks = masks

    def set(self, effort: float) -> None:
        self._fetched = self._index.expansion_search = int(effort)

    def search(self, query: Floats, k: int) -> Any:
        return self._index.search(query, k, threads=1).keys

    def search_allowed(self, query: Floats, k: int, mask: int) -> Any:
        found = self._index.search(query, self._fetched, threads=1).keys
        return found[self._masks[mask][found]][:k]

    def add(self, vectors: Floats, ids: Ids) -> None:
        self._index.add(ids, vectors, threads=1)

    def remove(self, ids: Ids) -> None:
        _all_gone(self._index.remove(ids, threads=1), ids)


class _Faiss:
    """What its two indexes have in common: filters are bitmaps."""

    def __init__(self) -> None:
        self._faiss = importlib.import_module("faiss")
        self._selectors: list[Any] = []

    def version(self) -> str:
        return importlib.metadata.version("faiss-cpu")

    @contextlib.contextmanager
    def _threads(self, threads: int) -> Iterator[None]:
        self._faiss.omp_set_num_threads(threads)
        yield
        self._faiss.omp_set_num_threads(1)

    def _metric(self, metric: Metric) -> Any:
        return self._faiss.METRIC_L2 if metric == "l2" else self._faiss.METRIC_INNER_PRODUCT

    def allow(self, masks: Masks) -> None:
        packed = (np.packbits(mask, bitorder="little") for mask in masks)
        self._selectors = [self._faiss.IDSelectorBitmap(each) for each in packed]

    def _parameters(self, **effort: Any) -> None:
        kind = self._faiss.SearchParametersIVF if "nprobe" in effort else self._faiss.SearchParametersHNSW
        self._plain = kind(**effort)
        self._allowed = [kind(sel=each, **effort) for each in self._selectors]

    def search(self, query: Floats, k: int) -> Any:
        return self._index.search(query[None], k, params=self._plain)[1]

    def search_allowed(self, query: Floats, k: int, mask: int) -> Any:
        return self._index.search(query[None], k, params=self._allowed[mask])[1]


class FaissHnsw(_Faiss):
    """A graph from which nothing can be removed."""

    def built(self) -> str:
        return _GRAPH

    def efforts(self, shape: Shape) -> tuple[float, ...]:
        return _widths(shape.count)

    def build(self, vectors: Floats, metric: Metric, capacity: int, threads: int) -> None:
        del capacity
        self._index = self._faiss.IndexHNSWFlat(vectors.shape[1], M, self._metric(metric))
        self._index.hnsw.efConstruction = EF_CONSTRUCTION
        with self._threads(threads):
            self._index.add(vectors)

    def set(self, effort: float) -> None:
        self._parameters(efSearch=int(effort))

    def add(self, vectors: Floats, ids: Ids) -> None:
        raise NotImplementedError("faiss cannot remove from HNSW, so that it takes no part in changes")

    def remove(self, ids: Ids) -> None:
        raise NotImplementedError("faiss cannot remove from HNSW, so that it takes no part in changes")


class FaissIvf(_Faiss):
    """Inverted lists of whole vectors, with a table of where each id is, without which a removal reads every list."""

    def built(self) -> str:
        return f"{self._index.nlist} lists of float32 vectors"

    def efforts(self, shape: Shape) -> tuple[float, ...]:
        return tuple(float(each) for each in probes(partitions(shape, 2.0)))

    def build(self, vectors: Floats, metric: Metric, capacity: int, threads: int) -> None:
        del capacity
        faiss, dimension = self._faiss, vectors.shape[1]
        lists = partitions(Shape(len(vectors), dimension, metric), 2.0)
        self._coarse = faiss.IndexFlat(dimension, self._metric(metric))
        self._index = faiss.IndexIVFFlat(self._coarse, dimension, lists, self._metric(metric))
        self._index.set_direct_map_type(faiss.DirectMap.Hashtable)
        with self._threads(threads):
            self._index.train(vectors)
            # With ids: its plain `add` leaves the table empty, and then nothing can be removed.
            self._index.add_with_ids(vectors, np.arange(len(vectors)))

    def set(self, effort: float) -> None:
        self._parameters(nprobe=int(effort))

    def add(self, vectors: Floats, ids: Ids) -> None:
        self._index.add_with_ids(vectors, ids)

    def remove(self, ids: Ids) -> None:
        _all_gone(self._index.remove_ids(self._faiss.IDSelectorArray(ids)), ids)


class Exact:
    """No index: what a filter allows is copied out when it is made, and each query is compared with all of it."""

    def version(self) -> str:
        return f"numpy {np.__version__}"

    def built(self) -> str:
        return "nothing is built"

    def efforts(self, shape: Shape) -> tuple[float, ...]:
        del shape
        return (1.0,)

    def build(self, vectors: Floats, metric: Metric, capacity: int, threads: int) -> None:
        del capacity, threads
        self._vectors, self._metric = vectors, metric
        self.allow([np.ones(len(vectors), dtype=np.bool_)])

    def allow(self, masks: Masks) -> None:
        self._rows = [np.flatnonzero(mask) for mask in masks]
        self._parts = [self._vectors[rows] for rows in self._rows]
        self._squares = [np.einsum("ij,ij->i", part, part) if self._metric == "l2" else 0.0 for part in self._parts]

    def set(self, effort: float) -> None:
        del effort

    def search(self, query: Floats, k: int) -> Any:
        return self.search_allowed(query, k, 0)

    def search_allowed(self, query: Floats, k: int, mask: int) -> Any:
        distances = self._squares[mask] - 2 * (self._parts[mask] @ query)
        near = np.argpartition(distances, k)[:k] if k < len(distances) else np.arange(len(distances))
        return self._rows[mask][near[np.argsort(distances[near])]]

    def add(self, vectors: Floats, ids: Ids) -> None:
        raise NotImplementedError("there is no index that could change")

    def remove(self, ids: Ids) -> None:
        raise NotImplementedError("there is no index that could change")


def _all_gone(removed: int, ids: Ids) -> None:
    """Both libraries say how many they removed, and are silent about those that they do not know."""
    if removed != len(ids):
        raise RuntimeError(f"{removed} of {len(ids)} ids were removed")


def _widths(count: int) -> tuple[float, ...]:
    widest = min(WIDEST, count)
    return tuple(float(each) for each in beams(min(10, widest), widest))


LIBRARIES: dict[str, type[Library]] = {
    OURS: Outpace,
    HNSWLIB: Hnswlib,
    "hnswlib-fetch": HnswlibFetch,
    "usearch": Usearch,
    "faiss-hnsw": FaissHnsw,
    "faiss-ivf": FaissIvf,
    "exact": Exact,
}
# Ours by profile, where building and memory are compared.
COMPACT = "outpace-compact"
PROFILES: dict[str, type[Library]] = {OURS: Outpace, COMPACT: OutpaceCompact}


def chosen(names: Collection[str] | None, without: Collection[str] = ()) -> tuple[str, ...]:
    """The libraries to run: those named, or all; ours must be among them, since it is compared with each."""
    known = tuple(name for name in LIBRARIES if name not in without)
    unknown = [name for name in names or () if name not in known]
    if unknown or (names and OURS not in names):
        raise OutpaceError(f"--libraries {' '.join(names or ())}: give {OURS}, and any of {', '.join(known[1:])}")
    return tuple(name for name in known if not names or name in names)
