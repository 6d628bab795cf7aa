"""Exemplars: which scored candidates the next prompt shows."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol

from outpace.errors import HarnessError, OutpaceError
from outpace.scored import Scored


@dataclass(frozen=True)
class Choice:
    """What the prompt shows, slowest first, so that the text reads as a climb."""

    shown: tuple[Scored, ...]


class Rule(Protocol):
    """Picks at most n distinct candidates, slowest first; the order in which they come in is of no account.

    Fewer candidates than n are all picked, except by `none`. A rule may pick fewer than n when it has no more
    that fit its idea, such as distinct buckets. Hashes are distinct: the archive gives one score per hash.
    """

    def __call__(self, scored: Sequence[Scored], rng: random.Random, n: int = 2) -> tuple[Scored, ...]: ...


# CUDA-L1 and CRINN publish neither the temperature nor the bucket edges: both are our choice.
# A weight is ratio ** (1 / TAU): at 0.25 a bucket twice as fast is 16 times as likely. Hotter nears random
# exemplars, which did worse than none in CUDA-L1's ablation; colder nears the two best, always the same.
TAU = 0.25
# About twenty times the noise of one judged ratio, so neighbours differ by more than luck.
WIDTH = math.log(1.1)

ISLANDS = 4
MIGRATION = 25


def bucket_probabilities(scored: Sequence[Scored], tau: float, width: float) -> dict[int, float]:
    """How likely each bucket is to be drawn first; bucket i is centred on a log speed-up of i widths."""
    buckets = _buckets(_slowest_first(scored), width)
    return dict(zip(buckets, _softmax([_mean_score(each) for each in buckets.values()], tau), strict=True))


@dataclass(frozen=True)
class BucketRule:
    """CUDA-L1's rule: the softmax over bucket means makes them good, distinct buckets make them differ."""

    tau: float = TAU
    width: float = WIDTH

    def __post_init__(self) -> None:
        for name, value in (("temperature", self.tau), ("width", self.width)):
            if not value > 0:
                raise OutpaceError(f"the bucket {name} is {value}: set it above 0, or leave it out")

    def __call__(self, scored: Sequence[Scored], rng: random.Random, n: int = 2) -> tuple[Scored, ...]:
        ordered = _slowest_first(scored)
        if len(ordered) < n:
            return tuple(ordered)
        # Fewer buckets than n: fewer are shown, for two of one bucket would have the policy explain noise.
        buckets = list(_buckets(ordered, self.width).values())
        drawn = _draw([_mean_score(each) for each in buckets], self.tau, n, rng)
        return tuple(_slowest_first([rng.choice(buckets[index]) for index in drawn]))


def islands(scored: Sequence[Scored], rng: random.Random, n: int = 2) -> tuple[Scored, ...]:
    """The best of one island, drawn uniformly from those inhabited, and softmax draws from the rest of it.

    A candidate lives on its parent's island. One whose parent is not scored founds a line on island
    `trial % ISLANDS`. After every `MIGRATION` trials the best so far becomes a migrant, which every island
    sees from then on. Its later children settle by trial number too: otherwise they would all go to its own
    island, and the others would die out.
    """
    ordered = _slowest_first(scored)
    if len(ordered) < n:
        return tuple(ordered)
    homes, migrants = _settle(ordered)
    home = rng.choice(sorted(set(homes.values())) or [0])
    seen = [each for each in ordered if homes[each.hash] == home or each.hash in migrants]
    best, rest = seen[-1:], seen[:-1]
    drawn = _draw([_score(each) for each in rest], TAU, n - 1, rng)
    return tuple(_slowest_first([rest[index] for index in drawn] + best[:n]))


def top(scored: Sequence[Scored], rng: random.Random, n: int = 2) -> tuple[Scored, ...]:  # noqa: ARG001
    """The n best; of equals, the earlier."""
    return tuple(_slowest_first(scored)[max(0, len(scored) - n) :])


def uniform(scored: Sequence[Scored], rng: random.Random, n: int = 2) -> tuple[Scored, ...]:
    """Any n: the control that shows what choosing by score is worth."""
    return tuple(_slowest_first(rng.sample(_slowest_first(scored), min(n, len(scored)))))


def none(scored: Sequence[Scored], rng: random.Random, n: int = 2) -> tuple[Scored, ...]:  # noqa: ARG001
    """Nothing: the control without contrast."""
    return ()


RULES: Mapping[str, Rule] = MappingProxyType(
    {"buckets": BucketRule(), "islands": islands, "top": top, "random": uniform, "none": none}
)
DEFAULT = "buckets"


def choose(rule: str, scored: Sequence[Scored], rng: random.Random, n: int = 2) -> Choice:
    """What the rule of this name shows next."""
    if rule not in RULES:
        raise OutpaceError(f"there is no exemplar rule '{rule}': choose one of {', '.join(RULES)}")
    return Choice(RULES[rule](scored, rng, n))


def _slowest_first(scored: Sequence[Scored]) -> list[Scored]:
    # A total order: the same facts and seed give the same prompt, however the archive returns its rows.
    return sorted(scored, key=lambda each: (each.ratio, -each.trial, each.hash))


def _score(scored: Scored) -> float:
    if not 0 < scored.ratio < math.inf:
        raise HarnessError(
            f"candidate {scored.hash[:12]} of trial {scored.trial} has speed-up {scored.ratio}, "
            "which is not a positive number: judge it again"
        )
    return math.log(scored.ratio)


def _mean_score(members: Sequence[Scored]) -> float:
    return math.fsum(map(_score, members)) / len(members)


def _buckets(ordered: Sequence[Scored], width: float) -> dict[int, list[Scored]]:
    # Centred, not cut, at 1.00x: most early candidates are as fast as the reference, and an edge there would
    # sort them into slower and faster by noise alone.
    buckets: dict[int, list[Scored]] = {}
    for each in ordered:
        buckets.setdefault(math.floor(_score(each) / width + 0.5), []).append(each)
    return buckets


def _softmax(scores: Sequence[float], tau: float) -> list[float]:
    # The papers subtract the global mean; it cancels. Subtracting the maximum gives the same distribution,
    # cannot overflow, and leaves at least one weight at 1.
    highest = max(scores, default=0.0)
    weights = [math.exp((score - highest) / tau) for score in scores]
    total = math.fsum(weights)
    return [weight / total for weight in weights]


def _draw(scores: Sequence[float], tau: float, n: int, rng: random.Random) -> list[int]:
    # Softmax draws without replacement, scaled afresh each time: with the best gone, the weights of all the
    # others may have underflowed to 0.
    left = list(range(len(scores)))
    drawn: list[int] = []
    while left and len(drawn) < n:
        chosen = rng.choices(left, _softmax([scores[index] for index in left], tau))[0]
        left.remove(chosen)
        drawn.append(chosen)
    return drawn


def _settle(scored: Sequence[Scored]) -> tuple[dict[str, int], set[str]]:
    """Each candidate's island, and the migrants that all islands see."""
    homes: dict[str, int] = {}
    migrants: set[str] = set()
    best: Scored | None = None
    period = 0
    # In order of trials a parent comes before its children, so a candidate found twice makes no circle.
    for each in sorted(scored, key=lambda each: (each.trial, each.hash)):
        before, period = period, (each.trial - 1) // MIGRATION
        if best is not None and period > before:
            migrants.add(best.hash)
        home = None if each.parent is None or each.parent in migrants else homes.get(each.parent)
        homes[each.hash] = each.trial % ISLANDS if home is None else home
        if best is None or each.ratio > best.ratio:
            best = each
    return homes, migrants
