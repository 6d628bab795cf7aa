"""The page: facts and pictures become one HTML file that needs nothing else."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from outpace import __version__
from outpace.archive import Trial
from outpace.claims import confirmation
from outpace.claims.claim import beside, converting, figure, flags_headline, once
from outpace.claims.receipt import FlagsShare
from outpace.errors import OutpaceError
from outpace.judge.verdict import SpeedUp
from outpace.report import figures
from outpace.report.ablation import Finding, read_findings
from outpace.report.diff import Line, Part, parts
from outpace.report.facts import Facts
from outpace.report.text import brief, cut
from outpace.shown import shown

# What a page shows of text that may have any length; a thousand trials must stay below 1.5 MB.
_TEXT, _WORDS, _LINE, _LINES, _TRIALS = 140, 6000, 400, 1500, 1000
_SIGNS = {"same": " ", "old": "−", "new": "+"}
_MACHINE = {
    "cpu": "Processor", "architecture": "Architecture", "cores": "Cores", "flags": "Vector extensions",
    "memory_mb": "Memory, MB", "governor": "Governor", "kernel": "Linux", "compiler": "Compiler", "python": "Python",
}  # fmt: skip
_GROUPS = {
    "faster": "accent",
    "not faster": "calm",
    "not confirmed": "calm",
    "too noisy": "calm",
    "open": "calm",
}


def render(facts: Facts, drawn: Mapping[str, tuple[str, str, str]]) -> str:
    """The page; `drawn` holds by name each picture's title, caption and SVG."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("outpace.report"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = shown
    pictures = {
        # The only markup that is not escaped: `svg.tidy` has built it anew from known elements.
        name: {"title": title, "caption": caption, "svg": Markup(svg)}
        for name, (title, caption, svg) in drawn.items()
    }
    return environment.get_template("report.html").render(pictures=pictures, **context(facts))


def write(path: Path, content: str | bytes) -> None:
    """Put the file in its place whole, so that a browser never reads half of it."""
    data = content.encode() if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # A name of its own: two reports may be written at once.
        number, part = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(number, "wb") as file:
                file.write(data)
            Path(part).chmod(0o644)
            Path(part).replace(path)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise
    except OSError as fault:
        raise OutpaceError(f"cannot write {path} ({fault.strerror}): name another folder with --out") from fault


def context(facts: Facts) -> dict[str, Any]:
    """Everything the template tells, as plain values."""
    counts = figures.verdict_counts(facts.trials)
    winning = facts.winning_trial
    return {
        "version": __version__,
        "task": facts.run.task_name,
        "run": facts.run.name,
        "policy": facts.run.policy,
        "written": _date(facts.written_at),
        "status": status(facts),
        "in_progress": facts.judging,
        "judged": sum(row["count"] for row in counts),
        "counts": [{**row, "tone": _tone(row["label"])} for row in counts],
        "claim": _claim(facts),
        "unproven": unproven(facts),
        "winner": None if winning is None else _winner(winning),
        "winner_title": "The winner" if facts.claim is not None else "The fastest candidate, not confirmed",
        "changes": _changes(facts),
        "trials": [
            _trial(trial, winning if facts.claim is not None else None) for trial in listed(facts.trials, winning)
        ],
        "trial_count": len(facts.trials),
        "task_facts": task_facts(facts),
        "machine_facts": machine_facts(facts),
        "receipt": facts.receipt_name if facts.receipt is not None and not facts.receipt_problem else "",
        "receipt_problem": facts.receipt_problem,
    }


