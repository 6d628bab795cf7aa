"""How fast `moves` finds fast code, against random search and Optuna's TPE, on fully measured spaces.

    python benchmarks/moves_table.py         # measures the spaces, once
    python benchmarks/moves.py               # simulates runs on them: benchmarks/results/moves.json
    python benchmarks/moves.py --synthetic   # the same on made-up spaces; nothing is written

Every run has the same number of trials. A trial looks the candidate up in the table and adds noise of the
measured spread, which depends on the seed and the candidate alone, so that all methods see the same. After
each trial, the candidate that looked fastest so far counts by its true log speed-up, 0 for the reference and
1 for the table's best; the area under that curve is a run's score. Seeds are paired: a difference is taken
seed by seed.

`moves` runs through the same calls as in a real run: bucket exemplars, drawn for each trial, `propose`, `hear`,
and after each group of four `reward.advantages` and `learn`. All methods know the reference and its speed
beforehand. Random search never tries a candidate twice. TPE is Optuna's sampler with its default settings;
where it asks for a candidate that it has had, "TPE" spends the trial on it, and "TPE, no repeats" asks again,
and takes a random new one after 20 asks in vain.

The constants in `moves` were chosen on the synthetic spaces alone; the measured tables were not looked at
for that.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from outpace import answer, exemplars, reward
from outpace.judge.verdict import Outcome, SpeedUp, Verdict
from outpace.policies import make_policy
from outpace.policies.base import Exhausted, Lesson, Prompt, Shown
from outpace.scored import Scored
from outpace.task import Entry, Task, variation
from outpace.task.candidate import Candidate, reference

RESULTS = Path(__file__).parent / "results"
TRIALS = 60
SEEDS = 100
EXEMPLARS = 2
TPE_ASKS = 20
RESAMPLES = 10_000

Place = tuple[int, ...]


@dataclass(frozen=True)
class Measured:
    """One candidate of a table; `spread` is the standard error of its log speed-up."""

    outcome: Outcome
    log_ratio: float = 0.0
    spread: float = 0.0


@dataclass(frozen=True)
class Table:
    """A closed space: every combination of the options has been measured."""

    name: str
    options: tuple[int, ...]
    reference: Place
    cells: Mapping[Place, Measured]
    best: float = field(init=False)

    def __post_init__(self) -> None:
        places = set(itertools.product(*map(range, self.options)))
        if places != set(self.cells):
            sys.exit(
                f"table {self.name} has {len(self.cells)} of {len(places)} candidates: "
                "run benchmarks/moves_table.py to the end"
            )
        object.__setattr__(self, "best", max(self.true(place) for place in self.cells))

    def true(self, place: Place) -> float:
        """The log speed-up that using this candidate brings; one that fails is not used."""
        cell = self.cells[place]
        return 0.0 if place == self.reference or cell.outcome is not Outcome.OK else cell.log_ratio

    def verdict(self, place: Place, seed: int) -> Verdict:
        """What a trial says."""
        cell = self.cells[place]
        if cell.outcome is not Outcome.OK:
            return Verdict(cell.outcome)
        noise = random.Random(f"noise {self.name} {seed} {place}").gauss(0.0, cell.spread)
        ratio = math.exp(cell.log_ratio + noise)
        return Verdict(Outcome.OK, speed_up=SpeedUp(ratio, ratio, ratio, False, 8))


def read_table(path: Path) -> Table:
    """The table that moves_table.py wrote, without the points it held to one option."""
    stored = json.loads(path.read_text())
    counts = [len(point["options"]) for point in stored["points"]]

    def free(settings: Sequence[int]) -> Place:
        return tuple(option for option, count in zip(settings, counts, strict=True) if count > 1)

    cells = {}
    for row in stored["cells"]:
        outcome = Outcome(row["outcome"])
        cell = Measured(outcome)
        if outcome is Outcome.OK:
            # The interval is of 99%, 2.576 standard errors to either side.
            cell = Measured(outcome, row["log_ratio"], (row["log_high"] - row["log_low"]) / (2 * 2.576))
        cells[free(row["settings"])] = cell
    return Table(stored["task"], free(counts), free(stored["reference"]), cells)


def synthetic_table(seed: int) -> Table:
    """A made-up space in which there is something to gain, at least 1.1x."""
    draws = (_drawn_table(seed, attempt) for attempt in itertools.count())
    return next(table for table in draws if table.best > math.log(1.1))


def _drawn_table(seed: int, attempt: int) -> Table:
    """A made-up space of the kind that sources have: a few strong points, some that matter only under one
    option of another, interactions, and some combinations that fail."""
    rng = random.Random(f"synthetic {seed}" + f" {attempt}" * (attempt > 0))
    options = rng.choice([(4, 3, 3, 2, 2), (4, 4, 2, 2, 2), (4, 4, 5, 2), (3, 2, 4, 2, 2, 2), (3, 3, 4, 2, 2)])
    effects = [[rng.gauss(0, rng.choice([0.02, 0.1, 0.4])) for _ in range(count)] for count in options]
    master = max(range(len(options)), key=lambda at: options[at])
    for option in range(options[master]):
        effects[master][option] = rng.gauss(0, 0.5)
    hosts = {at: rng.randrange(options[master]) for at in range(len(options)) if at != master and rng.random() < 0.4}
    pairs = {
        pair: rng.gauss(0, 0.1)
        for pair in itertools.combinations(((a, o) for a in range(len(options)) for o in range(options[a])), 2)
        if rng.random() < 0.3
    }
    broken = {(at, rng.randrange(options[at])) for at in range(len(options)) if rng.random() < 0.15}
    own = tuple(rng.randrange(count) for count in options)

    def value(place: Place) -> float:
        total = sum(
            effects[at][option] for at, option in enumerate(place) if hosts.get(at, place[master]) == place[master]
        )
        return total + sum(pairs.get(pair, 0.0) for pair in itertools.combinations(enumerate(place), 2))

    zero = value(own)
    cells = {}
    for place in itertools.product(*map(range, options)):
        fails = len(broken & set(enumerate(place))) > 1 and place != own
        cells[place] = Measured(Outcome.WRONG) if fails else Measured(Outcome.OK, value(place) - zero, 0.005)
    return Table(f"synthetic-{seed}", options, own, cells)


def stand_in(table: Table) -> Task:
    """A task with the table's points: `moves` sees options by number, whatever they stand for."""
    lines = []
    for at, count in enumerate(table.options):
        tokens = [f"o{option}" for option in range(count)]
        lines += [f"// outpace: choose {' '.join(tokens)}", f"point p{at} = {tokens[table.reference[at]]};"]
    source = "\n".join(lines) + "\n"
    return Task(table.name, "", Path(), ("space.c",), {"space.c": source.encode()}, Entry("c"))


