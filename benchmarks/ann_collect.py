"""Collect: what `outpace bench ann` found, from the folders it wrote to, as result files and pictures of the docs.

    python benchmarks/ann_collect.py FOLDER...        results/ann-bench-DATA-TRACK.json and .csv.xz, docs/images/...svg

Each folder is the `--out` of a run; of every data set and track whose final stage it holds there will be a result. A
folder knows its last command: where its tracks were timed by two, collect each after its own, with --track. A run of
the same data and track against other libraries gets files of its own with --part WORD, which ends their names. The
table in `.csv.xz` has every timing of the final stage and, as a digit (base 36) for each query, how many of its
neighbours were missed, so that everything can be computed again. Read that column as text.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import lzma
import shutil
import statistics
import sys
from pathlib import Path

from datasets.catalogue import SETS
from outpace.bench.ann.log import Log
from outpace.bench.ann.plan import setting
from outpace.bench.ann.summary import newest, of_stage

ROOT = Path(__file__).resolve().parents[1]


COLUMNS = (
    "round", "peer", "version", "configuration", "effort", "recall", "known", "answered", "wall_seconds", "cpu_seconds",
    "missed",
)  # fmt: skip


def collect(folder: Path, root: Path, track: str | None = None, word: str | None = None) -> list[Path]:
    """Copy what one run found into a repository; the result files that were written."""
    whole = json.loads((folder / "results.json").read_text())
    log = Log(folder / "measurements.jsonl")
    written = []
    final = [
        contest
        for contest in whole["contests"]
        if contest["stage"] == "final" and (track is None or contest["track"] == track)
    ]
    if not final:
        what = "no final stage" if track is None else f"no final stage of the track {track}"
        raise SystemExit(f"{folder} holds {what}: run `outpace bench ann` there without --stage screen")
    for contest in final:
        own = {key: contest[key] for key in ("data", "track")}
        part = whole | {
            key: [row for row in rows if all(row.get(name, value) == value for name, value in own.items())]
            for key, rows in whole.items()
            if key in ("contests", "levels", "ratios", "screening", "points", "indexes", "failures")
        }
        part["load_average"] = load_average(log, **own)
        if own["data"] in SETS:
            part = {"about": SETS[own["data"]].about} | part
        name = "-".join(filter(None, ("ann-bench", own["data"], own["track"], word)))
        target = root / "benchmarks" / "results" / f"{name}.json"
        target.write_text(json.dumps(part, indent=1) + "\n")
        target.with_suffix(".csv.xz").write_bytes(lzma.compress(timings(log, **own).encode()))
        shutil.copyfile(folder / f"{own['data']}-{own['track']}.svg", root / "docs" / "images" / f"{name}.svg")
        written.append(target)
    return written


def load_average(log: Log, data: str, track: str) -> float:
    """How many processes wanted a core while the final stage was timed, the timed one among them; the median."""
    rows = [row for row in newest(log.times()) if (row.data, row.track) == (data, track)]
    return round(statistics.median(row.load_average for row in of_stage(rows, "final")), 1)


def timings(log: Log, data: str, track: str) -> str:
    """Every measurement of the final stage, as a table; `known` is the recall on which settings were chosen."""
    text = io.StringIO()
    table = csv.writer(text, lineterminator="\n")
    table.writerow(COLUMNS)
    rows = [row for row in newest(log.times()) if (row.data, row.track) == (data, track)]
    known = {setting(row): row.recall for row in rows if row.stage == "screen"}
    for row in of_stage(rows, "final"):
        if row.status == "ok":
            effort = " ".join(f"{name}={value}" for name, value in row.effort.items())
            numbers = (
                row.recall,
                known.get(setting(row)),
                row.answered,
                f"{row.wall_seconds:.6f}",
                f"{row.cpu_seconds:.6f}",
                row.missed,
            )
            table.writerow((row.round, row.peer, row.version, row.configuration, effort, *numbers))
    return text.getvalue()


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="+", type=Path)
    parser.add_argument("--root", type=Path, default=ROOT, help="the repository (default: this one)")
    parser.add_argument("--track", choices=("single", "batch"), help="this one alone (default: all that there are)")
    parser.add_argument("--part", metavar="WORD", help="for a second run of the same data and track: names end with it")
    given = parser.parse_args()
    for folder in given.folder:
        for written in collect(folder, given.root, given.track, given.part):
            print(f"wrote {written}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
