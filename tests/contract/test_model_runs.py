"""Runs with a model: whatever its server does and whenever the run is killed, no trial is lost or scored zero."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from model_server import (
    Answer,
    Book,
    Call,
    chunk,
    cuts_the_stream,
    falls_silent,
    hangs,
    never_ends,
    refuses,
    says,
    sends_events,
    serving,
)

from conftest import JAILS, jail_or_skip
from outpace import answer
from outpace.archive import Archive, Trial
from outpace.budget import Budget
from outpace.cli import main
from outpace.errors import PolicyError
from outpace.judge.verdict import Outcome, SpeedUp, Verdict
from outpace.loop import loop
from outpace.machine import Machine
from outpace.policies.openai import ATTEMPTS, OpenAI
from outpace.run import Run
from outpace.task import Build, Entry, Task
from outpace.task.candidate import Candidate, reference

KEY = "sk-very-secret-0123456789"
HERE = Machine("a CPU", "x86_64", 2, ("avx2",), "unknown", "6.1", "cc 12", "3.11", 4096)
TASK = Task(
    "sum",
    "Adds numbers.",
    Path("sum"),
    ("sum.c",),
    {"sum.c": b"int sum;\n", "judge.py": b"", "task.toml": b""},
    Entry("c", "int sum(int n)"),
    Build("cc", ("sum.c",), ("-O2",)),
)
WITHOUT_ANALYSIS = "## Code Implementation\n### FILE: sum.c\n```\nint other;\n```\n"


class Quick:
    """Judges at once: every source is a little faster than the one before."""

    def __init__(self) -> None:
        self.judged = 0

    def judge(self, candidate: Candidate) -> Verdict:
        self.judged += 1
        ratio = 1.1 + len(candidate.files["sum.c"]) / 100
        return Verdict(Outcome.OK, "", SpeedUp(ratio, ratio - 0.01, ratio + 0.01, True, 8), (), 0.1)

    def confirm(self, candidate: Candidate) -> Verdict:
        return self.judge(candidate)


def proposal(number: int) -> str:
    changed = Candidate({"sum.c": f"int sum; /* {'x' * number} */ int v{number};\n"}, ("-O2",))
    return answer.render(changed, reference(TASK), "The loop waits for every addition it makes.", "Fewer steps.")


def run_of(archive: Archive, book: Book, budget: Budget, examiner: Quick | None = None, **settings: Any) -> Run:
    policy = OpenAI(
        "tiny",
        book.url,
        max_tokens=500,
        timeout=settings.pop("timeout", 20.0),
        environment={"OPENAI_API_KEY": KEY},
        wait=lambda _: None,
        **settings,
    )
    return Run(archive, TASK, examiner or Quick(), policy, name="r", machine=HERE, seed=1, budget=budget)


def trials_of(archive: Archive) -> list[Trial]:
    return list(archive.trials(archive.run("r")))


FAULTS: dict[str, Answer] = {
    "takes too long": hangs,
    "falls silent": falls_silent,
    "is overloaded": refuses(429, Retry_After="1"),
    "fails": refuses(500),
    "sends broken JSON": sends_events(chunk("a"), '{"choices": ['),
    "cuts the stream": cuts_the_stream,
    "never ends": never_ends,
}


@pytest.mark.parametrize("name", FAULTS)
def test_no_trial_is_lost_or_scored_zero_when_the_server(name: str, tmp_path: Path) -> None:
    fault = FAULTS[name]
    script = [says(proposal(1)), fault, says(proposal(2)), fault, fault, says(proposal(3))]
    with serving(*script) as book, Archive.open(tmp_path / "a.db") as archive:
        reason = loop(run_of(archive, book, Budget(trials=3), timeout=0.2))
        trials = trials_of(archive)
        cost = archive.costs(archive.run("r"))
    assert reason == "all 3 trials are done"
    assert [str(trial.verdict and trial.verdict.outcome) for trial in trials] == ["ok"] * 3
    assert [trial.number for trial in trials] == [1, 2, 3]
    assert (cost.calls, cost.failed_calls) == (6, 3)
    assert book.prompts[1] == book.prompts[2] and book.prompts[3] == book.prompts[4] == book.prompts[5]


@pytest.mark.parametrize("name", FAULTS)
def test_a_prompt_stays_open_and_is_asked_again_by_the_next_run_when_the_server_always(
    name: str, tmp_path: Path
) -> None:
    script = [says(proposal(1)), *[FAULTS[name]] * ATTEMPTS, says(proposal(2))]
    with serving(*script) as book:
        with Archive.open(tmp_path / "a.db") as archive:
            with pytest.raises(PolicyError, match="start the same command again"):
                loop(run_of(archive, book, Budget(trials=2), timeout=0.5))  # the first reply must arrive in it
            assert [trial.state for trial in trials_of(archive)] == ["judged", "asked"]
            assert archive.costs(archive.run("r")).failed_calls == ATTEMPTS
        with Archive.open(tmp_path / "a.db") as archive:
            loop(run_of(archive, book, Budget(trials=2)))
            trials = trials_of(archive)
            assert archive.costs(archive.run("r")).calls == ATTEMPTS + 2
    assert [str(trial.verdict and trial.verdict.outcome) for trial in trials] == ["ok", "ok"]
    assert len(set(book.prompts[1:])) == 1


# Killed in an open call

DRIVER = """
import sys
sys.path.insert(0, sys.argv[1])
from test_model_runs import Archive, Book, Budget, loop, run_of
with Archive.open(sys.argv[2]) as archive:
    loop(run_of(archive, Book(sys.argv[3]), Budget(trials=3)))
