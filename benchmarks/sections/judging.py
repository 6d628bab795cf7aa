"""The sections on the judge, the loop and the policies."""

from __future__ import annotations

from typing import Any

from outpace.judge.verdict import PROTOCOL
from sections.markdown import listed, made, table


def earlier(result: dict[str, Any], *, short: bool = False) -> str:
    """What must be said of figures that the present judge did not measure."""
    if result.get("protocol") == PROTOCOL:
        return ""
    return "(By an earlier judge.) " if short else "**Measured with an earlier judge; not yet measured again.** "


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
    return f"{heading}\n\n{earlier(result)}{lead} {made(result)}\n\n{table(result['summary'])}\n\n{told}"


def published(result: dict[str, Any]) -> str:
    lead = (
        "Simulated from the samples above: runs of 200 candidates that are just as fast as the reference, judged and "
        "confirmed."
    )
    return f"## What a whole run would publish\n\n{earlier(result)}{lead} {made(result)}\n\n{table(result['rows'])}"


def overhead(result: dict[str, Any]) -> str:
    rows = [
        {"what": what, "jail": jail, **values}
        for what, jails in result.items()
        if isinstance(jails, dict) and what != "machine"
        for jail, values in jails.items()
    ]
    return f"## What judging costs\n\n{earlier(result)}{made(result)}\n\n{table(rows)}"


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
    lead = f"{earlier(result)}Every cheat of `tests/exploits/` against its honest twin. {made(result)}"
    if others := result.get("others"):
        lead += f" In {listed(others['jails'])}: {made(others)}"
    return f"## Cheats\n\n{lead}\n\n{table(rows)}\n\n{told} {_timed_again(result['rows'])}"


def honest(result: dict[str, Any]) -> str:
    rows = result["rows"]
    ok = sum(row["outcome"] == "ok" for row in rows)
    counts = {word: sum(row["agrees"] == word for row in rows) for word in ("both", "sent", "warm", "neither")}
    again = sum(row["again"] for row in rows)
    lead = (
        "Each kind is a small task with an honest faster version. The judge's figure stands beside that of an "
        "independent loop which gives both functions the same fresh inputs, with a clock around each call alone: once "
        "inputs that the calling core has just written (warm), once inputs that another core has written (sent). What "
        "a Python function is sent arrives as bytes, and reading them is part of the call. Where the judge's call is "
        f"longer than the loop's, the rest is the judge's own work between calls. {made(result)}"
    )
    told = (
        f"{ok} of {len(rows)} were judged `ok`. Within {result['agree'] - 1:.0%} the judge agrees with both loops in "
        f"{counts['both']}, with the sent one alone in {counts['sent']}, with the warm one alone in "
        f"{counts['warm']}, with neither in {counts['neither']}. {again} were measured once more because they agreed "
        "with neither."
    )
    where = "Where the inputs lie, in the loop: microseconds of reference and candidate, and their ratio."
    compared = table([_honest_row(row) for row in rows])
    return (
        f"## Honest optimisations\n\n{earlier(result)}{lead}\n\n{compared}\n\n{told}\n\n"
        f"{where}\n\n{table(_dissected(result['dissected']))}"
    )


def _honest_row(row: dict[str, Any]) -> dict[str, Any]:
    judge, sent = row["judge"], row["sent"]
    return {
        "kind": row["what"].split(":")[0],
        "task": row["kind"],
        "language": row["language"],
        "judge": _figure(judge) if judge else row["outcome"],
        "loop, warm": _figure(row["warm"]),
        "loop, sent": _figure(sent),
        "call in us: judge": _calls(judge) if judge else None,
        "loop, warm, us": _calls(row["warm"]),
        "loop, sent, us": _calls(sent),
        "round trip, ns": round(sent["round_trip_ns"]) or None,
        "agrees with": row["agrees"] if row["agrees"] != "neither" else "**neither**",
    }


def _dissected(parts: dict[str, Any]) -> list[dict[str, Any]]:
    meaning = {
        "again": "the same call once more",
        "warm": "just written by this core",
        "sent": "just written by another core",
        "flushed": "in no cache",
    }
    return [
        {
            "task": name,
            **{meaning[mode]: f"{_calls(each)}: {each['ratio']:.2f}" for mode, each in modes.items()},
            "round trip, ns": round(modes["sent"]["round_trip_ns"]) or None,
        }
        for name, modes in parts.items()
    ]


def _figure(found: dict[str, float]) -> str:
    return f"{found['ratio']:.2f} ({found['low']:.2f} to {found['high']:.2f})"


def _calls(found: dict[str, float]) -> str:
    return f"{found['reference_us']:.3g} / {found['candidate_us']:.3g}"


def _timed_again(rows: list[dict[str, Any]]) -> str:
    """How often noise made the judge repeat itself; results from before that was counted say so."""
    rule = "What is too noisy to time is timed again, twice at most"
    if any("twin_again" not in row for row in rows):
        return f"{rule}; how often was not counted in this run."
    counts = [sum(row[kind] for row in rows) for kind in ("twin_again", "cheat_again")]
    return f"{rule}: that took {counts[0]} more timings of honest twins, and {counts[1]} of cheats."


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
        {
            "function": each["path"],
            "outcome": each["state"],
            "wrong candidates caught": _caught(each.get("planted", [])),
        }
        for each in result["functions"]
    ]
    counts = result["counts"]
    missed = counts["planted"] - counts["caught"]
    told = (
        f"Of {len(result['functions'])} classic functions, written for this page in the way people write them, "
        f"{counts['ready']} were ready with no hand edit, {counts['told']} told which line to look at, "
        f"{counts['failed']} failed. Into each that was ready, wrong candidates of three kinds were planted (the end "
        "dropped, some elements skipped, right for common sizes only, lower precision, a border off by one, an "
        f"argument ignored): the judge caught {counts['caught']} of {counts['planted']}"
        + (". " if not missed else f", and **missed {missed}**. ")
        + "What earlier runs missed led to better inputs, so these functions and candidates were not unseen: the share "
        "says that nothing known is missed, not how often something new would be. "
    )
    return f"## `outpace init` on classic functions\n\n{earlier(result)}{told}{made(result)}\n\n{table(rows)}"


def _caught(planted: list[dict[str, Any]]) -> str:
    return f"{sum(each['caught'] for each in planted)} of {len(planted)}" if planted else ""
