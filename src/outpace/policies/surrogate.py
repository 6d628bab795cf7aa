"""A surrogate: what settings not yet tried are believed to earn, from what others have earned."""

from __future__ import annotations

import functools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# One option for each point; numbers stand for options and say nothing of their order.
Place = tuple[int, ...]
Array = NDArray[np.float64]

# Chosen on the made-up spaces of benchmarks/moves.py, where neighbouring values do about as well.
# How many guesses there are of how much each point matters, and how many of the likeliest are kept.
GUESSES = 96
KEPT = 16
# A guess of a point is a log-normal factor: its middle, shared among the points, and its spread.
MATTERS = 2.5
MATTERS_SPREAD = 1.0
# A guess of how far log speed-ups lie apart: its middle, and its spread.
APART = 0.3
APART_SPREAD = 0.8
# How uncertain the mean of a space is, in units of how far its values lie apart.
MEAN = 3.0
# The standard error of one log speed-up.
NOISE = 0.02
# What is more than e times slower than the best is all alike: what tells bad from worse finds nothing good.
DEPTH = 1.0
# The work grows with the cube of what is remembered, so the best and the latest have to do.
MOST = 96


@dataclass(frozen=True)
class Belief:
    """Gaussian processes over places, one per guess of what matters, each with its weight."""

    places: NDArray[np.int64]
    values: Array
    best: float
    # By guess: how fast likeness fades with each point that differs, how far values lie apart, and how likely that is.
    fading: Array
    apart: Array
    weights: Array

    def expected(self, places: Sequence[Place]) -> tuple[Array, Array]:
        """The mean and the standard deviation of what each place earns."""
        means, spreads = self._by_guess(np.array(places))
        mean = self.weights @ means
        return mean, np.sqrt(self.weights @ (spreads**2 + (means - mean) ** 2))

    def means(self, places: Sequence[Place]) -> Array:
        """The mean alone, for less work."""
        known = _noisy(_likeness(self.places, self.places, self.fading, self.apart))
        link = _likeness(self.places, np.array(places), self.fading, self.apart)
        share = np.linalg.solve(known, np.tile(self.values[:, None], (len(self.weights), 1, 1)))
        return np.asarray(np.einsum("g,gnm,gn->m", self.weights, link, share[:, :, 0], optimize=True))

    def promising(self, places: Sequence[Place]) -> list[int]:
        """Which places are expected to beat the best by most; of those that hardly do, the fastest."""
        means, spreads = self._by_guess(np.array(places))
        ahead = (means - self.best) / spreads
        chance = np.array([[0.5 * math.erfc(-each / math.sqrt(2)) for each in row] for row in ahead.tolist()])
        density = np.exp(-(ahead**2) / 2) / math.sqrt(2 * math.pi)
        # What does not beat the best counts as 0, since nobody has to use it.
        improvement = self.weights @ np.maximum(spreads * (ahead * chance + density), 0.0)
        # Rounded, so that ties are ties in whatever order the machine adds numbers.
        ranks = list(zip(improvement.round(6).tolist(), (self.weights @ means).round(6).tolist(), strict=True))
        most = max(ranks)
        return [at for at, rank in enumerate(ranks) if rank == most]

    def supposing(self, places: Sequence[Place]) -> Belief:
        """The same, were these places to earn what is expected of them: for those whose verdicts are still to come."""
        if not places:
            return self
        expected = self.means(places)
        return Belief(
            np.concatenate([self.places, np.array(places)]),
            np.concatenate([self.values, expected]),
            max(self.best, float(expected.max())),
            self.fading,
            self.apart,
            self.weights,
        )

    def _by_guess(self, places: NDArray[np.int64]) -> tuple[Array, Array]:
        known = _noisy(_likeness(self.places, self.places, self.fading, self.apart))
        link = _likeness(self.places, places, self.fading, self.apart)
        share = np.linalg.solve(known, link)
        means = np.einsum("n,gnm->gm", self.values, share)
        variances = self.apart[:, None] ** 2 * (1 + MEAN) - np.einsum("gnm,gnm->gm", link, share)
        # Rounding may take a variance below what a known place has.
        return means, np.sqrt(np.maximum(variances, (NOISE / 10) ** 2))