def status(facts: Facts) -> str:
    """Whether the run goes on, in a sentence."""
    judged = sum(trial.state == "judged" for trial in facts.trials)
    trials = f"{judged} {'trial' if judged == 1 else 'trials'} judged"
    still = facts.open_trial
    if facts.judging and still is not None:
        waited = max(facts.written_at - still.asked_at, 0)
        return f"In progress: {trials}, trial {still.number} was under way for {waited:.0f} s."
    if facts.judging:
        return f"In progress: {trials}; the best is being confirmed, or the claim prepared."
    if facts.ended:
        return f"Ended: {brief(facts.ended, _TEXT)}; {trials}."
    if still is not None:
        return f"Stopped in trial {still.number}, with {trials}; the same command goes on with it."
    return f"Not running: {trials}." if facts.trials else "Nothing was tried yet."


def unproven(facts: Facts) -> str:
    """Why nothing is claimed, or ""."""
    if facts.claim is not None:
        return ""
    if not any(trial.verdict is not None for trial in facts.trials):
        return "There is no verdict yet, so there is nothing to claim."
    if facts.best is None:
        return "No candidate has passed the checks, so nothing was timed to its end."
    best = figures.times(facts.best.ratio)
    leading = facts.leading_trial
    failed = "" if leading is None else confirmation.failed(leading)
    if leading is not None and leading.verdict is not None and leading.verdict.speed_up is not None and failed:
        found = figures.times(leading.verdict.speed_up.ratio)
        return (
            f"The fastest candidate, of trial {leading.number}, was found at {found}, but its confirmation in fresh "
            f"processes failed: {brief(failed, _TEXT)}. So nothing is claimed."
        )
    if facts.best.win:
        return f"The fastest candidate was found at {best}. It is not confirmed yet, so nothing is claimed."
    return (
        f"No candidate is proven faster than the reference. The fastest was timed at {best} "
        f"({facts.best.low:.3f} to {facts.best.high:.3f})."
    )


def listed(trials: Sequence[Trial], winning: Trial | None) -> list[Trial]:
    """The newest trials, and the winner wherever it is."""
    return [trial for trial in trials[:-_TRIALS] if trial is winning] + list(trials[-_TRIALS:])


def task_facts(facts: Facts) -> list[tuple[str, str]]:
    """What was asked for and under which rules."""
    task = facts.task
    rows = [("Task", facts.run.task_name), ("Task hash", facts.run.task_hash[:16])]
    if task is None:
        return [*rows, ("Task file", "cannot be read by this version of Outpace")]
    called = task.entry.function or " ".join(task.entry.command)
    limits = task.limits
    rows += [
        ("Called", called if task.entry.kind != "python" else f"{called} in {task.entry.module}"),
        ("May be edited", ", ".join(task.editable)),
    ]
    if task.build.compiler:
        rows.append(("Built with", f"{task.build.compiler} {' '.join(task.build.flags)}"))
    if task.build.flag_choices:
        groups = (" or ".join(flag or "none" for flag in group) for group in task.build.flag_choices)
        rows.append(("Flags to choose", "; ".join(groups)))
    agreement = (
        f"each number within {task.checking.agreement}"
        if task.checking.agreement
        else "exactly, or by the task's own check"
    )
    threads = "1 thread" if limits.threads == 1 else f"{limits.threads} threads"
    return [
        *rows,
        ("Limits", f"{limits.seconds:g} s, {limits.memory_mb} MB, {threads}"),
        ("Answers agree", agreement),
        ("A win is", f"more than {task.timing.margin:g}× with 99% confidence"),
    ]


def machine_facts(facts: Facts) -> list[tuple[str, str]]:
    """Where it was timed; figures of other machines may differ."""
    machine = facts.run.machine
    rows = [(name, _plain(machine[key])) for key, name in _MACHINE.items() if machine.get(key)]
    if facts.receipt is not None:
        rows.append(("Jail", facts.receipt.jail))
    settings = ", ".join(f"{key} {_plain(value)}" for key, value in facts.run.settings.items())
    return [
        *rows,
        ("Policy", facts.run.policy),
        ("Settings", settings or "none"),
        ("Seed", str(facts.run.seed)),
        ("Started", _date(facts.run.started_at)),
    ]


