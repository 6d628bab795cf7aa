"""Resume: a run that is killed again and again ends like one that nobody touched.

    python benchmarks/resume.py                             200 kills, about 15 minutes: results/resume.json
    python benchmarks/resume.py --kills 4                   a short look

Half of the kills hit a run that replays fixed replies, whose trials and outcomes must equal those of an
unbroken run; the other half hit runs of `moves`, which must lose no trial and judge none twice. The judge and
its jail are the real ones. Kills (SIGKILL, of the process alone and of its process group in turn) come at
random moments and at chosen ones: when a jail is about to start, when a build begins, when the archive is
written to. After each kill a copy of the archive is checked and compared with what was stored before; the file
itself is left to the next process to recover.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import datetime
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ledger import Ledger, read_ledger, taken_back
from outpace import answer, machine
from outpace.archive import Archive, Trial
from outpace.budget import Budget
from outpace.cost import Cost
from outpace.domains.program import ProgramDomain
from outpace.judge import cgroup
from outpace.judge.jail import best_jail
from outpace.judge.judge import Judge
from outpace.judge.verdict import Outcome
from outpace.loop import loop
from outpace.policies import make_policy
from outpace.run import Run, Settings
from outpace.task.candidate import Candidate
from outpace.task.file import load_task

HERE = Path(__file__).parent
# Longer than any start and trial here: whoever lives so long without the awaited moment is killed all the same.
PATIENCE = 6.0
# How long the dead may take to be gone. The kernel takes milliseconds; a build that just began ends by itself.
GONE_WITHIN = 5.0

SOURCE = """#include <stdint.h>

// Work whose result nobody uses, so that every setting gives the same answers at another speed.
// outpace: choose 0 6 12 18 24 30 36 42
#define WASTE 18
// outpace: choose 0 1 2 3 4
#define MORE 1

uint64_t total(const uint64_t *x, int64_t n) {
    uint64_t sum = 0, wasted = 1;
    for (int64_t i = 0; i < n; i++) {
        for (int step = 0; step < WASTE + MORE; step++) wasted = wasted * 6364136223846793005u + x[i];
        sum += x[i];
    }
    __asm__ volatile("" : : "r"(wasted));
    return sum;
}
"""
TASK_FILES = {
    "task.toml": """name = "tiny"
description = "Adds numbers, slowly."
editable = ["total.c"]

[build]
sources = ["total.c"]
flags = ["-O1"]
flag_choices = [["-O1", "-O2"]]

[entry]
kind = "c"
function = "uint64_t total(const uint64_t *x, int64_t n)"

[limits]
seconds = 2

[timing]
sample_ms = 1
lifetime = 2000
""",
    "judge.py": """def make_input(rng):
    n = int(rng.integers(500, 1000))
    return {"x": rng.integers(0, 2**50, n, dtype="uint64"), "n": n}
