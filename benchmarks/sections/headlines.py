"""The headlines of the results page: a sentence or two on each measurement, and what it does not say."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

from sections.contests import DEFAULTS, geometric_mean
from sections.judging import earlier
from sections.markdown import listed


def headline(name: str, result: dict[str, Any]) -> str:
    """One item of a list: what was found, what it does not mean, and where the detail is."""
    claim, limit, where = _TOLD[name](result)
    aged = earlier(result, short=True) if name in JUDGED else ""
    return f"- {aged}{claim} *{limit}* [Detail]({where})"


def _noise(result: dict[str, Any]) -> tuple[str, str, str]:
    rows = result["summary"]
    equal = [row for row in rows if row["true gain"] == "0%"]
    small = [row for row in rows if row["true gain"] == "3%"]
    return (
        f"**No gain where there is none**: {sum(row['wins'] for row in equal)} of "
        f"{sum(row['runs'] for row in equal)} candidates of equal speed were called faster, while other work came and "
        f"went on the timed core; a true gain of 3% was found in {sum(row['wins'] for row in small)} of "
        f"{sum(row['runs'] for row in small)}.",
        "Calls of 20 us to 50 ms; on a machine under heavier load a verdict may be 'too noisy' instead.",
        "results/judge.md#the-judges-noise",
    )


def _exploits(result: dict[str, Any]) -> tuple[str, str, str]:
    rows = result["rows"]
    jails = sorted({row["jail"] for row in rows})
    won = sum(row["found"] not in ("caught", "neutralised") for row in rows)
    return (
        f"**Known cheats**: of {len({row['exploit'] for row in rows})}, each tried in {listed(jails)}, {won} won "
        "anything.",
        "Those are the known ones. What independent attackers found, and what still pays, is in [trust.md](trust.md).",
        "results/judge.md#cheats",
    )


def _honest(result: dict[str, Any]) -> tuple[str, str, str]:
    rows = result["rows"]
    agree = sum(row["agrees"] != "neither" for row in rows)
    ok = sum(row["outcome"] == "ok" for row in rows)
    return (
        f"**Honest gains**: {ok} of {len(rows)} optimisations of different kinds were judged `ok`, and {agree} of "
        f"the figures are within {result['agree'] - 1:.0%} of those of an independent loop.",
        "The others are mostly understated: short calls, and Python lists that have to be converted.",
        "results/judge.md#honest-optimisations",
    )


def _overhead(result: dict[str, Any]) -> tuple[str, str, str]:
    trial = result["a whole trial of a 1 ms task of equal speed, s"]["bubblewrap"]
    return (
        f"**What a verdict costs**: {trial['median']:.2g} s for a candidate that gains nothing, at 1 ms a call.",
        "A confirmation, which alone is published, takes some ten seconds.",
        "results/judge.md#what-judging-costs",
    )


def _init(result: dict[str, Any]) -> tuple[str, str, str]:
    counts = result["counts"]
    return (
        f"**Tasks from functions**: `outpace init` made {counts['ready']} of {len(result['functions'])} classic "
        f"functions ready with no hand edit; {counts['caught']} of {counts['planted']} wrong candidates planted into "
        "those were caught.",
        "These functions were known while `init` was written.",
        "results/judge.md#outpace-init-on-classic-functions",
    )


def _resume(result: dict[str, Any]) -> tuple[str, str, str]:
    phases = result["phases"].values()
    return (
        f"**Killed and started again**: {sum(each['kills'] for each in phases)} kills, "
        f"{sum(len(each['faults']) for each in phases)} trials lost, doubled or different.",
        "Processes were killed, not machines.",
        "results/loop.md#killed-and-started-again",
    )


def _loop(result: dict[str, Any]) -> tuple[str, str, str]:
    worst = max(row["both ms (95th percentile)"] for row in result["per trial"])
    return (
        f"**The loop itself** takes at most {worst:.3g} ms of a trial (95th percentile) with "
        f"{result['trials in the archive']:,} trials in the archive.",
        "Without the policy and the judge, which take seconds.",
        "results/loop.md#the-loops-own-cost",
    )


def _moves(result: dict[str, Any]) -> tuple[str, str, str]:
    words = {True: "ahead of", False: "behind"}
    told = [
        f"{'even with' if each['low'] <= 0 <= each['high'] else words[each['mean'] > 0]} {name}"
        for name, each in result["results"]["overall"]["moves_minus"].items()
    ]
    spaces = len(result["results"]) - 1
    return (
        f"**`moves`**, the policy without a model, is {listed(told)}.",
        f"On {spaces} spaces of compiler flags and variation points.",
        "results/loop.md#moves-against-random-choice-and-tpe",
    )


def _strong(result: dict[str, Any]) -> tuple[str, str, str]:
    pairs = [found["head_to_head"].get("buckets over none") for found in result["results"].values()]
    ratios = [pair["ratio"] for pair in pairs if pair]
    return (
        f"**A strong model** that was shown scored attempts found code {geometric_mean(ratios):.2f} times as fast as "
        f"without them (geometric mean over {len(ratios)} tasks).",
        "One run of ten trials for each: what these runs found, not what the next would.",
        "results/loop.md#a-strong-model-with-and-without-scored-exemplars",
    )


def _build(result: dict[str, Any]) -> tuple[str, str, str]:
    ours = [
        each["faster"]["middle"]
        for found in result["sets"].values()
        for name, each in found["libraries"].items()
        if name == "outpace" and "faster" in each
    ]
    return (
        f"**Building** is {min(ours):.2f} to {max(ours):.2f} times as fast as hnswlib's.",
        f"{len(result['sets'])} sets, {result['threads']} threads, {result['rounds']} rounds.",
        "results/vector-index.md#building-and-memory",
    )


def _filters(result: dict[str, Any]) -> tuple[str, str, str]:
    cells = [
        {peer: each["ratio"][peer]["middle"] for peer in each["ratio"] if each["ratio"][peer] is not None}
        for found in result["sets"].values()
        for case in found["cases"]
        for each in case["levels"].values()
    ]
    least = [min(ratio for peer, ratio in cell.items() if peer != "exact") for cell in cells]
    return (
        f"**Search with a filter** is at least as fast as the fastest of the other libraries in "
        f"{sum(ratio >= 1 for ratio in least)} of {len(least)} cases, {statistics.median(least):.1f} times by the "
        f"median. Where few vectors pass, to compare all of those is up to {1 / min(c['exact'] for c in cells):.1f} "
        "times as fast as ours.",
        f"{len(result['sets'])} sets of 100,000 vectors.",
        "results/vector-index.md#search-with-a-filter",
    )


def _updates(result: dict[str, Any]) -> tuple[str, str, str]:
    ours = [found["libraries"]["outpace"] for found in result["sets"].values()]
    speeds = [each["qps_ratio"]["middle"] for each in ours]
    memory = [each["memory_ratio"] for each in ours]
    return (
        f"**After half of an index was replaced** its speed is {listed([f'{each:.2f}' for each in speeds])} of a fresh "
        f"one's, and its memory {listed([f'{each:.2f}' for each in memory])}.",
        "By the median; some work is put off until a later change.",
        "results/vector-index.md#an-index-that-changes",
    )


def _threads(result: dict[str, Any]) -> tuple[str, str, str]:
    ratios = [
        each["ratio"]["middle"] for found in result["sets"].values() for each in found["ratios"] if "kept" in each
    ]
    return (
        f"**Two threads** over one index are {min(ratios):.2f} to {max(ratios):.2f} times as fast as two processes "
        "with a copy each.",
        "Two cores, one machine.",
        "results/vector-index.md#two-threads",
    )


def _scale(result: dict[str, Any]) -> tuple[str, str, str]:
    powers: dict[str, list[str]] = {}
    for peers in result["levels"].values():
        for peer, found in peers.items():
            powers.setdefault(peer, []).append(f"{found['exponent']['middle']:.2f}" if found["exponent"] else "-")
    told = [f"{' / '.join(each)} ({'ours' if peer == DEFAULTS else peer})" for peer, each in powers.items()]
    return (
        f"**As the set grows**, the cost of a query grows with its size to the power of {listed(told)}, at recall "
        f"{' / '.join(result['levels'])}.",
        f"One set, {result['data']}.",
        "results/vector-index.md#as-the-set-grows",
    )


def _recall(result: dict[str, Any]) -> tuple[str, str, str]:
    bar = result["bar"]
    asked = [
        (name, value >= float(level) - bar)
        for name, data in result["sets"].items()
        for each in data["profiles"].values()
        for found in each["recall"].values()
        for level, value in found.items()
    ]
    broken = sorted({name for name, kept in asked if not kept})
    return (
        f"**The recall that was asked for** is found, within a point, in {sum(kept for _, kept in asked)} of "
        f"{len(asked)} cases" + (f"; not always on {listed(broken)}." if broken else "."),
        "Queries that are harder than the data want `calibrate`.",
        "results/vector-index.md#the-recall-that-was-asked-for",
    )


def _fuzz(result: dict[str, Any]) -> tuple[str, str, str]:
    counts = result["counts"]
    return (
        f"**Damaged files**: {counts['inputs']:,} loaded, {counts['crashes']:,} crashes.",
        "Under sanitizers, in the time that was given to it.",
        "results/vector-index.md#damaged-index-files",
    )


_TOLD: dict[str, Callable[[dict[str, Any]], tuple[str, str, str]]] = {
    "judge-noise.json": _noise,
    "judge-exploits.json": _exploits,
    "judge-honest.json": _honest,
    "judge-overhead.json": _overhead,
    "init.json": _init,
    "resume.json": _resume,
    "loop-overhead.json": _loop,
    "moves.json": _moves,
    "strong-model.json": _strong,
    "ann-recall.json": _recall,
    "ann-build.json": _build,
    "ann-filters.json": _filters,
    "ann-updates.json": _updates,
    "ann-threads.json": _threads,
    "ann-scale.json": _scale,
    "ann-fuzz.json": _fuzz,
}
# Figures of the judge, which change with it.
JUDGED = ("judge-noise.json", "judge-exploits.json", "judge-honest.json", "judge-overhead.json", "init.json")