def _claim(facts: Facts) -> dict[str, Any] | None:
    claim, verdict = facts.claim, facts.confirmed
    if claim is None or verdict is None:
        return None
    rows = figures.timings(verdict, facts.task)
    medians = figures.median_times(rows)
    receipt = facts.receipt
    return {
        "ratio": figures.times(claim.ratio),
        "interval": _interval(claim),
        "buckets": claim.buckets,
        "before": "" if medians is None else figures.milliseconds(medians[0]),
        "after": "" if medians is None else figures.milliseconds(medians[1]),
        "figure": "speed" if facts.task is None else figure(facts.task),
        "once": "" if facts.task is None else once(verdict.buckets, facts.task),
        "converting": "" if facts.task is None else converting(verdict.buckets, facts.task),
        "clock": "wall time" if facts.task is not None and facts.task.limits.parallel else "CPU time",
        "flags": "" if receipt is None else flags_headline(receipt),
        "beside": "" if receipt is None else beside(receipt),
        "by_flags": receipt is not None and receipt.flags_share is FlagsShare.ALL,
        "published": receipt is not None,
    }


def _winner(trial: Trial) -> dict[str, Any]:
    return {
        "number": trial.number,
        "hash": (trial.candidate or "")[:12],
        "analysis": cut(trial.analysis.strip(), _WORDS),
        "design": cut(trial.design.strip(), _WORDS),
    }


def _changes(facts: Facts) -> list[dict[str, Any]]:
    """The winning diff, change by change, cut where it is longer than anyone would read."""
    if facts.winner is None or facts.reference is None:
        return []
    worth = {finding.number: finding for finding in read_findings(facts.ablation)}
    left = _LINES
    changes = []
    for part in parts(facts.reference, facts.winner, facts.points):
        lines = part.hunk.lines if part.hunk is not None else ()
        changes.append(_change(part, left, worth.get(part.number)))
        left = max(left - len(lines), 0)
    return changes


def _change(part: Part, room: int, finding: Finding | None) -> dict[str, Any]:
    lines = part.hunk.lines if part.hunk is not None else ()
    return {
        "number": part.number,
        "title": part.title,
        "worth": _worth(finding),
        "lines": [_line(line) for line in lines[:room]],
        "left_out": max(len(lines) - room, 0),
    }


def _worth(finding: Finding | None) -> str:
    rows: Sequence[figures.Row] = figures.ablation([finding]) if finding is not None else []
    if not rows:
        return ""
    row = rows[0]
    if row["ratio"] is None:
        return str(row["note"])
    return f"worth {figures.times(row['ratio'])} ({row['low']:.3f} to {row['high']:.3f})"


def _line(line: Line) -> dict[str, Any]:
    text = cut(line.text.rstrip("\r\n"), _LINE)
    return {"kind": line.kind, "sign": _SIGNS[line.kind], "number": line.new or line.old, "text": text}


def _trial(trial: Trial, winning: Trial | None) -> dict[str, Any]:
    found = figures.score(trial)
    label = figures.label(trial)
    reason = trial.verdict.reason if trial.verdict is not None else ""
    return {
        "number": trial.number,
        "label": label,
        "tone": _tone(label),
        "ratio": "" if found is None else figures.times(found.ratio),
        "interval": "" if found is None else f"{found.low:.3f} to {found.high:.3f}",
        "text": brief(reason or trial.design, _TEXT),
        "winner": winning is not None and trial.id == winning.id,
        "duplicate": trial.duplicate_of is not None,
    }


def _tone(label: str) -> str:
    return _GROUPS.get(label, "fail")


def _interval(found: SpeedUp) -> str:
    return f"{found.low:.3f} to {found.high:.3f}"


def _plain(value: object) -> str:
    return ", ".join(str(each) for each in value) if isinstance(value, list | tuple) else str(value)


def _date(seconds: float) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M} UTC"
