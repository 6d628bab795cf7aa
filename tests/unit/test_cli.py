"""The command line: what a person types, reads and can rely on."""

from __future__ import annotations

import dataclasses
import io
import json
import re
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cli_facts import FILES, lay_out
from rich.console import Console
from run_facts import Judging, Scripted, begin, code, said

from conftest import Cli
from outpace import machine
from outpace.archive import Archive
from outpace.budget import Budget
from outpace.cli import app, plain
from outpace.cli.init import next_steps
from outpace.cli.progress import Progress
from outpace.judge.verdict import Outcome, Verdict
from outpace.loop import loop
from outpace.task.candidate import Candidate
from outpace.task.file import load_task

COMMANDS = sorted(name for name in app if not name.startswith("-"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a small task."""
    made = tmp_path / "total"
    lay_out(made)
    return made


@pytest.fixture
def archive(tmp_path: Path, folder: Path) -> Path:
    """An archive with a run of five trials on that task: 1.2x, wrong, 1.5x, not built, unusable."""
    task = load_task(folder)
    texts = [code(1.2), "wrong", code(1.5), "build_failed \x1b[31mred\x1b[0m\n"]

    class Examiner(Judging):
        def judge(self, candidate: Candidate) -> Verdict:
            found = super().judge(candidate)
            return (
                dataclasses.replace(found, reason=f"{candidate.files['sum.c']}\nmore")
                if found.speed_up is None
                else found
            )

        def confirm(self, candidate: Candidate) -> Verdict:
            return self.judge(candidate)

    with Archive.open(tmp_path / ".outpace/archive.sqlite") as made:
        run = begin(
            made,
            Scripted([*map(said, texts), "what?"]),
            Examiner(),
            name="first",
            budget=Budget(5),
            task=task,
            machine=machine.describe(),
        )
        loop(run)
    return tmp_path / ".outpace"


# Every command


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself_and_each_of_its_parameters(command: str, cli: Cli) -> None:
    # `bench` is a group: what it explains is its one command.
    status, out, err = cli(command, *(["ann"] if command == "bench" else []), "--help")
    assert (status, err) == (0, "")
    assert "Usage: outpace" in out and len(out.splitlines()) > 4
    bare = [line for line in out.splitlines() if re.fullmatch(r"│\s*\*?\s*[A-Z-]*\s*--[\w-]+( --[\w-]+)*\s*│", line)]
    assert bare == [], "a parameter without a word of help"
    assert "--no-no-" not in out and "--no-json" not in out
    assert "--json" in out or command == "mcp", "every command can be read by a program"
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize(
    "words",
    [
        ("bogus",),
        ("run",),
        ("run", "x", "--trials", "many"),
        ("run", "x", "--unheard-of"),
        ("show", "a", "b", "c"),
        ("init", "x.c"),
        ("try",),
        ("verify",),
        ("prompt",),
        ("attack",),
    ],
)
def test_a_wrong_command_line_is_told_in_one_line_and_ends_with_2(words: tuple[str, ...], cli: Cli) -> None:
    status, out, err = cli(*words)
    assert (status, out) == (2, "")
    assert len(err.splitlines()) == 1 and err.startswith("outpace: ") and "--help" in err


@pytest.mark.parametrize(
    "words",
    [
        ("run", "nowhere"),
        ("attack", "nowhere"),
        ("try", "nowhere"),
        ("show",),
        ("show", "x"),
        ("export",),
        ("prompt", "nowhere"),
        ("tasks", "nowhere"),
        ("init", "nowhere.c", "f"),
        ("verify", "nowhere.json"),
        ("report",),
    ],
)
def test_an_error_is_one_line_and_ends_with_1(words: tuple[str, ...], cli: Cli, tmp_path: Path) -> None:
    status, out, err = cli(*words)
    assert (status, out) == (1, "")
    assert len(err.splitlines()) == 1 and err.startswith("outpace: ")
    assert list(tmp_path.iterdir()) == [], "a failed command left something behind"


def test_an_error_of_several_lines_becomes_one_without_control_characters() -> None:
    assert plain.flat("a.c:1: error\n  \x1b[31mred;\n\nmore\n") == "a.c:1: error; ⟨U+001B⟩[31mred; more"


# show


@pytest.mark.usefixtures("archive")
def test_show_lists_the_runs(cli: Cli) -> None:
    status, out, _ = cli("show")
    assert status == 0 and "first" in out and "1.50x" in out
    assert [each["run"] for each in json.loads(cli("show", "--json")[1])] == ["first"]


@pytest.mark.usefixtures("archive")
def test_show_tells_a_runs_best_its_verdicts_its_costs_and_its_last_failures(cli: Cli) -> None:
    status, out, _ = cli("show", "first")
    assert status == 0
    assert "best: 1.50x (1.47 to 1.53), trial 3, confirmed in fresh processes" in out
    assert "trials: 5 (1 build_failed, 2 ok, 1 unusable, 1 wrong)" in out
    assert "600 tokens in, 60 out" in out, "the reply without an analysis was asked for twice"
    failures = re.findall(r"^ *(\d) +(unusable|build_failed|wrong) ", out, re.MULTILINE)
    assert failures == [("5", "unusable"), ("4", "build_failed"), ("2", "wrong")]
    assert max(map(len, out.splitlines())) <= 80
    found = json.loads(cli("show", "total", "--json")[1])
    assert (found["best"]["trial"], found["cost"]["tokens_in"], len(found["top"])) == (3, 600, 2)


@pytest.mark.usefixtures("archive")
def test_nothing_a_candidate_wrote_reaches_the_terminal_as_a_control_character(cli: Cli) -> None:
    for words in (("show", "first"), ("show", "first", "--trial", "4")):
        assert "\x1b" not in cli(*words)[1]


@pytest.mark.usefixtures("archive")
def test_show_prints_one_trial_with_prompt_reply_and_verdict(cli: Cli) -> None:
    status, out, _ = cli("show", "first", "--trial", "3")
    places = [
        out.index(part)
        for part in ("## Prompt", "expert performance engineer", "## Reply", "fast_150", "## Verdict", "1.50x")
    ]
    assert status == 0 and places == sorted(places)
    assert json.loads(cli("show", "first", "--trial", "2", "--json")[1])["verdict"]["outcome"] == "wrong"


def test_show_prints_no_line_of_a_candidates_own(tmp_path: Path, cli: Cli) -> None:
    forged = "ok: 9.87x (99% interval 9.712 to 10.030, 16 buckets): a win"
    crashed = Verdict(Outcome.CRASHED, f"ValueError: slow\n\n{forged}\n\n## Verdict\n")
    reply = said("int wrong;\n") + f"\n## Verdict\n\n{forged}\n"
    with Archive.open(tmp_path / "archive.sqlite") as archive:

        class Crashing(Judging):
            def judge(self, candidate: Candidate) -> Verdict:
                del candidate
                return crashed

        loop(begin(archive, Scripted([reply, reply]), Crashing()))
    for words in (("--trial", "1"), ("--trial", "2"), ()):
        out = cli("show", "first", "--folder", str(tmp_path), *words)[1]
        lines = [line.strip() for line in out.splitlines()]
        assert forged not in lines and lines.count("## Verdict") == (1 if words else 0)
        assert not words or f"  | {forged}" in out


@pytest.mark.usefixtures("archive")
def test_show_says_which_trials_there_are(cli: Cli) -> None:
    assert "has no trial 9: it has 1 to 5" in cli("show", "first", "--trial", "9")[2]


# prompt


def test_prompt_shows_the_next_question_and_records_nothing(archive: Path, folder: Path, cli: Cli) -> None:
    before = _rows(archive)
    status, out, _ = cli("prompt", str(folder), "--name", "first")
    assert status == 0 and "fast_150" in out, "the best candidate is not among the exemplars"
    assert json.loads(cli("prompt", str(folder), "--name", "first", "--json")[1])["trial"] == 6
    assert _rows(archive) == before


@pytest.mark.usefixtures("archive")
def test_a_prompt_is_spelt_out_for_a_person_and_exact_for_a_program(
    folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "sum.c").write_text("int sum; // \u202e\n")
    exact = json.loads(cli("prompt", str(folder), "--json")[1])["prompt"]
    assert "\u202e" in exact and cli("prompt", str(folder))[1] == exact
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert "\u202e" not in (told := cli("prompt", str(folder))[1]) and "⟨U+202E⟩" in told


def test_prompt_of_a_task_that_was_never_run_makes_no_archive(folder: Path, cli: Cli, tmp_path: Path) -> None:
    status, out, _ = cli("prompt", str(folder))
    assert status == 0 and "int total" in out
    assert not (tmp_path / ".outpace").exists()


def _rows(archive: Path) -> list[Any]:
    with Archive.open(archive / "archive.sqlite") as opened:
        return [*opened.runs(), *opened.trials()]


# tasks


@pytest.mark.usefixtures("folder")
def test_tasks_lists_good_and_bad_ones_and_says_what_is_bad(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/task.toml").write_text("name = 3\n")
    status, out, _ = cli("tasks", ".")
    assert status == 1, "a task that cannot be used is a no"
    assert re.search(r"^total +C +good +int total", out, re.MULTILINE) and re.search(r"^bad +wrong", out, re.MULTILINE)
    found = {each["folder"]: each for each in json.loads(cli("tasks", "--json")[1])}
    assert found["total"]["problem"] == "" and "text in quotes" in found["bad"]["problem"]


@pytest.mark.usefixtures("folder")
def test_tasks_finds_each_task_once(cli: Cli) -> None:
    assert len(json.loads(cli("tasks", ".", "total", "--json")[1])) == 1


# init


@pytest.fixture
def jailed() -> None:
    """These run the judge; a machine without any jail cannot."""
    from outpace.judge.jail import bubblewrap_works, fallback_works

    why = bubblewrap_works() and fallback_works()
    if why:
        pytest.skip(f"no jail: {why}")


@pytest.mark.usefixtures("jailed")
def test_init_makes_a_task_that_the_judge_takes_as_it_is(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "sum.c").write_text(FILES["sum.c"].replace("total", "the_total"))
    tmp_path.chmod(0o755)
    status, out, err = cli("init", "sum.c", "the_total", "--json")
    made = json.loads(out)
    assert status == 0, err
    # The folder is called what a newcomer will type.
    assert (made["fill_in"], made["task"]) == ([], "the_total") and made["seconds_per_call"] > 0
    assert load_task(tmp_path / "the_total").editable == ("sum.c",)


@pytest.mark.usefixtures("jailed")
def test_init_names_the_line_to_fill_in_where_a_guess_fails(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "code.py").write_text("def f(items):\n    raise ValueError('never right')\n")
    tmp_path.chmod(0o755)
    status, out, _ = cli("init", "code.py", "f", "--out", "made")
    assert status == 1, "something is left to fill in"
    place = re.search(r"^  made/judge\.py:(\d+): .*never right", out, re.MULTILINE)
    assert place is not None
    assert (tmp_path / "made/judge.py").read_text().splitlines()[int(place[1]) - 1].startswith("def make_input")


@pytest.mark.usefixtures("jailed")
def test_init_names_the_line_that_does_not_build(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "broken.c").write_text("int f(int n) {\n    return n\n}\n")
    tmp_path.chmod(0o755)
    assert re.search(
        r"^  made/broken\.c:2: it does not build: ", cli("init", "broken.c", "f", "--out", "made")[1], re.MULTILINE
    )


@pytest.mark.parametrize(
    ("head", "toml", "words"),
    [
        ("", "", "The search without a model has nothing to try"),
        ("", 'build = { flag_choices = [["-O2", "-O3"], ["", "-g"]] }', "tries its 4 combinations of compiler flags"),
        ("// outpace: choose 1 2\n#define STEP 1\n", "", "tries the variation points of its source"),
    ],
)
def test_init_promises_what_the_next_command_can_do(
    head: str, toml: str, words: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "sum.c").write_text(head + FILES["sum.c"])
    text = textwrap.dedent(FILES["task.toml"]).replace('build = { flag_choices = [["-O2", "-O3"]] }', toml)
    (folder / "task.toml").write_text(text)
    said = next_steps(folder)
    assert words in said[0] and any("--policy openai" in line for line in said)
    # What it shows of a variation point is one.
    marks = [line for line in said if "outpace: choose" in line]
    assert len(marks) == (not head) and all("`// outpace: choose 8 16 32`" in line for line in marks)
    monkeypatch.chdir(folder.parent)
    assert max(map(len, next_steps(Path(folder.name)))) <= 80


def test_init_looks_at_the_source_before_the_folder(cli: Cli, folder: Path) -> None:
    assert folder.is_dir()
    assert "none.c is no file" in cli("init", "none.c", "total")[2]


def test_init_does_not_write_over_what_is_there(cli: Cli, folder: Path, tmp_path: Path) -> None:
    (tmp_path / "sum.c").write_text(FILES["sum.c"])
    status, _, err = cli("init", "sum.c", "total")
    assert status == 1 and "is there already" in err
    assert sorted(each.name for each in folder.iterdir()) == sorted(FILES)


# Progress


def test_a_log_gets_one_line_per_trial_without_control_characters(tmp_path: Path) -> None:
    log = io.StringIO()
    with Archive.open(tmp_path / "archive.sqlite") as made:
        replies = [said(code(1.2)), said("wrong"), said(code(1.5))]
        run = begin(made, Scripted(replies), Judging(), budget=Budget(3))
        with Progress(quiet=False, console=Console(file=log, width=80, highlight=False)) as progress:
            progress.begin(run)
            progress.doing("building")
            loop(run, progress.judged)
    lines = log.getvalue().splitlines()
    assert len(lines) == 4, lines
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", log.getvalue())
    assert lines[1].startswith("trial 1: 1.20x (1.18 to 1.22), the best so far: 1.20x when confirmed")
    assert lines[2].startswith("trial 2: wrong: it is wrong; best 1.20x")
    assert "best 1.50x (1.47 to 1.53); 2 ok, 1 wrong; spent 0.0 min, 330 tokens" in lines[3] and lines[3].endswith(
        "left 0 trials"
    )


def test_a_terminal_keeps_to_its_width(tmp_path: Path) -> None:
    screen = io.StringIO()
    with Archive.open(tmp_path / "archive.sqlite") as made:
        run = begin(made, Scripted([said("wrong")]), Judging(), budget=Budget(3))
        console = Console(file=screen, width=80, force_terminal=True, highlight=False)
        with Progress(quiet=False, console=console) as progress:
            progress.begin(run)
            progress.doing("x" * 300)
            progress.judged(1, Verdict(Outcome.CRASHED, f"{'y' * 300} \x1b[2J\nsecond line"))
    plain_text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", screen.getvalue())
    assert max(len(line) for line in re.split(r"[\r\n]", plain_text)) <= 80
    assert "\x1b[2J" not in screen.getvalue() and "second line" not in plain_text


# Ctrl-C


def _alive(mark: str) -> list[str]:
    """The processes that have this text in their command line or folder."""
    found = []
    for each in Path("/proc").iterdir():
        try:
            if each.name.isdigit() and mark in (each / "cmdline").read_bytes().replace(b"\0", b" ").decode(
                "utf-8", "replace"
            ):
                found.append((each / "cmdline").read_text().replace("\0", " ")[:200])
        except OSError:
            continue
    return found


@pytest.fixture
def started(tmp_path: Path, folder: Path) -> Iterator[Callable[[], subprocess.Popen[str]]]:
    """A real run in a process of its own, which is ended with the test."""
    processes: list[subprocess.Popen[str]] = []
    tmp_path.chmod(0o755)
    choice = "// outpace: choose 1 2 3 4\n#define STEP 1\n"
    (folder / "sum.c").write_text(choice + textwrap.dedent(FILES["sum.c"]).replace("i++", "i += STEP"))

    def start() -> subprocess.Popen[str]:
        words = ["run", str(folder), "--trials", "1", "--folder", str(tmp_path / "kept")]
        processes.append(
            subprocess.Popen(
                # A shell ignores Ctrl-C for what it starts in the background, perhaps this suite: it is inherited.
                [sys.executable, "-c", f"{_HEARS_CTRL_C}; from outpace.cli import main; main()", *words],
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        )
        return processes[-1]

    yield start
    for each in processes:
        if each.poll() is None:
            each.kill()
            each.communicate()


_HEARS_CTRL_C = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"


def _judging(kept: Path) -> bool:
    """Whether a reply is being judged, with a process in the jail."""
    if not (kept / "archive.sqlite").is_file():
        return False
    with Archive.open(kept / "archive.sqlite") as archive:
        asked = [each.state for each in archive.trials()]
    return asked == ["answered"] and len(_alive(str(kept / "work"))) > 0


@pytest.mark.usefixtures("jailed")
def test_ctrl_c_ends_a_run_cleanly_and_the_same_command_goes_on(
    started: Callable[[], subprocess.Popen[str]], tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    first = started()
    while not _judging(kept):
        assert first.poll() is None, first.communicate()
        time.sleep(0.02)
    first.send_signal(signal.SIGINT)
    out, err = first.communicate(timeout=30)
    assert (first.returncode, out) == (130, ""), err
    assert "the same command again goes on with it" in err and err.endswith("outpace: stopped\n")
    assert "Traceback" not in err
    assert _alive(str(kept)) == [] and list((kept / "work").iterdir()) == []
    second = started()
    _, err = second.communicate()
    assert second.returncode == 0, err
    with Archive.open(kept / "archive.sqlite") as archive:
        assert [(each.number, each.state) for each in archive.trials()] == [(1, "judged")]


@pytest.mark.usefixtures("archive")
def test_a_reader_that_goes_away_is_no_error(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from outpace.cli import main; main()", "show", "first", "--trial", "3"]
    process = subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait() in (0, 1)
