"""What several suites share: small tasks made on the spot, and judges for them."""

from __future__ import annotations

import os
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from outpace.cli import main
from outpace.domains.program import ProgramDomain
from outpace.judge.jail import JailKind, bubblewrap_works, fallback_works
from outpace.judge.judge import Judge
from outpace.task import Task
from outpace.task.file import make_task

Cli = Callable[..., tuple[int, str, str]]
JAILS: list[JailKind] = ["bubblewrap", "fallback"]
# With `-n auto` so many copies of the suite share it at most; each has at least two cores where there are four.
COPIES_MOST = 8


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:  # noqa: ARG001 - the hook's own name
    """How many copies `-n auto` makes: one core each is enough, since a judge and its worker take turns."""
    cores = len(os.sched_getaffinity(0))
    return max(min(cores, 2), min(cores // 2, COPIES_MOST))


def pytest_configure(config: pytest.Config) -> None:
    """Give each copy cores of its own: two that timed on the same one would wait for each other all the time."""
    copy = getattr(config, "workerinput", None)
    if copy is not None:
        number, copies = int(copy["workerid"].removeprefix("gw")), copy["workercount"]
        cores = sorted(os.sched_getaffinity(0))
        each = max(len(cores) // copies, 1)
        os.sched_setaffinity(0, cores[number * each % len(cores) :][:each])


def jail_or_skip(kind: JailKind) -> JailKind:
    """The jail, or a skip that tests/skips.txt must name."""
    why = bubblewrap_works() if kind == "bubblewrap" else fallback_works()
    if why:
        pytest.skip(f"no {kind} jail: {why}")
    return kind


@pytest.fixture(params=JAILS)
def jail(request: pytest.FixtureRequest) -> JailKind:
    return jail_or_skip(request.param)


def c_task(source: str, function: str, judge: str, **extra: str) -> Task:
    """A C task of one file; `extra` holds more tables of the task file."""
    tables = "\n".join(extra.values())
    toml = f'name = "small"\neditable = ["code.c"]\n[entry]\nkind = "c"\nfunction = "{function}"\n{tables}'
    return _task(toml, {"code.c": source}, judge)


def python_task(source: str, judge: str, tables: str = "") -> Task:
    """A Python task of one file with a function `solve`."""
    entry = 'kind = "python"\nmodule = "code.py"\nfunction = "solve"'
    toml = f'name = "small"\neditable = ["code.py"]\n[entry]\n{entry}\n{tables}'
    return _task(toml, {"code.py": source}, judge)


def command_task(source: str, judge: str, tables: str = "") -> Task:
    """A C program that is run as a command."""
    toml = f'name = "small"\neditable = ["code.c"]\n[entry]\nkind = "command"\ncommand = ["./code"]\n{tables}'
    return _task(toml, {"code.c": source}, judge)


def _task(toml: str, sources: dict[str, str], judge: str) -> Task:
    files = {name: textwrap.dedent(text).encode() for name, text in sources.items()}
    files |= {"task.toml": toml.encode(), "judge.py": textwrap.dedent(judge).encode()}
    return make_task(Path("small"), files)


@pytest.fixture
def judge_of(tmp_path: Path) -> Iterator[Callable[[Task, JailKind], Judge]]:
    """Judges that clean up after themselves."""
    made: list[Judge] = []

    def make(task: Task, kind: JailKind) -> Judge:
        made.append(Judge(ProgramDomain(task), jail=kind, workspace=tmp_path / "work"))
        return made[-1]

    tmp_path.chmod(0o755)
    yield make
    for judge in made:
        judge.close()
    assert list((tmp_path / "work").glob("*")) == [], "a judge left files behind"


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Cli:
    """Type a command in an empty folder; gives the exit code and what was printed."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["outpace", *words])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return run


def _named_skips() -> list[str]:
    lines = (Path(__file__).parent / "skips.txt").read_text().splitlines()
    return [line.split(": ")[0] for line in lines if line.strip() and not line.startswith("#")]


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """A skip that tests/skips.txt does not name is a failure: nothing may be left out silently."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if (
        report.skipped
        and not hasattr(report, "wasxfail")
        and not any(item.nodeid.startswith(name) for name in _named_skips())
    ):
        report.outcome = "failed"
        report.longrepr = f"skipped without being named in tests/skips.txt: {report.longrepr}"