""",
    "total.c": SOURCE,
}
# To each prompt.
REPLIES = 3
ANALYSIS = "Each step of the inner loop waits for the one before it, and nobody uses what it computes."


# One life: what the killed process does


def live(folder: Path, policy: str, seed: int, trials: int) -> None:
    """Go on with the run in this folder until its trials are done."""
    task, here = load_task(folder / "task"), machine.describe()
    given: dict[str, Any] = {"archive": folder / "script.sqlite"} if policy == "replay" else {}
    with (
        Archive.open(folder / "archive.sqlite") as archive,
        Judge(ProgramDomain(task), jail=best_jail(), workspace=folder / "work") as judge,
    ):
        made = make_policy(policy, **given)
        # Several trials are open at once.
        settings, budget = Settings(replies=REPLIES), Budget(trials=trials)
        run = Run(archive, task, judge, made, name="run", machine=here, seed=seed, settings=settings, budget=budget)
        print(loop(run))


def prepare(folder: Path) -> None:
    """The task, and an archive with the replies to be replayed."""
    folder.chmod(0o755)
    (folder / "task").mkdir(mode=0o755)
    for name, text in TASK_FILES.items():
        (folder / "task" / name).write_text(text)
    task, here = load_task(folder / "task"), machine.describe()
    with Archive.open(folder / "script.sqlite") as archive:
        facts = dataclasses.asdict(here)
        record = archive.start_run("script", task, "script", {}, 1, facts, machine_key=here.key)
        for reply in replies():
            archive.answer(archive.ask(record, "", (), None)[0], reply, Cost())


def replies() -> list[str]:
    """Thirty whole sources of every kind of outcome, in an order that looks like none."""
    waste = "#define WASTE 18"
    texts = [SOURCE.replace(waste, f"#define WASTE {number}") for number in (*range(8), *range(26, 36))]
    texts += [f"// once more\n{text}" for text in texts[1::6]]
    texts += [SOURCE.replace("return sum", f"return sum + {number}") for number in range(1, 4)]
    texts += [SOURCE.replace("return sum", f"return *(volatile uint64_t *){number}") for number in (0, 8)]
    texts += [SOURCE.replace("return sum", f"return sum{number}") for number in range(3)]
    said = [answer.render(Candidate({"total.c": text}, ("-O1",)), None, ANALYSIS, "Less.") for text in texts]
    said.append(f"## Performance Analysis\n{ANALYSIS}\n## Code Implementation\nnone yet\n")
    random.Random(1).shuffle(said)
    return said


# Kills


Event = Callable[[], bool]


def kill_plan(chance: random.Random, folder: Path, pid: int) -> tuple[str, Event, float]:
    """When to kill: a name, what to wait for, and how many seconds after it."""
    kind = chance.choice(["any moment", "any moment", "a jail starts", "a build begins", "a write", "a write"])
    if kind == "any moment":
        return kind, lambda: True, chance.uniform(0, 2.5)
    if kind == "a jail starts":
        return kind, changes(lambda: groups_of([pid]), chance.randint(1, 25)), chance.uniform(0, 0.008)
    if kind == "a build begins":
        work = folder / "work"
        return (
            kind,
            changes(lambda: sorted(work.glob(f"judge-{pid}-*/*")), chance.randint(1, 9)),
            chance.uniform(0, 0.08),
        )
    return kind, changes(lambda: written(folder), chance.randint(1, 9)), chance.uniform(0, 0.002)


def changes(look: Callable[[], object], times: int) -> Event:
    """True once what is seen has changed this many times."""
    seen, left = look(), times

    def changed() -> bool:
        nonlocal seen, left
        now = look()
        if now != seen:
            seen, left = now, left - 1
        return left <= 0

    return changed


def written(folder: Path) -> list[tuple[str, int, int]]:
    """The archive's files with their sizes and times."""
    found = []
    for path in sorted(folder.glob("archive.sqlite*")):
        with contextlib.suppress(FileNotFoundError):
            state = path.stat()
            found.append((path.name, state.st_size, state.st_mtime_ns))
    return found


def groups_of(pids: Collection[int]) -> list[Path]:
    """The control groups that judges with these process ids made."""
    named = [path for pattern in ("outpace-*-*", "*/outpace-*-*") for path in cgroup.ROOT.glob(pattern)]
    return [path for path in named if int(path.name.split("-")[1]) in pids]


