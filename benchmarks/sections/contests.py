"""Sections of the contests: `outpace bench ann` on six sets, against libraries from source, of lists, and from PyPI."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from sections.markdown import table

ENTERED = 4  # configurations of each library where nothing else is said
OURS, DEFAULTS = OWN = ("outpace", "outpace-defaults")


def ann_bench(title: str, results: dict[str, dict[str, Any]]) -> str:
    """Vector search against the best peer of each cell, over all data sets."""
    fewer = [
        f"{peer} had {entered} on {each['contests'][0]['data']}."
        for each in results.values()
        for peer, entered in Counter(line["peer"] for line in each["indexes"]).items()
        if entered < ENTERED and peer != DEFAULTS
    ]
    parts = [
        f"# Vector search: queries {title}",
        "Ours over the fastest peer of the cell, at equal recall, from the final stage of "
        "[`outpace bench ann`](bench-ann.md): settings are chosen on the first half of the queries, and timed and "
        "counted on the second. In brackets the interval, then the peer. The interval covers the noise of timing and "
        "which queries recall is counted on, not how long other queries would take, nor an index built anew. At 0.999 "
        "a few neighbours decide, so the mean is also given without that level; a lower end of 0 means that with other "
        "queries ours may not reach the level. Which libraries took part in a run is told by its last table, whose "
        "build times are for scale alone: indexes are built once, some beside other work. Ours with four "
        "configurations re-ranks 12, 25, 60 or 200 candidates, and 16 too in batches and in the single queries of "
        "glove6b and minilm: that depth was added after an earlier run of minilm's single queries had been seen to "
        "lack it, so its gain there was not foreseen but chosen.",
        *([" ".join(["Every library has four configurations, but for these:", *fewer])] if fewer else []),
    ]
    return "\n\n".join([*parts, *_standing(results), *_runs(results)])


def ann_bench_lists(tracks: dict[str, dict[str, dict[str, Any]]]) -> str:
    """The same against libraries that scan inverted lists, which take a batch in one call better than graphs do."""
    parts = [
        "# Vector search: beside libraries that scan lists",
        "Ours, with its defaults alone, over the fastest of faiss' lists (four-bit product codes scanned in registers, "
        "with refinement) and ScaNN, both from PyPI, measured as above. A table may name an index that is in no cell: "
        "faiss' lists of RaBitQ codes were built for some sets, and left out after they had been behind in the "
        "screening of minilm and mnist.",
    ]
    for title, results in tracks.items():
        parts += [f"## Queries {title}", *_standing(results)]
    return "\n\n".join([*parts, *(part for title, results in tracks.items() for part in _runs(results, title))])


def ann_bench_packages(
    tracks: dict[str, dict[str, dict[str, Any]]], *others: dict[str, dict[str, dict[str, Any]]]
) -> str:
    """The same against what `pip install` brings: many libraries, some slow to build, one configuration each."""
    parts = [
        "# Vector search: beside libraries from PyPI",
        "Ours, with its defaults alone, beside libraries with one configuration each (`--configurations 1`), the one "
        "expected to do best: half precision for SVS and usearch, bytes for faiss' HNSW where they fill registers, "
        "which a first look at minilm and mnist suggested, and what is ordinary for the others. SVS compresses "
        "vectors on Intel's processors only, so not here. All were screened, and the best three of each level timed "
        "again as above. VSAG has no call for many queries: where others get them in one, it is asked for each. What a "
        "library would gain by tuning is not in these cells; ScaNN, faiss' lists and hnswlib have four configurations "
        "in some of the runs above.",
    ]
    for title, results in tracks.items():
        libraries = _libraries(results)
        parts += [
            f"## Queries {title}, one configuration each",
            f"Ours beside {len(libraries)} libraries: {', '.join(libraries)}.",
            *_standing(results),
            "Beside all libraries, with the lowest ratio and the lowest ends of this run and the runs above in each "
            "cell (of the defaults where a run has nothing else): "
            + "; ".join(
                f"{who} has a geometric mean of "
                + lowest(*(_cells(each[title], own) for each in (tracks, *others) if title in each))
                for own, who in ((OURS, "ours with four configurations"), (DEFAULTS, "ours with its defaults"))
            )
            + ".",
            "How many times as fast ours was in the screening, in one pass over queries of the first half; a library "
            "in bold was timed again in the final stage:",
            *(f"{name}:\n\n{table(rows)}" for name, rows in screened(results).items()),
            *_without(results, libraries),
        ]
    return "\n\n".join([*parts, *(part for title, results in tracks.items() for part in _runs(results, title))])


def screened(results: dict[str, dict[str, Any]]) -> dict[str, list[dict[str, str]]]:
    """By data set, our defaults over each library at each level of the screening."""
    told: dict[str, list[dict[str, str]]] = {}
    for file, result in results.items():
        speeds: dict[str, dict[str, float | None]] = {}
        for row in result["screening"]:
            if row["peer"] not in OWN and row["configurations"] not in ("0", "1"):
                raise ValueError(
                    f"{file}: {row['peer']} was screened with {row['configurations']} configurations, not one"
                )
            speeds.setdefault(row["peer"], {})[row["recall"]] = float(row["qps"]) if row["qps"] else None
        final = {row["peer"] for row in result["screening"] if row["final"] == "yes"}
        if DEFAULTS not in speeds:
            raise ValueError(f"{file}: {DEFAULTS} was not screened, so there is nothing to compare with")
        ours = speeds[DEFAULTS]
        told[result["contests"][0]["data"]] = [
            {
                "library": f"**{peer}**" if peer in final else peer,
                **{level: _times(ours[level], qps) for level, qps in found.items() if "-" not in level},
            }
            for peer, found in speeds.items()
            if peer not in OWN
        ]
    return told


def ann_in_short(
    source: dict[str, dict[str, dict[str, Any]]],
    lists: dict[str, dict[str, dict[str, Any]]],
    packages: dict[str, dict[str, dict[str, Any]]],
) -> str:
    """All contests in one table, which the README shows too."""
    from_pypi = len({library for results in packages.values() for library in _libraries(results)})
    rows = [
        ("SymphonyQG, GLASS, CRINN; on some sets ScaNN, faiss, hnswlib", "four", [source]),
        ("faiss' lists, ScaNN", "four", [lists]),
        (f"up to {from_pypi} libraries from PyPI", "one", [packages]),
        ("all of these: the lowest ratio of each cell", "", [source, lists, packages]),
    ]
    titles = {title: None for contest in (source, lists, packages) for title in contest}
    parts = [
        "## Vector search: in short",
        "How many times as fast as the fastest of other libraries ours answers, at equal recall: geometric means over "
        "six data sets at recall 0.90, 0.95, 0.99 and 0.999. In brackets, in how many cells the whole interval is at "
        "or above 1, of those that ours and another reach. The last row takes our defaults where a contest has nothing "
        "else. How each was measured, and every cell: [one by one](results/search-one-by-one.md), [in one "
        "call](results/search-one-call.md), [beside lists](results/search-lists.md), [beside PyPI's]"
        "(results/search-packages.md).",
        table(
            [
                {
                    "beside": beside,
                    "configurations": entered,
                    **{
                        f"{title}{alone}": _mean_and_sure([each[title] for each in contest if title in each], own)
                        for title in titles
                        for own, alone in ((OURS, ""), (DEFAULTS, ", our defaults"))
                    },
                }
                for beside, entered, contest in rows
            ]
        ),
    ]
    return "\n\n".join(parts)


def _mean_and_sure(runs: Sequence[dict[str, dict[str, Any]]], own: str) -> str:
    if not any(cell["ours"] == own for run in runs for each in run.values() for cell in each["ratios"]):
        return ""
    found = least(*(_cells(run, own) for run in runs))
    mean = geometric_mean([cell["ratio"] for cell in found])
    return f"{mean:.2f} ({sum(cell['low'] >= 1 for cell in found)} of {len(found)})"


def least(*runs: Sequence[dict[str, str]]) -> list[dict[str, float]]:
    """Of each cell that several runs have, the lowest ratio and the lowest ends."""
    by_cell: dict[tuple[str, str], list[dict[str, str]]] = {}
    for cell in (cell for run in runs for cell in run if cell["ratio"]):
        by_cell.setdefault((cell["data"], cell["recall"]), []).append(cell)
    return [
        {end: min(float(cell[end]) for cell in cells) for end in ("ratio", "low", "high")} for cells in by_cell.values()
    ]


def lowest(*runs: Sequence[dict[str, str]]) -> str:
    """How ours stands where it is least ahead, as a sentence's end."""
    found = least(*runs)
    won, lost = sum(cell["low"] >= 1 for cell in found), sum(cell["high"] < 1 for cell in found)
    mean = geometric_mean([cell["ratio"] for cell in found])
    return f"{mean:.2f} over {len(found)} cells, with the whole interval at or above 1 in {won} and below 1 in {lost}"