def believe(seen: Sequence[tuple[Place, float | None]]) -> Belief:
    """What is believed after these log speed-ups; None is one that failed. At least one must not have."""
    known = _remembered(seen)
    values, best = _levelled([value for _, value in known])
    places = np.array([place for place, _ in known])
    fading, apart = _guesses(places.shape[1])
    likelihoods = _likelihoods(_noisy(_likeness(places, places, fading, apart)), values)
    likeliest = np.argsort(-likelihoods, kind="stable")[:KEPT]
    weights = np.exp(likelihoods[likeliest] - likelihoods[likeliest[0]])
    return Belief(places, values, best, fading[likeliest], apart[likeliest], weights / weights.sum())


def _remembered(seen: Sequence[tuple[Place, float | None]]) -> list[tuple[Place, float | None]]:
    """The best and the latest, in their order."""
    if len(seen) <= MOST:
        return list(seen)
    earned = [-math.inf if value is None else value for _, value in seen]
    ranked = sorted(range(len(seen)), key=earned.__getitem__)
    kept = {*ranked[-(MOST // 2) :], *range(len(seen) - MOST // 2, len(seen))}
    return [seen[at] for at in sorted(kept)]


def _levelled(values: Sequence[float | None]) -> tuple[Array, float]:
    """The values as the model takes them, and the best: failures earn what the slowest does, and no gain."""
    right = [each for each in values if each is not None]
    best = max(right)
    failed = min(0.0, *right)
    return np.maximum([failed if each is None else each for each in values], best - DEPTH), best


@functools.lru_cache(maxsize=8)
def _guesses(points: int) -> tuple[Array, Array]:
    """The same guesses in every process: what each point may matter, and how far values may lie apart."""
    rng = random.Random(f"surrogate {points}")
    fading = [
        [MATTERS / points * math.exp(rng.gauss(0, MATTERS_SPREAD)) for _ in range(points)] for _ in range(GUESSES)
    ]
    apart = [APART * math.exp(rng.gauss(0, APART_SPREAD)) for _ in range(GUESSES)]
    return np.array(fading), np.array(apart)


def _likeness(one: NDArray[np.int64], other: NDArray[np.int64], fading: Array, apart: Array) -> Array:
    """The covariance of each two places by guess: it fades with every point in which they differ.

    As a sum of products over points this is main effects, pairs and so on, each the smaller the more points it has.
    """
    differ = (one[:, None, :] != other[None, :, :]).astype(np.float64)
    fade = np.exp(-differ @ fading.T).transpose(2, 0, 1)
    return np.asarray(apart[:, None, None] ** 2 * (fade + MEAN))


def _noisy(likeness: Array) -> Array:
    at = np.arange(likeness.shape[1])
    likeness[:, at, at] += NOISE**2
    return likeness


def _likelihoods(known: Array, values: Array) -> Array:
    """The log likelihood of the values by guess."""
    guesses, count, _ = known.shape
    # The last row of the factor of a matrix with the values beside it is the factor's inverse times the values.
    beside = np.empty((guesses, count + 1, count + 1))
    beside[:, :count, :count] = known
    beside[:, count, :count] = beside[:, :count, count] = values
    beside[:, count, count] = 2 * (1 + values @ values) / NOISE**2
    factor = np.linalg.cholesky(beside)
    diagonal = np.diagonal(factor, axis1=1, axis2=2)[:, :count]
    return np.asarray(-0.5 * (factor[:, count, :count] ** 2).sum(axis=1) - np.log(diagonal).sum(axis=1))