"""
MOMENTS: dict[str, Answer] = {
    "before a word came": hangs,
    "in the middle of the reply": falls_silent,
    "in an endless reply": lambda call: _slowly(call),
}


def _slowly(call: Call) -> None:
    call.begin()
    while not call.server.book.over.wait(0.01):
        call.event(chunk("and "))


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_that_is_killed_in_an_open_call_asks_the_same_again(moment: str, tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    driver = [sys.executable, "-c", DRIVER, str(Path(__file__).parent), str(path)]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    with serving(says(proposal(1)), MOMENTS[moment], says(proposal(2)), says(proposal(3))) as book:
        with subprocess.Popen([*driver, book.url], env=environment) as process:
            assert book.arrived.acquire(timeout=60) and book.arrived.acquire(timeout=60)
            process.send_signal(signal.SIGKILL)
        with Archive.open(path) as archive:
            assert [trial.state for trial in trials_of(archive)] == ["judged", "asked"]
        done = subprocess.run([*driver, book.url], env=environment, timeout=60, check=False)
    assert done.returncode == 0
    with Archive.open(path) as archive:
        trials = trials_of(archive)
    assert [(trial.number, str(trial.verdict and trial.verdict.outcome)) for trial in trials] == [
        (1, "ok"),
        (2, "ok"),
        (3, "ok"),
    ]
    assert len(book.prompts) == 4 and book.prompts[1] == book.prompts[2] == trials[1].asked.text


# Budgets


def test_a_run_stops_before_the_call_that_could_pass_its_tokens(tmp_path: Path) -> None:
    script = [says(proposal(n), usage=(900, 100)) for n in range(1, 9)]
    with serving(*script) as book, Archive.open(tmp_path / "a.db") as archive:
        run = run_of(archive, book, Budget(tokens=9000))
        reason = loop(run)
        spent, trials = run.spent, trials_of(archive)
    assert "next call may take" in reason and "--tokens" in reason
    assert 0 < spent.tokens <= 9000 and spent.tokens == 1000 * len(book.requests)
    # What was paid for is judged; the prompt that nobody may answer yet stays open.
    assert [trial.state for trial in trials] == ["judged"] * len(book.requests) + ["asked"]


def test_a_run_with_more_tokens_goes_on_from_the_open_prompt(tmp_path: Path) -> None:
    with serving(*(says(proposal(n), usage=(900, 100)) for n in range(1, 9))) as book:
        for tokens in (6000, 7000, 8000):
            with Archive.open(tmp_path / "a.db") as archive:
                run = run_of(archive, book, Budget(tokens=tokens))
                loop(run)
                assert run.spent.tokens <= tokens
                numbers = [trial.number for trial in trials_of(archive)]
                assert numbers == list(range(1, len(numbers) + 1))
                assert sum(trial.state == "asked" for trial in trials_of(archive)) == 1


def test_money_is_never_overspent(tmp_path: Path) -> None:
    script = [says(proposal(n), usage=(1000, 400)) for n in range(1, 9)]
    with serving(*script) as book, Archive.open(tmp_path / "a.db") as archive:
        run = run_of(archive, book, Budget(money=0.01), price_in=1.0, price_out=3.0)
        assert "--money" in loop(run)
        assert 0 < run.spent.cost.money <= 0.01


def test_a_reply_that_was_paid_for_is_judged_when_no_reminder_can_be_paid(tmp_path: Path) -> None:
    with serving(says(WITHOUT_ANALYSIS, usage=(3000, 100))) as book, Archive.open(tmp_path / "a.db") as archive:
        run = run_of(archive, book, Budget(tokens=5000))
        loop(run)
        first = trials_of(archive)[0]
        assert run.spent.tokens == 3100 and run.spent.cost.calls == 1
    assert first.reply == WITHOUT_ANALYSIS and first.verdict and first.verdict.outcome is Outcome.UNUSABLE


def test_a_reminder_counts_both_calls(tmp_path: Path) -> None:
    with serving(says(WITHOUT_ANALYSIS), says(proposal(1))) as book, Archive.open(tmp_path / "a.db") as archive:
        run = run_of(archive, book, Budget(trials=1, tokens=50_000))
        loop(run)
        assert (run.spent.tokens, run.spent.cost.calls) == (300, 2)
        assert str(trials_of(archive)[0].verdict.outcome) == "ok"  # type: ignore[union-attr]
    assert book.prompts[1].startswith(book.prompts[0])


# The command line

SLOW = (
    "def solve(items):\n    total = 0\n    for item in items:\n"
    "        total += (item * item + item // 3) % 1009\n    return total\n"
)
# Crashes if any trace of the key can be seen from inside.
CURIOUS = (
    "import os\n"
    "seen = repr(dict(os.environ))\n"
    "try:\n"
    "    for pid in filter(str.isdigit, os.listdir('/proc')):\n"
    "        seen += open(f'/proc/{pid}/environ', errors='replace').read()\n"
    "except OSError:\n"
    "    pass\n"
    f"assert {KEY[3:]!r} not in seen\n"
    "def solve(items):\n    return sum([(item * item + item // 3) % 1009 for item in items])\n"
)
JUDGE = "def make_input(rng):\n    return {'items': rng.integers(0, 1000, 2000).tolist()}\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a small task."""
    tmp_path.chmod(0o755)
    task = tmp_path / "task"
    task.mkdir()
    (task / "task.toml").write_text(
        'name = "squares"\neditable = ["code.py"]\n[entry]\nkind = "python"\nmodule = "code.py"\n'
        'function = "solve"\n[timing]\nsample_ms = 2\nlifetime = 1000\n'
    )
    (task / "code.py").write_text(SLOW)
    (task / "judge.py").write_text(JUDGE)
    return tmp_path


