"""`outpace init`: a task from a source file and the name of a function."""

from __future__ import annotations

import importlib.metadata
import json as json_module
import re
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from outpace.cli.plain import flat
from outpace.domains.program import ProgramDomain
from outpace.errors import HarnessError, TaskError
from outpace.init.judge_text import PATTERNS
from outpace.init.narrowing import notes, plainer, refit, refitted
from outpace.init.rehearsal import Rehearsal, Rehearsed
from outpace.init.skeleton import Gap, Skeleton, skeletons
from outpace.init.sources import add_unit, gather
from outpace.init.vetting import Vetted, Vetting, short_call
from outpace.init.widening import Fitted, fitted, tamer
from outpace.judge.jail import JailKind, best_jail
from outpace.judge.judge import Judge
from outpace.judge.verdict import Outcome
from outpace.task.file import load_task
from outpace.task.variation import points, size

# Files of a project that may be pulled in because a function needs what they define.
_UNITS = 8


@dataclass(frozen=True)
class Made:
    """The folder's files and what is known of them: ready, or the lines to write."""

    skeleton: Skeleton
    rehearsed: Rehearsed
    gaps: tuple[Gap, ...]
    # What a person should know of a task that is ready all the same.
    notes: tuple[str, ...] = ()
    # How far the vetting got, and what tells of two doubtful attempts the better one.
    steps: int = 0


def init(source: Path, function: str, /, *, out: Path | None = None, no_jail: bool = False, json: bool = False) -> int:
    """Make a task from a source file and the name of a function in it.

    The source is copied, inputs are guessed from the declaration, and the guess is tried in the jail: C and C++ also
    under the sanitizers. What cannot be guessed is left as a marked line. The command names each line that somebody has
    to look at, and ends with status 1 where there is one.

    Parameters
    ----------
    source
        A C, C++ or Python file.
    function
        The function to make faster.
    out
        The folder to write; by default named after the function.
    no_jail
        Try the guess without a jail. Only for code you trust with this machine.
    json
        Print what was made as JSON.
    """
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", function).strip("-._") or "task"
    folder = Path(name) if out is None else out
    with Console(stderr=True).status("reading") as status:
        try:
            given = gather(source, installed=importlib.metadata.packages_distributions())
            # What is wrong with these is told first; it takes no time.
            skeletons(given, function, name=name[:64])
            if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                raise TaskError(f"{folder} is there already: remove it, or name another folder with --out")
            made = make(source, function, name[:64], "none" if no_jail else best_jail(), status.update)
        except RecursionError:
            raise TaskError(f"{source} nests expressions too deeply to be read: put them on several lines") from None
        write(made.skeleton, folder)
        fairness = "" if made.gaps else _inspect(folder, "none" if no_jail else best_jail(), status.update)
    if json:
        print(json_module.dumps(as_json(made, folder, fairness), indent=1))
    else:
        _tell(made, folder, fairness)
    return 1 if made.gaps or fairness else 0


def make(source: Path, function: str, name: str, jail: JailKind, say: Callable[[str], None]) -> Made:
    """The first guess that works in the jail, or the likeliest with the lines that somebody has to write."""
    given = gather(source, installed=importlib.metadata.packages_distributions())
    with tempfile.TemporaryDirectory(prefix="outpace-init-") as workspace:
        Path(workspace).chmod(0o755)
        rehearsal = Rehearsal(jail, Path(workspace))
        vetting = Vetting(rehearsal, Path(workspace), say)
        first: Made | None = None
        doubtful: Made | None = None
        glue = False
        tries = skeletons(given, function, name=name)
        while tries:
            skeleton = tries.pop(0)
            if skeleton.gaps:
                return Made(skeleton, Rehearsed(problem="not tried"), skeleton.gaps)
            say(f"trying {skeleton.entry}")
            fit = _fitted(rehearsal, vetting, skeleton)
            skeleton, found = fit.skeleton, fit.found
            if not found.problem:
                # Other kinds that are doubted too are not doubted because they are wide.
                made = _vetted(rehearsal, vetting, fit, again=doubtful is None)
                if not made.gaps:
                    return made
                if doubtful is None or (made.steps, -len(made.gaps)) > (doubtful.steps, -len(doubtful.gaps)):
                    doubtful = made
                continue
            if first is None:
                # Reading past an array gives any number, writing past it what the judge does not take.
                signs = (Outcome.CRASHED, Outcome.WRONG, "the reference's own answer")
                broken = any(sign in found.problem for sign in signs)
                why = vetting.memory_error(skeleton) if broken else ""
                first = Made(skeleton, found, (_doubt(skeleton, why) if why else _failing(skeleton, found),))
            if found.slow:
                break  # at the smallest size: other values would not help either
            missing = re.search(r"undefined symbol: (\w+)", found.problem)
            more = add_unit(given, source, missing[1]) if missing and len(given.units) < _UNITS else None
            if more is not None:
                given, first, doubtful = more, None, None
                tries = skeletons(given, function, name=name)
            elif source.suffix == ".py" and not glue and _needs_glue(found.problem):
                glue = True
                tries = skeletons(given, function, name=name, glue=True)
    # What runs and is doubted is nearer to a task than what does not run.
    chosen = doubtful or first
    assert chosen is not None  # there is at least one skeleton, and it failed
    return chosen


