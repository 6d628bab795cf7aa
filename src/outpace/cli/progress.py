"""Progress: what a run is doing, in three lines of a terminal or in one line of a log for each finished trial."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from outpace.claims import confirmation
from outpace.cli.plain import shortened
from outpace.judge.verdict import Verdict, toward_one
from outpace.run import Run
from outpace.shown import shown

# Once a second: a livelier picture would take the processor from what is being timed.
_REFRESHES = 1


class Progress:
    """Live progress on standard error; nothing when `quiet`."""

    def __init__(self, *, quiet: bool, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True, quiet=quiet, highlight=False)
        # A log keeps what is written to it: there it is finished trials alone, without a control character.
        self._shown = self._console.is_terminal and not quiet
        self._spinner = Spinner("dots")
        self._what = Text("starting")
        self._run: Run | None = None
        self._best = 0.0
        self._begun = time.monotonic()
        self._standing = ""
        # Last, for it draws its first picture at once.
        self._live = Live(
            console=self._console, refresh_per_second=_REFRESHES, transient=True, get_renderable=self._picture
        )

    def __enter__(self) -> Self:
        if self._shown:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown:
            self._live.stop()
        if kind is KeyboardInterrupt and self._run is not None:
            done = sum(self._run.outcomes().values())
            # Also where the rest is quiet: whoever stopped it must know that nothing is lost.
            print(
                f"Run {self._run.record.name} keeps its {done} trials; the same command again goes on with it.",
                file=sys.stderr,
            )

    def begin(self, run: Run) -> None:
        """The run that is reported on from now on."""
        self._run = run
        self._best = _confirmed_ratio(run)
        self._standing = self._summary(run)
        done = sum(run.outcomes().values())
        goes_on = f", going on after {done} trials" if done else ""
        self._print(shown(f"run {run.record.name}: task {run.task.name}, policy {run.policy.name}{goes_on}"))

    def doing(self, what: str) -> None:
        """What the judge or the policy is at; may hold markup."""
        self._what = Text.from_markup(what)
        if self._shown:
            self._live.refresh()

    def judged(self, trial: int, verdict: Verdict) -> None:
        """A finished trial."""
        if self._run is None:
            return
        self._standing = self._summary(self._run)
        line = f"trial {trial}: {self._finding(self._run, trial, verdict)}"
        self._print(line if self._shown else f"{line}; {self._standing}")
        self.doing("thinking of the next candidate")

    def ended(self, reason: str) -> None:
        """The search is over; what is left is to prepare its claim."""
        if self._run is None:
            return
        self._standing = self._summary(self._run)
        line = f"run {self._run.record.name} has ended: {shortened(reason, 400)}"
        self._print(line if self._shown else f"{line}; {self._standing}")
        self.doing("the search has ended, preparing the claim")

    def _finding(self, run: Run, number: int, verdict: Verdict) -> str:
        found = verdict.speed_up
        if found is None:
            return f"{verdict.outcome}: {shortened(verdict.reason, 400 if self._shown else 120)}"
        said = f"{found.rounded()} ({found.low:.2f} to {found.high:.2f})"
        trial = run.trial(number)
        why = "" if trial is None else confirmation.failed(trial)
        if why:
            return f"{said}, but not confirmed: {shortened(why, 120)}"
        best = _confirmed_ratio(run)
        if best > self._best:
            self._best = best
            said += f", the best so far: {toward_one(best):.2f}x when confirmed"
        return said

    def _summary(self, run: Run) -> str:
        """Where the run stands: best, verdicts, spent and left; an attack has no best, it has wins."""
        leader = run.leader()
        wins = 0 if run.aim.claims else len(run.wins())
        parts = [f"{wins} {'win' if wins == 1 else 'wins'}" if wins else "no win yet"]
        if leader is not None and leader[0].win:
            best, trial = leader
            failed = ", its confirmation failed" if confirmation.failed(trial) else ""
            parts = [f"best {toward_one(best.ratio):.2f}x ({best.low:.2f} to {best.high:.2f}){failed}"]
        outcomes = run.outcomes()
        parts.append(", ".join(f"{count} {name}" for name, count in outcomes.items()) or "no trial yet")
        return "; ".join([*parts, self._spent(run)])

    @staticmethod
    def _spent(run: Run) -> str:
        spent, remaining = run.spent, run.remaining()
        used = [f"{spent.minutes:.1f} min"]
        if spent.tokens:
            used.append(f"{spent.tokens} tokens")
        if spent.cost.money:
            used.append(f"{spent.cost.money:.3g} money")
        left = ", ".join(
            f"{value:.3g} {name.removesuffix('s') if value == 1 else name}" if value < 1000 else f"{value:.0f} {name}"
            for name, value in remaining.items()
        )
        return f"spent {', '.join(used)}" + (f"; left {left}" if left else "")

    def _picture(self) -> Group:
        elapsed = int(time.monotonic() - self._begun)
        self._spinner.update(text=Text.assemble(f"{elapsed // 60}:{elapsed % 60:02d} ", self._what))
        lines = [Text(part, no_wrap=True, overflow="ellipsis") for part in _wrapped(self._standing)]
        return Group(self._spinner, *lines)

    def _print(self, line: str) -> None:
        self._console.print(
            Text(line), no_wrap=self._shown, overflow="ellipsis" if self._shown else None, soft_wrap=not self._shown
        )


def _confirmed_ratio(run: Run) -> float:
    """The leader's confirmed speed-up, or 0."""
    leader = run.leader()
    found = None if leader is None else confirmation.confirmed(leader[1])
    return 0.0 if found is None else found.ratio


def _wrapped(standing: str) -> list[str]:
    """The best and the verdicts on one line, what is spent and left on the next."""
    if not standing:
        return []
    head, _, tail = standing.partition("; spent ")
    return [f"  {head}", f"  spent {tail}"]
