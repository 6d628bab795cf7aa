"""The sections on the vector index."""

from __future__ import annotations

from typing import Any

from sections.markdown import between, made, sets_of, short, table


def ann_fuzz(result: dict[str, Any]) -> str:
    counts = result["counts"]
    return (
        "## Damaged index files\n\nIndex files of `outpace.ann` changed at random, half of them given valid checksums "
        f"again, loaded and used under the address and undefined-behaviour sanitizers: {counts['inputs']:,} inputs, "
        f"{counts['refused']:,} refused, {counts['loaded']:,} loaded and searched, changed and saved, "
        f"{counts['crashes']:,} crashes. {made(result)}"
    )


def ann_recall(result: dict[str, Any]) -> str:
    def rows(part: str) -> list[dict[str, Any]]:
        return [
            {
                "data": name,
                "profile": profile,
                "k": k,
                **{f"recall={asked}": value for asked, value in found.items()},
                "promise": "kept"
                if all(value >= float(asked) - result["bar"] for asked, value in found.items())
                else "**not kept**",
            }
            for name, data in result["sets"].items()
            for profile, each in data["profiles"].items()
            for k, found in each[part].items()
        ]

    return (
        "## The recall that was asked for\n\nWhat `recall=` finds for queries that took no part in building the index. "
        "Settings are measured with k=10, and a promise counts as kept where none is more than "
        f"{100 * result['bar']:g} point below it. Queries may be harder than the vectors (those of mfcc come from "
        f"recordings of which nothing is indexed). {made(result)}\n\n{table(rows('recall'))}\n\n"
        "`calibrate` with real queries is for that. Here it was given the first half of them, and these are the second "
        f"half:\n\n{table(rows('calibrated'))}"
    )


def ann_build(result: dict[str, Any]) -> str:
    def unsure(what: str, good: bool, each: dict[str, Any]) -> str:
        return " by the median" if what == "time" and good and each["faster"]["low"] < 1 else ""

    def told(found: dict[str, Any]) -> str:
        rows = [
            {
                "library": name,
                "built as": each["built"],
                "seconds": between(each["seconds"]),
                "times faster than hnswlib": between(each["faster"]) if "faster" in each else "",
                "MiB": f"{each['bytes'] / 2**20:.0f}",
                "times the vectors": each["times_vectors"],
                "times hnswlib": each.get("times_hnswlib", ""),
                "promise": ", ".join(
                    f"{what} {'kept' if good else '**not kept**'}{unsure(what, good, each)}"
                    for what, good in each["kept"].items()
                ),
            }
            for name, each in found["libraries"].items()
        ]
        return "".join(f"{name} is missing: {why}.\n\n" for name, why in found["missing"].items()) + table(rows)

    return (
        f"## Building, and memory\n\nEach builds the same float32 vectors in a process of its own, with "
        f"{result['threads']} threads, in random order in each of {result['rounds']} rounds. Ours measures recall "
        "while it builds, and that is in its time. Promised are a time no longer than hnswlib's; for `fast`, from 64 "
        "dimensions on, at most one and a half times its memory; and for `compact`, from 24 on, less than the float32 "
        f"vectors alone. {made(result)}\n\n{sets_of(result, told)}"
    )


def disturbed(found: dict[str, Any]) -> str:
    return f"In {found['disturbed']:.0%} of the measurements another process ran on the same core for a while."


