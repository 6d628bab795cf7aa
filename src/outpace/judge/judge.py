"""The judge: build, check, time, and say what was found.

It knows nothing of policies, rewards or archives. What a candidate does becomes a Verdict; what goes wrong on our
side stays an exception and is tried again.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from outpace.domains.base import Domain
from outpace.errors import HarnessError, OutpaceError, TaskError
from outpace.judge import redteam
from outpace.judge.accounts import of_its_own, reckon
from outpace.judge.build import build, remove
from outpace.judge.cgroup import remove_stale
from outpace.judge.cores import exclusive, kept_off, timing_cores, undisturbed
from outpace.judge.interview import Interview
from outpace.judge.jail import JailKind
from outpace.judge.timing import Stopwatch, Timed
from outpace.judge.verdict import Outcome, SpeedUp, Verdict
from outpace.judge.worker import Failed
from outpace.task import Task
from outpace.task.candidate import Candidate, forbidden_change, reference

ATTEMPTS = 3
_RED_TEAM_INPUTS = 8

Progress = Callable[[str], None]
T = TypeVar("T")


class Judge:
    """Judges candidates of one task on this machine."""

    def __init__(self, domain: Domain, *, jail: JailKind, workspace: Path, progress: Progress | None = None) -> None:
        self.domain = domain
        self.jail = jail
        self.cores = timing_cores(domain.task.limits.threads)
        self._say = progress or (lambda _: None)
        workspace.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(workspace)
        remove_stale()
        self._folder = Path(tempfile.mkdtemp(prefix=f"judge-{os.getpid()}-", dir=workspace))
        self._folder.chmod(0o755)
        self._reference: Path | None = None

    def __enter__(self) -> Judge:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove everything this judge built."""
        remove(self._folder)

    def judge(self, candidate: Candidate) -> Verdict:
        """The verdict on one candidate against the task's reference."""
        return self._retried(lambda: self._judge(candidate, None))

    def confirm(self, candidate: Candidate, baseline: Candidate | None = None) -> Verdict:
        """The verdict that may be published: in fresh processes that live whole lives and are excused nothing.

        Against the task's reference, or against another candidate in its place.
        """
        return self._retried(lambda: self._judge(candidate, baseline, confirm=True))

    def compare(self, candidate: Candidate, baseline: Candidate) -> Verdict:
        """The verdict on one candidate against another one instead of the reference."""
        return self._retried(lambda: self._judge(candidate, baseline))

    def inspect(self) -> SpeedUp:
        """The reference's score against itself; raises TaskError with every weakness that attacks on it found."""
        return self._retried(self._inspect)

    def _inspect(self) -> SpeedUp:
        task = self.domain.task
        self._say("trying to fool the task's check")
        program = self.domain.program(self.jail, self._reference_folder())
        ask = Interview(self.domain, self.jail, (program, program), self.cores, _secret_seed())
        with self._timing():
            inputs = ask.some_inputs(_RED_TEAM_INPUTS)
            answers = ask.reference_answers(inputs)
            found = redteam.weaknesses(self.domain, list(zip(inputs, answers, strict=True)), ask.doubts.moved)
        if found:
            raise TaskError(f"task {task.name} is not safe to run: " + "; ".join(found))
        self._say("timing the reference against itself")
        verdict = self._judge(reference(task), None)
        if verdict.speed_up is not None and redteam.unfair(verdict.speed_up):
            verdict = self._judge(reference(task), None)  # once more: one time in a hundred chance alone does this
        if verdict.outcome is Outcome.TOO_NOISY:
            raise HarnessError(f"the reference cannot be timed: {verdict.reason}")
        if verdict.speed_up is None:
            raise TaskError(f"task {task.name}: its own reference is judged '{verdict.outcome}': {verdict.reason}")
        reason = redteam.unfair(verdict.speed_up) or redteam.mostly_conversion(reckon(verdict.buckets, task))
        if reason:
            raise TaskError(f"task {task.name}: {reason}")
        return verdict.speed_up

    def _judge(self, candidate: Candidate, baseline: Candidate | None, *, confirm: bool = False) -> Verdict:
        begin = time.monotonic()
        waited = 0.0

        def verdict(outcome: Outcome, reason: str = "", timed: Timed | None = None) -> Verdict:
            speed_up = timed.decision.speed_up if timed and outcome is Outcome.OK else None
            return Verdict(outcome, reason, speed_up, timed.buckets if timed else (), time.monotonic() - begin - waited)

        reason = forbidden_change(self.domain.task, candidate)
        if reason:
            return verdict(Outcome.UNUSABLE, reason)
        rival = self._reference_folder() if baseline is None else self._build_baseline(baseline)
        folder = None
        try:
            self._say("building")
            folder = self._build(candidate)
            programs = (self.domain.program(self.jail, rival), self.domain.program(self.jail, folder))
            with self._timing() as waited:
                watch = Stopwatch(
                    Interview(self.domain, self.jail, programs, self.cores, _secret_seed(), trusted=baseline is None)
                )
                self._say("checking")
                plan = watch.rehearse()
                timed = watch.time(plan, lambda count: self._say(f"timing, bucket {count}"), confirm=confirm)
        except Failed as failure:
            return verdict(failure.outcome, failure.reason)
        finally:
            for made in (folder, rival if baseline is not None else None):
                if made is not None:
                    remove(made)
        if timed.decision.noisy or not timed.decision.stop:
            return verdict(Outcome.TOO_NOISY, _noise(timed, self.domain.task), timed)
        return verdict(Outcome.OK, timed.note, timed)

    def _reference_folder(self) -> Path:
        if self._reference is None:
            try:
                self._reference = self._build(reference(self.domain.task))
            except Failed as failure:
                raise TaskError(
                    f"task {self.domain.task.name}: the reference does not build ({failure.outcome}): {failure.reason}"
                ) from failure
        return self._reference

    def _build_baseline(self, baseline: Candidate) -> Path:
        try:
            return self._build(baseline)
        except Failed as failure:
            raise TaskError(f"the baseline does not build ({failure.outcome}): {failure.reason}") from failure

    def _build(self, candidate: Candidate) -> Path:
        folder = Path(tempfile.mkdtemp(prefix=f"{candidate.hash[:12]}-", dir=self._folder))
        try:
            build(self.jail, self.domain.build_plan(candidate), folder)
        except BaseException:
            remove(folder)
            raise
        return folder

    @contextlib.contextmanager
    def _timing(self) -> Iterator[float]:
        """The timing cores for ourselves; yields how long that took to get."""
        with (
            exclusive(self.cores, lambda: self._say("waiting for another timing to end")) as waited,
            kept_off(self.cores),
            undisturbed(),
        ):
            yield waited

    def _retried(self, action: Callable[[], T]) -> T:
        for attempt in range(ATTEMPTS):
            try:
                return action()
            except (HarnessError, OSError) as fault:
                if attempt + 1 == ATTEMPTS:
                    if isinstance(fault, HarnessError):
                        raise
                    raise HarnessError(f"judging failed {ATTEMPTS} times: {fault}") from fault
                time.sleep(0.1 * 2**attempt)
            except (OutpaceError, Failed):
                raise
            except Exception as bug:
                # A mistake of ours that some candidate found must end neither a run nor every restart of it.
                raise HarnessError(f"{_place(bug)}: this is a fault of outpace, please report it") from bug
        raise AssertionError("unreachable")


def _place(bug: Exception) -> str:
    """What was raised, and where in the source."""
    last = traceback.extract_tb(bug.__traceback__)[-1]
    return f"{type(bug).__name__}: {str(bug)[:200]} ({Path(last.filename).name}:{last.lineno})"


def _noise(timed: Timed, task: Task) -> str:
    if of_its_own(timed.buckets, task):
        return "its own times vary too much for a figure, several times as much as the reference's over the same inputs"
    return "timings vary too much for a figure; run `outpace doctor` to see what disturbs this machine"


def _secret_seed() -> int:
    # From the kernel, in the parent, anew for every verdict: what a candidate cannot know it cannot prepare for.
    return int.from_bytes(os.urandom(16), "little")


def _remove_abandoned(workspace: Path) -> None:
    """Remove what judges left behind that were killed."""
    for folder in workspace.glob("judge-*-*"):
        owner = folder.name.split("-")[1]
        if owner.isdigit() and not Path(f"/proc/{owner}").exists():
            remove(folder)
