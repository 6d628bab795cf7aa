"""ScaNN: partitions, anisotropic product codes, exact re-ranking."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from outpace.bench.ann.datasets import Floats, Shape
from outpace.bench.ann.peers.base import (
    Configuration,
    Parameters,
    Searcher,
    Vectors,
    installed,
    module,
    partitions,
    probes,
    swept,
)


class ScannPeer:
    """A tree of one level over quantised vectors."""

    name = "scann"
    install = "pip install scann"

    def version(self) -> str:
        return installed("scann", "scann")

    def configurations(self, shape: Shape) -> tuple[Configuration, ...]:
        choices = ((1.0, 2), (2.0, 2), (4.0, 2), (2.0, 1 if shape.dimension < 256 else 4))
        return tuple(
            Configuration(
                f"leaves{partitions(shape, factor)}-block{block}",
                {"leaves": partitions(shape, factor), "block": block},
                swept(
                    "leaves_to_search",
                    probes(partitions(shape, factor)),
                    pre_reorder_num_neighbors=(20, 40, 80, 150, 300, 600),
                ),
            )
            for factor, block in choices
        )

    def build(self, vectors: Floats, shape: Shape, parameters: Parameters, threads: int, folder: Path) -> None:
        leaves = int(parameters["leaves"])
        cosine = shape.metric == "cosine"
        builder = module("scann").scann_ops_pybind.builder(vectors, 10, "dot_product" if cosine else "squared_l2")
        builder = builder.tree(
            leaves,
            max(leaves // 10, 1),
            training_sample_size=min(shape.count, 250_000),
            spherical=cosine,
            quantize_centroids=True,
        )
        # The anisotropic loss is defined for inner products; their own settings for L2 leave it out.
        threshold = 0.2 if cosine else float("nan")
        builder = builder.score_ah(int(parameters["block"]), anisotropic_quantization_threshold=threshold).reorder(100)
        searcher = builder.set_n_training_threads(threads).build()
        searcher.serialize(str(folder))

    def load(self, folder: Path, vectors: Vectors, shape: Shape, parameters: Parameters) -> Searcher:
        del vectors, shape, parameters
        assets = folder / "scann_assets.pbtxt"
        assets.write_text(found_in(folder.resolve(), assets.read_text()))
        return _Search(module("scann").scann_ops_pybind.load_searcher(str(folder)))


def found_in(folder: Path, assets: str) -> str:
    """Its list of files, which holds them by absolute path: where the folder is now, and not where it was built."""
    return re.sub(r'(asset_path: ")(?:[^"]*/)?([^"/]+")', lambda found: f"{found[1]}{folder}/{found[2]}", assets)


class _Search:
    def __init__(self, searcher: Any) -> None:
        self._searcher = searcher
        self._leaves, self._depth = 1, 100

    def set(self, effort: Parameters) -> None:
        self._leaves, self._depth = int(effort["leaves_to_search"]), int(effort["pre_reorder_num_neighbors"])

    def search(self, query: Floats, k: int) -> Any:
        return self._searcher.search(query, k, self._depth, self._leaves)[0]

    def search_many(self, queries: Floats, k: int) -> Any:
        return self._searcher.search_batched(queries, k, self._depth, self._leaves)[0]