def _needs_glue(problem: str) -> bool:
    """Whether the answer cannot leave the jail, or there is none: a wrapper makes it plain, whatever the inputs."""
    return bool(re.search(r"cannot be returned|map keys must be|answers None", problem))


def _vetted(rehearsal: Rehearsal, vetting: Vetting, fit: Fitted, *, again: bool) -> Made:
    """What the vetting says; where it doubts wide values it may be asked about narrower ones again."""
    first = made = _made(vetting.vet(fit.skeleton), fit)
    if fit.skeleton.values is not None:
        return _tamed(rehearsal, vetting, fit, made) if made.gaps and again else made
    while made.gaps and (tame := _plainer(rehearsal, fit, made)) is not None:
        fit = tame
        made = _made(vetting.vet(fit.skeleton), fit)
    return first if made.gaps else _patterned(rehearsal, vetting, fit, made)


def _patterned(rehearsal: Rehearsal, vetting: Vetting, fit: Fitted, plain: Made) -> Made:
    """The same with patterns in what a C function reads, where this works as well."""
    skeleton = fit.skeleton.patterned(PATTERNS)
    if skeleton.judge == fit.skeleton.judge:
        return plain
    why = vetting.minds_patterns(fit.skeleton)
    if not why:
        wider = refitted(rehearsal, fit, skeleton)
        why = wider.found.problem
        made = plain if why else _made(vetting.vet(wider.skeleton), wider)
        if not why and not made.gaps:
            return made
        why = why or f"a judge would not notice enough ({made.gaps[0].what[:100]}...)"
    note = f"nothing is sorted, mirrored or repeated on purpose, because otherwise {' '.join(why.split())[:160]}"
    return replace(plain, notes=(note, *plain.notes))


def _tamed(rehearsal: Rehearsal, vetting: Vetting, fit: Fitted, doubtful: Made) -> Made:
    """The same of Python values as narrow as is needed for no doubt to be left, where that helps at all."""
    doubts, best = [gap.what for gap in doubtful.gaps], doubtful
    for part in ("all", "named", "form"):
        tame = tamer(rehearsal, fit, doubts, part)
        made = None if tame is None else _made(vetting.vet(tame.skeleton), tame)
        if made is not None and not made.gaps:
            best = made
        elif part == "all":
            break
    return best


def _fitted(rehearsal: Rehearsal, vetting: Vetting, skeleton: Skeleton) -> Fitted:
    """The skeleton with the widest values that work, at the size that fits them."""
    fit = refit(rehearsal, fitted(rehearsal, vetting.narrowed(skeleton)))
    if fit.found.problem:
        return fit
    return refitted(rehearsal, fit, vetting.narrowed(fit.skeleton, fit.found.seconds))


def _plainer(rehearsal: Rehearsal, fit: Fitted, made: Made) -> Fitted | None:
    return plainer(rehearsal, fit, [gap.what for gap in made.gaps]) if made.steps > 1 else None


def _made(vetted: Vetted, fit: Fitted) -> Made:
    return Made(
        vetted.skeleton,
        fit.found,
        tuple(_doubt(vetted.skeleton, each) for each in vetted.doubts),
        (
            *fit.notes(),
            *notes(vetted.skeleton),
            *vetted.skeleton.unasked,
            *vetted.notes,
            *filter(None, [short_call(fit.found.seconds)]),
        ),
        vetted.steps,
    )


