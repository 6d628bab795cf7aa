"""Judge noise: how often the judge claims a gain that is not there, and how often it finds one that is.

    python benchmarks/judge_noise.py                        all of it, in the best jail: results/judge-noise.json
    python benchmarks/judge_noise.py --jobs 4               the same, in four processes with cores of their own
    python benchmarks/judge_noise.py --ordinary-user        a smaller repeat as an ordinary user in the fallback jail

A load that comes and goes burns the very core that is timed on. Candidates are the reference itself (A/A), or the
reference without the 3% or 10% of extra work that it is given. Everything goes through `Judge.judge` with the default
settings. All bucket ratios are stored; `judge_published.py` computes from them what a whole run would publish.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import random
import statistics as plain
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO

import numpy.random  # noqa: F401 - before a change of user hides it

from background import bursts
from copies import add_jobs, at_once
from outpace import machine
from outpace.domains.program import ProgramDomain
from outpace.judge.accounts import reckon
from outpace.judge.cores import timing_cores
from outpace.judge.jail import JailKind, best_jail, launcher_path
from outpace.judge.judge import Judge
from outpace.judge.verdict import PROTOCOL
from outpace.task import Task
from outpace.task.candidate import Candidate
from outpace.task.file import load_task, make_task, read_files

Row = dict[str, object]
HERE = Path(__file__).parent
# Steps for calls of about 20 us, 1 ms and 50 ms.
LENGTHS = {"20us": 18_000, "1ms": 900_000, "50ms": 45_000_000}
ORDINARY_UID = 61002


def noise_task(steps: int, extra: int) -> Task:
    """The ruler with this many steps, whose reference wastes `extra` per thousand."""
    files = read_files(HERE / "noise")
    files["chain.c"] = files["chain.c"].replace(b"#define EXTRA 0", f"#define EXTRA {extra}".encode())
    files["judge.py"] = files["judge.py"].replace(b'"15000"', f'"{steps}"'.encode())
    return make_task(HERE / "noise", files)


def candidate(task: Task, serial: int) -> Candidate:
    """The chain without extra work; the serial number makes each source a different one."""
    text = (HERE / "noise" / "chain.c").read_text()
    return Candidate({"chain.c": f"{text}\n// candidate {serial}\n"}, task.build.flags)


def schedule(runs: dict[tuple[str, int], int]) -> list[tuple[int, tuple[str, int]]]:
    """All verdicts, numbered, in random order, so that a bad minute of the machine is shared by all kinds."""
    order = [kind for kind, count in runs.items() for _ in range(count)]
    random.Random(1).shuffle(order)
    return list(enumerate(order))


def in_copies(order: Sequence[tuple[int, tuple[str, int]]], arguments: Sequence[str], jobs: int) -> list[Row]:
    """The rows of copies of this program; every so many verdicts go to the same one, in their random order."""
    shares = [[str(serial) for serial, _ in order[first::jobs]] for first in range(jobs)]
    told = at_once([__file__, *arguments], shares)
    return sorted((row for words in told for row in json.loads(words)), key=lambda row: int(str(row["serial"])))


def measure(jail: JailKind, order: Sequence[tuple[int, tuple[str, int]]]) -> list[Row]:
    """One row per verdict."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="outpace-noise-") as folder, bursts(timing_cores(1)[0]):
        Path(folder).chmod(0o755)
        judges = {
            key: Judge(ProgramDomain(noise_task(LENGTHS[key[0]], key[1])), jail=jail, workspace=Path(folder))
            for key in {key for _, key in order}
        }
        for done, (serial, key) in enumerate(order, 1):
            before = machine.load()
            verdict = judges[key].judge(candidate(judges[key].domain.task, serial))
            found = verdict.speed_up
            row: Row = {
                "serial": serial,
                "task": key[0],
                "extra": key[1],
                "outcome": str(verdict.outcome),
                "reason": verdict.reason,
                "ratio": found and found.ratio,
                "low": found and found.low,
                "high": found and found.high,
                "win": bool(found and found.win),
                "seconds": round(verdict.seconds, 3),
                "buckets": [round(ratio, 5) for ratio in reckon(verdict.buckets, judges[key].domain.task).ratios],
                "steal_ticks": machine.load().steal_ticks - before.steal_ticks,
            }
            rows.append(row)
            print(
                f"{done}/{len(order)} {key[0]} +{key[1] / 10:g}%: {row['outcome']} "
                f"{found.ratio if found else math.nan:.4f} win={row['win']} {row['seconds']} s",
                file=sys.stderr,
                flush=True,
            )
        for judge in judges.values():
            judge.close()
    return rows


def summary(rows: list[Row]) -> list[Row]:
    """Per kind of run: wins, the median ratio, the time per verdict."""
    table = []
    for extra in sorted({int(str(row["extra"])) for row in rows}):
        for name in LENGTHS:
            mine = [row for row in rows if row["task"] == name and row["extra"] == extra]
            if not mine:
                continue
            ratios = [float(str(row["ratio"])) for row in mine if row["ratio"] is not None]
            table.append(
                {
                    "task": name,
                    "true gain": f"{extra / 10:g}%",
                    "runs": len(mine),
                    "wins": sum(bool(row["win"]) for row in mine),
                    "other outcomes": sum(row["outcome"] != "ok" for row in mine),
                    "median ratio": round(plain.median(ratios), 4) if ratios else None,
                    "median seconds": round(plain.median(float(str(row["seconds"])) for row in mine), 2),
                    "longest seconds": max(float(str(row["seconds"])) for row in mine),
                }
            )
    return table


