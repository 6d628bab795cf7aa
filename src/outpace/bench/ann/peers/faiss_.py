"""faiss: HNSW, inverted lists with fast-scan product codes, and inverted lists with RaBitQ codes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from outpace.bench.ann.datasets import Floats, Shape
from outpace.bench.ann.peers.base import (
    Configuration,
    Parameters,
    Searcher,
    Value,
    Vectors,
    beams,
    divisor,
    installed,
    module,
    partitions,
    probes,
    swept,
)


class _Faiss:
    """What the three have in common: an index is made by its factory string."""

    name: str
    install = "pip install faiss-cpu"

    def version(self) -> str:
        return installed("faiss", "faiss-cpu")

    def build(self, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
        faiss = module("faiss")
        faiss.omp_set_num_threads(threads)
        metric = faiss.METRIC_L2 if shape.metric == "l2" else faiss.METRIC_INNER_PRODUCT
        index = faiss.index_factory(shape.dimension, str(parameters["factory"]), metric)
        if "ef_construction" in parameters:
            hnsw = faiss.downcast_index(_base(faiss, index)).hnsw
            hnsw.efConstruction = int(parameters["ef_construction"])
        index.train(vectors)
        index.add(vectors)
        faiss.write_index(index, str(folder / "index.faiss"))

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        del vectors, shape, parameters
        faiss = module("faiss")
        faiss.omp_set_num_threads(1)
        index = faiss.read_index(str(folder / "index.faiss"))
        return _Search(index, faiss.downcast_index(_base(faiss, index)))


def _base(faiss: Any, index: Any) -> Any:
    """The index below a refinement, if there is one."""
    return index.base_index if isinstance(index, faiss.IndexRefine) else index


class _Search:
    def __init__(self, index: Any, base: Any) -> None:
        self._index, self._base = index, base

    def set(self, effort: Parameters) -> None:
        for name, value in effort.items():
            if name == "efSearch":
                self._base.hnsw.efSearch = value
            elif name == "nprobe":
                self._base.nprobe = value
            elif name == "query_bits":
                self._base.qb = value
            else:
                setattr(self._index, name, value)

    def search(self, query: Floats, k: int) -> Any:
        return self._index.search(query[None], k)[1]

    def search_many(self, queries: Floats, k: int) -> Any:
        return self._index.search(queries, k)[1]


class FaissHnswPeer(_Faiss):
    """HNSW, over float32 or over bytes with the best few compared exactly."""

    name = "faiss-hnsw"

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        # Bytes are decoded in registers only where they fill them: at 100 dimensions a build over bytes was stopped
        # after 13 minutes, and one over floats took 6.
        kinds = ("SQ8", "Flat") if shape.dimension % 16 == 0 else ("Flat", "SQ8")
        return tuple(
            Configuration(
                f"HNSW{m}-{kind}",
                {"factory": f"HNSW{m},{kind}" + (",RFlat" if kind == "SQ8" else ""), "ef_construction": 400},
                swept("efSearch", beams(), **({"k_factor": (1.0, 2.0)} if kind == "SQ8" else {})),
            )
            for m in (16, 32)
            for kind in kinds
        )


class FaissPqPeer(_Faiss):
    """Inverted lists with four-bit product codes, scanned in registers, and refinement."""

    name = "faiss-ivfpqfs"

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        coarse, fine = divisor(shape.dimension, shape.dimension // 4), divisor(shape.dimension, shape.dimension // 2)
        choices = ((1.0, fine), (2.0, fine), (4.0, fine), (2.0, coarse))
        return tuple(
            Configuration(
                f"IVF{partitions(shape, factor)}-PQ{codes}",
                {"factory": f"IVF{partitions(shape, factor)},PQ{codes}x4fs,RFlat"},
                refined(partitions(shape, factor)),
            )
            for factor, codes in choices
        )


class FaissRabitqPeer(_Faiss):
    """Inverted lists with RaBitQ's codes of a bit for each dimension, and refinement."""

    name = "faiss-ivfrabitq"

    def version(self) -> str:
        told = super().version()
        if not hasattr(module("faiss"), "IndexIVFRaBitQFastScan"):
            raise ImportError(f"faiss {told} has no RaBitQ with fast scan: pip install -U faiss-cpu")
        return told

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        choices = ((1.0, "RaBitQfs"), (2.0, "RaBitQfs"), (4.0, "RaBitQfs"), (2.0, "RaBitQfs4"))
        return tuple(
            Configuration(
                f"IVF{partitions(shape, factor)}-{codes}",
                {"factory": f"IVF{partitions(shape, factor)},{codes},RFlat"},
                refined(partitions(shape, factor)),
            )
            for factor, codes in choices
        )


def refined(lists: int) -> tuple[Parameters, ...]:
    """Lists to look into, at several depths of refinement: too few candidates cap recall whatever is scanned."""
    depths: tuple[Value, ...] = (2.0, 5.0, 10.0, 25.0, 60.0)
    return swept("nprobe", probes(lists), k_factor=depths)
