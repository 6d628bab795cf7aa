"""`outpace run`: make a task's code faster."""

from __future__ import annotations

import json as json_module
from pathlib import Path

from outpace import machine
from outpace.claims.publish import publish
from outpace.cli.dry_run import Plan, estimate_and_print
from outpace.cli.proposer import Proposer
from outpace.cli.session import budget_of, session
from outpace.judge.jail import JailKind, best_jail
from outpace.loop import loop
from outpace.run import Settings
from outpace.task.file import load_task

_POLICYS_OWN = Proposer()


def run(
    task: Path,
    /,
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
    budget = budget_of(trials, minutes, tokens, money)
    given = proposer.checked(policy, budget)
    settings = Settings(exemplars=exemplars, policy=proposer.stored())
    name = name or f"{loaded.name}-{policy}"
    here = machine.describe()
    if dry_run:
        plan = Plan(loaded, policy, name, budget, given, settings.shown)
        return estimate_and_print(plan, here, kind, folder / "archive.sqlite", json=json)
    with session(
        loaded, policy, given, name=name, settings=settings, budget=budget, seed=seed, folder=folder, jail=kind,
        machine=here, quiet=json,
    ) as begun:  # fmt: skip
        reason = loop(begun.run, begun.progress.judged)
        begun.progress.ended(reason)
        result = publish(begun.run, begun.judge, here, folder)
    if json:
        print(json_module.dumps(result.as_json(reason), indent=1))
    else:
        print(result.sentence())
    return 0
