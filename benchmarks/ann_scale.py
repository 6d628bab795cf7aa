"""Scale: how the cost of a query grows with the number of vectors, in `outpace.ann` and others, at equal recall.

    python benchmarks/ann_scale.py [--data NAME] [--rounds N]        results/ann-scale.json, docs/images/ann-scale.svg

The first n rows of a data set become a data set of their own, with true neighbours computed by comparing with every
row. Indexes, measurements and these parts are kept in --work, and the same command goes on where it was. A round goes
through all sizes and libraries. The exponent a of cost ~ n^a is a least squares fit of the logarithms over the sizes at
which the cheapest setting finds less than the level; its interval comes from rounds drawn again with replacement.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from contenders import result
from datasets.truth import ground_truth
from datasets.whole import whole
from outpace.bench.ann import datasets, plan
from outpace.bench.ann.builds import Builder, Entry, slug
from outpace.bench.ann.campaign import presence
from outpace.bench.ann.curve import Interval, at_level, by_round, interval
from outpace.bench.ann.log import Log, TimeRow
from outpace.bench.ann.peers import find
from outpace.bench.ann.rounds import Bench, Rules
from outpace.errors import OutpaceError
from outpace.judge.cores import timing_cores

HERE = Path(__file__).parent
SIZES = (10_000, 20_000, 50_000, 100_000, 200_000, 400_000, 700_000)
LEVELS = (0.90, 0.95, 0.99)
OURS = "outpace-defaults"
# One index of each library, chosen before anything was timed.
CONFIGURATIONS = {OURS: "defaults", "hnswlib": "M16-efc200", "symphonyqg": "R32-EF400"}
NEIGHBOURS = 10
DRAWS = 4000

Costs = Mapping[int, Mapping[int, float]]  # microseconds per query, by size and round


@dataclass(frozen=True)
class Growth:
    """The exponent of cost ~ n^a, and the range of it over rounds drawn again, which a single round does not have."""

    exponent: float
    low: float
    high: float
    sure: float
    sizes: tuple[int, ...]


def exponent(costs: Mapping[int, float]) -> float:
    """The slope of log cost over log n, by least squares."""
    sizes = np.log([float(size) for size in costs])
    return float(np.polyfit(sizes, np.log(list(costs.values())), 1)[0])


def growth(costs: Costs, draws: int = DRAWS, seed: int = 0) -> Growth | None:
    """The fit over the sizes that have a cost in every round; None where fewer than three have."""
    rounds = sorted(set().union(*(each.keys() for each in costs.values())))
    complete = {size: each for size, each in sorted(costs.items()) if set(rounds) == each.keys() and each}
    if len(complete) < 3:
        return None
    table = np.array([[each[number] for number in rounds] for each in complete.values()])
    chance = np.random.default_rng(seed)
    slopes = []
    for _ in range(draws):
        # The same rounds for every size: what a round's sizes share stays shared.
        drawn = np.median(table[:, chance.integers(0, len(rounds), len(rounds))], axis=1)
        slopes.append(exponent(dict(zip(complete, drawn, strict=True))))
    middle = exponent({size: statistics.median(each.values()) for size, each in complete.items()})
    low, high = np.percentile(slopes, [2.5, 97.5])
    return Growth(middle, float(low), float(high), 0.95 if len(rounds) > 1 else 0.0, tuple(complete))


def part_of(source: datasets.Dataset, size: int, queries: int, folder: Path) -> Path:
    """The file of the first rows and queries, made where it is not there yet."""
    path = folder / f"{slug(source.name)}-{size}-{queries}-{source.key}.hdf5"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        metric = "euclidean" if source.metric == "l2" else "angular"
        train, test = source.train[:size], source.queries[:queries]
        neighbors, _ = ground_truth(train, test, metric, k=NEIGHBOURS)
        with whole(path) as temporary, h5py.File(temporary, "w") as file:
            file["train"], file["test"], file["neighbors"] = train, test, neighbors
            file.attrs["distance"] = metric
    return path


def entries_of(dataset: datasets.Dataset, versions: Mapping[str, str]) -> list[Entry]:
    """The chosen configuration of every library that is there."""
    return [
        Entry(peer, versions[peer], each)
        for peer, name in CONFIGURATIONS.items()
        if peer in versions
        for each in find(peer).configurations(dataset.shape)
        if each.name == name
    ]


def rows_of(log: Log, dataset: datasets.Dataset, versions: Mapping[str, str], stage: str) -> list[TimeRow]:
    """Measurements of this data set with the present versions."""
    return [
        row
        for row in log.times()
        if row.data_key == dataset.key and row.stage == stage and versions.get(row.peer) == row.version
    ]


def narrowed(bench: Bench, versions: Mapping[str, str]) -> list[Entry]:
    """The efforts around the levels, by the screening's measurements."""
    screened = plan.readings(rows_of(bench.log, bench.dataset, versions, "screen"))
    return [
        Entry(entry.peer, entry.version, each)
        for entry in entries_of(bench.dataset, versions)
        for each in plan.narrowed((entry.configuration,), screened.get(entry.peer, ()), LEVELS)
    ]


