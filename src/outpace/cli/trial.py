"""`outpace try`: judge one file now."""

from __future__ import annotations

import dataclasses
import json as json_module
import sys
import tempfile
from pathlib import Path

from rich.console import Console

from outpace import machine
from outpace.candidate import Candidate, reference
from outpace.domains.program import ProgramDomain
from outpace.errors import TaskError
from outpace.judge.jail import JailKind, best_jail
from outpace.judge.judge import Judge
from outpace.judge.verdict import Verdict
from outpace.receipt import make_receipt, write_receipt
from outpace.task import Task
from outpace.taskfile import load_task


def try_(
    task: Path,
    *files: Path,
    flags: str | None = None,
    receipt: Path | None = None,
    no_jail: bool = False,
    json: bool = False,
) -> int:
    """Judge one attempt at a task now, without a run or an archive.

    Parameters
    ----------
    task
        Folder with the task.toml.
    files
        Changed versions of the task's editable files, matched by file name; none judges the reference itself.
    flags
        Compiler flags to build with, among those the task allows, such as "-O3 -march=native".
    receipt
        Write a receipt here if the confirmed verdict is a win.
    no_jail
        Judge without a jail. Only for code you trust with this machine.
    json
        Print the verdict as JSON.
    """
    loaded = load_task(task)
    candidate = _candidate(loaded, files, flags)
    kind: JailKind = "none" if no_jail else best_jail()
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="outpace-try-") as folder, console.status("starting") as status:
        Path(folder).chmod(0o755)
        with Judge(ProgramDomain(loaded), jail=kind, workspace=Path(folder), progress=status.update) as judge:
            verdict = judge.judge(candidate)
            won = verdict.speed_up is not None and verdict.speed_up.win
            confirmed = judge.judge(candidate) if receipt is not None and won else None
    if confirmed is not None and receipt is not None and confirmed.speed_up is not None and confirmed.speed_up.win:
        write_receipt(
            make_receipt(loaded, candidate, confirmed, jail=kind, machine=machine.describe(), load=machine.load()),
            receipt,
        )
    if json:
        print(json_module.dumps(dataclasses.asdict(confirmed or verdict), indent=1))
    else:
        print(sentence(confirmed or verdict))
    if receipt is not None and not receipt.exists():
        print("outpace: no receipt was written: only a confirmed win has one", file=sys.stderr)
    return 0 if (confirmed or verdict).speed_up is not None else 1


def sentence(verdict: Verdict) -> str:
    """A verdict as a person reads it."""
    found = verdict.speed_up
    if found is None:
        return f"{verdict.outcome}: {verdict.reason}"
    claim = "a win" if found.win else "no win"
    return (
        f"{found.rounded()} the reference's speed ({found.interval()}, "
        f"{found.buckets} buckets, {verdict.seconds:.1f} s): {claim}"
    )


def _candidate(task: Task, files: tuple[Path, ...], flags: str | None) -> Candidate:
    own = reference(task)
    changed = dict(own.files)
    for path in files:
        names = [name for name in task.editable if Path(name).name == path.name]
        if len(names) != 1:
            raise TaskError(
                f"{path} matches {len(names)} editable files of the task; editable are {', '.join(task.editable)}"
            )
        try:
            changed[names[0]] = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise TaskError(f"{path} cannot be read: {error}") from None
    return Candidate(changed, own.flags if flags is None else tuple(flags.split()))
