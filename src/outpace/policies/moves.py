"""Moves: a policy without a language model, which sets the task's variation points by what settings have earned."""

from __future__ import annotations

import itertools
import json
import math
import random
from collections.abc import Iterator, Sequence
from typing import Any

from outpace import answer
from outpace.errors import PolicyError
from outpace.policies.base import Exhausted, Lesson, Prompt, Reply, Shown
from outpace.policies.surrogate import MOST, Array, Belief, Place, believe
from outpace.reward import FLOOR, NOISE
from outpace.task import Task, variation
from outpace.task.candidate import Candidate, reference
from outpace.task.variation import Point, Settings

VERSION = 2

# A space up to this size is weighed whole for each proposal.
WHOLE = 512
# Of a larger one so many settings are: most near one of so many of the best, and this share anywhere.
WEIGHED = 256
BEST = 8
ANYWHERE = 0.25
# Of the proposals whose verdicts are still to come, so many are thought of.
OPEN = 8
# How many points a reply says something about.
NAMED = 3

# What a candidate is beside its points, and how these are set.
Known = tuple[str, Settings]
Choices = Sequence[Sequence[int | None]]


class Moves:
    """Remembers what settings earned, and proposes those that are expected to beat the best by most."""

    name = "moves"

    def __init__(self) -> None:
        self._points: tuple[Point, ...] = ()
        # By trial, so that asking again for the same trial gives the same reply.
        self._proposed: dict[int, Known] = {}
        # By trial, once there is a verdict; None where it tells nothing.
        self._earned: dict[int, float | None] = {}

    def propose(self, prompt: Prompt) -> Reply:
        """One or more points of the parent changed; never a candidate that was shown or proposed before."""
        points = self._points_of(prompt.task)
        rng = random.Random(f"moves {prompt.seed} {prompt.trial}")
        own = reference(prompt.task)
        earned, still_open = self._heard(prompt, own)
        belief = believe([(_place(each), value) for each, value in earned.items()])
        belief = belief.supposing([_place(each) for each in still_open[-OPEN:]])
        others = {made for trial, made in self._proposed.items() if trial != prompt.trial}
        taken = others | {self._known(each) for each in (own, prompt.parent, *(one.candidate for one in prompt.shown))}
        for parent in (prompt.parent, own):
            frame, base = self._known(parent)
            right = {settings: value for (at, settings), value in earned.items() if at == frame and value is not None}
            best = sorted(right, key=right.__getitem__, reverse=True)[:BEST]
            weighed = untried(_choices(points, base), {each for at, each in taken if at == frame}, best, rng)
            if weighed:
                promising = belief.promising([_place((frame, each)) for each in weighed])
                chosen = weighed[rng.choice(promising)]
                self._proposed[prompt.trial] = (frame, chosen)
                told = _expected(points, belief, (frame, best[0] if best else base), min(len(earned), MOST))
                analysis = f"{_compared(points, prompt.shown)} {told}"
                design = _design(points, base, chosen, belief.expected([_place((frame, chosen))]))
                return Reply(answer.render(variation.apply(points, parent, chosen), parent, analysis, design))
        raise Exhausted(
            f"all {variation.size(points)} combinations of the {len(points)} variation points of "
            f"{prompt.task.name} have been proposed: declare more points, or use a model"
        )

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """Remember what these settings earned; how they compare with each other adds nothing."""
        for each in lessons:
            if self._points and each.candidate is not None:
                # A run that was killed between reply and verdict comes back without the memory of that proposal.
                self._proposed[each.trial] = self._known(each.candidate)
                self._earned[each.trial] = each.reward

    def save(self) -> bytes:
        """The points, what was proposed and what it earned, as JSON."""
        state = {
            "version": VERSION,
            "points": [[each.kind, each.file, each.name, each.options, each.turn] for each in self._points],
            "proposed": [[trial, *self._proposed[trial]] for trial in sorted(self._proposed)],
            "earned": [[trial, self._earned[trial]] for trial in sorted(self._earned)],
        }
        return json.dumps(state, separators=(",", ":")).encode()

    def restore(self, state: bytes) -> None:
        """Go on from `save`; nothing was saved before the first trial."""
        if not state:
            self._points, self._proposed, self._earned = (), {}, {}
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
        self._proposed = {trial: (frame, tuple(chosen)) for trial, frame, chosen in state["proposed"]}
        self._earned = {trial: None if value is None else float(value) for trial, value in state["earned"]}
        if any(len(_place(made)) != 1 + len(self._points) for made in self._proposed.values()):
            raise ValueError("its proposals do not fit its points")
        if not all(value is None or math.isfinite(value) for value in self._earned.values()):
            raise ValueError("it says that something earned more than can be")
        if not self._earned.keys() <= self._proposed.keys():
            raise ValueError("it says what was earned by what was not proposed")

    def _heard(self, prompt: Prompt, own: Candidate) -> tuple[dict[Known, float | None], list[Known]]:
        """What each known candidate earned, None for those that failed, and those that nobody has judged yet."""
        earned: dict[Known, float | None] = {self._known(own): 0.0}
        earned |= {self._known(each.candidate): math.log(each.score.ratio) for each in prompt.shown}
        still_open: list[Known] = []
        for trial, made in sorted(self._proposed.items()):
            value = self._earned.get(trial)
            if trial == prompt.trial:
                continue
            if value is not None:
                # What is correct never earns less than FLOOR, what is rejected always does.
                earned[made] = None if value < FLOOR else value
            elif trial not in self._earned:
                still_open.append(made)
        return earned, [each for each in still_open if each not in earned]

    def _known(self, candidate: Candidate) -> Known:
        return variation.frame(self._points, candidate), variation.settings(self._points, candidate)

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
        self._points = points
        return points