def ann_filters(result: dict[str, Any]) -> str:
    def told(found: dict[str, Any]) -> str:
        peers = [name for name, about in found["libraries"].items() if name != "outpace" and "missing" not in about]
        rows = [
            {
                "filter": case["filter"],
                "lets through": f"{case['share']:.1%}",
                "recall when 0.95 is asked for": case["promise"]["recall"],
                "at recall": level,
                "outpace, queries/s": between(each["qps"]["outpace"]),
                **{f"times {peer}": between(each["ratio"][peer]) for peer in peers},
            }
            for case in found["cases"]
            for level, each in case["levels"].items()
        ]
        broken = [case for case in found["cases"] if not case["promise"]["kept"]]
        promise = (
            "The recall asked for is kept, within a point, by every filter."
            if not broken
            else "**Broken** is the promise of recall within a point by "
            + ", ".join(f"{case['filter']} {case['share']:.1%} ({case['promise']['recall']:.3f})" for case in broken)
            + "."
        )
        making = [
            {
                "lets through": f"{case['share']:.1%}",
                **{name: between(each) for name, each in case["making_a_filter_ms"].items()},
            }
            for case in found["cases"]
            if case["filter"] == "random"
        ]
        short = [
            f"{name} {case['filter']} {case['share']:.1%} ({fewest})"
            for case in found["cases"]
            for name, fewest in case["fewest_queries"].items()
            if fewest < found["timed_queries"]
        ]
        cut = f" There was time for only some of the {found['timed_queries']} queries in: {', '.join(short)}."
        libraries = "; ".join(
            f"{name} {about['version']}, {about['built']}"
            for name, about in found["libraries"].items()
            if "missing" not in about
        )
        absent = "".join(
            f" {name} is missing: {about['missing']}."
            for name, about in found["libraries"].items()
            if "missing" in about
        )
        return (
            f"{promise} {disturbed(found)}{cut if short else ''} Libraries: {libraries}.{absent}\n\n{table(rows)}\n\n"
            f"Milliseconds to make a `random` filter:\n\n{table(making)}"
        )

    remarks = " ".join(f"{name}: {text}." for name, text in result["remarks"].items())
    return (
        "## Search with a filter\n\nFilters of several queries each: `random` ones, `near` ones that allow the vectors "
        "around the queries, and `far` ones that allow those around another place. `times` is how many times as fast "
        f"`outpace.ann` is at that recall, in the same round ({result['rounds']} rounds). A library whose cheapest "
        "setting finds more enters with that one, and `exact` always finds everything. `not reached` means that one of "
        f"the two has no setting with that recall that answers in {result['slowest_s']} s and keeps at most "
        f"{result['widest']:,} candidates. "
        f"{remarks} {made(result)}\n\n{sets_of(result, told)}"
    )


def ann_updates(result: dict[str, Any]) -> str:
    def told(found: dict[str, Any]) -> str:
        costs = [
            {
                "microseconds per vector": what,
                **{name: between(each["microseconds"].get(what), "") for name, each in found["libraries"].items()},
            }
            for what in found["libraries"]["outpace"]["microseconds"]
        ]
        costs.append(
            {
                "microseconds per vector": "mean of all additions and removals by 1 to 10,000",
                **{name: short(each["microseconds_mean"]) for name, each in found["libraries"].items()},
            }
        )
        indexes = [
            {
                "library": name,
                "built as": each["built"],
                "queries/s, fresh": between(each["qps"]["fresh"]),
                "with half removed": between(each["qps"]["half"]),
                "half replaced": between(each["qps"]["changed"]),
                "half replaced, times fresh": between(each["qps_ratio"]),
                "recall at one setting, fresh": each["same_setting"]["fresh"],
                "then": each["same_setting"]["changed"],
                "memory, fresh, MiB": f"{each['bytes']['fresh'] / 2**20:.0f}",
                "memory, half replaced, times fresh": each["memory_ratio"],
            }
            for name, each in found["libraries"].items()
        ]
        ours = found["libraries"]["outpace"]
        asked, kept = ours["asked"], ours["kept"]
        unsure = " by the median" if kept["speed"] and ours["qps_ratio"]["low"] < 0.9 else ""
        verdict = (
            f"speed {'kept' if kept['speed'] else '**not kept**'}{unsure}; "
            f"memory {'kept' if kept['memory'] else '**not kept**'}"
        )
        absent = "".join(f" {name}: {why}." for name, why in found["missing"].items())
        return (
            f"`recall={result['level']}` gave {asked['fresh']:.3f} fresh, {asked['half']:.3f} with half removed and "
            f"{asked['changed']:.3f} with half replaced. Within a tenth of a fresh index of ours: {verdict}. "
            f"{disturbed(found)}{absent}\n\n{table(costs)}\n\n{table(indexes)}"
        )

    remarks = " ".join(f"{name}: {text}." for name, text in result["remarks"].items())
    return (
        "## An index that changes\n\nA random half is removed and added back under new ids, and searches are compared "
        f"with those of an index that was left as it was built, at recall {result['level']} and in the same round "
        f"({result['rounds']} rounds). Then other vectors are added and removed again in batches, by one thread. "
        f"{remarks} {made(result)}\n\n{sets_of(result, told)}"
    )