def by_moves(table: Table, seed: int) -> list[Place]:
    """The places a run of `moves` tries, in order."""
    task = stand_in(table)
    points = variation.points(task)
    policy = make_policy("moves")
    own = reference(task)
    known: dict[str, Candidate] = {}
    scored: list[Scored] = []
    tried: list[Place] = []
    for trial in range(1, TRIALS + 1):
        chosen = exemplars.choose(exemplars.DEFAULT, scored, random.Random(f"{seed}:{trial}"), EXEMPLARS).shown
        shown = tuple(Shown(known[each.hash], each) for each in chosen)
        parent = shown[-1].candidate if shown else own
        try:
            reply = policy.propose(Prompt("", task, trial, seed, parent, shown))
        except Exhausted:
            break
        parents = {each.candidate.hash: each.candidate for each in shown} | {own.hash: own}
        read = answer.parse(reply.text, task, parents, parent)
        assert isinstance(read, answer.Answer), read
        tried.append(tuple(option for option in variation.settings(points, read.candidate) if option is not None))
        verdict = table.verdict(tried[-1], seed)
        policy.learn([Lesson(trial, read.parent, read.candidate, reward.reward(verdict), 0.0)])
        if (found := verdict.speed_up) is not None:
            name = read.candidate.hash
            known[name] = read.candidate
            scored.append(Scored(name, found.ratio, found.low, found.high, found.win, trial, read.parent.hash))
    return tried


def by_chance(table: Table, seed: int) -> list[Place]:
    """Uniform random search without replacement."""
    rest = sorted(set(table.cells) - {table.reference})
    return random.Random(f"chance {seed}").sample(rest, min(TRIALS, len(rest)))


def by_tpe(table: Table, seed: int, *, repeats: bool) -> list[Place]:
    """Optuna's TPE, told the reference's score first."""
    optuna = _optuna()
    spaces = {f"p{at}": optuna.distributions.CategoricalDistribution(range(n)) for at, n in enumerate(table.options)}
    study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
    first = {f"p{at}": option for at, option in enumerate(table.reference)}
    study.add_trial(optuna.trial.create_trial(params=first, distributions=spaces, value=0.0))
    rng = random.Random(f"tpe {seed}")
    tried: list[Place] = []
    while len(tried) < min(TRIALS, len(table.cells) - 1):
        place, trial = _asked(study, spaces)
        if not repeats:
            place, trial = _new_place(table, study, spaces, {table.reference, *tried}, rng, place, trial)
        tried.append(place)
        value = reward.reward(table.verdict(place, seed))
        if value is None:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(trial, value)
    return tried


def _asked(study: Any, spaces: Mapping[str, Any]) -> tuple[Place, Any]:
    trial = study.ask(dict(spaces))
    return tuple(trial.params[name] for name in spaces), trial


def _new_place(
    table: Table,
    study: Any,
    spaces: Mapping[str, Any],
    taken: set[Place],
    rng: random.Random,
    place: Place,
    trial: Any,
) -> tuple[Place, Any]:
    failed = _optuna().trial.TrialState.FAIL
    for _ in range(TPE_ASKS):
        if place not in taken:
            return place, trial
        # A failed trial leaves no trace in the model.
        study.tell(trial, state=failed)
        place, trial = _asked(study, spaces)
    if place in taken:
        study.tell(trial, state=failed)
        place = rng.choice(sorted(set(table.cells) - taken))
        study.enqueue_trial(dict(zip(spaces, place, strict=True)))
        place, trial = _asked(study, spaces)
    return place, trial