def untried(choices: Choices, taken: set[Settings], best: Sequence[Settings], rng: random.Random) -> list[Settings]:
    """Settings to weigh, none of them taken: all there are of a small space; none only where none are left."""
    if math.prod(map(len, choices)) <= WHOLE:
        return [each for each in itertools.product(*choices) if each not in taken]
    drawn = dict.fromkeys(_neighbours(choices, best[0]) if best else ())
    drawn |= dict.fromkeys(_drawn(choices, best, rng) for _ in range(WEIGHED))
    found = [each for each in drawn if each not in taken]
    if len(found) > WEIGHED:
        found = rng.sample(found, WEIGHED)
    # Where all these are taken: at most all those taken come before one that is not.
    return found or list(itertools.islice((each for each in itertools.product(*choices) if each not in taken), 1))


def _neighbours(choices: Choices, settings: Settings) -> Iterator[Settings]:
    """All that differ in one point."""
    for at, options in enumerate(choices):
        yield from ((*settings[:at], option, *settings[at + 1 :]) for option in options if option != settings[at])


def _drawn(choices: Choices, best: Sequence[Settings], rng: random.Random) -> Settings:
    """Any settings, or some of the best with up to three points drawn anew."""
    if not best or rng.random() < ANYWHERE:
        return tuple(rng.choice(options) for options in choices)
    settings = list(rng.choice(best))
    for at in rng.sample(range(len(choices)), min(rng.randint(1, 3), len(choices))):
        settings[at] = rng.choice(choices[at])
    return tuple(settings)


def _choices(points: Sequence[Point], base: Settings) -> Choices:
    # A flag can be set in any candidate; a point of the source only where its marker still is.
    return [
        range(len(point.options)) if option is not None or point.kind == "flags" else (None,)
        for point, option in zip(points, base, strict=True)
    ]


def _place(known: Known) -> Place:
    """As the model takes it: what a candidate is beside its points is one more point."""
    frame, settings = known
    options = (-1 if option is None else option for option in settings) if None in settings else settings
    return (int(frame[:15], 16), *options)


# Words


def _compared(points: Sequence[Point], shown: Sequence[Shown]) -> str:
    if not shown:
        return "No scored candidate is shown."
    if len(shown) == 1:
        return f"One scored candidate is shown, at {shown[0].score.ratio:.2f}x: there is nothing to compare it with."
    slow, fast = shown[0], shown[-1]
    before, after = (variation.settings(points, each.candidate) for each in (slow, fast))
    differing = [
        f"{point.said(new)} rather than {point.said(old)}"
        for point, old, new in zip(points, before, after, strict=True)
        if new is not None and old is not None and new != old
    ]
    return (
        f"Of the {len(shown)} candidates shown, the fastest ({fast.score.ratio:.2f}x) differs from "
        f"the slowest ({slow.score.ratio:.2f}x) in {_listed(differing) or 'no variation point'}."
    )


def _expected(points: Sequence[Point], belief: Belief, best: Known, known: int) -> str:
    """What the model says about the points that matter most, the others being as in the fastest known."""
    if known == 1:
        return "Only the reference's own speed (1.00x) is known, so no change is better than another."
    frame, settings = best
    choices = _choices(points, settings)
    turned = [(*settings[:at], each, *settings[at + 1 :]) for at, options in enumerate(choices) for each in options]
    means = iter(belief.means([_place((frame, each)) for each in turned]).tolist())
    gaps: list[tuple[float, str]] = []
    for point, options in zip(points, choices, strict=True):
        ranked = sorted((next(means), point.said(each)) for each in options)
        (low, slow), (high, fast) = ranked[0], ranked[-1]
        gaps.append((high - low, f"{fast} is {math.exp(high - low):.2f}x as fast as {slow}"))
    told = [said for gap, said in sorted(gaps, reverse=True)[:NAMED] if gap > NOISE]
    return (
        f"What {known} candidates have shown suggests that, with the other points as in the fastest of them, "
        f"{_listed(told) or 'no point matters'}."
    )


def _design(points: Sequence[Point], base: Settings, chosen: Settings, expected: tuple[Array, Array]) -> str:
    changes = [
        f"{point.said(new)} rather than {point.said(old)}"
        for point, old, new in zip(points, base, chosen, strict=True)
        if new is not None and new != old
    ]
    mean, spread = (math.exp(float(each[0])) for each in expected)
    return (
        f"Trying {_listed(changes)}; other points stay as in the parent. Expected is {mean:.2f}x, give or take a "
        f"factor of {spread:.2f}: what earlier candidates suggest, nothing known about the code."
    )


def _listed(items: Sequence[str]) -> str:
    return ", ".join(items[:-1]) + " and " + items[-1] if len(items) > 1 else "".join(items)
