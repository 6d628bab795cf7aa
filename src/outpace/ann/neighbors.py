"""Neighbours transformer: a graph of nearest neighbours for scikit-learn's estimators that take one precomputed."""

from __future__ import annotations

import importlib
import inspect
import os
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from outpace.ann.index import Index, Metric

# scikit-learn's name, the metric of the index, and whether its distances are the roots of ours.
NAMES: dict[str, tuple[Metric, bool]] = {
    "euclidean": ("l2", True),
    "minkowski": ("l2", True),
    "sqeuclidean": ("l2", False),
    "cosine": ("cosine", False),
}


class KNeighborsTransformer:
    """Stands where `sklearn.neighbors.KNeighborsTransformer` does, with an index that names its recall."""

    def __init__(
        self,
        *,
        mode: Literal["distance", "connectivity"] = "distance",
        n_neighbors: int = 5,
        metric: str = "euclidean",
        recall: float = 0.99,
        n_jobs: int | None = None,
    ) -> None:
        self.mode = mode
        self.n_neighbors = n_neighbors
        self.metric = metric
        self.recall = recall
        self.n_jobs = n_jobs

    def fit(self, X: object, y: object = None) -> Self:  # noqa: ARG002, N803
        """Builds the index of the rows of `X`."""
        if self.metric not in NAMES:
            raise ValueError(f"metric={self.metric!r} is unknown; choose one of {', '.join(NAMES)}")
        if self.mode not in ("distance", "connectivity"):
            raise ValueError(f"mode={self.mode!r} is unknown; choose distance or connectivity")
        if self.n_neighbors < 1:
            raise ValueError(f"n_neighbors={self.n_neighbors}; at least one is needed")
        self.index_ = Index.build(X, metric=NAMES[self.metric][0], threads=self._threads())
        self.n_samples_fit_ = len(self.index_)
        self.n_features_in_ = int(self.index_.stats()["dimension"])
        return self

    def transform(self, X: object) -> Any:  # noqa: N803
        """A CSR matrix, one row per row of `X` and one column per fitted row, that holds the nearest of each.

        As in scikit-learn, mode="distance" holds one neighbour more, since a fitted row is its own nearest.
        """
        if not hasattr(self, "index_"):
            raise ValueError("this transformer is not fitted yet; call fit before transform")
        wanted = min(self.n_neighbors + (self.mode == "distance"), self.n_samples_fit_)
        ids, distances = self.index_.search(X, wanted, recall=self.recall, threads=self._threads())
        if self.mode == "connectivity":
            distances = np.ones_like(distances)
        elif NAMES[self.metric][1]:
            distances = np.sqrt(distances)
        data, columns, starts = csr_arrays(np.atleast_2d(ids), np.atleast_2d(distances))
        return sparse().csr_matrix((data, columns, starts), shape=(len(starts) - 1, self.n_samples_fit_))

    def fit_transform(self, X: object, y: object = None) -> Any:  # noqa: N803
        return self.fit(X, y).transform(X)

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: ARG002
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def set_params(self, **params: Any) -> Self:
        known = self.get_params()
        for name, value in params.items():
            if name not in known:
                raise ValueError(f"there is no parameter {name!r}; there are {', '.join(known)}")
            setattr(self, name, value)
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "index_")

    def __sklearn_tags__(self) -> Any:
        # Asked by scikit-learn alone, so it is there to be imported.
        tags = importlib.import_module("sklearn.utils")
        target, transformer = tags.TargetTags(required=False), tags.TransformerTags()
        return tags.Tags(estimator_type=None, target_tags=target, transformer_tags=transformer)

    def __repr__(self) -> str:
        return f"KNeighborsTransformer({', '.join(f'{name}={value!r}' for name, value in self.get_params().items())})"

    def _threads(self) -> int:
        """scikit-learn's counting: none is one, and -1 is all."""
        jobs = 1 if self.n_jobs is None else self.n_jobs
        return jobs if jobs > 0 else max(1, (os.cpu_count() or 1) + 1 + jobs)


def csr_arrays(
    ids: npt.NDArray[np.int64], distances: npt.NDArray[np.float32]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Values, columns and row starts; places without an answer are left out."""
    found = ids >= 0
    starts = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(found.sum(axis=1))])
    # Rounding can leave a distance just below zero, which estimators refuse.
    return np.maximum(distances[found], 0).astype(np.float64), ids[found], starts


def sparse() -> Any:
    try:
        return importlib.import_module("scipy.sparse")
    except ImportError as error:
        raise ImportError("a neighbours graph is a SciPy matrix; install it with: pip install scipy") from error
