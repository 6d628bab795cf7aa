"""Moves: a policy without a model that sets the task's variation points and learns which options pay."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Iterable, Sequence
from typing import Any

from outpace import answer, variation
from outpace.candidate import Candidate, reference
from outpace.errors import PolicyError
from outpace.policies.base import Exhausted, Lesson, Prompt, Reply
from outpace.task import Task
from outpace.variation import Point, Settings

VERSION = 1

# Chosen on the made-up spaces of benchmarks/moves.py, where neighbouring values do about as well.
# A point keeps its parent's option with this probability, else it is drawn from the preferences.
KEEP = 0.65
# The rule of GRPO with each point in the place of a token: a few steps of gradient ascent per group, each
# point's probability ratio clipped to 1 +- CLIP. No KL term: there is no trained policy to stay near to.
CLIP = 0.4
RATE = 4.0
EPOCHS = 4
# The floor under the entropy: no option's preference falls below 1/e**REACH of the favourite's.
REACH = 6.0
# Draws before the nearest candidate not yet proposed is looked up instead.
TRIES = 64

Preferences = tuple[tuple[float, ...], ...]


class Moves:
    """Preferences over the options of each point, independent of one another."""

    name = "moves"

    def __init__(self) -> None:
        self._points: tuple[Point, ...] = ()
        self._preferences: Preferences = ()
        # By trial, so that asking again for the same trial gives the same reply.
        self._proposed: dict[int, tuple[str, Settings]] = {}

    def propose(self, prompt: Prompt) -> Reply:
        """One or more points of the parent changed; never a candidate that was shown or proposed before."""
        points = self._points_of(prompt.task)
        rng = random.Random(f"moves {prompt.seed} {prompt.trial}")
        own = reference(prompt.task)
        known = {(variation.frame(points, each), variation.settings(points, each)) for each in _met(prompt, own)}
        known |= {made for trial, made in self._proposed.items() if trial != prompt.trial}
        for parent in (prompt.parent, own):
            base, frame = variation.settings(points, parent), variation.frame(points, parent)
            taken = {settings for at, settings in known if at == frame}
            chosen = _draw(points, base, self._preferences, taken, rng)
            if chosen is not None:
                self._proposed[prompt.trial] = (frame, chosen)
                candidate = variation.apply(points, parent, chosen)
                design = _design(points, base, chosen, self._preferences)
                return Reply(answer.render(candidate, parent, _analysis(points, prompt), design))
        raise Exhausted(
            f"all {variation.size(points)} combinations of the {len(points)} variation points of "
            f"{prompt.task.name} have been proposed: declare more points, or use a model"
        )

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """Prefer what did better than its group."""
        if not self._points:
            return
        steps: list[tuple[Settings, Settings, float]] = []
        for lesson in lessons:
            base = variation.settings(self._points, lesson.parent)
            chosen = variation.settings(self._points, lesson.candidate)
            steps.append((base, chosen, lesson.advantage))
            # A run that was killed between reply and verdict comes back without the memory of that proposal.
            self._proposed[lesson.trial] = (variation.frame(self._points, lesson.candidate), chosen)
        self._preferences = improved(self._preferences, steps)

    def save(self) -> bytes:
        """The points, the preferences and what was proposed, as JSON."""
        state = {
            "version": VERSION,
            "points": [[each.kind, each.file, each.name, each.options, each.turn] for each in self._points],
            "preferences": self._preferences,
            "proposed": [[trial, *self._proposed[trial]] for trial in sorted(self._proposed)],
        }
        return json.dumps(state, separators=(",", ":")).encode()

    def restore(self, state: bytes) -> None:
        """Go on from `save`; nothing was saved before the first trial."""
        if not state:
            self._points, self._preferences, self._proposed = (), (), {}
            return
        try:
            self._read(json.loads(state))
        except (ValueError, TypeError, KeyError, IndexError) as error:
            raise PolicyError(f"the saved state of moves cannot be read ({error}): start a new run") from None

    def _read(self, state: dict[str, Any]) -> None:
        if state["version"] != VERSION:
            raise PolicyError(
                f"the state of moves was saved as version {state['version']}, this program reads {VERSION}: "
                "go on with the program that began the run, or start a new one"
            )
        self._points = tuple(
            Point(kind, file, name, tuple(options), turn) for kind, file, name, options, turn in state["points"]
        )
        self._preferences = tuple(tuple(map(float, row)) for row in state["preferences"])
        self._proposed = {trial: (frame, tuple(chosen)) for trial, frame, chosen in state["proposed"]}
        if [len(each.options) for each in self._points] != list(map(len, self._preferences)):
            raise ValueError("its preferences do not fit its points")

    def _points_of(self, task: Task) -> tuple[Point, ...]:
        points = variation.points(task)
        if not points:
            raise PolicyError(
                f"task {task.name} has no variation points, so moves has nothing to vary: mark lines of "
                f"{', '.join(task.editable)} with 'outpace: choose' or 'outpace: alternatives', give "
                "[build] flag_choices, or use a model"
            )
        if self._points and self._points != points:
            raise PolicyError(f"the variation points of {task.name} are not those this run began with: start a new run")
        if not self._points:
            self._preferences = tuple((0.0,) * len(each.options) for each in points)
        self._points = points
        return points


def chances(preferences: Sequence[float], base: int | None) -> list[float]:
    """How likely each option of one point is to be drawn, given the parent's."""
    highest = max(preferences)
    weights = [math.exp(each - highest) for each in preferences]
    total = math.fsum(weights)
    kept = 0.0 if base is None else KEEP
    return [(1 - kept) * each / total + (kept if at == base else 0.0) for at, each in enumerate(weights)]


