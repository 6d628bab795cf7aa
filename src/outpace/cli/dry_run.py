"""`outpace run --dry-run`: print what a run will take, without a call to a model and without a trial."""

from __future__ import annotations

import dataclasses
import json as json_module
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from outpace import prompt
from outpace.aim import FASTER, Aim
from outpace.archive import Reading
from outpace.budget import Budget, Spent, left
from outpace.cli.progress import Progress
from outpace.domains.program import ProgramDomain
from outpace.estimate import TOKENS_PER_SECOND, Estimate, Pace, Prices, expect, pace
from outpace.judge.jail import JailKind
from outpace.judge.judge import Judge
from outpace.machine import Machine
from outpace.policies.openai import MAX_TOKENS
from outpace.run import Examiner
from outpace.task import Task
from outpace.task.candidate import reference

# These read no text, so that they spend no tokens.
_WITHOUT_MODEL = ("moves", "replay")


@dataclass(frozen=True)
class Plan:
    """The run that is thought of."""

    task: Task
    policy: str
    name: str
    budget: Budget
    given: Mapping[str, Any]
    # How many scored candidates a prompt shows once there are some.
    shown: int
    aim: Aim = FASTER


def estimate_and_print(plan: Plan, here: Machine, kind: JailKind, archive: Path, *, json: bool) -> int:
    """Estimate on this machine; the judge is needed where no trial of this task was timed yet."""
    with tempfile.TemporaryDirectory(prefix="outpace-dry-") as folder, Progress(quiet=json) as progress:
        Path(folder).chmod(0o755)
        workspace = Path(folder)
        with Judge(ProgramDomain(plan.task), jail=kind, workspace=workspace, progress=progress.doing) as judge:
            found, known = estimate(plan, here, judge, archive)
    show(found, known, plan, json=json)
    return 0


def estimate(plan: Plan, here: Machine, examiner: Examiner, archive: Path) -> tuple[Estimate, Pace]:
    """What is to be expected, and what is known from earlier trials; the reference is timed where none is."""
    own = reference(plan.task)
    known, remaining = Pace(), plan.budget
    # Opening an archive that is not there would make one.
    if archive.is_file():
        known, remaining = _history(archive, plan)
    if known.judging is None:
        known = dataclasses.replace(known, judging=examiner.judge(own).seconds, trials=0)
    text = prompt.render(plan.task, own, [], [], here, _stated(remaining), plan.aim)
    prices = Prices(plan.given.get("price_in", 0.0), plan.given.get("price_out", 0.0))
    most = plan.given.get("max_tokens", MAX_TOKENS)
    if plan.policy in _WITHOUT_MODEL:
        silent = dataclasses.replace(known, reply=0.0, tokens_in=0.0, tokens_out=0.0)
        found = expect("", own, 0, remaining, silent, prices, 0)
        return dataclasses.replace(found, reserved_tokens=0), silent
    return expect(text, own, plan.shown, remaining, known, prices, most), known


def show(found: Estimate, known: Pace, plan: Plan, *, json: bool) -> None:
    """Print the estimate."""
    task, policy = plan.task, plan.policy
    if json:
        totals = {"tokens": found.tokens, "money": found.money, "minutes": found.minutes}
        facts = {"task": task.name, "policy": policy, "earlier_trials": known.trials}
        print(json_module.dumps(facts | dataclasses.asdict(found) | totals, indent=1))
        return
    source = "the lengths of the texts" if known.tokens_in is None else "earlier trials"
    print(f"{task.name} with {policy}: {found.trials} trials, about {found.minutes:.3g} minutes.")
    print(f"  judging  {found.judging_seconds:.1f} s a trial, as {_timed(known)}")
    if policy not in _WITHOUT_MODEL:
        speed = f"at {TOKENS_PER_SECOND:g} tokens a second" if known.reply is None else "as in earlier trials"
        print(f"  reply    {found.reply_seconds:.1f} s a trial, {speed}")
        print(f"  tokens   {found.prompt_tokens} of prompt and {found.reply_tokens} of reply a trial,")
        print(f"           {found.tokens} in all, from {source}")
        if policy == "openai":
            print(f"  reserve  {found.reserved_tokens} tokens before each call")
    if found.money_per_trial:
        print(f"  money    {found.money:.4g} in all, {found.reserved_money:.4g} reserved before each call")
    print("No model was called and no trial was made.")


def _timed(known: Pace) -> str:
    return "in earlier trials" if known.trials else "timed on the reference"


def _history(archive: Path, plan: Plan) -> tuple[Pace, Budget]:
    """What earlier trials on this task took, and what this run has left."""
    with Reading.open(archive) as opened:
        runs = [run for run in opened.runs() if run.task_hash == plan.task.hash]
        # Judging takes as long whoever proposes; replies are another matter.
        everyone = pace(trial for run in runs for trial in opened.trials(run))
        own = pace(trial for run in runs if run.policy == plan.policy for trial in opened.trials(run))
        known = dataclasses.replace(own, judging=everyone.judging, trials=everyone.trials)
        remaining = plan.budget
        for run in runs:
            if run.name == plan.name:
                spent = Spent(sum(opened.outcome_counts(run).values()), 0.0, opened.costs(run))
                remaining = _budget(left(plan.budget, spent))
    return known, remaining


def _budget(remaining: Mapping[str, float]) -> Budget:
    trials, tokens = remaining.get("trials"), remaining.get("tokens")
    return Budget(
        None if trials is None else int(trials),
        remaining.get("minutes"),
        None if tokens is None else int(tokens),
        remaining.get("money"),
    )


def _stated(remaining: Budget) -> dict[str, float]:
    return {name: value for name, value in dataclasses.asdict(remaining).items() if value is not None}
