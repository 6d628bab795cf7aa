"""Collect: what `outpace bench ann` found, from the folders it wrote to, as result files and pictures of the docs.

    python benchmarks/ann_collect.py FOLDER...        results/ann-bench-DATA-TRACK.json, docs/images/...svg

Each folder is the `--out` of a run on one data set and one track, with both stages done.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def collect(folder: Path) -> Path:
    """Copy one run; the result file that was written."""
    found = json.loads((folder / "results.json").read_text())
    contests = found["contests"]
    if len(contests) != 1 or contests[0]["stage"] != "final":
        told = ", ".join(f"{each['data']} {each['track']} {each['stage']}" for each in contests) or "nothing"
        raise SystemExit(f"{folder} holds {told}: a result is one data set on one track in its final stage")
    name = f"{contests[0]['data']}-{contests[0]['track']}"
    target = ROOT / "benchmarks" / "results" / f"ann-bench-{name}.json"
    target.write_text(json.dumps(found, indent=1) + "\n")
    shutil.copyfile(folder / f"{name}.svg", ROOT / "docs" / "images" / f"ann-bench-{name}.svg")
    return target


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="+", type=Path)
    for folder in parser.parse_args().folder:
        print(f"wrote {collect(folder)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
