"""Wheel: whether the built wheel serves this processor and emulated older ones, each with its own instruction set.

    python benchmarks/wheel.py        results/wheel.json; `make wheel` builds the wheel

On each an index of whole numbers is built, saved, mapped and searched; each also loads the files of those before it.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from outpace import machine  # noqa: E402
from wheel_programs import OLDER, install, life, newest_wheel  # noqa: E402

RESULTS = ROOT / "benchmarks" / "results" / "wheel.json"


def main() -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    wheel = newest_wheel()
    rows, true = [], []
    as_wanted = True
    with tempfile.TemporaryDirectory(prefix="outpace-wheel-") as folder:
        python = install(wheel, Path(folder) / "environment")
        for processor in ("", *OLDER):
            seen = life(python, Path(folder), processor)
            true = true or seen["true"]
            found = [row for answers in seen["answers"].values() for row in answers]
            row = {
                "processor": f"{processor}, emulated" if processor else "this machine's",
                "instruction set": seen["instruction_set"],
                "queries": len(found),
                "wrong answers": sum(each != true[number % len(true)] for number, each in enumerate(found)),
            }
            as_wanted &= row["wrong answers"] == 0 and OLDER.get(processor) in (None, row["instruction set"])
            rows.append(row)
            print(row, file=sys.stderr, flush=True)
    report = {
        "command": "python benchmarks/wheel.py",
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": asdict(machine.describe()),
        "wheel": wheel.name,
        "kilobytes": wheel.stat().st_size // 1000,
        "rows": rows,
    }
    RESULTS.write_text(json.dumps(report, indent=1) + "\n")
    return 0 if as_wanted else 1


if __name__ == "__main__":
    sys.exit(main())
