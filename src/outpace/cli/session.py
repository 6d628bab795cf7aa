"""A session: the archive, the policy, the judge and the run of one command, opened together and closed together."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.markup import escape

from outpace.archive import Archive
from outpace.budget import Budget
from outpace.cli.alone import alone_in
from outpace.cli.progress import Progress
from outpace.domains.program import ProgramDomain
from outpace.errors import OutpaceError, PolicyError
from outpace.judge.jail import JailKind
from outpace.judge.judge import Judge
from outpace.machine import Machine
from outpace.policies import make_policy
from outpace.run import Run, Settings
from outpace.shown import shown
from outpace.task import Task
from outpace.task.variation import points

# Where no limit is given.
DEFAULT_TRIALS = 40


@dataclass(frozen=True)
class Session:
    """A run that is ready to be looped over, and those it works with."""

    run: Run
    judge: Judge
    progress: Progress


def budget_of(trials: int | None, minutes: float | None, tokens: int | None, money: float | None) -> Budget:
    """The limits that were given, each above 0; without any, a number of trials."""
    for name, limit in (("trials", trials), ("minutes", minutes), ("tokens", tokens), ("money", money)):
        if limit is not None and not limit > 0:
            raise OutpaceError(f"--{name} {limit} leaves nothing to do: give a number above 0, or leave it out")
    if trials is None and minutes is None and tokens is None and money is None:
        trials = DEFAULT_TRIALS
    return Budget(trials, minutes, tokens, money)


@contextmanager
def session(
    task: Task,
    policy: str,
    given: Mapping[str, Any],
    *,
    name: str,
    settings: Settings,
    budget: Budget,
    seed: int | None,
    folder: Path,
    jail: JailKind,
    machine: Machine,
    quiet: bool,
) -> Iterator[Session]:
    """Begin a run, or go on with it; its task is attacked first, once."""
    if policy == "moves" and not points(task):
        # Before the task is attacked, which takes a while, and before the archive holds a run of nothing.
        flags = "" if task.entry.kind == "python" else ", give [build] flag_choices in its task.toml"
        raise PolicyError(
            f"task {task.name} has no variation points, so without a model there is nothing to try: mark lines of "
            f"{', '.join(task.editable)} with 'outpace: choose' or 'outpace: alternatives'{flags}, or use a model "
            "(--policy openai) or a coding agent (outpace mcp)"
        )
    with (
        alone_in(folder),
        Archive.open(folder / "archive.sqlite") as archive,
        Progress(quiet=quiet) as progress,
    ):
        # A server's words are shown as they are; brackets in them are no markup.
        proposing = make_policy(policy, lambda what: progress.doing(escape(shown(what))), **given)
        # Absolute: without a jail a candidate is started from a folder of its own.
        work = (folder / "work").absolute()
        with Judge(ProgramDomain(task), jail=jail, workspace=work, progress=progress.doing) as judge:
            run = Run(
                archive,
                task,
                judge,
                proposing,
                name=name,
                machine=machine,
                seed=random.SystemRandom().getrandbits(32) if seed is None else seed,
                settings=settings,
                budget=budget,
            )
            progress.begin(run)
            if "fair" not in archive.notes(run.record):
                run.note("fair", judge.inspect().ratio)
            yield Session(run, judge, progress)
