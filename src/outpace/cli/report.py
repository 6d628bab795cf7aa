"""`outpace report`: tell what a run found, on one page."""

from __future__ import annotations

import dataclasses
import json as json_module
import os
import re
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from outpace.aim import aim_of
from outpace.archive import Archive, Reading, RunRecord
from outpace.claims import claim
from outpace.domains.program import ProgramDomain
from outpace.errors import ArchiveError, OutpaceError
from outpace.judge.jail import JailKind, best_jail
from outpace.judge.judge import Judge
from outpace.report import ablation
from outpace.report.facts import Facts, gather
from outpace.run import note
from outpace.shown import shown
from outpace.task.file import load_task


def report(
    run: str | None = None,
    /,
    *,
    folder: Path = Path(".outpace"),
    out: Path | None = None,
    png: bool = False,
    ablate: bool = False,
    no_jail: bool = False,
    json: bool = False,
) -> int:
    """Write a page on a run: what it claims, how it got there, and how to check it.

    The page can be written while the run goes on.

    Parameters
    ----------
    run
        The run's name, or the task's name or folder for its newest run; by default the newest run of all.
    folder
        Where the run keeps its archive.
    out
        Where to write report.html; by default a folder of the run's name beside the archive.
    png
        Write each picture as a PNG file too.
    ablate
        First time the winner without each of its changes, which takes some seconds for each.
    no_jail
        Judge without a jail. Only for code you trust with this machine; used with --ablate alone.
    json
        Print what was written as JSON.
    """
    path = folder / "archive.sqlite"
    if not path.is_file():
        raise ArchiveError(f"{path} does not exist: start with `outpace run TASK`, or name another --folder")
    with Archive.open(path) as archive:
        record = find_claim(archive, run)
        receipt = folder / f"{record.name}.receipt.json"

        def read() -> Facts:
            return gather(archive, record, receipt=receipt, now=time.time(), judge_alive=judge_alive(folder / "work"))

        facts = read()
        if ablate:
            _ablate(archive, facts, folder / "work", "none" if no_jail else best_jail())
            facts = read()
    written = _write(facts, out or folder / slug(record.name), png)
    if json:
        print(json_module.dumps(_told(facts, written), indent=1))
    else:
        for each in written:
            print(each)
    return 0


def _told(facts: Facts, written: list[Path]) -> dict[str, Any]:
    return {
        "run": facts.run.name,
        "task": facts.run.task_name,
        "trials": len(facts.trials),
        "in_progress": facts.judging,
        "ended": facts.ended or None,
        "speed_up": None if facts.claim is None else dataclasses.asdict(facts.claim),
        "claim": None if facts.receipt is None else claim.as_json(facts.receipt),
        "files": [str(each) for each in written],
    }


def find_run(archive: Reading, wanted: str | None) -> RunRecord:
    """The run of this name, or the newest of this task, or the newest of all; an attack only by its name."""
    runs = archive.runs()
    honest = [each for each in runs if aim_of(each.settings).claims]
    if wanted is None:
        if not honest:
            raise ArchiveError(f"{archive.path} has no run yet: start with `outpace run TASK`")
        return honest[-1]
    task = load_task(Path(wanted)).name if (Path(wanted) / "task.toml").is_file() else wanted
    named = [each for each in runs if each.name == wanted] or [each for each in honest if each.task_name == task]
    if not named:
        known = ", ".join(sorted({each.name for each in runs})) or "none yet: start with `outpace run TASK`"
        raise ArchiveError(f"{archive.path} has no run and no task named {wanted}: its runs are {known}")
    return named[-1]


def find_claim(archive: Reading, wanted: str | None) -> RunRecord:
    """The same among runs whose finds may be published, which those of an attack may not."""
    found = find_run(archive, wanted)
    if not aim_of(found.settings).claims:
        raise ArchiveError(
            f"run {found.name} is an attack, and what it found is no claim: "
            f"`outpace show {found.name}` shows it, the same `outpace attack` lists its wins"
        )
    return found


def slug(name: str) -> str:
    """A run's name as that of a folder; it may hold anything a user typed."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-") or "run"


def judge_alive(workspace: Path) -> bool:
    """Whether a judge of another process works here; each has a folder with its process's number."""
    owners = {each.name.split("-")[1] for each in workspace.glob("judge-*-*")}
    return any(owner.isdigit() and Path(f"/proc/{owner}").exists() for owner in owners - {str(os.getpid())})


def _ablate(archive: Archive, facts: Facts, workspace: Path, jail: JailKind) -> None:
    if facts.winner is None or facts.task is None or facts.reference is None:
        raise OutpaceError(f"run {facts.run.name} has no winner to take apart: leave out --ablate")
    with (
        Console(stderr=True).status("starting") as status,
        Judge(ProgramDomain(facts.task), jail=jail, workspace=workspace) as judge,
    ):
        # A change is named by its file, and that may be named by a stranger.
        found = ablation.ablate(
            facts.reference, facts.winner, judge, facts.points, lambda what: status.update(escape(shown(what)))
        )
    note(archive, facts.run, "ablation", found)


def _write(facts: Facts, out: Path, png: bool) -> list[Path]:
    try:
        from outpace.report.gallery import pictures
    except ImportError as error:
        raise OutpaceError(f"pictures need the extra `report` ({error}): pip install 'outpace[report]'") from None
    # Not at the top either: these take a second to load, which every other command would pay too.
    from outpace.report.page import render, write

    made = pictures(facts)
    written = [out / "report.html"]
    with Console(stderr=True).status("drawing"):
        write(written[0], render(facts, {each.name: (each.title, each.caption, each.svg()) for each in made}))
        for each in made if png else []:
            written.append(out / f"{each.name}.png")
            write(written[-1], each.png())
    return written
