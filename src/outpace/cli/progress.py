"""Progress: one line of what a run is doing and one line per trial that changed something, in 80 columns."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.status import Status

from outpace.judge.verdict import Verdict
from outpace.run import Run


class Progress:
    """Live progress on standard error; nothing when `quiet`."""

    def __init__(self, *, quiet: bool) -> None:
        self._console = Console(stderr=True, quiet=quiet)
        self._status: Status = self._console.status("starting")
        self._run: Run | None = None
        self._best = 0.0

    def __enter__(self) -> Self:
        self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._status.stop()

    def begin(self, run: Run) -> None:
        """The run that is reported on from now on."""
        self._run = run

    def doing(self, what: str) -> None:
        """What the judge is at."""
        self._status.update(f"{self._summary()}{what}")

    def judged(self, trial: int, verdict: Verdict) -> None:
        """A finished trial: printed when it failed or is the best so far."""
        best = None if self._run is None else self._run.best()
        if best is not None and best.win and best.ratio > self._best:
            self._best = best.ratio
            self._console.print(
                f"trial {trial}: {best.ratio:.2f}x ({best.low:.2f} to {best.high:.2f}), the best so far"
            )
        elif verdict.speed_up is None:
            reason = verdict.reason.splitlines()[0] if verdict.reason else ""
            self._console.print(
                f"trial {trial}: {verdict.outcome}: {reason}",
                overflow="ellipsis",
                no_wrap=True,
                markup=False,
                highlight=False,
            )
        self.doing("")

    def _summary(self) -> str:
        if self._run is None:
            return ""
        outcomes = self._run.outcomes()
        counts = ", ".join(f"{count} {name}" for name, count in outcomes.items())
        best = f"best {self._best:.2f}x; " if self._best else ""
        remaining = ", ".join(f"{value:.3g} {name} left" for name, value in self._run.remaining().items())
        return f"{best}{counts + '; ' if counts else ''}{remaining}: "