def measured(benches: Sequence[Bench], versions: Mapping[str, str], rounds: int) -> None:
    """The screening of every size, then round after round through all sizes."""
    for bench in benches:
        queries = plan.screening(len(bench.dataset.queries), len(bench.dataset.queries))
        bench.run(entries_of(bench.dataset, versions), Rules("screen", "single", 1, queries))
    entries = [narrowed(bench, versions) for bench in benches]
    for number in range(rounds):
        for bench, chosen in zip(benches, entries, strict=True):
            total = len(bench.dataset.queries)
            # Rounds that the log holds are not measured again, so that this is one round more.
            bench.run(chosen, Rules("final", "single", number + 1, plan.deciding(total, total)))


def costs_of(benches: Sequence[Bench], versions: Mapping[str, str], peer: str, level: float) -> Costs:
    """Microseconds per query at a level, by size and round; a size that does not reach it is left out."""
    found = {}
    for bench in benches:
        readings = plan.readings(rows_of(bench.log, bench.dataset, versions, "final")).get(peer, [])
        speeds = by_round(readings, lambda strands: at_level(strands, level))
        if speeds:
            found[len(bench.dataset.train)] = {number: 1e6 / qps for number, qps in speeds.items()}
    return found


def builds_of(benches: Sequence[Bench], versions: Mapping[str, str]) -> list[dict[str, Any]]:
    """How long each index took, or why there is none; without ours there is nothing to tell."""
    rows = [
        (len(bench.dataset.train), row)
        for bench in benches
        for row in bench.log.builds()
        if row.data_key == bench.dataset.key and versions.get(row.peer) == row.version
    ]
    for size, row in rows:
        if row.peer == OURS and row.status != "built":
            raise OutpaceError(f"the index of {size} vectors could not be built ({row.status}): {row.reason}")
    return [
        {"library": row.peer, "vectors": size, "seconds": round(row.seconds, 1), "status": row.reason or row.status}
        for size, row in rows
    ]


def sizes_above(benches: Sequence[Bench], versions: Mapping[str, str], peer: str, level: float) -> set[int]:
    """The sizes at which even the cheapest setting finds more: their cost is of no search at this level."""
    found = set()
    for bench in benches:
        readings = plan.readings(rows_of(bench.log, bench.dataset, versions, "final")).get(peer, [])
        if readings and min(each.recall for each in readings) >= level:
            found.add(len(bench.dataset.train))
    return found


def told(costs: Costs, above: Collection[int] = ()) -> dict[str, Any]:
    """A library at a level, as the result file has it; what is above the level is told and not fitted."""
    fit = growth({size: each for size, each in costs.items() if size not in above})
    return {
        "microseconds": {str(size): result.told(interval(list(each.values()))) for size, each in costs.items()},
        "exponent": None if fit is None else result.told(Interval(fit.exponent, fit.low, fit.high, fit.sure)),
        "fitted_sizes": [] if fit is None else list(fit.sizes),
    }


