"""`outpace try`: judge one file now."""

from __future__ import annotations

import dataclasses
import json as json_module
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from outpace import machine
from outpace.claims import claim
from outpace.claims.publish import receipt_of
from outpace.claims.receipt import is_reference, packed, write_receipt
from outpace.domains.program import ProgramDomain
from outpace.errors import TaskError
from outpace.init.rehearsal import Rehearsal
from outpace.init.vetting import Vetting
from outpace.judge.jail import JailKind, best_jail
from outpace.judge.judge import Judge
from outpace.judge.verdict import Verdict
from outpace.shown import shown, told_after
from outpace.task import Task
from outpace.task.candidate import Candidate, in_order, reference
from outpace.task.file import load_task


def try_(
    task: Path,
    /,
    *files: Path,
    flags: Annotated[str | None, Parameter(allow_leading_hyphen=True)] = None,
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
        Changed versions of the task's editable files, matched by file name; none judges the reference itself, and
        says what its judge would not notice.
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
    candidate = candidate_of(loaded, files, flags)
    kind: JailKind = "none" if no_jail else best_jail()
    console = Console(stderr=True)
    with tempfile.TemporaryDirectory(prefix="outpace-try-") as folder, console.status("starting") as status:
        Path(folder).chmod(0o755)
        with Judge(ProgramDomain(loaded), jail=kind, workspace=Path(folder), progress=status.update) as judge:
            itself = not files and flags is None
            doubts = (
                Vetting(Rehearsal(kind, Path(folder)), Path(folder), status.update).doubts(loaded) if itself else []
            )
            verdict = judge.judge(candidate)
            claimed = None
            if receipt is not None and _wins(verdict) and not is_reference(loaded, candidate):
                # What was found is biased upwards by having been looked at; only a second timing is claimed.
                verdict = judge.confirm(candidate)
                if _wins(verdict):
                    claimed = receipt_of(loaded, judge, candidate, verdict, machine.describe())
    if claimed is not None and receipt is not None:
        write_receipt(packed(claimed), receipt)
    if json:
        told = {} if claimed is None else claim.as_json(claimed)
        print(json_module.dumps(dataclasses.asdict(verdict) | told, indent=1))
    else:
        print(sentence(verdict, loaded) if claimed is None else "\n".join(claim.sentences(claimed)))
        if claimed is not None and receipt is not None:
            print(claim.to_check(receipt))
    for doubt in doubts:
        print(f"outpace: doubt about the task: {shown(doubt)}", file=sys.stderr)
    if receipt is not None and claimed is None:
        print("outpace: no receipt was written: only a confirmed win has one", file=sys.stderr)
    return 0 if verdict.speed_up is not None else 1


def sentence(verdict: Verdict, task: Task) -> str:
    """A verdict as a person reads it."""
    found = verdict.speed_up
    if found is None:
        return told_after(f"{verdict.outcome}:", verdict.reason)
    won = "a win" if found.win else "no win"
    said = [
        f"{found.rounded()} the reference's {claim.figure(task)} ({found.interval()}, "
        f"{found.buckets} buckets, {verdict.seconds:.1f} s): {won}",
        claim.once(verdict.buckets, task),
        claim.converting(verdict.buckets, task),
        # What a reader of the figure should know, such as a make_input that is too slow.
        shown(verdict.reason),
    ]
    return "\n".join(filter(None, said))


def _wins(verdict: Verdict) -> bool:
    return verdict.speed_up is not None and verdict.speed_up.win


def candidate_of(task: Task, files: Sequence[Path], flags: str | None) -> Candidate:
    """The task's reference with these files in place of those of their names."""
    own = reference(task)
    changed = dict(own.files)
    for path in files:
        names = [name for name in task.editable if Path(name).name == path.name]
        if len(names) != 1:
            raise TaskError(
                f"{path} has the name of {len(names) or 'no'} editable file{'s' * (len(names) > 1)} of the task; "
                f"it should be called like one of {', '.join(task.editable)}"
            )
        try:
            changed[names[0]] = path.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise TaskError(f"{path} cannot be read: {error}") from None
    return Candidate(changed, own.flags if flags is None else in_order(task, tuple(flags.split())))
