"""The command and the agent policies: other people's programs, and other people."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from outpace.errors import PolicyError
from outpace.policies import agent, command
from outpace.policies.agent import Agent
from outpace.policies.base import NoReply, Prompt
from outpace.policies.command import Command
from outpace.task import Entry, Task
from outpace.task.candidate import reference

TASK = Task("made", "", Path("made"), ("k.c",), {"k.c": b"int k;\n"}, Entry("c"))


def ask(text: str = "Make it faster.", trial: int = 1) -> Prompt:
    return Prompt(text, TASK, trial, 7, reference(TASK), ())


def python(code: str) -> str:
    return f"{sys.executable} -c '{code}'"


# Command


def test_a_program_reads_the_prompt_and_prints_the_reply() -> None:
    reply = Command("tr a-z A-Z").propose(ask("wächst\n" * 50_000))
    assert reply.text == "WäCHST\n" * 50_000
    assert reply.cost.calls == 1 and reply.cost.failed_calls == 0 and reply.cost.seconds > 0


def test_a_program_that_does_not_read_is_not_waited_for() -> None:
    assert Command("echo done").propose(ask("p" * 1_000_000)).text == "done\n"


def test_a_program_gets_the_users_environment_and_the_trials_number() -> None:
    shown = Command("sh -c 'echo $MINE $OUTPACE_TRIAL'", environment={**os.environ, "MINE": "here"})
    assert shown.propose(ask(trial=12)).text == "here 12\n"


def test_a_reply_that_is_no_text_is_taken_with_marks() -> None:
    assert Command(r"printf 'a\377b'").propose(ask()).text == "a\N{REPLACEMENT CHARACTER}b"


FAILURES = {
    "fails": (python("import sys; print(1, file=sys.stderr); sys.exit(3)"), "exit status 3 .it said: 1"),
    "is killed": (python("import os; os.kill(os.getpid(), 9)"), "killed by SIGKILL .it said nothing"),
    "prints nothing": ("true", "printed no reply"),
    "prints blanks": ("echo", "printed no reply"),
    "is not there": ("/nowhere/at-all", "cannot be started"),
    "may not be run": ("/etc/passwd", "cannot be started"),
    "shouts": (python('import sys; sys.stderr.write("no\\n" * 500); sys.exit(1)'), "said: no no"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_one_line_tells_of_a_program_that(name: str) -> None:
    line, words = FAILURES[name]
    with pytest.raises(NoReply, match=words) as error:
        Command(line).propose(ask())
    text = str(error.value)
    assert "\n" not in text and len(text) < 500 and "start the same command again" in text
    assert error.value.cost.failed_calls == error.value.cost.calls == 1


def test_a_secret_that_a_program_prints_is_not_shown() -> None:
    environment = {**os.environ, "MY_TOKEN": "hunter2hunter2"}
    with pytest.raises(NoReply) as error:
        Command("sh -c 'echo $MY_TOKEN >&2; exit 1'", environment=environment).propose(ask())
    assert "hunter2" not in str(error.value) and "***" in str(error.value)


def test_at_the_limit_the_whole_group_is_killed(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"sleep 60 & echo $! $$ > {pids}.part; mv {pids}.part {pids}; echo thinking >&2; wait"
    with pytest.raises(NoReply, match=r"longer than 0.5 s and was killed.*it said: thinking"):
        Command(f"sh -c '{script}'", reply_seconds=0.5).propose(ask())
    for pid in map(int, pids.read_text().split()):
        assert _is_gone(pid), pid


def test_a_child_that_keeps_the_output_open_does_not_hold_up_the_reply(tmp_path: Path) -> None:
    begin = time.monotonic()
    reply = Command(f"sh -c 'sleep 30 & echo $! > {tmp_path}/pid; echo here'").propose(ask())
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)
    assert reply.text == "here\n" and time.monotonic() - begin < 20


def test_a_flood_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "MAX_BYTES", 1 << 20)
    with pytest.raises(NoReply, match="more than 1 MB"):
        Command("yes").propose(ask())


def test_a_flood_that_has_ended_is_refused_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "MAX_BYTES", 1000)
    with pytest.raises(NoReply, match="printed more than"):
        Command("head -c 2000 /dev/zero").propose(ask())


@pytest.mark.parametrize("line", ["", "  ", "echo 'open"])
def test_a_command_that_is_none_is_refused(line: str) -> None:
    with pytest.raises(PolicyError, match="--command"):
        Command(line)


def _is_gone(pid: int) -> bool:
    for _ in range(100):
        try:
            # A zombie that nobody reaps is gone too.
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


# Agent


class Clock:
    """Time that passes when somebody waits; `meanwhile` is what happens then."""

    def __init__(self, *meanwhile: Any) -> None:
        self.now = 0.0
        self.meanwhile = list(meanwhile)

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds
        if self.meanwhile:
            (self.meanwhile.pop(0) or (lambda: None))()


def agent_in(folder: Path, clock: Clock, seconds: float = 60.0) -> Agent:
    return Agent(folder, seconds, wait=clock.wait, clock=clock)


def test_a_reply_is_taken_once_it_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "agent"
    answered = folder / "trial-0003.reply.md"
    clock = Clock(None, lambda: answered.write_text("a reply"))
    assert agent_in(folder, clock).propose(ask("the prompt", trial=3)).text == "a reply"
    assert (folder / "trial-0003.prompt.md").read_text() == "the prompt"
    assert sorted(path.name for path in folder.iterdir()) == ["trial-0003.prompt.md", "trial-0003.reply.md"]


def test_a_reply_that_grows_is_waited_for_beyond_the_limit(tmp_path: Path) -> None:
    answered = tmp_path / "trial-0001.reply.md"

    def grow() -> None:
        with answered.open("a") as file:
            file.write("more ")

    clock = Clock(answered.touch, *[grow] * 20)
    assert agent_in(tmp_path, clock, seconds=2.0).propose(ask()).text == "more " * 20


def test_a_prompt_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    text = "long " * 200_000
    seen: list[int] = []
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            path = tmp_path / "trial-0001.prompt.md"
            if path.exists():
                seen.append(path.stat().st_size)

    watcher = threading.Thread(target=watch)
    watcher.start()
    (tmp_path / "trial-0001.reply.md").write_text("early")
    try:
        agent_in(tmp_path, Clock()).propose(ask(text))
    finally:
        over.set()
        watcher.join()
    assert set(seen) <= {len(text)}


def test_without_a_reply_the_time_ends_and_the_prompt_stays(tmp_path: Path) -> None:
    clock = Clock()
    with pytest.raises(NoReply, match=r"no trial-0001.reply.md came in 60 s.*start the same command") as error:
        agent_in(tmp_path, clock).propose(ask())
    assert "\n" not in str(error.value) and error.value.cost.seconds >= 60
    (tmp_path / "trial-0001.reply.md").write_text("late")
    assert agent_in(tmp_path, Clock()).propose(ask()).text == "late"


def test_an_empty_file_is_no_reply(tmp_path: Path) -> None:
    answered = tmp_path / "trial-0001.reply.md"
    answered.touch()
    clock = Clock(*[None] * 10, lambda: answered.write_text("at last"))
    assert agent_in(tmp_path, clock).propose(ask()).text == "at last"


def test_a_reminder_wants_another_reply(tmp_path: Path) -> None:
    answered = tmp_path / "trial-0001.reply.md"
    answered.write_text("no analysis")
    assert agent_in(tmp_path, Clock()).propose(ask("prompt\n")).text == "no analysis"
    clock = Clock(None, lambda: answered.write_text("with analysis"))
    reminded = ask("prompt\n\nwith all sections\n")
    assert agent_in(tmp_path, clock).propose(reminded).text == "with analysis"
    assert (tmp_path / "trial-0001.reply-without-analysis.md").read_text() == "no analysis"
    assert "all sections" in (tmp_path / "trial-0001.prompt.md").read_text()
    # A kill before the reply was archived: the plain prompt is asked again, and the newest reply is its answer.
    assert agent_in(tmp_path, Clock()).propose(ask("prompt\n")).text == "with analysis"


def test_a_folder_of_another_run_is_refused(tmp_path: Path) -> None:
    (tmp_path / "trial-0001.prompt.md").write_text("another task")
    (tmp_path / "trial-0001.reply.md").write_text("its reply")
    with pytest.raises(PolicyError, match="of another run"):
        agent_in(tmp_path, Clock()).propose(ask())


def test_a_reply_too_long_to_be_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "MAX_BYTES", 10)
    (tmp_path / "trial-0001.reply.md").write_text("x" * 11)
    with pytest.raises(PolicyError, match="11 bytes"):
        agent_in(tmp_path, Clock()).propose(ask())


def test_a_folder_that_cannot_be_used_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(PolicyError, match="cannot be made"):
        Agent(tmp_path / "file")
    (tmp_path / "trial-0001.reply.md").mkdir()
    with pytest.raises(PolicyError, match="cannot be used"):
        agent_in(tmp_path, Clock()).propose(ask())


def test_another_process_can_be_the_agent(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys, time; folder = pathlib.Path(sys.argv[1]); prompt = folder / 'trial-0001.prompt.md'\n"
        "while not prompt.exists(): time.sleep(0.01)\n"
        "part = folder / 'part'; part.write_text(prompt.read_text().upper())\n"
        "part.rename(folder / 'trial-0001.reply.md')"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]):
        assert Agent(tmp_path, 30.0).propose(ask("loud")).text == "LOUD"
