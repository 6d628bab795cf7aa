"""`outpace run`: make a task's code faster."""

from __future__ import annotations

import json as json_module
import random
import sys
from pathlib import Path

from rich.markup import escape

from outpace import machine
from outpace.archive import Archive
from outpace.budget import Budget
from outpace.cli.dry_run import Plan, estimate_and_print
from outpace.cli.progress import Progress
from outpace.cli.proposer import Proposer
from outpace.domains.program import ProgramDomain
from outpace.judge.jail import JailKind, best_jail
from outpace.judge.judge import Judge
from outpace.loop import loop
from outpace.policies import make_policy
from outpace.publish import Publication, publish
from outpace.run import Run, Settings
from outpace.taskfile import load_task

_POLICYS_OWN = Proposer()


def run(
    task: Path,
    *,
    policy: str = "moves",
    trials: int | None = None,
    minutes: float | None = None,
    tokens: int | None = None,
    money: float | None = None,
    proposer: Proposer = _POLICYS_OWN,
    name: str | None = None,
    folder: Path = Path(".outpace"),
    exemplars: str = Settings.exemplars,
    seed: int | None = None,
    dry_run: bool = False,
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
        Who proposes candidates: moves (no model needed), openai (any server that speaks its protocol, such as
        vLLM, Ollama or llama.cpp), command (a program of yours), agent (whoever watches a folder) or replay.
    trials
        Stop after this many trials in all; 40 where no limit is given.
    minutes
        Stop after this many minutes of this command.
    tokens
        Stop before a call that could bring the run above this many tokens, failed calls included.
    money
        Stop before a call that could bring the run's price above this; needs --price-in and --price-out.
    proposer
        The policy's settings.
    name
        The run's name; by default the task's name and the policy's.
    folder
        Where the archive, receipts and reports are kept.
    exemplars
        How the scored candidates in a prompt are chosen: buckets, islands, top, random or none.
    seed
        Makes the policy's choices repeatable.
    dry_run
        Print what the run is expected to take in tokens, money and minutes; no model is called.
    no_jail
        Judge without a jail. Only for code you trust with this machine.
    json
        Print one JSON object at the end instead of progress.
    """
    loaded = load_task(task)
    kind: JailKind = "none" if no_jail else best_jail()
    if trials is None and minutes is None and tokens is None and money is None:
        trials = 40
    budget = Budget(trials, minutes, tokens, money)
    given = proposer.checked(policy, budget)
    settings = Settings(exemplars=exemplars, policy=proposer.stored())
    name = name or f"{loaded.name}-{policy}"
    here = machine.describe()
    file = folder / "archive.sqlite"
    if dry_run:
        plan = Plan(loaded, policy, name, budget, given, settings.shown)
        return estimate_and_print(plan, here, kind, file, json=json)
    with Archive.open(file) as archive, Progress(quiet=json) as progress:
        # A server's words are shown as they are; brackets in them are no markup.
        proposing = make_policy(policy, lambda what: progress.doing(escape(what)), **given)
        # Absolute: without a jail a candidate is started from a folder of its own.
        work = (folder / "work").absolute()
        with Judge(ProgramDomain(loaded), jail=kind, workspace=work, progress=progress.doing) as judge:
            started = Run(
                archive,
                loaded,
                judge,
                proposing,
                name=name,
                machine=here,
                seed=random.SystemRandom().getrandbits(32) if seed is None else seed,
                settings=settings,
                budget=budget,
            )
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
