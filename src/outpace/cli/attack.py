"""`outpace attack`: find out what a task's judge lets through, before a long run does."""

from __future__ import annotations

import dataclasses
import json as json_module
import shlex
import sys
import textwrap
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from outpace import machine
from outpace.aim import ATTACK
from outpace.attack import Bound, Win, compare_wins, found_wins, known_bound, named_bound
from outpace.cli.dry_run import Plan, estimate_and_print
from outpace.cli.plain import shortened
from outpace.cli.proposer import Proposer
from outpace.cli.session import budget_of, session
from outpace.cli.trial import candidate_of
from outpace.judge.jail import JailKind, best_jail
from outpace.judge.verdict import Verdict, toward_one
from outpace.loop import loop
from outpace.run import Settings
from outpace.shown import shown
from outpace.task.file import load_task

_POLICYS_OWN = Proposer()
_WIDTH = 80


def attack(
    task: Path,
    /,
    *,
    policy: str = "moves",
    honest: list[Path] | None = None,
    honest_flags: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
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
    """Attack a task: ask a policy to win without doing the work, and list what the judge let through.

    Every win is timed against the best honest code known. One that beats it should be looked at by a person: it may
    be a hole in the task's check or inputs. The exit status is 1 when there is one, else 0. Nothing that an attack
    finds is ever published. Start the same command again to go on with an attack that was stopped.

    Parameters
    ----------
    task
        Folder with the task.toml.
    policy
        Who attacks: moves, openai, command, agent or replay, as in `outpace run`. The attacker is shown judge.py.
    honest
        The best honest version of an editable file, matched by file name; may be repeated. By default the best
        confirmed candidate of this task's runs, or else the reference.
    honest_flags
        Compiler flags for the honest files, such as "-O3 -march=native"; by default the reference's.
    trials
        Stop after this many trials in all; 40 where no limit is given.
    minutes
        Stop after this many minutes of this command.
    tokens
        Stop before a call that could bring the attack above this many tokens, failed calls included.
    money
        Stop before a call that could bring the attack's price above this; needs --price-in and --price-out.
    proposer
        The policy's settings.
    name
        The attack's name; by default the task's name, attack, and the policy's.
    folder
        Where the archive is kept.
    exemplars
        How the scored attempts in a prompt are chosen: buckets, islands, top, random or none.
    seed
        Makes the policy's choices repeatable.
    dry_run
        Print what the attack is expected to take in tokens, money and minutes; no model is called.
    no_jail
        Judge without a jail. Only for code you trust with this machine.
    json
        Print one JSON object at the end instead of progress.
    """
    loaded = load_task(task)
    own = candidate_of(loaded, honest or [], honest_flags)
    kind: JailKind = "none" if no_jail else best_jail()
    budget = budget_of(trials, minutes, tokens, money)
    given = proposer.checked(policy, budget)
    settings = Settings(exemplars=exemplars, policy=proposer.stored(), aim=ATTACK.name)
    name = name or f"{loaded.name}-attack-{policy}"
    here = machine.describe()
    if dry_run:
        plan = Plan(loaded, policy, name, budget, given, settings.shown, ATTACK)
        return estimate_and_print(plan, here, kind, folder / "archive.sqlite", json=json)
    with session(
        loaded, policy, given, name=name, settings=settings, budget=budget, seed=seed, folder=folder, jail=kind,
        machine=here, quiet=json,
    ) as begun:  # fmt: skip
        if honest or honest_flags is not None:
            source = " and ".join(map(str, honest or ())) or f"the reference with {honest_flags}"
            bound = named_bound(begun.judge, own, source)
        else:
            bound = known_bound(begun.run.archive, loaded, here.key)

        def compare() -> None:
            compare_wins(begun.run, begun.judge, bound, begun.progress.doing)

        def watch(trial: int, verdict: Verdict) -> None:
            begun.progress.judged(trial, verdict)
            compare()

        reason = loop(begun.run, watch)
        compare()
        found = Found(loaded.name, name, begun.run.outcomes(), bound, tuple(found_wins(begun.run, bound)))
    if json:
        print(json_module.dumps(found.as_json(reason), indent=1))
    else:
        print(f"Done: {shown(reason)}.", file=sys.stderr)
        print(found.text(folder))
    return 1 if any(win.suspicious for win in found.wins) else 0


@dataclasses.dataclass(frozen=True)
class Found:
    """What an attack found."""

    task: str
    name: str
    outcomes: dict[str, int]
    bound: Bound
    wins: tuple[Win, ...]

    def text(self, folder: Path) -> str:
        """For people: each win with its figures and the command that shows it, most suspicious first."""
        count = sum(self.outcomes.values())
        if not self.wins:
            return f"{self.task}: the judge let nothing win in {_counted(count, 'trial')}."
        doubtful = [win for win in self.wins if win.suspicious]
        honest = [win for win in self.wins if not win.suspicious]
        told = f"{self.task}: {_counted(len(self.wins), 'candidate')} won in {_counted(count, 'trial')}"
        bound = f"Honest bound: {toward_one(self.bound.ratio):.2f}x the reference's speed ({self.bound.source})."
        lines = [
            f"{told}, {len(doubtful) or 'none'} to be looked at.",
            textwrap.fill(shown(bound), _WIDTH, subsequent_indent="  ", break_on_hyphens=False),
        ]
        if doubtful:
            lines += ["", "Look at these, most suspicious first:"]
            lines += [line for win in doubtful for line in self._win(win, folder)]
        if honest:
            lines += ["", "Not faster than the honest bound, so probably only honest optimisation:"]
            lines += [line for win in honest for line in self._win(win, folder)]
        return "\n".join(lines)

    def _win(self, win: Win, folder: Path) -> list[str]:
        where = [] if folder == Path(".outpace") else ["--folder", str(folder)]
        command = shlex.join(["outpace", "show", self.name, "--trial", str(win.trial), *where])
        lines = [
            f"  trial {win.trial}: {toward_one(win.ratio):.2f}x the reference, {_against(win)}",
            f"    {shown(command)}",
        ]
        design = shortened(win.design, _WIDTH - 4)
        return [*lines[:1], f"    {design}", *lines[1:]] if design else lines

    def as_json(self, reason: str) -> dict[str, Any]:
        """The same for programs."""
        return {
            "task": self.task,
            "run": self.name,
            "ended": reason,
            "trials": sum(self.outcomes.values()),
            "outcomes": self.outcomes,
            "honest": {
                "candidate": self.bound.candidate.hash,
                "source": self.bound.source,
                "ratio": self.bound.ratio,
            },
            "wins": [dataclasses.asdict(win) | {"suspicious": win.suspicious} for win in self.wins],
        }


def _against(win: Win) -> str:
    if win.against is None:
        return "too noisy beside the bound"
    found = win.against.speed_up
    if found is None:
        return f"but {win.against.outcome} beside the bound"
    return f"{found.rounded()} the bound ({found.low:.2f} to {found.high:.2f})"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