def running(folder: Path, pids: Collection[int]) -> list[str]:
    """Processes of these judges: in their sessions, in their control groups, or jails around their folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            state, _, _, session = (entry / "stat").read_text().rsplit(")", 1)[1].split()[:4]
            groups, command = (entry / "cgroup").read_text(), (entry / "cmdline").read_bytes()
        except OSError:
            continue  # it has just ended
        jailed = any(f"/outpace-{pid}-" in groups for pid in pids) or bytes(folder / "work") in command
        if state != "Z" and (int(session) in pids or jailed):
            found.append(f"{entry.name} {command[:60].decode(errors='replace')}")
    return found


# What a kill must not change


def moment(folder: Path, pid: int, ledger: Ledger) -> str:
    """What the killed process was at, as its leavings tell."""
    built = [path for path in (folder / "work").glob(f"judge-{pid}-*/*") if path.is_dir()]
    unfinished = [path for path in built if not (path / "outpace-candidate.so").exists()]
    state = next((trial.state for trial in ledger.trials if trial.state != "judged"), "judged")
    if unfinished:
        return "building"
    if len(built) > 1:
        return "confirming" if state == "judged" else "checking and timing"
    return {"judged": "starting or between trials", "asked": "asking", "answered": "a reply just stored"}[state]


@dataclass
class Tally:
    """What one phase has seen."""

    kills: int = 0
    rounds: int = 0
    alone: int = 0
    plans: Counter[str] = field(default_factory=Counter)
    moments: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)
    duplicates: int = 0
    trials: int = 0
    longest_gone: float = 0.0
    faults: list[str] = field(default_factory=list)

    def fault(self, what: str) -> None:
        self.faults.append(f"round {self.rounds}, kill {self.kills}: {what}")
        print(f"  FAULT {self.faults[-1]}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class Phase:
    """Runs of one policy, each of so many trials, killed so many times in all."""

    script: Path
    policy: str
    kills: int
    trials: int


def start(folder: Path, phase: Phase, seed: int) -> subprocess.Popen[bytes]:
    given = {"live": phase.policy, "folder": folder, "seed": seed, "trials": phase.trials}
    options = [part for name, value in given.items() for part in (f"--{name}", str(value))]
    command = [sys.executable, __file__, *options]
    with (folder / "errors.txt").open("ab") as errors:
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True)


def unbroken(phase: Phase) -> Ledger:
    """The run that nobody kills."""
    with round_folder(phase.script) as folder:
        if start(folder, phase, 1).wait() != 0:
            raise SystemExit(f"the unbroken run failed: {(folder / 'errors.txt').read_text()[-2000:]}")
        return read_ledger(folder, REPLIES)


@contextlib.contextmanager
def round_folder(script: Path) -> Iterator[Path]:
    """A fresh folder for one run of the task."""
    with tempfile.TemporaryDirectory(prefix="outpace-resume-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        shutil.copytree(script / "task", folder / "task")
        shutil.copy(script / "script.sqlite", folder)
        yield folder


def life(folder: Path, phase: Phase, chance: random.Random, tally: Tally, pids: list[int]) -> int | None:
    """Start the run and kill it, unless it ends first; its exit status if it ended by itself."""
    process = start(folder, phase, tally.rounds)
    pids.append(process.pid)
    plan, event, delay = kill_plan(chance, folder, process.pid)
    until = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < until and not event():
        time.sleep(0.0003)
    with contextlib.suppress(subprocess.TimeoutExpired):
        return process.wait(delay)
    alone = tally.kills % 2 == 0
    (os.kill if alone else os.killpg)(process.pid, signal.SIGKILL)
    if process.wait() != -signal.SIGKILL:
        return process.returncode
    tally.kills += 1
    tally.alone += alone
    tally.plans[plan] += 1
    return None


def spared(folder: Path, phase: Phase, tally: Tally, pids: list[int]) -> int:
    """Start the run and let it end; its exit status."""
    process = start(folder, phase, tally.rounds)
    pids.append(process.pid)
    return process.wait()


def one_round(phase: Phase, chance: random.Random, tally: Tally) -> Ledger:
    """One run, killed until it is done or the kills are used up."""
    tally.rounds += 1
    with round_folder(phase.script) as folder:
        known, pids, status = Ledger(), list[int](), None
        while status is None:
            if tally.kills < phase.kills:
                status = life(folder, phase, chance, tally, pids)
            else:
                status = spared(folder, phase, tally, pids)
            ledger = read_ledger(folder, REPLIES)
            if status is None:
                after_kill(folder, pids, ledger, tally)
            for what in (*ledger.faults, *taken_back(known, ledger)):
                tally.fault(what)
            known = ledger
        if status != 0:
            tally.fault(f"the run ended with status {status}: {(folder / 'errors.txt').read_text()[-500:]}")
        if len(known.verdicts) != phase.trials:
            tally.fault(f"{len(known.verdicts)} of {phase.trials} trials were judged")
        after_round(folder, pids, known, tally)
        return known


def after_kill(folder: Path, pids: list[int], ledger: Ledger, tally: Tally) -> None:
    """Wait for the dead to be gone, and note what they were at."""
    begin = time.monotonic()
    while (left := running(folder, pids)) and time.monotonic() - begin < GONE_WITHIN:
        time.sleep(0.005)
    tally.longest_gone = max(tally.longest_gone, time.monotonic() - begin)
    if left:
        tally.fault(f"{GONE_WITHIN:g} s after the kill these still ran: {left}")
    tally.moments[moment(folder, pids[-1], ledger)] += 1
    seen = f"{len(ledger.trials)} trials; {dict(tally.moments)}"
    print(f"  kill {tally.kills}: {seen}", file=sys.stderr, flush=True)


def after_round(folder: Path, pids: list[int], ledger: Ledger, tally: Tally) -> None:
    """A finished run must leave nothing behind."""
    if left := running(folder, pids):
        tally.fault(f"these still run: {left}")
    if groups := groups_of(pids):
        tally.fault(f"these control groups are left: {[path.name for path in groups]}")
    if folders := list((folder / "work").iterdir()):
        tally.fault(f"these work folders are left: {[path.name for path in folders]}")
    tally.trials += len(ledger.trials)
    tally.duplicates += sum(trial.duplicate_of is not None for trial in ledger.trials)
    tally.outcomes.update(str(trial.verdict.outcome) for trial in ledger.trials if trial.verdict)


def alike(trial: Trial) -> tuple[object, ...]:
    """What replaying must give again; whether timings settle is the machine's doing, not the run's."""
    outcome = trial.verdict.outcome if trial.verdict else None
    right = outcome in (Outcome.OK, Outcome.TOO_NOISY)
    return trial.number, trial.reply, trial.candidate, "right" if right else str(outcome)


def replay_phase(phase: Phase, chance: random.Random) -> Tally:
    """Kill replays, and compare them with one that was not killed."""
    tally = Tally()
    model = [alike(trial) for trial in unbroken(phase).trials]
    while tally.kills < phase.kills:
        got = [alike(trial) for trial in one_round(phase, chance, tally).trials]
        differing = [number for number, pair in enumerate(zip(model, got, strict=False), 1) if pair[0] != pair[1]]
        if differing:
            tally.fault(f"trials {differing} differ from the unbroken run's")
    return tally


def moves_phase(phase: Phase, chance: random.Random) -> Tally:
    """Kill runs whose proposals depend on what was learnt; no proposal may be forgotten and made again."""
    tally = Tally()
    while tally.kills < phase.kills:
        done = one_round(phase, chance, tally)
        again = [trial.number for trial in done.trials if trial.duplicate_of is not None]
        if again:
            tally.fault(f"trials {again} proposed what had been proposed before")
    return tally


def summary(tally: Tally) -> dict[str, object]:
    return {
        "kills": tally.kills,
        "of the process alone": tally.alone,
        "of its process group": tally.kills - tally.alone,
        "killed when": dict(tally.plans.most_common()),
        "was at": dict(tally.moments.most_common()),
        "finished runs": tally.rounds,
        "trials": tally.trials,
        "outcomes": dict(tally.outcomes.most_common()),
        "trials with sources proposed before": tally.duplicates,
        "longest until everything was gone (s)": round(tally.longest_gone, 3),
        "faults": tally.faults,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=200, help="kills in all, half of them in each phase")
    parser.add_argument("--trials", type=int, default=30, help="trials of each run, 30 at most")
    parser.add_argument("--seed", type=int, default=1, help="of the moments; in one life, of the run")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "resume.json")
    parser.add_argument("--live", choices=["moves", "replay"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.live:
        live(options.folder, options.live, options.seed, options.trials)
        return 0
    begin, chance, half = time.monotonic(), random.Random(options.seed), options.kills // 2
    with tempfile.TemporaryDirectory(prefix="outpace-script-") as name:
        script = Path(name)
        prepare(script)
        phases = {"replay": replay_phase(Phase(script, "replay", half, options.trials), chance)}
        phases["moves"] = moves_phase(Phase(script, "moves", options.kills - half, options.trials), chance)
    kept = not any(tally.faults for tally in phases.values())
    result = {
        "command": " ".join(["python benchmarks/resume.py", *sys.argv[1:]]),
        "date": datetime.date.today().isoformat(),
        "machine": dataclasses.asdict(machine.describe()),
        "load": dataclasses.asdict(machine.load()),
        "jail": best_jail(),
        "minutes": round((time.monotonic() - begin) / 60, 1),
        "kept": kept,
        "phases": {phase: summary(tally) for phase, tally in phases.items()},
    }
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.write_text(json.dumps(result, indent=1) + "\n")
    count = sum(tally.kills for tally in phases.values())
    faults = sum(len(tally.faults) for tally in phases.values())
    print(f"{'kept' if kept else 'NOT kept'}: {count} kills, {faults} faults; see {options.out}")
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
