"""`outpace show`: the runs of an archive, one run, or one trial."""

from __future__ import annotations

import dataclasses
import json as json_module
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from outpace.aim import AIMS, aim_of
from outpace.archive import Reading, RunRecord, Trial
from outpace.claims import claim, confirmation
from outpace.claims.publish import published
from outpace.claims.receipt import FlagsShare
from outpace.cli.plain import aligned, shortened
from outpace.cli.report import find_run
from outpace.errors import ArchiveError
from outpace.judge.verdict import Verdict, toward_one
from outpace.run import ENDED
from outpace.scored import Scored
from outpace.shown import set_off, shown, told_after

_TOP, _FAILURES = 8, 4


def show(
    name: str | None = None, /, *, trial: int | None = None, folder: Path = Path(".outpace"), json: bool = False
) -> int:
    """Show the runs of an archive, one run, or one of its trials.

    Parameters
    ----------
    name
        The run's name, or the task's name or folder for its newest run; without it, all runs are listed.
    trial
        Print this trial's prompt, reply and verdict.
    folder
        Where the run keeps its archive.
    json
        Print the same facts as JSON.
    """
    with open_archive(folder) as archive:
        if name is None and trial is None:
            found: Any = [facts(archive, record) for record in archive.runs()]
            if not json:
                _print_runs(found)
        elif trial is None:
            found = facts(archive, find_run(archive, name))
            if not json:
                _print_run(found)
        else:
            record = find_run(archive, name)
            wanted = numbered(archive, record, trial)
            found = dataclasses.asdict(wanted) | {"run": record.name}
            if not json:
                _print_trial(archive, record, wanted)
    if json:
        print(json_module.dumps(found, indent=1))
    return 0


def open_archive(folder: Path) -> Reading:
    """The archive in this folder, which must be there: looking makes none."""
    path = folder / "archive.sqlite"
    if not path.is_file():
        raise ArchiveError(f"{path} does not exist: start with `outpace run TASK`, or name another --folder")
    return Reading.open(path)


def numbered(archive: Reading, record: RunRecord, number: int) -> Trial:
    """The trial of this number in a run."""
    found = archive.numbered(record, number)
    if found is not None:
        return found
    count = archive.count(record)
    raise ArchiveError(
        f"run {record.name} has no trial {number}: " + (f"it has 1 to {count}" if count else "it has none yet")
    )


def facts(archive: Reading, record: RunRecord) -> dict[str, Any]:
    """What there is to say about a run."""
    scored = sorted(archive.scored(record.task_hash, record), key=lambda one: (one.win, one.ratio), reverse=True)
    best = archive.best(record)
    notes = archive.notes(record)
    claimed = None if best is None else published(archive, archive.trial(best.trial))
    return {
        "run": record.name,
        "task": record.task_name,
        "policy": record.policy,
        "aim": aim_of(record.settings).name,
        "started": record.started_at,
        "trials": archive.count(record),
        "outcomes": archive.outcome_counts(record),
        "ended": notes.get(ENDED),
        "best": None if best is None else _candidate(archive, best),
        "claim": None if claimed is None else claim.as_json(claimed) | {"sentence": " ".join(claim.sentences(claimed))},
        "cost": dataclasses.asdict(archive.costs(record)),
        "notes": notes,
        "top": [_candidate(archive, one) for one in scored[:_TOP]],
        "failures": [
            {"trial": each.number, "outcome": each.verdict.outcome.value, "reason": each.verdict.reason}
            for each in archive.recent_failures(record, _FAILURES)
            if each.verdict is not None
        ],
    }


def _candidate(archive: Reading, scored: Scored) -> dict[str, Any]:
    trial = archive.trial(scored.trial)
    return {
        "trial": trial.number,
        "candidate": scored.hash,
        "ratio": scored.ratio,
        "low": scored.low,
        "high": scored.high,
        "win": scored.win,
        "confirmed": confirmation.confirmed(trial) is not None,
        "confirmation_failed": confirmation.failed(trial),
        "flags": list(archive.candidate(scored.hash).flags),
        "design": trial.design,
    }


def _print_runs(found: list[dict[str, Any]]) -> None:
    if not found:
        print("No runs yet: start one with `outpace run TASK`.")
        return
    rows = [("run", "policy", "trials", "best", "started")]
    rows += [
        (each["run"], each["policy"], str(each["trials"]), _standing(each), _date(each["started"])) for each in found
    ]
    _print_table(rows, right=(2,))