def improved(preferences: Preferences, steps: Iterable[tuple[Settings, Settings, float]]) -> Preferences:
    """The preferences after a group of (parent's settings, chosen settings, advantage)."""
    # Lessons come before the next proposal, so what they were drawn with are today's preferences. That no
    # candidate is drawn twice is left out of the probabilities.
    group = list(steps)
    return tuple(
        _improved(row, [(base[at], chosen[at], advantage) for base, chosen, advantage in group])
        for at, row in enumerate(preferences)
    )


def _improved(before: tuple[float, ...], group: Sequence[tuple[int | None, int | None, float]]) -> tuple[float, ...]:
    row = list(before)
    for _ in range(EPOCHS):
        free = chances(row, None)
        slope = [0.0] * len(row)
        for base, chosen, advantage in group:
            if chosen is None:
                continue
            ratio = chances(row, base)[chosen] / chances(before, base)[chosen]
            if (advantage > 0 and ratio > 1 + CLIP) or (advantage < 0 and ratio < 1 - CLIP):
                continue
            # The derivative of the ratio; what KEEP gives to the parent's option does not depend on the row.
            scale = advantage * (1 - KEEP) * free[chosen] / chances(before, base)[chosen] / len(group)
            for at, share in enumerate(free):
                slope[at] += scale * ((at == chosen) - share)
        row = [each + RATE * rise for each, rise in zip(row, slope, strict=True)]
    highest = max(row)
    return tuple(max(each - highest, -REACH) for each in row)


def _met(prompt: Prompt, own: Candidate) -> tuple[Candidate, ...]:
    return (own, prompt.parent, *(shown.candidate for shown in prompt.shown))


def _draw(
    points: Sequence[Point],
    base: Settings,
    preferences: Preferences,
    taken: set[Settings],
    rng: random.Random,
) -> Settings | None:
    """Settings not taken, or None when there are none left."""
    rows = [chances(row, option) for row, option in zip(preferences, base, strict=True)]
    for _ in range(TRIES):
        drawn = tuple(
            rng.choices(range(len(row)), row)[0] if _is_free(point, option) else None
            for point, option, row in zip(points, base, rows, strict=True)
        )
        if drawn not in taken:
            return drawn
    # Likelier options first, and the last point turns fastest; points take turns at being last. At most all
    # those taken come before one that is not.
    order = rng.sample(range(len(points)), len(points))
    choices: list[Sequence[int | None]] = []
    for at in order:
        likelihood = dict(enumerate(rows[at]))
        ranked = sorted(likelihood, key=likelihood.__getitem__, reverse=True)
        choices.append(ranked if _is_free(points[at], base[at]) else [None])
    for combination in itertools.product(*choices):
        settings = tuple(option for _, option in sorted(zip(order, combination, strict=True)))
        if settings not in taken:
            return settings
    return None


def _is_free(point: Point, option: int | None) -> bool:
    # A flag can be set in any candidate; a point of the source only where its marker still is.
    return option is not None or point.kind == "flags"


def _analysis(points: Sequence[Point], prompt: Prompt) -> str:
    shown = prompt.shown
    if not shown:
        return "No scored candidate is shown, so nothing is known yet but the reference's own speed (1.00x)."
    if len(shown) == 1:
        only = shown[0]
        return f"One scored candidate is shown, at {only.score.ratio:.2f}x: there is nothing to compare it with."
    slow, fast = shown[0], shown[-1]
    before, after = (variation.settings(points, each.candidate) for each in (slow, fast))
    differing = [
        f"{point.said(new)} rather than {point.said(old)}"
        for point, old, new in zip(points, before, after, strict=True)
        if old != new
    ]
    return (
        f"Of the {len(shown)} candidates shown, the fastest ({fast.score.ratio:.2f}x) differs from "
        f"the slowest ({slow.score.ratio:.2f}x) in {_listed(differing) or 'no variation point'}."
    )


def _design(points: Sequence[Point], base: Settings, chosen: Settings, preferences: Preferences) -> str:
    changes: list[str] = []
    for point, old, new, row in zip(points, base, chosen, preferences, strict=True):
        if new is not None and new != old:
            share = chances(row, None)[new]
            changes.append(f"{point.said(new)} rather than {point.said(old)} (preference {share:.0%})")
    return (
        f"Trying {_listed(changes)}; other points stay as in the parent. A preference is what this run's "
        "groups have taught so far, nothing known about the code."
    )


def _listed(items: Sequence[str]) -> str:
    return ", ".join(items[:-1]) + " and " + items[-1] if len(items) > 1 else "".join(items)
