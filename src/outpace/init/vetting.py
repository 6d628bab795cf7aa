"""Vetting: a guessed task that runs is asked what its judge would not notice, and is mended where that helps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from outpace.domains.base import Input
from outpace.domains.program import ProgramDomain
from outpace.errors import HarnessError, TaskError
from outpace.init import soundness
from outpace.init.coverage import unreached
from outpace.init.judge_text import EDGES, constant, room
from outpace.init.narrowing import narrowed, settled, steadied
from outpace.init.rehearsal import Rehearsal
from outpace.init.sanitizers import FLAGS, Checked, missing
from outpace.init.skeleton import Skeleton
from outpace.init.soundness import FAILED
from outpace.judge.blank import POISON
from outpace.judge.compare import nonfinite
from outpace.judge.inputs import checked, edge_inputs, make_input, make_setup
from outpace.judge.nudge import variants
from outpace.judge.spots import excused_by
from outpace.judge.worker import Failed
from outpace.task import Task
from outpace.task.file import make_task

# What docs/tasks.md advises for one call, in seconds.
ADVISED = 20e-6
# Inputs that the sanitizers see, those that elements are changed in, and those that tell whether a number varies.
_CHECKED, _CHANGED, _DRAWN = 16, 8, 32
# The same code with other rounding, as honest vectors have it, and how many doubts about that are looked into.
_REORDERED = ("-O3", "-march=native", "-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math")
_DOUBTFUL = 12
_TOO_FINE = (
    "the judge refuses what the reference itself answers when its sums are done in another order ("
    + " ".join(_REORDERED)
    + "): [checking] tolerance is finer than the reference's own rounding, and honest vectors would be called wrong"
)
# The same code with its unset variables set to one thing or another.
_SET = ("-ftrivial-auto-var-init=zero", "-ftrivial-auto-var-init=pattern")
# Inputs with patterns, seconds of calls that tell how long these take, and what is too long: so many times as long as
# others, a quarter of them being sorted, beyond these seconds for a turn.
_PATTERNED, _TIMED, _LONGER, _BRISK = 48, 0.3, 6, 5e-3
# Room for answers, as a multiple of what is read, beyond which a longer answer is not sought.
_MOST_ROOM = 64


@dataclass(frozen=True)
class Vetted:
    """The mended skeleton, why its judge is not to be trusted yet, and what a person should know all the same."""

    skeleton: Skeleton
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    # How far it got: doubts about inputs that do not matter come from a reference that is free of errors.
    steps: int = 0


class Vetting:
    """Vets skeletons of one function; what was built once is used again while only the inputs change."""

    def __init__(self, rehearsal: Rehearsal, workspace: Path, say: Callable[[str], None]) -> None:
        self._rehearsal, self._workspace, self._say = rehearsal, workspace, say
        self._unavailable: dict[str, str] = {}
        self._checked: dict[str, Checked] = {}
        self._plain: dict[str, Checked] = {}

    def vet(self, skeleton: Skeleton) -> Vetted:
        """What was found; nothing where the task can be trusted as far as this goes."""
        try:
            return self._vet(skeleton)
        except TaskError as error:
            return Vetted(skeleton, (str(error),))

    def _vet(self, skeleton: Skeleton) -> Vetted:
        doubts: list[str] = []
        notes: list[str] = []
        steps = 0
        checker = self._checker(skeleton, doubts, notes)
        if checker is not None:
            self._say("looking for memory errors")
            skeleton, found = self._without_overflow(skeleton, checker)
            doubts += [found] if found else []
        if not doubts and room(skeleton.judge):
            steps = 1
            self._say("looking for answers that are cut off")
            skeleton, found = self._with_room(skeleton)
            doubts += [found] if found else []
        if not doubts:
            steps = 2
            skeleton, left_out = self._with_edges(skeleton, checker)
            notes += [left_out] if left_out else []
            doubts += self._unreached(_task(skeleton))
            doubts += [_UNSET] if self._unset(_task(skeleton), _drawn(_task(skeleton), _CHECKED)) else []
            self._say("looking for inputs that do not matter")
            doubts += self._idle(_task(skeleton))
        return Vetted(skeleton, tuple(doubts), tuple(notes), steps)

    def narrowed(self, skeleton: Skeleton, seconds: float = 0.0) -> Skeleton:
        """The skeleton with the widest numbers and texts that its reference takes.

        In the end also at its own size, at which a call takes so many seconds.
        """
        if not skeleton.ranges:
            return skeleton
        self._say("looking how far its arguments may go")
        try:
            checker = self._checker(skeleton, [], []) or self._unchecked(skeleton)
            if not seconds:
                return narrowed(skeleton, checker.climb)
            return steadied(settled(skeleton, checker.climb, seconds), partial(self._refused, _task(skeleton)))
        except (Failed, TaskError):
            return skeleton  # it does not build or run, which the rehearsal tells

    def _refused(self, task: Task, inputs: Sequence[Input]) -> list[int]:
        """On which of these the judge refuses what the reference itself answers when it rounds otherwise."""
        domain, rng = ProgramDomain(task), np.random.default_rng(8)
        other = replace(task, build=replace(task.build, flags=(*task.build.flags, *_REORDERED)))
        answers = [self._rehearsal.answers(each, inputs) for each in (task, other)]
        found = []
        doubtful = 0
        for number, (given, right, got) in enumerate(zip(inputs, *answers, strict=True)):
            if right is FAILED or not (got is FAILED or checked(domain, given, got, right)):
                continue
            doubtful += 1
            moved = excused_by(partial(self._moved, task, given, rng))
            if got is FAILED or (doubtful <= _DOUBTFUL and checked(domain, given, got, right, moved)):
                found.append(number)
        return found

    def _moved(self, task: Task, given: Input, rng: np.random.Generator) -> list[Any]:
        return [each for each in self._rehearsal.answers(task, variants(given, rng)) if each is not FAILED]

    def minds_patterns(self, skeleton: Skeleton) -> str:
        """What goes wrong where arrays and texts are sorted, mirrored or repeat themselves, or ""."""
        self._say("looking what patterns do")
        task, always = _task(skeleton), _task(skeleton.patterned(1.0))
        checker = self._checker(skeleton, [], [])
        try:
            inputs = _drawn(always, _PATTERNED)
            if checker is not None and (found := checker.report(inputs)):
                return found
            (_, usual), (answers, times) = (self._rehearsal.turns(each, _TIMED) for each in (task, always))
        except (Failed, TaskError, HarnessError) as error:
            return f"the reference fails ({' '.join(str(error).split())[:160]})"
        if odd := next((reason for reason in map(nonfinite, answers) if reason), ""):
            return f"the reference's own {odd}"
        if usual and times and max(times) > _LONGER * max(float(np.median(usual)), _BRISK):
            return f"calls take {max(times) / float(np.median(usual)):.0f} times as long"
        floats = any(each.kind.startswith("f") for each in skeleton.ranges.values())
        return "rounding alone decides an answer" if floats and self._refused(task, inputs) else ""

    def memory_error(self, skeleton: Skeleton) -> str:
        """What the sanitizers say to a reference that crashes or answers oddly; "" where they say nothing."""
        checker = self._checker(skeleton, [], [])
        try:
            return "" if checker is None else checker.report(_drawn(_task(skeleton), _CHECKED))
        except TaskError:
            return ""

    def doubts(self, task: Task) -> list[str]:
        """What is doubted about a task as it is, edge inputs included; a command is asked nothing."""
        if task.entry.kind == "command":
            return []
        found: list[str] = []
        skeleton = Skeleton(task.name, task.files, (), task.entry.function)
        domain = ProgramDomain(task)
        checker = self._checker(skeleton, found, found)
        if checker is not None:
            setup = make_setup(domain, np.random.default_rng(5))
            report = checker.report([*_drawn(task, _CHECKED), *edge_inputs(domain)], setup)
            found += [report] if report else []
        if "judge.py" in task.files and room(skeleton.judge):
            cut = self._cut_off(skeleton)
            found += [_cut_off_sentence(cut)] if cut else []
        found += [_UNSET] if self._unset(task, [*_drawn(task, _CHECKED), *edge_inputs(domain)]) else []
        if task.entry.kind == "c" and not task.build.command and task.checking.agreement:
            found += [_TOO_FINE] if self._refused(task, _drawn(task, _CHECKED)) else []
        return [*found, *self._unreached(task), *self._idle(task)]

    # Memory errors

    def _checker(self, skeleton: Skeleton, doubts: list[str], notes: list[str]) -> Checked | None:
        task = _task(skeleton)
        if task.entry.kind != "c":
            return None
        if task.build.command:
            notes.append("memory errors of the reference were not looked for: it is built by a command of its own")
            return None
        compiler = task.build.compiler or "cc"
        if compiler not in self._unavailable:
            self._unavailable[compiler] = missing(compiler, self._rehearsal.jail, self._workspace)
        if why := self._unavailable[compiler]:
            notes.append(
                f"memory errors and undefined behaviour of the reference were not looked for: {compiler} cannot build "
                f"with {FLAGS[0]} here ({why}); install its sanitizer libraries and run init again"
            )
            return None
        files = repr(sorted((name, text) for name, text in skeleton.files.items() if name != "judge.py"))
        if files not in self._checked:
            try:
                self._checked[files] = Checked(task, self._rehearsal.jail, self._workspace)
            except Failed as failure:
                doubts.append(f"the reference does not build with the sanitizers: {failure.reason}")
                return None
        return self._checked[files]

    def _unchecked(self, skeleton: Skeleton) -> Checked:
        """The reference without the sanitizers: a crash is seen all the same."""
        files = repr(sorted((name, text) for name, text in skeleton.files.items() if name != "judge.py"))
        if files not in self._plain:
            self._plain[files] = Checked(_task(skeleton), self._rehearsal.jail, self._workspace, ("-O1",))
        return self._plain[files]

    def _without_overflow(self, skeleton: Skeleton, checker: Checked) -> tuple[Skeleton, str]:
        while True:
            found = checker.report(_drawn(_task(skeleton), _CHECKED))
            grown = room(skeleton.judge) and room(skeleton.judge) < _MOST_ROOM
            if not (found and grown and "past the end of" in found):
                return skeleton, found
            skeleton = skeleton.roomier(2)

    # Answers that are cut off

    def _with_room(self, skeleton: Skeleton) -> tuple[Skeleton, str]:
        """The skeleton with twice the room that its answers need."""
        while name := self._cut_off(skeleton):
            if room(skeleton.judge) >= _MOST_ROOM:
                return skeleton, _cut_off_sentence(name)
            skeleton = skeleton.roomier(2)
        return skeleton.roomier(2), ""

    def _cut_off(self, skeleton: Skeleton) -> str:
        """What the reference answers otherwise when its outputs have twice the room, or ""."""
        task, wider = _task(skeleton), _task(skeleton.roomier(2))
        answers = self._rehearsal.answers(task, _drawn(task, _CHECKED))
        return soundness.truncated(answers, self._rehearsal.answers(wider, _drawn(wider, _CHECKED)), POISON)

    # Small inputs

    def _with_edges(self, skeleton: Skeleton, checker: Checked | None) -> tuple[Skeleton, str]:
        """The skeleton with edge inputs of all sizes that the reference can take, and which it cannot."""
        inputs: dict[int, Sequence[Input]] = {}
        # Beyond the size of the timed inputs a call may take for ever.
        sizes = [size for size in EDGES if size < int(constant(skeleton.judge, "SIZE"))]
        for size in sizes:
            try:
                inputs[size] = edge_inputs(ProgramDomain(_task(skeleton.edged((size,)))))
            except TaskError:
                continue  # make_input itself has no input so small
        task = _task(skeleton)
        if checker is not None and checker.report([given for each in inputs.values() for given in each]):
            inputs = {size: each for size, each in inputs.items() if not checker.report(each)}
        domain = ProgramDomain(task)
        asked = [(size, given) for size, each in inputs.items() for given in each]
        answers = self._rehearsal.answers(task, [given for _, given in asked])
        wrong = {
            size
            for (size, given), answer in zip(asked, answers, strict=True)
            if answer is FAILED or checked(domain, given, answer, answer)
        }
        wrong |= {asked[number][0] for number in self._unset(task, [given for _, given in asked])}
        good = [size for size in inputs if size not in wrong]
        left_out = [size for size in sizes if size not in good]
        note = "" if not left_out else f"edge_inputs leaves out {_listed(left_out)}, which the reference cannot take"
        return skeleton.edged(good), note

    # Variables that nobody set, code that is not reached, inputs that do not matter

    def _unset(self, task: Task, inputs: Sequence[Input]) -> list[int]:
        """On which of these the answer depends on a variable that nobody set, which no sanitizer of GCC's sees."""
        if task.entry.kind != "c" or task.build.command:
            return []
        domain = ProgramDomain(task)
        builds = [replace(task, build=replace(task.build, flags=(*task.build.flags, flag))) for flag in _SET]
        answers = [self._rehearsal.answers(each, inputs) for each in builds]
        if any(all(each is FAILED for each in some) for some in answers):
            return []  # the compiler does not know these flags
        return [
            number
            for number, (given, one, other) in enumerate(zip(inputs, *answers, strict=True))
            if (one is FAILED) != (other is FAILED) or (one is not FAILED and checked(domain, given, one, other))
        ]

    def _unreached(self, task: Task) -> list[str]:
        if task.entry.kind != "c" or task.build.command:
            return []
        domain = ProgramDomain(task)
        inputs = [*_drawn(task, _CHECKED), *edge_inputs(domain)]
        setup = make_setup(domain, np.random.default_rng(5))
        return unreached(task, inputs, setup, self._rehearsal.jail, self._workspace)

    def _idle(self, task: Task) -> list[str]:
        domain = ProgramDomain(task)
        drawn = _drawn(task, _DRAWN)
        answers = self._rehearsal.answers(task, drawn[:_CHECKED])
        answered = [(given, answer) for given, answer in zip(drawn, answers, strict=False) if answer is not FAILED]
        if len(answered) < len(answers):
            return [f"the reference fails on {len(answers) - len(answered)} of {len(answers)} inputs of make_input"]

        def ask(inputs: Sequence[Input]) -> list[Any]:
            return self._rehearsal.answers(brisk, inputs)

        def differs(given: Input, answer: Any, expected: Any) -> str:
            return checked(domain, given, answer, expected)

        def passes(number: int, answer: Any) -> bool:
            moved = excused_by(partial(self._moved, task, drawn[number], rng))
            return not checked(domain, drawn[number], answer, answers[number], moved)

        # A capacity may be too small in edge inputs alone.
        edges = edge_inputs(domain)
        answers_to_edges = self._rehearsal.answers(task, edges)
        small = [(each, answer) for each, answer in zip(edges, answers_to_edges, strict=True) if answer is not FAILED]
        # A changed input may send the reference round and round; that need not take the task's whole limit to see.
        brisk = replace(task, limits=replace(task.limits, seconds=min(task.limits.seconds, 1.0)))
        rng = np.random.default_rng(7)
        return [
            *soundness.idle_parts(answered[:_CHANGED], ask, differs, rng),
            *soundness.idle_numbers([*drawn, *edges], [*answered[:_CHANGED], *small], ask, differs),
            *soundness.swallowed(answers, task.checking.tolerance, POISON, passes),
        ]


