"""Init: how many of fifty classic functions `outpace init` makes a task of, and whether those tasks' judges are sound.

    python benchmarks/init.py               results/init.json
    python benchmarks/init.py --jobs 4      the same, in four processes with cores of their own

The functions lie in functions/, with three wrong candidates of different kinds for each in init_functions.json: the
end dropped, every so many elements skipped, right for common sizes only, lower precision, a border off by one, an
argument ignored. `ready` means that the command said so with no hand edit; then the reference is judged against itself,
and each wrong candidate must be caught: judged `wrong` or `crashed`. `told` means that the command named the file and
line to look at, and ended with status 1.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from copies import add_jobs, at_once, shared
from outpace import machine
from outpace.domains.program import ProgramDomain
from outpace.judge.jail import best_jail
from outpace.judge.judge import Judge
from outpace.judge.verdict import PROTOCOL
from outpace.task.candidate import Candidate, reference
from outpace.task.file import load_task

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "init.json"
CAUGHT = ("wrong", "crashed")


def outpace(*arguments: str) -> subprocess.CompletedProcess[str]:
    """One command, as a user would type it."""
    return subprocess.run(
        [sys.executable, "-c", "from outpace.cli import main; main()", *arguments], capture_output=True, text=True
    )


def attempt(chosen: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What init makes of one function."""
    begin = time.monotonic()
    path = HERE / "functions" / chosen["path"]
    done = outpace("init", str(path), chosen["function"], "--out", str(folder), "--json")
    row = {key: chosen[key] for key in ("path", "function")} | {"seconds": round(time.monotonic() - begin, 1)}
    try:
        made = json.loads(done.stdout)
    except json.JSONDecodeError:
        return row | {"state": "failed", "detail": (done.stderr.strip().splitlines() or ["it says nothing"])[-1]}
    if made["ready"] != (done.returncode == 0):
        return row | {"state": "failed", "detail": f"ready is {made['ready']}, and the status {done.returncode}"}
    if made["ready"]:
        row |= {"state": "ready", "seconds_per_call": made["seconds_per_call"], "notes": made["notes"]}
        return row | judged(folder, chosen)
    lines = [f"{Path(each['file']).name}:{each['line']}: {each['what']}" for each in made["fill_in"]]
    # A line that is not there would be no help.
    there = all(Path(each["file"]).read_text().splitlines()[each["line"] - 1].strip() for each in made["fill_in"])
    return row | {"state": "told" if lines and there else "failed", "detail": lines or made["problem"]}


def judged(folder: Path, chosen: dict[str, Any]) -> dict[str, Any]:
    """The reference's score against itself, and what the judge says to each wrong candidate."""
    task = load_task(folder)
    own = reference(task)
    with (
        tempfile.TemporaryDirectory(prefix="outpace-init-bench-") as workspace,
        Judge(ProgramDomain(task), jail=best_jail(), workspace=Path(workspace)) as judge,
    ):
        Path(workspace).chmod(0o755)
        itself = judge.judge(own)
        planted = []
        for wrong in chosen["wrong"]:
            (name,) = task.editable
            text = own.files[name]
            assert wrong["old"] in text, f"{chosen['path']} has no {wrong['old']!r}"
            verdict = judge.judge(Candidate({name: text.replace(wrong["old"], wrong["new"], 1)}, own.flags))
            planted.append(
                {
                    "kind": wrong["kind"],
                    "outcome": str(verdict.outcome),
                    "caught": str(verdict.outcome) in CAUGHT,
                    "reason": " ".join(verdict.reason.split())[:200],
                    "win": verdict.speed_up is not None and verdict.speed_up.win,
                }
            )
    return {"against_itself": None if itself.speed_up is None else itself.speed_up.ratio, "planted": planted}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", action="append", metavar="PATH", default=[], help="this function's file; nothing is written then"
    )
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    add_jobs(parser)
    given = parser.parse_args()
    functions = json.loads((HERE / "init_functions.json").read_text())["functions"]
    chosen = [each for each in functions if not given.only or each["path"] in given.only]
    rows = in_turn(chosen) if given.jobs == 1 else in_copies(chosen, given.jobs)
    planted = [each for row in rows for each in row.get("planted", ())]
    counts = {state: sum(row["state"] == state for row in rows) for state in ("ready", "told", "failed")}
    counts |= {"planted": len(planted), "caught": sum(each["caught"] for each in planted)}
    result = {
        "command": shlex.join(["python", "benchmarks/init.py", *sys.argv[1:]]),
        "date": datetime.now(UTC).date().isoformat(),
        "protocol": PROTOCOL,
        "counts": counts,
        "machine": asdict(machine.describe()),
        "functions": rows,
    }
    if not given.only:
        RESULTS.write_text(json.dumps(result, indent=1) + "\n")
    print(json.dumps(result) if given.json else counts)


def in_copies(chosen: Sequence[dict[str, Any]], jobs: int) -> list[dict[str, Any]]:
    """The rows from copies of this program."""
    told = at_once([__file__, "--json"], shared([[each["path"]] for each in chosen], jobs))
    rows = {row["path"]: row for words in told for row in json.loads(words)["functions"]}
    return [rows[each["path"]] for each in chosen]


def in_turn(chosen: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each function."""
    rows = []
    with tempfile.TemporaryDirectory(prefix="outpace-init-bench-") as scratch:
        for number, each in enumerate(chosen):
            row = attempt(each, Path(scratch) / str(number))
            rows.append(row)
            missed = [wrong for wrong in row.get("planted", ()) if not wrong["caught"]]
            words = [f"{row['state']:7} {row['path']} {row['seconds']} s {row.get('detail', '')}", *missed]
            print(*words, file=sys.stderr, flush=True)
    return rows


if __name__ == "__main__":
    main()
