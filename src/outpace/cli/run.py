"""`outpace run`: make a task's code faster."""

from __future__ import annotations

import json as json_module
import random
import sys
from pathlib import Path

from outpace import machine
from outpace.archive import Archive
from outpace.budget import Budget
from outpace.cli.progress import Progress
from outpace.domains.program import ProgramDomain
from outpace.judge.jail import JailKind, best_jail
from outpace.judge.judge import Judge
from outpace.loop import loop
from outpace.policies import make_policy
from outpace.publish import Publication, publish
from outpace.run import Run, Settings
from outpace.taskfile import load_task


def run(
    task: Path,
    *,
    policy: str = "moves",
    trials: int | None = None,
    minutes: float | None = None,
    name: str | None = None,
    folder: Path = Path(".outpace"),
    exemplars: str = Settings.exemplars,
    seed: int | None = None,
    no_jail: bool = False,
    json: bool = False,
) -> int:
    """Make a task's code faster, and prove it.

    Start the same command again to go on with a run that was stopped.

    Parameters
    ----------
    task
        Folder with the task.toml.
    policy
        Who proposes candidates.
    trials
        Stop after this many trials in all; 40 where no limit is given.
    minutes
        Stop after this many minutes of this command.
    name
        The run's name; by default the task's name and the policy's.
    folder
        Where the archive, receipts and reports are kept.
    exemplars
        How the scored candidates in a prompt are chosen: buckets, islands, top, random or none.
    seed
        Makes the policy's choices repeatable.
    no_jail
        Judge without a jail. Only for code you trust with this machine.
    json
        Print one JSON object at the end instead of progress.
    """
    loaded = load_task(task)
    kind: JailKind = "none" if no_jail else best_jail()
    if trials is None and minutes is None:
        trials = 40
    here = machine.describe()
    with Archive.open(folder / "archive.sqlite") as archive, Progress(quiet=json) as progress:
        with Judge(
            ProgramDomain(loaded), jail=kind, workspace=folder / "work", progress=progress.doing
        ) as judge:
            started = Run(
                archive, loaded, judge, make_policy(policy), name=name or f"{loaded.name}-{policy}", machine=here,
                seed=random.SystemRandom().getrandbits(32) if seed is None else seed, settings=Settings(exemplars=exemplars), budget=Budget(trials, minutes),
            )  # fmt: skip
            progress.begin(started)
            if "fair" not in archive.notes(started.record):
                archive.note(started.record, "fair", judge.inspect().ratio)
            reason = loop(started, progress.judged)
            result = publish(started, archive, judge, here, folder)
    if json:
        print(json_module.dumps(result.as_json(reason), indent=1))
    else:
        _tell(result, reason)
    return 0


def _tell(result: Publication, reason: str) -> None:
    print(f"Done: {reason}.", file=sys.stderr)
    print(result.sentence())
