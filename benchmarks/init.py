"""Init: how many of ten functions chosen beforehand `outpace init` makes a task of that is judged with no hand edit.

    python benchmarks/init.py --sources DIR        results/init.json

DIR holds, for each function in init_functions.json, its file and those it comes with below a folder named after its
origin. `ready` means that the judge took the task as it was written: the reference scores 1.00 against itself, and
programs that do nothing fail. `told` means that the command named the file and line to fill in.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from outpace import machine

HERE = Path(__file__).parent


def outpace(*arguments: str) -> subprocess.CompletedProcess[str]:
    """One command, as a user would type it."""
    return subprocess.run(
        [sys.executable, "-c", "from outpace.cli import main; main()", *arguments], capture_output=True, text=True
    )


def attempt(chosen: dict[str, Any], sources: Path, folder: Path) -> dict[str, Any]:
    """What init makes of one function."""
    begin = time.monotonic()
    path = sources / chosen["origin"] / chosen["path"]
    done = outpace("init", str(path), chosen["function"], "--out", str(folder), "--json")
    row = {key: chosen[key] for key in ("origin", "version", "path", "function")}
    row |= {"seconds": round(time.monotonic() - begin, 1)}
    if done.returncode != 0:
        return row | {"state": "failed", "detail": done.stderr.strip().splitlines()[-1]}
    made = json.loads(done.stdout)
    if made["ready"]:
        judged = outpace("try", str(folder), "--json")
        if judged.returncode != 0:
            return row | {"state": "failed", "detail": f"not judged: {(judged.stderr or judged.stdout).strip()[:200]}"}
        score = json.loads(judged.stdout)["speed_up"]
        return row | {"state": "ready", "seconds_per_call": made["seconds_per_call"], "against_itself": score["ratio"]}
    lines = [f"{Path(each['file']).name}:{each['line']}: {each['what']}" for each in made["fill_in"]]
    # A line that is not there would be no help.
    there = all(Path(each["file"]).read_text().splitlines()[each["line"] - 1].strip() for each in made["fill_in"])
    return row | {"state": "told" if lines and there else "failed", "detail": lines or made["problem"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=Path, required=True)
    parser.add_argument("--list", type=Path, default=HERE / "init_functions.json")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "init.json")
    given = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory(prefix="outpace-init-bench-") as scratch:
        for number, chosen in enumerate(json.loads(given.list.read_text())["functions"]):
            rows.append(attempt(chosen, given.sources, Path(scratch) / str(number)))
            print(
                f"{rows[-1]['state']:7} {chosen['origin']} {chosen['function']} {rows[-1].get('detail', '')}",
                flush=True,
            )
    counts = {state: sum(row["state"] == state for row in rows) for state in ("ready", "told", "failed")}
    print(counts)
    result = {
        "command": "python benchmarks/init.py --sources DIR",
        "counts": counts,
        "machine": asdict(machine.describe()),
        "functions": rows,
    }
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