def _failing(skeleton: Skeleton, found: Rehearsed) -> Gap:
    """The line to look at: where the compiler stopped, where something is missing, or where the guess begins."""
    problem = flat(found.problem)[:300]
    broken = re.search(r"([^\s:]+):(\d+):(?:\d+:)? (?:fatal )?error: (.*)", found.problem)
    if broken and broken[1] in skeleton.files:
        return Gap(broken[1], int(broken[2]), f"it does not build: {broken[3].strip()}")
    if missing := re.search(r"undefined symbol: (\S+)", found.problem):
        return skeleton.line(
            "task.toml", "sources =", f"add the file that defines {missing[1]}, which the source needs"
        )
    if missing := re.search(r"No module named '([\w.]+)'", found.problem):
        what = f"add [environment] packages = [...] with the distribution that has {missing[1]}, or copy it here"
        return skeleton.line("task.toml", "[entry]", what)
    return skeleton.line(
        "judge.py", "def make_input", f"the guessed inputs do not work ({problem}); write this function"
    )


def _doubt(skeleton: Skeleton, doubt: str) -> Gap:
    """The line to look at for a doubt: the one it names, or where inputs are made."""
    named = re.match(r"([\w.+-]+):(\d+):? ", doubt)
    file = next((name for name in skeleton.files if named and Path(name).name == named[1]), "")
    if named and file:
        return Gap(file, int(named[2]), doubt[named.end() :])
    return skeleton.line("judge.py", "def make_input", doubt)


def write(skeleton: Skeleton, folder: Path) -> None:
    """Lay the files out."""
    for name, content in skeleton.files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
        except OSError as error:
            raise TaskError(f"{path} cannot be written ({error.strerror}): name another folder with --out") from None


def _inspect(folder: Path, jail: JailKind, say: Callable[[str], None]) -> str:
    """Why the written task cannot be trusted yet, or "" when the judge finds nothing."""
    with tempfile.TemporaryDirectory(prefix="outpace-init-") as workspace:
        Path(workspace).chmod(0o755)
        try:
            with Judge(ProgramDomain(load_task(folder)), jail=jail, workspace=Path(workspace), progress=say) as judge:
                judge.inspect()
        except (TaskError, HarnessError) as error:
            return " ".join(str(error).split())
    return ""


def as_json(made: Made, folder: Path, fairness: str) -> dict[str, object]:
    """For programs."""
    return {
        "task": str(folder),
        "entry": made.skeleton.entry,
        "ready": not made.gaps and not fairness,
        "seconds_per_call": made.rehearsed.seconds or None,
        "problem": fairness or None,
        "notes": list(made.notes),
        "fill_in": [{"file": str(folder / gap.file), "line": gap.line, "what": gap.what} for gap in made.gaps],
    }


def _tell(made: Made, folder: Path, fairness: str) -> None:
    print(f"Made {folder} for {made.skeleton.entry}.")
    if made.rehearsed.seconds:
        took = duration(made.rehearsed.seconds)
        print(f"A call takes {took} on the inputs guessed in {folder / 'judge.py'}.")
        print("Read that file: a winner is proven right and faster on such inputs only.")
    for note in made.notes:
        print(f"Note: {note}.")
    if made.gaps:
        print(f"Not ready: {len(made.gaps)} place{'s' if len(made.gaps) > 1 else ''} to fill in or to mend")
        for gap in made.gaps:
            print(f"  {folder / gap.file}:{gap.line}: {gap.what}")
        print(f"Then check it with `outpace try {folder}`.")
    elif fairness:
        print(f"Not ready: {fairness}", file=sys.stderr)
    else:
        print("Ready: the reference scores 1.00 against itself, and doing nothing fails.")
        print("\n".join(next_steps(folder)))


def next_steps(folder: Path) -> list[str]:
    """What to do with a task that is ready: what the policy without a model can do here, and what goes further."""
    task = load_task(folder)
    found = points(task)
    marked = [point for point in found if point.file]
    model = f"outpace run {folder} --policy openai --model MODEL --base-url URL"
    if marked:
        first = [f"`outpace run {folder}` tries the variation points of its source, without a model."]
    elif found:
        first = [f"`outpace run {folder}` tries its {size(found)} combinations of compiler flags, without a model."]
    else:
        first = ["The search without a model has nothing to try: no variation points yet."]
    code = task.editable[0]
    mark = "#" if code.endswith(".py") else "//"
    return [
        *first,
        *(["To change the code itself:"] if not marked else ["To go further:"]),
        f"  a model      {model}",
        f"  an agent     give a coding agent the MCP server `outpace mcp {folder}`",
        *([] if marked else [f"  no model     mark variation points in {code}, such as"]),
        *([] if marked else [f"               `{mark} outpace: choose 8 16 32` above a line that holds an 8"]),
        f"  yourself     edit a copy, then `outpace try {folder} COPY/{Path(code).name}`",
    ]


def duration(seconds: float) -> str:
    """A short time with its unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds / 1e-9:.0f} ns"