Outpace = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def outpace(folder: Path) -> Outpace:
    """Starts `outpace` with the key in its environment."""

    def start(*arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", "from outpace.cli import main; main()", *arguments],
            cwd=folder,
            env={**os.environ, "OPENAI_API_KEY": KEY},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return start


def finished(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    out, err = process.communicate(timeout=240)
    return process.returncode, out, err


def test_outpace_run_is_killed_in_an_open_call_and_goes_on_with_the_real_judge(folder: Path, outpace: Outpace) -> None:
    jail_or_skip(JAILS[0])
    reply = (
        "## Performance Analysis\nThe loop runs byte code for every item.\n## Algorithm Design\nOne sum.\n"
        f"## Code Implementation\n### FILE: code.py\n```\n{CURIOUS}```\n"
    )
    with serving(hangs, says(reply)) as book:
        command = (
            *("run", "task", "--policy", "openai", "--model", "tiny", "--base-url", book.url),
            *("--trials", "1", "--price-in", "1", "--price-out", "2", "--money", "1", "--json"),
        )
        with outpace(*command) as first:
            assert book.arrived.acquire(timeout=240), first.communicate()
            first.send_signal(signal.SIGKILL)
        status, out, err = finished(outpace(*command))
    assert status == 0, err
    assert json.loads(out)["outcomes"] == {"ok": 1}
    assert len(book.prompts) == 2 and book.prompts[0] == book.prompts[1]
    with Archive.open(folder / ".outpace" / "archive.sqlite") as archive:
        run = archive.run("squares-openai")
        assert run.settings["policy"] == {"model": "tiny"}
        assert archive.costs(run).money == pytest.approx(200e-6)
    for path in (folder / ".outpace").rglob("*"):
        assert path.is_dir() or KEY.encode() not in path.read_bytes()
    # Another model does not go on with this one's run.
    status, _, err = finished(outpace(*command[:5], "huge", *command[6:]))
    assert status == 1 and "another name" in err and len(err.splitlines()) == 1


MISTAKES = {
    "moves does not take --model": ("--model", "m"),
    "needs --model": ("--policy", "openai"),
    "needs --command": ("--policy", "command"),
    "needs --agent-folder": ("--policy", "agent"),
    "does not take --agent-folder: it takes --command, --reply-seconds": (
        *("--policy", "command", "--command", "cat", "--agent-folder", "a"),
    ),
    "does not tell what it spends, so --tokens": ("--tokens", "5"),
    "give --price-in": ("--policy", "openai", "--model", "m", "--money", "1"),
    "no policy 'gpt'": ("--policy", "gpt"),
    "no address of a server": ("--policy", "openai", "--model", "m", "--base-url", "localhost:8000"),
    "--max-tokens is 0": (
        *("--policy", "openai", "--model", "m", "--base-url", "http://127.0.0.1:1/v1", "--max-tokens", "0"),
    ),
}


@pytest.mark.parametrize("words", MISTAKES)
def test_one_line_tells_of_a_mistake_before_anything_is_judged(
    words: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "argv", ["outpace", "run", "task", "--no-jail", *MISTAKES[words]])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    assert (ended.value.code, out, len(err.splitlines())) == (1, "", 1)
    assert words in err
    assert not list(folder.glob(".outpace/work/*"))


def test_a_server_that_refuses_is_one_line_of_error(outpace: Outpace) -> None:
    with serving(refuses(404, "no model named [bold]tiny[/nonsense]\nat all")) as book:
        status, _, err = finished(
            outpace(
                "run", "task", "--no-jail", "--json", "--policy", "openai", "--model", "tiny", "--base-url", book.url
            )
        )
    assert status == 1 and len(err.splitlines()) == 1
    assert "404" in err and "check --model" in err and KEY not in err


def test_a_dry_run_calls_nobody_and_leaves_nothing(folder: Path, outpace: Outpace) -> None:
    with serving(says("never")) as book:
        line = "run task --no-jail --dry-run --json --policy openai --model tiny --trials 7 --price-in 1 --price-out 10"
        status, out, err = finished(outpace(*line.split(), "--base-url", book.url))
    assert status == 0, err
    found = json.loads(out)
    assert found["trials"] == 7 and found["earlier_trials"] == 0 and found["judging_seconds"] > 0
    assert found["tokens"] == 7 * (found["prompt_tokens"] + found["reply_tokens"]) > 0
    assert found["money"] > 0 and found["minutes"] > 0
    assert found["reserved_tokens"] > found["prompt_tokens"] + found["reply_tokens"]
    assert book.requests == [] and not (folder / ".outpace").exists()
