"""Index file fuzz: what becomes of damaged index files, under the address and undefined behaviour sanitizers.

    python benchmarks/ann_fuzz.py [--inputs N]        results/ann-fuzz.json

The inputs are shared out among the instruction sets: the plainest, and the best that this machine has. A file that
loads is searched, added to, removed from, saved and loaded again. `crashes` counts inputs that ended the program: a
sanitizer's report, an exception of the wrong kind, or no end within two minutes.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from ann_programs import MEMORY, build, instruction_sets  # noqa: E402
from outpace import machine  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "ann-fuzz.json"
CHUNK = 2500  # inputs of one process: a leak would show as growth, and a crash costs no more than this


def feed(program: Path, first: int, end: int) -> dict[str, Any]:
    """Counts of the inputs `first` to `end`; the program starts again after one that ended it."""
    loaded: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    crashes = []
    while first < end:
        count = min(CHUNK, end - first)
        done = subprocess.run([program, str(count), str(first)], capture_output=True, text=True)
        if done.returncode != 0:
            named = re.search(r"^input (\d+):", done.stderr, re.MULTILINE)
            if not named:
                raise SystemExit(f"{program.name} failed and named no input:\n{done.stderr[-2000:]}")
            culprit = int(named[1])
            crashes.append({"input": culprit, "report": done.stderr[:2000]})
            print(f"!! input {culprit}: {done.stderr[:300]}", file=sys.stderr, flush=True)
            # What came before it is counted by a run that stops there.
            count = culprit - first
            done = subprocess.run([program, str(count), str(first)], capture_output=True, text=True, check=True)
            first += 1
        counts = json.loads(done.stdout)
        loaded["with checksums read"] += counts["loaded_checked"]
        loaded["with checksums not read"] += counts["loaded_unchecked"]
        refused.update(counts["refused"])
        first += count
        print(f"{program.name}: {first} of {end}", file=sys.stderr, flush=True)
    return {"loaded": dict(loaded), "refused": dict(refused.most_common()), "crashes": crashes}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    begin = time.monotonic()
    rows = {}
    with tempfile.TemporaryDirectory(prefix="outpace-ann-fuzz-") as folder:
        programs = build("file_fuzz", instruction_sets(), MEMORY, Path(folder))
        for number, (name, program) in enumerate(programs.items()):
            bounds = [given.inputs * part // len(programs) for part in (number, number + 1)]
            rows[name] = {"inputs": bounds[1] - bounds[0], **feed(program, *bounds)}
    crashes = sum(len(row["crashes"]) for row in rows.values())
    report = {
        "command": shlex.join(["python", "benchmarks/ann_fuzz.py", *sys.argv[1:]]),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": asdict(machine.describe()),
        "sanitizers": list(MEMORY),
        "seconds": round(time.monotonic() - begin),
        "counts": {
            "inputs": given.inputs,
            "loaded": sum(sum(row["loaded"].values()) for row in rows.values()),
            "refused": sum(sum(row["refused"].values()) for row in rows.values()),
            "crashes": crashes,
        },
        "instruction_sets": rows,
    }
    given.out.parent.mkdir(parents=True, exist_ok=True)
    given.out.write_text(json.dumps(report, indent=1) + "\n")
    print(report["counts"])
    return 1 if crashes else 0


if __name__ == "__main__":
    sys.exit(main())