def short_call(seconds: float) -> str:
    """What to do about a call that is shorter than the judge can time well, or ""."""
    if not 0 < seconds < ADVISED:
        return ""
    return (
        f"a call takes {seconds * 1e6:.2g} us, and below {ADVISED * 1e6:g} us the round trip to the jail weighs on "
        "both sides: let make_input make larger inputs, or set [timing] bundle = N in task.toml, which asks N inputs "
        "as one question"
    )


_UNSET = (
    "the answer depends on a variable that nobody set (with -ftrivial-auto-var-init=zero it is another one than with "
    "=pattern): set it in the source"
)


def _task(skeleton: Skeleton) -> Task:
    return make_task(Path(skeleton.name), dict(skeleton.files))


def _drawn(task: Task, count: int) -> list[Input]:
    domain, rng = ProgramDomain(task), np.random.default_rng(5)
    return [make_input(domain, rng) for _ in range(count)]


def _cut_off_sentence(name: str) -> str:
    return (
        f"with twice the room for its outputs the reference gives another '{name}': its answers are cut off, and what "
        "is cut off is not checked; size the outputs in make_input for the longest answer"
    )


def _listed(sizes: Sequence[int]) -> str:
    return f"the size{'s' if len(sizes) > 1 else ''} {', '.join(map(str, sizes))}"
