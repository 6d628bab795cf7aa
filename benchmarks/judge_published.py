"""What a whole run would publish: 200 candidates of equal speed, judged and confirmed, from the stored samples.

    python benchmarks/judge_published.py        reads results/judge-noise.json, writes results/judge-published.json

Each simulated candidate draws its buckets from those that `judge_noise.py` measured with the reference against itself,
verdict by verdict at random, and goes through the judge's own sequential test. The best win is confirmed on fresh
buckets; a run that publishes it has published a gain that does not exist.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
from pathlib import Path

from outpace.judge import statistics

HERE = Path(__file__).parent
RUNS, CANDIDATES = 50, 200
MARGIN = 1.01


def verdict(pool: list[list[float]], chance: random.Random) -> statistics.Decision:
    """One candidate: verdicts' buckets, whole verdicts at a time, because buckets of one minute resemble each other."""
    buckets: list[float] = []
    decision = statistics.Decision(False, None)
    for used in itertools.count(1):
        while len(buckets) < used:
            drawn = chance.choice(pool)
            buckets += chance.sample(drawn, len(drawn))
        decision = statistics.decide(buckets[:used], MARGIN)
        if decision.stop:
            break
    return decision


def publishes(pool: list[list[float]], chance: random.Random) -> tuple[int, bool]:
    """How many of a run's trials looked like wins, and whether one was published."""
    wins = []
    for _ in range(CANDIDATES):
        found = verdict(pool, chance).speed_up
        if found is not None and found.win:
            wins.append(found.ratio)
    for _ in sorted(wins, reverse=True):
        confirmed = verdict(pool, chance).speed_up
        if confirmed is not None and confirmed.win:
            return len(wins), True
    return len(wins), False


def main() -> int:
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()
    stored = json.loads((HERE / "results" / "judge-noise.json").read_text())
    chance = random.Random(2026)
    rows = []
    for name in ("20us", "1ms", "50ms"):
        pool = [
            row["buckets"] for row in stored["rows"] if row["task"] == name and row["extra"] == 0 and row["buckets"]
        ]
        outcomes = [publishes(pool, chance) for _ in range(RUNS)]
        rows.append(
            {
                "task": name,
                "runs": RUNS,
                "candidates per run": CANDIDATES,
                "trials that looked like wins": sum(wins for wins, _ in outcomes),
                "runs that published one": sum(published for _, published in outcomes),
            }
        )
    result = {
        "machine": stored["machine"],
        "date": stored["date"],
        "protocol": stored["protocol"],
        "command": "python benchmarks/judge_published.py",
        "rows": rows,
    }
    (HERE / "results" / "judge-published.json").write_text(json.dumps(result, indent=1) + "\n")
    for row in rows:
        print(row)
    worst = max(int(str(row["runs that published one"])) for row in rows)
    print(
        ("kept   " if worst <= 1 else "BROKEN ")
        + f"at most {worst} of {RUNS} runs of {CANDIDATES} equal candidates published a win (at most 1)"
    )
    return 0 if worst <= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
