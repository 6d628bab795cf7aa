"""Archives to report on: small runs made on the spot, some of them full of hostile text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from outpace.archive import Archive, RunRecord, Trial
from outpace.cost import Cost
from outpace.judge.verdict import Bucket, Life, Outcome, Sample, Span, SpeedUp, Verdict
from outpace.report.facts import Facts, gather
from outpace.scored import Scored
from outpace.task import Task
from outpace.task.candidate import Candidate
from outpace.task.file import make_task

EVIL = "</script><script>alert(1)</script><img src=x onerror=alert(1)>'\"\x00\u202e\ud800"
SOURCE = "".join(f"int line{number};\n" for number in range(40))
MACHINE = {"cpu": "Some CPU", "cores": 2, "flags": ["avx2"]}


def task(file: str = "code.c", description: str = "adds numbers") -> Task:
    toml = f"""name = "sum"
description = {json.dumps(description)}
editable = [{json.dumps(file)}]
[entry]
kind = "c"
function = "int64_t sum(const int64_t *values, int64_t count)"
[build]
sources = [{json.dumps(file)}]
flag_choices = [["-O2", "-O3"]]
"""
    files = {"task.toml": toml.encode(), file: SOURCE.encode(), "judge.py": b"def make_input(rng): ...\n"}
    return make_task(Path("sum"), files)


def candidate(number: int, file: str = "code.c", flags: tuple[str, ...] = ("-O3",)) -> Candidate:
    """Differs from the reference in two places far from each other, and in its flags."""
    text = SOURCE.replace("int line3;", f"int line3 = {number};").replace("int line30;", f"long line30 = {number};")
    return Candidate({file: text}, flags)


def ok(ratio: float, *, win: bool = True, buckets: int = 8) -> Verdict:
    opening = Sample(0, 100_000, 99_991, 0)
    pairs = tuple(
        Bucket(
            Life(opening, (Sample(10, int(1e6 * ratio), int(1e6 * ratio) - 9, 0),) * 2),
            Life(opening, (Sample(10, 1_000_000, 999_991 - 50 * at, 0),) * 2),
            at,
            span=Span.WHOLE,
        )
        for at in range(buckets)
    )
    nothing = Sample(0, 0, 0, 0)
    usual = int(1.001e6 * ratio)
    lived = (Life(nothing, (Sample(10, time, time, 0),) * 2) for time in (usual, 1_000_000))
    pairs += (Bucket(*lived, buckets, span=Span.LONG),)
    return Verdict(Outcome.OK, "", SpeedUp(ratio, ratio * 0.98, ratio * 1.02, win, buckets), pairs, 2.5)


def start(archive: Archive, of: Task, name: str = "sum-moves") -> RunRecord:
    return archive.start_run(name, of, "moves", {"exemplars": "buckets"}, 7, MACHINE, machine_key="some")


def tried(
    archive: Archive,
    run: RunRecord,
    proposed: Candidate | None,
    verdict: Verdict,
    *,
    parent: str | None = None,
    shown: Sequence[str] = (),
    words: str = "a design",
    cost: Cost = Cost(calls=1),
    duplicate_of: int | None = None,
) -> Trial:
    seen = [Scored(each, 1.5, 1.4, 1.6, True, 1, None) for each in shown]
    trial = archive.answer(archive.ask(run, "make it faster", seen, parent)[0], words, cost)
    return archive.settle(
        trial, analysis=words, design=words, candidate=proposed, verdict=verdict, duplicate_of=duplicate_of
    )


def climbed(archive: Archive, *, name: str = "sum-moves") -> RunRecord:
    """A failure, a first gain, a greater one that was confirmed, and a wrong answer."""
    run = start(archive, task(), name)
    tried(archive, run, candidate(1), Verdict(Outcome.BUILD_FAILED, "error: no such thing", seconds=1.0))
    first = tried(archive, run, candidate(2), ok(1.5))
    archive.confirm(first, ok(1.4))
    shown = (candidate(2).hash,)
    second = tried(archive, run, candidate(3), ok(2.2), parent=candidate(2).hash, shown=shown)
    archive.confirm(second, ok(2.0))
    tried(archive, run, candidate(4), Verdict(Outcome.WRONG, "expected 3, got 4"), parent=candidate(3).hash)
    return run


def hostile(archive: Archive) -> RunRecord:
    """A run in which every text that a stranger can choose tries to break out of the page."""
    file = f"{EVIL.split(chr(0))[0]}.c"
    run = start(archive, task(file, EVIL.split("\x00")[0]), f"run {EVIL.split(chr(0))[0]}")
    tried(archive, run, None, Verdict(Outcome.UNUSABLE, EVIL), words=EVIL)
    evil = candidate(5, file, (EVIL.split("\x00")[0],))
    evil = Candidate({file: evil.files[file] + EVIL.split("\ud800")[0] + "\n"}, evil.flags)
    won = tried(archive, run, evil, ok(1.5), words=EVIL)
    archive.confirm(won, ok(1.4))
    finding = {"number": 1, "title": EVIL, "outcome": "wrong", "reason": EVIL}
    archive.note(run, "ablation", {"candidate": evil.hash, "changes": 2, "findings": [finding]})
    return run


def many(archive: Archive, count: int) -> RunRecord:
    """A long run: every tenth trial better than all before, every third a failure with a long reason."""
    run = start(archive, task())
    best, parent = 1.0, None
    for number in range(1, count + 1):
        if number % 3 == 0:
            tried(archive, run, candidate(number), Verdict(Outcome.BUILD_FAILED, f"error {number} " * 200))
        else:
            ratio = best * 1.02 if number % 10 == 0 else 1 + number % 7 / 10
            shown = () if parent is None else (parent,)
            tried(
                archive, run, candidate(number), ok(ratio, buckets=1), parent=parent, shown=shown, words="words " * 99
            )
            if ratio > best:
                best, parent = ratio, candidate(number).hash
    return run


def facts(archive: Archive, run: RunRecord, *, receipt: Path = Path("absent"), judge_alive: bool = False) -> Facts:
    return gather(archive, run, receipt=receipt, now=run.started_at + 60, judge_alive=judge_alive)