def picture(levels: Mapping[str, Mapping[str, Any]], title: str) -> str:
    """Cost against size, one panel for each level, one line for each library."""
    import altair as alt
    import vl_convert

    rows = [
        {"library": peer, "recall": f"recall {level}", "n": int(size), "us": cost["middle"]}
        for level, peers in levels.items()
        for peer, found in peers.items()
        for size, cost in found["microseconds"].items()
    ]
    tones = {OURS: "#0f6b66", "hnswlib": "#b3501f", "symphonyqg": "#3b6ea8"}
    shown = [peer for peer in tones if any(row["library"] == peer for row in rows)]
    base = alt.Chart(alt.InlineData(rows)).encode(
        x=alt.X(
            "n:Q", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(title="vectors", format="~s", tickCount=4)
        ),
        y=alt.Y(
            "us:Q", scale=alt.Scale(type="log", nice=False), axis=alt.Axis(title="microseconds per query", format="~s")
        ),
        color=alt.Color(
            "library:N",
            scale=alt.Scale(domain=shown, range=[tones[peer] for peer in shown]),
            legend=alt.Legend(title=None),
        ),
    )
    lines = alt.layer(base.mark_line(strokeWidth=2), base.mark_point(filled=True, size=30, opacity=1))
    chart = lines.properties(width=230, height=260).facet(column=alt.Column("recall:N", title=None))
    chart = chart.configure_axis(gridColor="#e1e5e7", domainColor="#e1e5e7", tickColor="#e1e5e7", titleFontWeight=400)
    heading = {"text": title, "anchor": "start", "fontSize": 15, "offset": 8}
    spec = {**chart.to_dict(), "title": heading, "background": "#ffffff", "padding": 12}
    return str(vl_convert.vegalite_to_svg(spec))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="photosift-128-euclidean", help="an HDF5 file, or the name of a data set")
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--libraries", nargs="+", choices=tuple(CONFIGURATIONS), default=tuple(CONFIGURATIONS))
    parser.add_argument("--queries", type=int, default=2000, help="one half chooses efforts, the other is timed")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--threads-build", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--build-budget", type=float, default=3600.0, help="seconds for one index")
    parser.add_argument("--work", type=Path, default=Path.home() / ".cache" / "outpace" / "ann-scale")
    parser.add_argument("--out", type=Path, default=HERE / "results" / "ann-scale.json")
    parser.add_argument("--picture", type=Path, default=HERE.parent / "docs" / "images" / "ann-scale.svg")
    given = parser.parse_args()
    source = datasets.load(datasets.locate(given.data, datasets.data_folder()))
    too_large = [size for size in given.sizes if not NEIGHBOURS <= size <= len(source.train)]
    if too_large:
        raise OutpaceError(f"--sizes {too_large}: {source.name} has {len(source.train)} vectors")
    found = {peer: presence(peer, given.work / "logs") for peer in given.libraries}
    versions = {peer: version for peer, (version, _) in found.items() if version is not None}
    builder = Builder(given.work / "indexes", given.work / "logs", given.threads_build, given.build_budget)
    log = Log(given.work / "measurements.jsonl")
    benches = []
    for size in sorted(given.sizes):
        path = part_of(source, size, min(given.queries, len(source.queries)), given.work / "parts")
        part = datasets.load(path)
        benches.append(Bench(part, path, builder, log, timing_cores(1)[0], lambda text: print(text, flush=True)))
    measured(benches, versions, given.rounds)
    levels = {
        f"{level:g}": {
            peer: told(costs_of(benches, versions, peer, level), sizes_above(benches, versions, peer, level))
            for peer in versions
        }
        for level in LEVELS
    }
    report = result.heading(__file__) | {
        "data": source.name,
        "dimension": source.shape.dimension,
        "k": NEIGHBOURS,
        "rounds": given.rounds,
        "queries": len(benches[0].dataset.queries) // 2,
        "libraries": {peer: f"{version}, {CONFIGURATIONS[peer]}" for peer, version in versions.items()},
        "missing": {peer: why for peer, (version, why) in found.items() if version is None},
        "levels": levels,
        "builds": builds_of(benches, versions),
    }
    given.picture.parent.mkdir(parents=True, exist_ok=True)
    given.picture.write_text(picture(levels, f"{source.name}: cost of a query as the set grows"))
    result.write(given.out, report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
