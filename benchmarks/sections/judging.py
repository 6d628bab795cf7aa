"""The sections on the judge, the loop and the policies."""

from __future__ import annotations

from typing import Any

from sections.markdown import made, table


def noise(result: dict[str, Any]) -> str:
    user = result["uid"] != "root"
    heading = "## The judge's noise" + (", as an ordinary user in the fallback jail" if user else "")
    told = "\n".join(f"- {'Kept' if each['kept'] else '**Broken**'}: {each['promise']}." for each in result["promises"])
    lead = (
        "The same measurement, smaller, without root's rights."
        if user
        else "How often the judge claims a gain that is not there, and finds one that is, while a load that comes and "
        "goes burns the core that is timed on. Tasks of about 20 us, 1 ms and 50 ms per call."
    )
    return f"{heading}\n\n{lead} {made(result)}\n\n{table(result['summary'])}\n\n{told}"


def published(result: dict[str, Any]) -> str:
    return (
        "## What a whole run would publish\n\nSimulated from the samples above: runs of 200 candidates that are just "
        f"as fast as the reference, judged and confirmed. {made(result)}\n\n{table(result['rows'])}"
    )


def overhead(result: dict[str, Any]) -> str:
    rows = [
        {"what": what, "jail": jail, **values}
        for what, jails in result.items()
        if isinstance(jails, dict) and what != "machine"
        for jail, values in jails.items()
    ]
    return f"## What judging costs\n\n{made(result)}\n\n{table(rows)}"


def exploits(result: dict[str, Any]) -> str:
    counts: dict[tuple[str, str], int] = {}
    for row in result["rows"]:
        counts[row["jail"], row["found"]] = counts.get((row["jail"], row["found"]), 0) + 1
    rows = [{"jail": jail, "the cheat was": found, "cheats": count} for (jail, found), count in sorted(counts.items())]
    bad = [
        row
        for row in result["rows"]
        if row["found"] not in ("caught", "neutralised") or row["twin"] != "ok" or row["left"]
    ]
    told = (
        "No cheat gained anything over its honest twin, every twin was `ok`, and nothing was left behind."
        if not bad
        else (
            "**Not as it should be:** "
            + ", ".join(f"{row['exploit']} ({row['jail']}: {row['found']}, twin {row['twin']})" for row in bad)
            + "."
        )
    )
    lead = (
        "Every cheat of `tests/exploits/` against its honest twin; a twin that was too noisy to time is timed again, "
        f"twice at most. {made(result)}"
    )
    return f"## Cheats\n\n{lead}\n\n{table(rows)}\n\n{told}"


def resume(result: dict[str, Any]) -> str:
    rows = [
        {"policy": name, "kills": phase["kills"], "runs finished": phase["finished runs"], "trials": phase["trials"],
         "lost, doubled or different": len(phase["faults"])}
        for name, phase in result["phases"].items()
    ]  # fmt: skip
    return (
        "## Killed and started again\n\nThe loop alone and its whole process group, killed during builds, timings and "
        f"writes, with the real judge. {made(result)}\n\n{table(rows)}"
    )


def loop_overhead(result: dict[str, Any]) -> str:
    bar = result["bar ms"]
    kept = "kept for every rule" if result["kept"] else "not kept for every rule"
    return (
        f"## The loop's own cost\n\nMilliseconds per trial at {result['trials in the archive']:,} trials in the "
        f"archive; the bar of {bar:g} ms is {kept}. {made(result)}\n\n{table(result['per trial'])}"
    )


def moves(result: dict[str, Any]) -> str:
    def told(each: dict[str, float]) -> str:
        return f"{each['mean']:.3f} ({each['low']:.3f} to {each['high']:.3f})"

    rows = [
        {"space": space, **{name: told(area) for name, area in found["area"].items()}}
        for space, found in result["results"].items()
    ]
    overall = result["results"]["overall"]["moves_minus"]
    words = {True: "wins", False: "loses"}
    verdicts = [
        f"against {name} it {'is even' if each['low'] <= 0 <= each['high'] else words[each['mean'] > 0]} ({told(each)})"
        for name, each in overall.items()
    ]
    return (
        f"## `moves` against random choice and TPE\n\nArea under best-so-far over {result['trials']} trials, 0 at the "
        f"reference and 1 at the best of the measured table; mean of {result['seeds']} seeds with a 95% interval. "
        f"Overall, {'; '.join(verdicts)}. `{result['command']}`, on the "
        f"tables that `python benchmarks/moves_table.py` measured, Optuna {result['optuna']}.\n\n{table(rows)}"
    )


def strong_model(result: dict[str, Any]) -> str:
    def told(each: dict[str, Any] | None) -> str:
        if each is None:
            return "too noisy"
        return f"{each['ratio']:.2f}x ({each['low']:.2f} to {each['high']:.2f})"

    rows, verdicts = [], []
    for task, found in result["results"].items():
        pair = found["head_to_head"]
        rows.append(
            {"task": task}
            | {f"{arm}, over the reference": told(found["over_reference"].get(arm)) for arm in found["arms"]}
            | {name: told(pair.get(name)) for name in ("buckets over moves", "buckets over none")}
        )
        ahead, behind = pair.get("buckets over none", {}), pair.get("none over buckets", {})
        word = "wins" if ahead.get("wins", 0) * 2 > ahead.get("rounds", 1) else "is even"
        if behind.get("wins", 0) * 2 > behind.get("rounds", 1):
            word = "loses"
        verdicts.append(f"on {task} it {word}")
    return (
        "## A strong model, with and without scored exemplars\n\nTen trials each, every reply from a fresh agent that "
        "saw the prompt alone; the arms `buckets` and `none` differ in the exemplars shown; `moves` has no model. The "
        "winners of the arms are judged again head to head (median of "
        f"{max(each['rounds'] for found in result['results'].values() for each in found['over_reference'].values())} "
        "interleaved verdicts, with an interval that covers all of theirs). With exemplars against without: "
        f"{'; '.join(verdicts)}. One run per arm: this shows what these runs found, not what the next one would. "
        f"The whole archive is `runs/strong-model.sqlite.xz`. {made(result)}\n\n{table(rows)}"
    )


def init(result: dict[str, Any]) -> str:
    rows = [
        {"function": f"{each['origin']}: {each['function']}", "outcome": each["state"]} for each in result["functions"]
    ]
    counts = result["counts"]
    told = (
        f"{counts['ready']} judged with no hand edit, {counts['told']} told which line to fill in, "
        f"{counts['failed']} failed."
    )
    return f"## `outpace init` on functions of others\n\n{told} {made(result)}\n\n{table(rows)}"
