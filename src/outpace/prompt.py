"""The prompt: task, scored exemplars, recent failures, machine and budget become the text that a policy reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from outpace.aim import FASTER, Aim
from outpace.domains.recipe import private_files
from outpace.judge.verdict import toward_one
from outpace.machine import Machine
from outpace.scored import Scored
from outpace.shown import told_after
from outpace.task import Task
from outpace.task.candidate import Candidate, has_regions

_LANGUAGES = {
    ".c": "c",
    ".h": "c",
    ".cpp": "cpp",
    ".cc": "cpp",
    ".cxx": "cpp",
    ".hpp": "cpp",
    ".py": "python",
}
# A failure's reason is the compiler's first errors at most; more of it would crowd out the exemplars.
_REASON_LENGTH = 600
_FIXED_FILE_LENGTH = 6000


@dataclass(frozen=True)
class Failure:
    """A recent attempt that was not ok."""

    outcome: str
    reason: str
    design: str


def render(
    task: Task,
    reference: Candidate,
    shown: Sequence[tuple[Candidate, Scored]],
    failures: Sequence[Failure],
    machine: Machine,
    remaining: Mapping[str, float],
    aim: Aim = FASTER,
) -> str:
    """The whole prompt, in the order in which it is best read."""
    parts = [f"{aim.role}\n\n# Task: {task.name}\n\n{task.description}", _entry(task), _reference(task, reference)]
    if aim.shows_check:
        parts.append(_check(task))
    if shown:
        parts.append(_exemplars(aim.scored, shown))
    if failures:
        parts.append(_failures(aim.failed, failures))
    parts += [_machine(machine), _budget(remaining), _protocol(task, shown, aim), _rules(task, aim)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _entry(task: Task) -> str:
    entry = task.entry
    if entry.kind == "c":
        aligned = f"at multiples of {entry.align} bytes" if entry.align else "wherever their elements may"
        lines = [f"The judge calls `{entry.function}` (C ABI). Arrays begin {aligned}."]
    elif entry.kind == "python":
        packages = ", ".join(task.environment.packages) or "the standard library alone"
        lines = [f"The judge calls `{entry.function}` in `{entry.module}`; it may import {packages}."]
    else:
        lines = [f"The judge runs `{' '.join(entry.command)}` and times the whole process."]
    if entry.setup:
        lines.append(
            f"Before that it calls `{entry.setup}` once per process; "
            "what that takes longer than the reference's is charged, spread over the calls of a process."
        )
    if task.build.compiler:
        lines.append(f"It is built with `{task.build.compiler} {' '.join(task.build.flags)}`.")
    if task.build.flag_choices:
        groups = "; ".join(" or ".join(flag or "(none)" for flag in group) for group in task.build.flag_choices)
        lines.append(f"You may choose one flag of each of these groups: {groups}.")
    limits = task.limits
    threads = "1 thread" if limits.threads == 1 else f"{limits.threads} threads"
    lines.append(f"Limits: {threads}, {limits.memory_mb} MB of memory, no network, no files beside your own.")
    agreement = task.checking.agreement
    lines.append(
        f"Each number must agree with the reference's within {agreement}."
        if agreement
        else "Answers must equal the reference's, or pass the task's own check."
    )
    return "\n".join(lines)


def _reference(task: Task, reference: Candidate) -> str:
    parts = ["# Reference implementation (score 1.00)"]
    parts += [_file(name, reference.files[name]) for name in task.editable]
    private = {*private_files(task), *task.editable}
    for name, content in task.files.items():
        if name not in private and Path(name).suffix in _LANGUAGES:
            text = content.decode("utf-8", "replace")
            cut = text if len(text) <= _FIXED_FILE_LENGTH else text[:_FIXED_FILE_LENGTH] + "\n... (cut)\n"
            parts.append("Not editable:\n" + _file(name, cut))
    if any(has_regions(task.text(name)) for name in task.editable):
        parts.append("Only the lines between `outpace: begin` and `outpace: end` may change; keep those marks.")
    return "\n\n".join(parts)


def _check(task: Task) -> str:
    margin = f"A win must be proven more than {task.timing.margin:g} times as fast as the reference."
    return f"# The task's judge\n\n{margin}\n\n{_file(task.checking.file, task.text(task.checking.file))}"


def _exemplars(heading: str, shown: Sequence[tuple[Candidate, Scored]]) -> str:
    parts = [f"# {heading}"]
    for candidate, score in shown:
        claim = f"score {toward_one(score.ratio):.2f} (99% interval {score.low:.3f} to {score.high:.3f})"
        flags = f"\nFLAGS: {' '.join(candidate.flags)}" if candidate.flags else ""
        files = "\n\n".join(_file(name, text) for name, text in candidate.files.items())
        parts.append(f"## Candidate {candidate.hash[:12]}: {claim}{flags}\n\n{files}")
    return "\n\n".join(parts)


def _failures(heading: str, failures: Sequence[Failure]) -> str:
    parts = [f"# {heading}"]
    for failure in failures:
        # Both are a candidate's own words, or may hold some: they must not look like a part of the prompt.
        told = told_after(f"- {failure.outcome}:", _short(failure.reason, _REASON_LENGTH))
        if failure.design:
            told += ("\n  " if "\n" in told else " ") + told_after("It tried:", _short(failure.design, 200))
        parts.append(told)
    return "\n".join(parts)


def _machine(machine: Machine) -> str:
    vectors = ", ".join(machine.flags) or "no vector extensions listed"
    processor = f"{machine.cpu} ({machine.architecture}; {vectors})"
    return f"# Machine\n\n{processor}, {machine.compiler}, Python {machine.python}"


def _budget(remaining: Mapping[str, float]) -> str:
    if not remaining:
        return ""
    return "# Budget left\n\n" + ", ".join(f"{value:g} {name}" for name, value in remaining.items())


def _protocol(task: Task, shown: Sequence[tuple[Candidate, Scored]], aim: Aim) -> str:
    example = task.editable[0]
    parent = (
        "PARENT: <hash of the candidate you start from> (optional; default the fastest shown, else the reference)\n"
        if shown
        else ""
    )
    flags = "FLAGS: <the flags you choose, optional>\n" if task.build.flag_choices else ""
    return f"""# Your reply

Write exactly these three sections.

## Performance Analysis
{aim.compare if shown else aim.begin}

## Algorithm Design
{aim.design}

## Code Implementation
{parent}{flags}Either the whole file:

### FILE: {example}
```
<whole text>
```

or edits of the parent, each SEARCH text exactly as it stands there and occurring once:

### EDIT: {example}
```
<<<<<<< SEARCH
old lines
=======
new lines
>>>>>>> REPLACE
```"""


def _rules(task: Task, aim: Aim) -> str:
    rules = [*aim.rules, f"Only {', '.join(task.editable)} may be edited."]
    return "# Rules\n\n" + "\n".join(f"- {rule}" for rule in rules)


def _file(name: str, text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"### {name}\n{fence}{_LANGUAGES.get(Path(name).suffix, '')}\n{text.rstrip(chr(10))}\n{fence}"


def _short(text: str, length: int) -> str:
    text = " ".join(text.split()) if length <= 200 else text.strip()
    return text if len(text) <= length else text[: length - 3] + "..."