def ann_threads(result: dict[str, Any]) -> str:
    def verdict(each: dict[str, Any]) -> str:
        if "kept" not in each:
            return ""
        if not each["kept"]:
            return "not kept"
        return "kept" if each["ratio"]["low"] >= result["bar"] else "kept by the median"

    def told(found: dict[str, Any]) -> str:
        ways = [
            {"asked by": way, "queries/s": between(each["qps"]), "recall": each["recall"]}
            for way, each in sorted(found["ways"].items())
        ]
        ratios = [
            {"ratio of": each["of"], "to": each["to"], "is": between(each["ratio"]),
             f"bar of {result['bar']}": verdict(each)}
            for each in found["ratios"]
        ]  # fmt: skip
        engines = " and ".join(found["engines"])
        return f"The index has {engines}.\n\n{table(ratios)}\n\n{table(ways)}"

    return (
        f"## Two threads\n\nQueries at `recall={result['asked']}`, as one process with two threads answers them and as "
        f"two processes with a copy of the index each do, in the same round ({result['rounds']} rounds). "
        f"{made(result)}\n\n{sets_of(result, told)}"
    )


def ann_scale(result: dict[str, Any]) -> str:
    def told(level: str, peer: str, found: dict[str, Any]) -> dict[str, Any]:
        costs = {f"{int(size):,}": cost["middle"] for size, cost in found["microseconds"].items()}
        grows = between(found["exponent"], "too few sizes")
        sizes = [int(size) for size in found["microseconds"]]
        left_out = ", ".join(f"{size:,}" for size in sizes if size not in found["fitted_sizes"])
        return {"at recall": level, "library": peer, "grows as n to the power": grows, "not fitted": left_out, **costs}

    rows = [told(level, peer, found) for level, peers in result["levels"].items() for peer, found in peers.items()]
    columns = list(dict.fromkeys(name for row in rows for name in row))
    whole = [{name: row.get(name, "not reached") for name in columns} for row in rows]
    absent = "".join(f" {name} is missing: {why}." for name, why in result["missing"].items())
    libraries = "; ".join(f"{name} {version}" for name, version in result["libraries"].items())
    return (
        f"## As the set grows\n\nMicroseconds per query for the first rows of {result['data']}, median of "
        f"{result['rounds']} rounds, each through all sizes: {libraries}.{absent} The exponent is fitted to the sizes "
        "at which the library's cheapest setting finds less than the level; its interval covers the noise of timing "
        f"alone, not other queries nor indexes built anew. {made(result)}\n\n"
        f"![Cost of a query against the number of vectors](images/ann-scale.svg)\n\n{table(whole)}"
    )


def wheel(result: dict[str, Any]) -> str:
    return (
        f"## The wheel\n\n`{result['wheel']}` ({result['kilobytes']:,} kB) in a fresh environment: an index of whole "
        "numbers is built, saved, mapped and searched on each processor, which also loads the files of those above it. "
        f"{made(result)}\n\n{table(result['rows'])}"
    )