def _libraries(results: dict[str, dict[str, Any]]) -> list[str]:
    """Those that were screened, but for ours."""
    return sorted({row["peer"] for each in results.values() for row in each["screening"]} - set(OWN))


def _cells(results: dict[str, dict[str, Any]], own: str) -> list[dict[str, str]]:
    """The cells of one of ours at the levels, of the defaults where it was not in the run; the area is left out."""
    cells = [cell for each in results.values() for cell in each["ratios"] if "-" not in cell["recall"]]
    who = own if any(cell["ours"] == own for cell in cells) else DEFAULTS
    return [cell for cell in cells if cell["ours"] == who]


def _without(results: dict[str, dict[str, Any]], libraries: Sequence[str]) -> list[str]:
    """Which libraries are missing from which data set, and why."""
    told = []
    for result in results.values():
        failed = {each["library"]: f"{each['what']}, {each['why']}" for each in result["failures"]}
        there = {row["peer"] for row in result["screening"]}
        absent = [f"{peer} ({failed.get(peer, 'not tried')})" for peer in libraries if peer not in there]
        if absent:
            told.append(f"Without {', '.join(absent)}: {result['contests'][0]['data']}.")
    return told


def _times(ours: float | None, theirs: float | None) -> str:
    if theirs is None:
        return "not reached" if ours is not None else "neither reaches it"
    return "ours does not reach it" if ours is None else f"{ours / theirs:.2f}"