def _optuna() -> Any:
    try:
        import optuna
    except ImportError:
        sys.exit("this benchmark compares with Optuna, which is not installed: pip install 'outpace[bench]'")
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


METHODS: Mapping[str, Callable[[Table, int], list[Place]]] = {
    "moves": by_moves,
    "random": by_chance,
    "TPE": lambda table, seed: by_tpe(table, seed, repeats=True),
    "TPE, no repeats": lambda table, seed: by_tpe(table, seed, repeats=False),
}


def area(table: Table, seed: int, tried: Sequence[Place]) -> float:
    """The mean height of the curve of best so far, from 0 (the reference) to 1 (the table's best)."""
    heights: list[float] = []
    looks, height = 0.0, 0.0
    for place in tried:
        found = table.verdict(place, seed).speed_up
        if found is not None and math.log(found.ratio) > looks:
            looks, height = math.log(found.ratio), table.true(place)
        heights.append(height)
    heights += [height] * (TRIALS - len(heights))
    return statistics.fmean(heights) / table.best


def interval(values: np.ndarray, rng: np.random.Generator) -> dict[str, float]:
    """The mean with a 95% bootstrap interval; columns are tables, so that seeds are drawn within each."""
    rows = values.reshape(len(values), -1)
    draws = rng.integers(0, len(rows), (RESAMPLES, len(rows), rows.shape[1]))
    means = np.take_along_axis(rows[None], draws, axis=1).mean(axis=(1, 2))
    low, high = np.quantile(means, [0.025, 0.975])
    return {"mean": float(rows.mean()), "low": float(low), "high": float(high)}


def summary(scores: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Each method's area, and what `moves` has over each other, from (seed, table) scores."""
    rng = np.random.default_rng(0)
    areas = {name: interval(values, rng) for name, values in scores.items()}
    rivals = [name for name in scores if name != "moves"]
    over = {name: interval(scores["moves"] - scores[name], rng) for name in rivals}
    return {"area": areas, "moves_minus": over}


def markdown(found: Mapping[str, Mapping[str, Any]]) -> str:
    """The figures as a table; a difference whose interval holds 0 is called even."""
    methods = list(next(iter(found.values()))["area"])
    rows = [
        "| space | " + " | ".join(methods) + " | moves against the others |",
        "|---" * (len(methods) + 2) + "|",
    ]
    for space, figures in found.items():
        cells = [f"{each['mean']:.3f} [{each['low']:.3f}, {each['high']:.3f}]" for each in figures["area"].values()]
        verdicts = []
        for name, gap in figures["moves_minus"].items():
            word = "wins" if gap["low"] > 0 else "loses" if gap["high"] < 0 else "even"
            verdicts.append(f"{name}: {word} {gap['mean']:+.3f} [{gap['low']:+.3f}, {gap['high']:+.3f}]")
        rows.append(f"| {space} | {' | '.join(cells)} | {'; '.join(verdicts)} |")
    return "\n".join(rows)


def main() -> None:
    """Simulate, summarise, write and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument(
        "--synthetic", type=int, nargs="?", const=20, default=0, metavar="N", help="use N made-up spaces"
    )
    parser.add_argument("--seeds", type=int, default=SEEDS)
    options = parser.parse_args()
    paths = sorted(RESULTS.glob("moves-table-*.json"))
    tables = [synthetic_table(n) for n in range(options.synthetic)] or [read_table(path) for path in paths]
    if not tables:
        sys.exit("there is no measured table yet: run benchmarks/moves_table.py first")
    for table in tables:
        if table.best <= 0:
            sys.exit(f"no candidate of {table.name} is faster than its reference: there is nothing to find")
    scores = {name: np.empty((options.seeds, len(tables))) for name in METHODS}
    for column, table in enumerate(tables):
        print(f"{table.name}: {len(table.cells)} candidates, best {math.exp(table.best):.2f}x", file=sys.stderr)
        for seed in range(options.seeds):
            for name, method in METHODS.items():
                scores[name][seed, column] = area(table, seed, method(table, seed))
    found = {}
    if not options.synthetic:
        for column, table in enumerate(tables):
            found[table.name] = summary({name: values[:, [column]] for name, values in scores.items()})
    found["overall"] = summary(scores)
    print(markdown(found))
    if not options.synthetic:
        facts = {
            "command": "python benchmarks/moves.py",
            "trials": TRIALS,
            "seeds": options.seeds,
            "optuna": _optuna().__version__,
            "tables": {table.name: {"candidates": len(table.cells), "best": math.exp(table.best)} for table in tables},
        }
        (RESULTS / "moves.json").write_text(json.dumps({**facts, "results": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
