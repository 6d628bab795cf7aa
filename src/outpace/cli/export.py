"""`outpace export`: the winner of a run as a patch."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path

from outpace.candidate import Candidate, reference
from outpace.cli.report import find_run
from outpace.cli.show import open_archive
from outpace.errors import ArchiveError
from outpace.judge.verdict import toward_one
from outpace.taskfile import make_task


def export(
    name: str | None = None,
    *,
    out: Path | None = None,
    unproven: bool = False,
    folder: Path = Path(".outpace"),
    json: bool = False,
) -> int:
    """Print the winner of a run as a unified diff against the task's folder, for
    `patch -p1 -d FOLDER` or `git apply --directory=FOLDER`.

    Parameters
    ----------
    name
        The run's name, or the task's name or folder for its newest run; by default the newest run of all.
    out
        Write the patch to this file instead.
    unproven
        Give the fastest candidate also where it is not proven faster than the reference.
    folder
        Where the run keeps its archive.
    json
        Print the patch, the flags and the claim as JSON.
    """
    with open_archive(folder) as archive:
        record = find_run(archive, name)
        task = make_task(Path(record.task_name), archive.task_files(record.task_hash))
        best = archive.best(record)
        if best is None:
            raise ArchiveError(f"run {record.name} has no candidate that was right and timed: nothing to export")
        confirmed = archive.trial(best.trial).confirmation
        proven = best.win and confirmed is not None and confirmed.speed_up is not None and confirmed.speed_up.win
        if not proven and not unproven:
            raise ArchiveError(
                f"run {record.name} has nothing proven faster (its best is {toward_one(best.ratio):.2f}x, "
                f"{best.low:.2f} to {best.high:.2f}): go on with the run, or give --unproven"
            )
        own, winner = reference(task), archive.candidate(best.hash)
    patch = diff(own.files, winner.files)
    if out is not None:
        try:
            out.write_text(patch, encoding="utf-8", newline="")
        except OSError as error:
            raise ArchiveError(f"{out} cannot be written ({error.strerror}): name another file with --out") from None
    if json:
        claim = {"ratio": best.ratio, "low": best.low, "high": best.high, "proven": proven}
        print(
            json_module.dumps(
                {
                    "run": record.name,
                    "task": record.task_name,
                    "candidate": best.hash,
                    "speed_up": claim,
                    "patch": patch,
                    "flags": list(winner.flags),
                    "reference_flags": list(own.flags),
                    "file": None if out is None else str(out),
                },
                indent=1,
            )
        )
    else:
        if out is None:
            sys.stdout.write(patch)
        _tell(own, winner, patch, out)
    return 0


def _tell(own: Candidate, winner: Candidate, patch: str, out: Path | None) -> None:
    if not patch:
        print("The sources are the reference's; only the flags differ.", file=sys.stderr)
    elif out is not None:
        print(f"Wrote {out}; apply it with `patch -p1 -d FOLDER < {out}` to the task's folder.", file=sys.stderr)
    if winner.flags != own.flags:
        print(
            f"It was built with other flags: {' '.join(winner.flags)} instead of {' '.join(own.flags)}.",
            file=sys.stderr,
        )


def diff(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """A patch that git takes, from one set of files to another."""
    parts = []
    for name in sorted({*before, *after}):
        old, new = _lines(before.get(name, "")), _lines(after.get(name, ""))
        if old == new:
            continue
        # A tab after a name with spaces tells where it ends.
        end = "\t" if " " in name else ""
        body = unified_diff(old, new, f"a/{name}{end}", f"b/{name}{end}")
        parts.append(f"diff --git a/{name} b/{name}\n")
        parts += [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in body]
    return "".join(parts)


def _lines(text: str) -> list[str]:
    """Lines by newline alone: to a patch, a form feed or a carriage return is part of its line."""
    lines = [f"{line}\n" for line in text.split("\n")]
    last = lines.pop().removesuffix("\n")
    return [*lines, last] if last else lines