def _standing(results: dict[str, dict[str, Any]]) -> list[str]:
    """Ours over the best peer: the means, and a table of all cells."""
    parts = []
    for own, who in ((OURS, "With four configurations, as every library has"), (DEFAULTS, "Defaults")):
        cells = [cell for each in results.values() for cell in each["ratios"] if cell["ours"] == own]
        if not cells:
            continue
        levels = [cell for cell in cells if "-" not in cell["recall"]]
        ratios = [float(cell["ratio"]) for cell in levels if cell["ratio"]]
        sure = [cell for cell in levels if cell["ratio"] and float(cell["confidence"]) >= 0.95]
        won, lost = sum(float(cell["low"]) >= 1 for cell in sure), sum(float(cell["high"]) < 1 for cell in sure)
        rows: dict[str, dict[str, Any]] = {}
        for cell in cells:
            rows.setdefault(cell["data"], {"data": cell["data"]})[cell["recall"]] = _against(cell)
        common = [float(cell["ratio"]) for cell in levels if cell["ratio"] and float(cell["recall"]) < 0.999]
        parts += [
            f"**{who}**: geometric mean {geometric_mean(ratios):.2f} over {len(ratios)} cells of {len(levels)}, "
            f"{geometric_mean(common):.2f} without recall 0.999; the whole interval is at or above 1 in {won} and "
            f"below 1 in {lost}.",
            table(list(rows.values())),
        ]
    return parts


def _runs(results: dict[str, dict[str, Any]], title: str = "") -> list[str]:
    """Each run by itself: how it was made, its picture, what failed, what the indexes took."""
    parts = []
    for name, result in results.items():
        contest, facts = result["contests"][0], result["machines"][-1]
        about = f"{result['about']}. " if result.get("about") else ""
        absent = [f"{each['library']} {each['index']}: {each['what']}, {each['why']}." for each in result["failures"]]
        load = f" {result['load_average']} processes wanted a core (median)." if "load_average" in result else ""
        parts += [
            f"### {contest['data']}" + (f", {title}" if title else ""),
            f"{about}`{result['command']}`, {facts['started']}, {facts['cpu']} with {facts['cores']} cores.",
            contest["method"] + load,
            f"![Recall against queries per second](images/{name}.svg)",
            *(["Not in the comparison: " + " ".join(absent)] if absent else []),
            table(ann_costs(result)),
        ]
    return parts


def geometric_mean(ratios: Sequence[float]) -> float:
    return math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else math.nan


def _against(cell: dict[str, str]) -> str:
    if not cell["ratio"]:
        return cell["verdict"]
    ratio, low, high = (float(cell[key]) for key in ("ratio", "low", "high"))
    return f"{ratio:.2f} ({low:.2f} to {high:.2f}) {cell['best_peer']}"


def ann_costs(result: dict[str, Any]) -> list[dict[str, Any]]:
    """What each library's indexes took, the cheapest and the dearest of them."""
    rows = []
    for peer in dict.fromkeys(line["peer"] for line in result["indexes"]):
        built = [line for line in result["indexes"] if line["peer"] == peer and line["status"] == "built"]
        if not built:
            continue
        row = {"library": peer, "version": built[0]["version"], "threads": built[0]["threads"]}
        for name, key in (("build, s", "build_seconds"), ("memory, MB", "memory_mb"), ("file, MB", "file_mb")):
            values = sorted(float(line[key]) for line in built if line[key])
            row[name] = "" if not values else " to ".join(dict.fromkeys((f"{values[0]:g}", f"{values[-1]:g}")))
        rows.append(row)
    return rows