def judge_rows(rows: list[Row], table: list[Row]) -> list[tuple[str, bool]]:
    """Each promise with whether it was kept."""
    equal = [row for row in rows if row["extra"] == 0]
    three = [row for row in rows if row["extra"] == 30]
    ten = [row for row in rows if row["extra"] == 100]
    false_wins = sum(bool(row["win"]) for row in equal)
    found_three = sum(bool(row["win"]) for row in three)
    medians = [
        plain.median(float(str(row["ratio"])) for row in equal if row["task"] == name and row["ratio"] is not None)
        for name in LENGTHS
        if any(r["task"] == name for r in equal)
    ]
    quick = [float(str(row["median seconds"])) for row in table if row["task"] in ("20us", "1ms")]
    return [
        (f"false wins {false_wins} of {len(equal)} (at most 1%)", false_wins <= 0.01 * len(equal)),
        (f"3% gains found {found_three} of {len(three)} (at least 95%)", found_three >= 0.95 * len(three)),
        (
            f"10% gains found {sum(bool(row['win']) for row in ten)} of {len(ten)} (all)",
            all(bool(row["win"]) for row in ten),
        ),
        (
            f"median A/A ratios {', '.join(f'{m:.4f}' for m in medians)} (within 0.995 to 1.005)",
            all(0.995 <= m <= 1.005 for m in medians),
        ),
        (f"median seconds per verdict on the shorter two at most {max(quick):.2f} (below 8)", max(quick) < 8),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--ordinary-user",
        action="store_true",
        help="a smaller repeat as an ordinary user in the fallback jail",
    )
    parser.add_argument("--share", type=float, default=1.0, help="do only this share of the runs")
    parser.add_argument(
        "--only", type=int, action="append", metavar="N", help="the verdict of this number, its row printed only"
    )
    add_jobs(parser)
    arguments = parser.parse_args()
    out = HERE / "results" / ("judge-noise-user.json" if arguments.ordinary_user else "judge-noise.json")
    scale = arguments.share * (0.1 if arguments.ordinary_user else 1.0)
    full = {
        ("20us", 0): 120,
        ("1ms", 0): 120,
        ("50ms", 0): 60,
        ("20us", 30): 50,
        ("1ms", 30): 50,
        ("20us", 100): 15,
        ("1ms", 100): 15,
        ("50ms", 100): 10,
    }
    runs = {key: max(round(count * scale), 3) for key, count in full.items()}
    order = schedule(runs)
    jail: JailKind = "fallback" if arguments.ordinary_user else best_jail()
    if arguments.only:
        wanted = set(arguments.only)
        print(json.dumps(measure(jail, [each for each in order if each[0] in wanted])))
        return 0
    load_task(HERE / "noise")  # a broken folder should fail before anything is started
    facts = {
        "machine": asdict(machine.describe()),
        "date": datetime.date.today().isoformat(),
        "command": " ".join(["python", "benchmarks/judge_noise.py", *sys.argv[1:]]),
        "protocol": PROTOCOL,
    }
    told = [*(["--ordinary-user"] if arguments.ordinary_user else []), "--share", str(arguments.share)]

    def work() -> int:
        begin = time.monotonic()
        rows = in_copies(order, told, arguments.jobs) if arguments.jobs > 1 else measure(jail, order)
        return report(rows, facts | {"minutes": round((time.monotonic() - begin) / 60, 1)}, jail, handle)

    part = out.with_suffix(".part")
    with part.open("w+") as handle:
        if arguments.ordinary_user and os.getuid() == 0:
            status = as_ordinary_user(work)
        else:
            status = work()
    part.replace(out)
    return status


def as_ordinary_user(work: Callable[[], int]) -> int:
    """Do the work in a child without root's rights; forked, as the interpreter may live where only root can read."""
    launcher_path()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(ORDINARY_UID)
        os.setuid(ORDINARY_UID)
        os._exit(work())
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def report(rows: list[Row], facts: dict[str, object], jail: JailKind, handle: IO[str]) -> int:
    """Store and print; returns the exit status."""
    table = summary(rows)
    promises = judge_rows(rows, table)
    result = {
        **facts,
        "jail": jail,
        "uid": "root" if os.getuid() == 0 else "ordinary",
        "summary": table,
        "promises": [{"promise": text, "kept": kept} for text, kept in promises],
        "rows": rows,
    }
    json.dump(result, handle)
    handle.flush()
    print_table(table)
    for text, kept in promises:
        print(("kept   " if kept else "BROKEN ") + text, flush=True)
    return 0 if all(kept for _, kept in promises) else 1


def print_table(table: list[Row]) -> None:
    columns = list(table[0])
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    for row in table:
        print("| " + " | ".join(str(row[column]) for column in columns) + " |")


if __name__ == "__main__":
    sys.exit(main())