def _print_run(found: dict[str, Any]) -> None:
    print(shown(f"{found['run']}: task {found['task']}, policy {found['policy']}, started {_date(found['started'])}"))
    print(f"ended: {shortened(found['ended'], 400)}" if found["ended"] else "not ended")
    print(f"best: {_standing(found, long=True)}")
    if found["claim"] is not None:
        print(f"claim: {found['claim']['sentence']}")
    outcomes = ", ".join(f"{count} {name}" for name, count in found["outcomes"].items()) or "none judged yet"
    print(f"trials: {found['trials']} ({outcomes})")
    print(f"spent: {spent(found['cost'])}")
    if found["top"]:
        print()
        rows = [("trial", "speed-up", "flags", "what it does")]
        rows += [
            (str(each["trial"]), _claim(each), " ".join(each["flags"]), shortened(each["design"], 400))
            for each in found["top"]
        ]
        _print_table(rows, right=(0,))
    if found["failures"]:
        print("\nlast failures:")
        _print_table(
            [(str(each["trial"]), each["outcome"], shortened(each["reason"], 400)) for each in found["failures"]],
            right=(0,),
        )
    print(f"\n`outpace show {shown(found['run'])} --trial N` shows a trial in full.")


def _print_table(rows: Sequence[Sequence[str]], *, right: tuple[int, ...]) -> None:
    console = Console(highlight=False, markup=False)
    for line in aligned(rows, right=right, widest=34):
        console.print(Text(line), no_wrap=True, overflow="ellipsis")


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))


def _print_trial(archive: Reading, record: RunRecord, trial: Trial) -> None:
    print(f"# Trial {trial.number} of {shown(record.name)} ({trial.state})")
    print(f"\n## Prompt\n\n{set_off(trial.asked.text)}")
    print(f"\n## Reply\n\n{'(none yet)' if trial.reply is None else set_off(trial.reply)}")
    candidate = None if trial.candidate is None else archive.candidate(trial.candidate)
    for name, text in candidate.files.items() if candidate is not None else ():
        # A reply may hold edits alone; what was judged is the whole.
        if text.strip() not in (trial.reply or ""):
            print(f"\n## {shown(name)}, as judged\n\n{set_off(text)}")
    print(f"\n## Verdict\n\n{_verdict(trial.verdict)}")
    if trial.duplicate_of is not None:
        print("Its sources were judged before, so it was given that verdict.")
    if trial.confirmation is not None:
        print(f"Confirmation in fresh processes: {_verdict(trial.confirmation)}")
    print(f"Spent: {spent(dataclasses.asdict(trial.cost))}")


def _verdict(verdict: Verdict | None) -> str:
    if verdict is None:
        return "(not judged yet)"
    if verdict.speed_up is None:
        return told_after(f"{verdict.outcome}:", verdict.reason)
    found = verdict.speed_up
    proven = "a win" if found.win else "no win"
    return f"ok: {found.rounded()} ({found.interval()}, {found.buckets} buckets): {proven}"


def spent(cost: dict[str, Any]) -> str:
    """A cost in words; what is nothing is left out."""
    parts = []
    if cost["calls"]:
        failed = f", {cost['failed_calls']} failed" if cost["failed_calls"] else ""
        parts.append(f"{cost['calls']} calls{failed}")
    if cost["tokens_in"] or cost["tokens_out"]:
        parts.append(f"{cost['tokens_in']} tokens in, {cost['tokens_out']} out")
    if cost["money"]:
        parts.append(f"{cost['money']:.4g} in money")
    if cost["seconds"]:
        parts.append(f"{cost['seconds']:.1f} s of waiting for replies")
    return "; ".join(parts) or "nothing on a model"


def _standing(found: dict[str, Any], *, long: bool = False) -> str:
    """What a run may claim, in words; an attack may claim nothing."""
    if AIMS[found["aim"]].claims:
        by_flags = found["claim"] is not None and found["claim"]["flags_share"] == FlagsShare.ALL
        return _claim(found["best"], long=long) + (" by flags" if by_flags and not long else "")
    return "none, this is an attack: its wins are no claims" if long else "an attack"


def _claim(candidate: dict[str, Any] | None, *, long: bool = False) -> str:
    if candidate is None:
        return "no candidate was right and timed" if long else "-"
    figure = f"{toward_one(candidate['ratio']):.2f}x ({candidate['low']:.2f} to {candidate['high']:.2f})"
    failed = candidate["confirmation_failed"]
    if not long:
        return f"{figure} not confirmed" if failed else figure if candidate["win"] else f"{figure} no win"
    state = "not confirmed yet" if candidate["win"] else "not proven faster"
    if candidate["confirmed"]:
        state = "confirmed in fresh processes"
    elif failed:
        state = f"its confirmation in fresh processes failed: {shortened(failed, 200)}"
    return f"{figure}, trial {candidate['trial']}, {state}"
