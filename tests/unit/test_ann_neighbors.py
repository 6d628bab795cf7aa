"""The neighbours transformer: the graph that scikit-learn's own would give, in its pipelines and without it."""

import sys
from typing import Any

import numpy as np
import pytest
from ann_facts import Rows, all_distances, centres, clustered
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.manifold import Isomap
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neighbors import KNeighborsTransformer as Theirs
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted

from outpace.ann.neighbors import KNeighborsTransformer

AROUND = centres(1, 12, 10)
VECTORS = clustered(2, 1200, AROUND)
OTHERS = clustered(3, 50, AROUND)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "cosine"])
@pytest.mark.parametrize("mode", ["distance", "connectivity"])
def test_the_graph_is_the_one_scikit_learn_makes(metric: str, mode: Any) -> None:
    ours = KNeighborsTransformer(mode=mode, metric=metric, n_neighbors=6, recall=0.99).fit(VECTORS)
    theirs = Theirs(mode=mode, metric=metric, n_neighbors=6).fit(VECTORS)
    for rows in (VECTORS, OTHERS):
        mine, right = ours.transform(rows), theirs.transform(rows)
        assert mine.shape == right.shape and mine.format == "csr" and mine.dtype == np.float64
        np.testing.assert_array_equal(mine.indptr, right.indptr)
        mine, right = mine.toarray(), right.toarray()
        # A row's distance to itself is zero, and a dense graph does not tell that from no edge.
        assert ((mine != 0) & (right != 0)).sum() >= 0.98 * (right != 0).sum()
        both = (mine != 0) & (right != 0)
        np.testing.assert_allclose(mine[both], right[both], rtol=5e-3, atol=2e-3)


def test_each_row_is_sorted_and_begins_with_itself() -> None:
    graph = KNeighborsTransformer(n_neighbors=4).fit_transform(VECTORS)
    assert (np.diff(graph.indptr) == 5).all()
    assert (graph.indices[graph.indptr[:-1]] == np.arange(1200)).mean() > 0.99
    assert (np.diff(graph.data.reshape(1200, 5), axis=1) >= 0).all()
    truth = np.sqrt(np.sort(all_distances(VECTORS, VECTORS, "l2"), axis=1)[:, :5])
    assert np.isclose(graph.data.reshape(1200, 5), truth, rtol=5e-3, atol=5e-2).mean() > 0.98


def test_more_neighbours_than_rows_give_them_all() -> None:
    graph = KNeighborsTransformer(n_neighbors=9, mode="connectivity").fit_transform(np.eye(4))
    np.testing.assert_array_equal(graph.toarray(), np.ones((4, 4)))


def test_it_feeds_estimators_in_a_pipeline() -> None:
    labels: Rows = all_distances(AROUND, VECTORS, "l2").argmin(axis=1)
    steps = make_pipeline(
        KNeighborsTransformer(n_neighbors=8), KNeighborsClassifier(n_neighbors=5, metric="precomputed")
    )
    right = all_distances(AROUND, OTHERS, "l2").argmin(axis=1)
    assert (steps.fit(VECTORS, labels).predict(OTHERS) == right).mean() > 0.9
    assert (
        steps.set_params(kneighborstransformer__n_neighbors=9).get_params()["kneighborstransformer__n_neighbors"] == 9
    )
    around = clustered(4, 300, AROUND[:1])  # Isomap wants one piece
    isomap = make_pipeline(KNeighborsTransformer(n_neighbors=8), Isomap(n_neighbors=8, metric="precomputed"))
    assert isomap.fit_transform(around).shape == (300, 2)


def test_it_is_cloned_and_knows_whether_it_is_fitted() -> None:
    made = KNeighborsTransformer(n_neighbors=3, metric="cosine", recall=0.9, n_jobs=-1)
    assert clone(made).get_params() == made.get_params()
    with pytest.raises(NotFittedError):
        check_is_fitted(made)
    with pytest.raises(ValueError, match="call fit"):
        made.transform(OTHERS)
    check_is_fitted(made.fit(VECTORS))
    assert made.n_features_in_ == 10 and made.n_samples_fit_ == 1200


@pytest.mark.parametrize("wrong", [{"metric": "hamming"}, {"mode": "both"}, {"n_neighbors": 0}])
def test_parameters_that_do_not_exist_are_refused_when_fitted(wrong: Any) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        KNeighborsTransformer(**wrong).fit(VECTORS)
    with pytest.raises(ValueError, match="'n_neighbours'"):
        KNeighborsTransformer().set_params(n_neighbours=3)


def test_without_scipy_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    made = KNeighborsTransformer().fit(VECTORS)
    monkeypatch.setitem(sys.modules, "scipy.sparse", None)
    with pytest.raises(ImportError, match="pip install scipy"):
        made.transform(OTHERS)
