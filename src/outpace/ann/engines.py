"""Engines: whether a graph earns the memory it takes, judged by what calibration measured; pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, inf, log

# What most people ask for; a graph must pay on the whole of them.
LEVELS = (0.8, 0.9, 0.95, 0.99, 0.999)
WORTH_KEEPING = 1.05

# An index of hnswlib with M=16 holds the vectors in float32 and for each of them 270 bytes of links, labels and locks:
# measured as the growth of a process that loads one.
LINKS = 270
MOST_MEMORY = 1.5
SMALL_DIMENSION = 64


@dataclass(frozen=True)
class Point:
    """One measured setting, in the order in which the native side tells it."""

    engine: int
    effort: int
    depth: int
    slack: float
    selectivity: float
    recall: float
    lower: float
    seconds: float
    price: float

    @property
    def graph(self) -> bool:
        return self.engine == 1


def cheapest(points: Iterable[Point], level: float) -> float:
    """The price of reaching a recall, or infinity."""
    return min((point.price for point in points if point.lower >= level), default=inf)


def gain_of_graph(points: Sequence[Point]) -> float:
    """How many times cheaper searches are with the graph than without, as a geometric mean over the levels."""
    plain = [point for point in points if point.selectivity == 1]
    gains = []
    for level in LEVELS:
        both = cheapest(plain, level)
        lists_alone = cheapest((point for point in plain if not point.graph), level)
        if both < inf and lists_alone < inf:
            gains.append(log(lists_alone / both))
    return exp(sum(gains) / len(gains)) if gains else 1.0


def keeps_graph(points: Sequence[Point], bytes_per_vector: float, dimension: int) -> bool:
    """Whether `engine="auto"` keeps the graph: it must pay, and where vectors are not tiny it must fit."""
    fits = dimension < SMALL_DIMENSION or bytes_per_vector <= MOST_MEMORY * (4 * dimension + LINKS)
    return fits and gain_of_graph(points) >= WORTH_KEEPING
