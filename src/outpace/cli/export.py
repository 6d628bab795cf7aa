"""`outpace export`: the winner of a run as a patch."""

from __future__ import annotations

import json as json_module
import sys
from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path

from outpace.claims import confirmation
from outpace.cli.report import find_claim
from outpace.cli.show import open_archive
from outpace.errors import ArchiveError
from outpace.judge.verdict import toward_one
from outpace.shown import hides, shown, shown_text
from outpace.task.candidate import Candidate, reference
from outpace.task.file import make_task
from outpace.task.lines import with_ends

# Of the unseen characters of a patch, so many are named.
_NAMED = 5


def export(
    name: str | None = None,
    /,
    *,
    out: Path | None = None,
    unproven: bool = False,
    folder: Path = Path(".outpace"),
    json: bool = False,
) -> int:
    """Print the winner of a run as a unified diff against the task's folder, for
    `patch -p1 -d FOLDER` or `git apply --directory=FOLDER`.

    On a terminal, characters that cannot be seen are spelt out; the file of --out has them as they are.

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
        record = find_claim(archive, name)
        task = make_task(Path(record.task_name), archive.task_files(record.task_hash))
        best = archive.best(record)
        if best is None:
            raise ArchiveError(f"run {record.name} has no candidate that was right and timed: nothing to export")
        trial = archive.trial(best.trial)
        proven = confirmation.confirmed(trial) is not None
        if not proven and not unproven:
            failed = confirmation.failed(trial)
            why = f", and its confirmation failed: {failed}" if failed else ""
            raise ArchiveError(
                f"run {record.name} has nothing proven faster (its best is {toward_one(best.ratio):.2f}x, "
                f"{best.low:.2f} to {best.high:.2f}{why}): go on with the run, or give --unproven"
            )
        own, winner = reference(task), archive.candidate(best.hash)
    patch = diff(own.files, winner.files)
    unseen = hides(patch)
    if unseen and out is None and not json and not sys.stdout.isatty():
        # Spelt out, it would no longer be the patch; as it is, it may be on its way to a terminal.
        raise ArchiveError(
            f"the patch of run {record.name} holds characters that cannot be seen ({', '.join(unseen[:_NAMED])}): "
            "write it with --out FILE, and look at it with `cat -v` before you apply it"
        )
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
            # Carriage returns before a line end are harmless, and a piped patch needs them.
            sys.stdout.write(shown_text(patch) if unseen else patch)
        for line in remarks(own, winner, patch, out):
            print(shown(line), file=sys.stderr)
    return 0


def remarks(own: Candidate, winner: Candidate, patch: str, out: Path | None) -> list[str]:
    """What a person should know of a patch beside the patch."""
    said = []
    if not patch:
        said.append("The sources are the reference's; only the flags differ.")
    elif out is not None:
        said.append(f"Wrote {out}; apply it with `patch -p1 -d FOLDER < {out}` to the task's folder.")
    unseen = hides(patch)
    if unseen:
        named = ", ".join(unseen[:_NAMED])
        where = "written as they are" if out is not None else "spelt out here: --out FILE writes them as they are"
        said.append(
            f"The patch holds characters that cannot be seen ({named}), {where}. Look at it before you apply it."
        )
    if winner.flags != own.flags:
        said.append(f"It was built with other flags: {' '.join(winner.flags)} instead of {' '.join(own.flags)}.")
    return said


def diff(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    """A patch that git takes, from one set of files to another."""
    parts = []
    for name in sorted({*before, *after}):
        old, new = with_ends(before.get(name, "")), with_ends(after.get(name, ""))
        if old == new:
            continue
        # A tab after a name with spaces tells where it ends.
        end = "\t" if " " in name else ""
        body = unified_diff(old, new, f"a/{name}{end}", f"b/{name}{end}")
        parts.append(f"diff --git a/{name} b/{name}\n")
        parts += [line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in body]
    return "".join(parts)
