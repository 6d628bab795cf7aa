"""`outpace mcp` driven by a real client of the protocol, with the real judge."""

from __future__ import annotations

import contextlib
import json
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from conftest import JAILS, jail_or_skip
from outpace import machine
from outpace.archive import Archive
from outpace.errors import OutpaceError, PolicyError, TaskError
from outpace.judge.verdict import Outcome, SpeedUp, Verdict
from outpace.mcp_server import Desk, find_tasks
from outpace.task.candidate import Candidate

SLOW = """
double total(const double *x, long n) {
    volatile double waste = 0;
    double sum = 0;
    for (long i = 0; i < n; ++i) { waste = waste + x[i]; sum += x[i]; }
    return sum;
}
"""
FAST = SLOW.replace("waste = waste + x[i]; ", "")
WRONG = FAST.replace("i < n", "i < n - 1")
TOML = """
name = "%s"
editable = ["code.c"]
[entry]
kind = "c"
function = "double total(const double *x, int64_t n)"
[checking]
tolerance = 1e-9
[timing]
sample_ms = 2
lifetime = 2000
"""
# Prints wherever a user's judge might.
JUDGE = """
print("loading the judge", flush=True)
def make_input(rng):
    print("an input", flush=bool(rng.integers(2)))
    n = int(rng.integers(4000, 8000))
    return {"x": rng.random(n), "n": n}
"""


def write_task(folder: Path, name: str = "sums") -> Path:
    folder.mkdir(parents=True)
    (folder / "task.toml").write_text(TOML % name)
    (folder / "code.c").write_text(SLOW)
    (folder / "judge.py").write_text(JUDGE)
    return folder


def reply(source: str, analysis: str = "The volatile sum is stored and loaded in every round.") -> str:
    return (
        f"## Performance Analysis\n{analysis}\n\n## Algorithm Design\nLess work.\n\n"
        f"## Code Implementation\n### FILE: code.c\n```\n{source}\n```\n"
    )


# End to end


@contextlib.asynccontextmanager
async def session(folder: Path, said: Path) -> AsyncIterator[Client]:
    """A client of a server whose whole output is also kept in a file."""
    outpace = f"{sys.executable} -c 'from outpace.cli import main; main()'"
    line = f"{outpace} mcp {folder / 'tasks'} --folder {folder / 'kept'} | tee -a {said}"
    server = StdioServerParameters(command="/bin/sh", args=["-c", line])
    with (folder / "errors").open("a") as errors:
        async with Client(stdio_client(server, errors)) as client:
            yield client


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments, read_timeout_seconds=120)
    text = "".join(part.text for part in result.content)
    assert not result.is_error, text
    return text if tool == "next_prompt" else (result.structured_content or json.loads(text))


def test_an_agent_goes_through_three_trials_and_on_after_a_restart(tmp_path: Path) -> None:
    jail_or_skip(JAILS[0])
    tmp_path.chmod(0o755)
    write_task(tmp_path / "tasks" / "one")
    said = tmp_path / "said"

    async def first() -> None:
        async with session(tmp_path, said) as client:
            names = {tool.name for tool in (await client.list_tools()).tools}
            assert names == {"list_tasks", "next_prompt", "submit", "status"}
            listed = await call(client, "list_tasks")
            assert [task["task"] for task in listed["result"]] == ["sums"]

            early = await client.call_tool("submit", {"reply": reply(FAST)})
            assert early.is_error and "next_prompt" in early.content[0].text
            unknown = await client.call_tool("next_prompt", {"task": "diffs"})
            assert unknown.is_error and "choose one of sums" in unknown.content[0].text

            prompt = await call(client, "next_prompt", task="sums")
            assert "# Task: sums" in prompt and "volatile" in prompt
            assert await call(client, "next_prompt", task="sums") == prompt

            # The server answers while it judges.
            async with anyio.create_task_group() as group:
                verdicts: list[Any] = []

                async def judge() -> None:
                    verdicts.append(await call(client, "submit", reply=reply(FAST)))

                group.start_soon(judge)
                await anyio.sleep(0.3)
                with anyio.fail_after(5):
                    assert (await call(client, "status"))["tasks"]["sums"]["trials"] == 0
                assert not verdicts
            won = verdicts[0]
            assert (won["trial"], won["outcome"], won["win"]) == (1, "ok", True)
            low, high = won["interval"]
            assert low <= won["speed_up"] <= high and won["best"]["win"]

            assert "# Earlier implementations" in await call(client, "next_prompt", task="sums")
            wrong = await call(client, "submit", reply=reply(WRONG))
            assert (wrong["trial"], wrong["outcome"], wrong["speed_up"]) == (2, "wrong", None)
            assert "expected" in wrong["reason"] and wrong["best"]["win"]

            prompt = await call(client, "next_prompt", task="sums")
            again = await call(client, "submit", reply=reply(FAST + "int y;", analysis="short"))
            assert again["outcome"] == "asked again" and "Performance Analysis" in again["reason"]
            broken = await call(client, "submit", reply=reply("double total("))
            assert (broken["trial"], broken["outcome"]) == (3, "build_failed")

            state = await call(client, "status")
            assert state["doing"] == "nothing" and state["last"]["trial"] == 3
            assert state["tasks"]["sums"]["outcomes"] == {"build_failed": 1, "ok": 1, "wrong": 1}
            await call(client, "next_prompt", task="sums")

    async def second() -> str:
        async with session(tmp_path, said) as client:
            return str(await call(client, "next_prompt", task="sums"))

    anyio.run(first)
    with Archive.open(tmp_path / "kept" / "archive.sqlite") as archive:
        run = archive.run("sums-mcp")
        (left_open,) = archive.open_trials(run)
        assert left_open.number == 4
        assert archive.costs(run).calls == 4
    assert anyio.run(second) == left_open.asked.text
    lines = said.read_text().splitlines()
    assert lines and all(json.loads(line)["jsonrpc"] == "2.0" for line in lines)
    assert "an input" in (tmp_path / "errors").read_text()
    assert list((tmp_path / "kept" / "work").glob("*")) == []


# The desk, with a judge that is quick


class Quick:
    """Says how fast a source is by its length; every verdict is made on one thread."""

    def __init__(self) -> None:
        self.threads: set[int] = set()
        self.closed = False

    def judge(self, candidate: Candidate) -> Verdict:
        self.threads.add(threading.get_ident())
        ratio = 1.0 + len(candidate.files["code.c"]) / 1000
        return Verdict(Outcome.OK, "", SpeedUp(ratio, ratio - 0.01, ratio + 0.01, True, 8), (), 0.1)

    def confirm(self, candidate: Candidate) -> Verdict:
        return self.judge(candidate)

    def inspect(self) -> SpeedUp:
        return SpeedUp(1.0, 0.99, 1.01, False, 8)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    quick = Quick()

    @contextlib.contextmanager
    def judge_of(*_: object) -> Iterator[Quick]:
        yield quick
        quick.closed = True

    for name in ("sums", "more"):
        write_task(tmp_path / "tasks" / name, name)
    tasks = find_tasks([tmp_path / "tasks"])
    made = Desk(tasks, tmp_path / "archive.sqlite", judge_of, machine.describe(), name=None, seed=1)
    yield made
    made.close()
    assert quick.closed == bool(made.status()["tasks"])


def test_two_tasks_can_be_open_at_once(desk: Desk) -> None:
    desk.next_prompt("sums")
    desk.next_prompt("more")
    assert desk.submit(reply(FAST))["task"] == "more"
    assert desk.submit(reply(FAST), "sums")["task"] == "sums"
    with pytest.raises(PolicyError, match="no open prompt"):
        desk.submit(reply(FAST))
    assert {name: state["trials"] for name, state in desk.status()["tasks"].items()} == {"sums": 1, "more": 1}


def test_a_reply_without_analysis_is_asked_for_once_more_and_then_judged(desk: Desk) -> None:
    desk.next_prompt("sums")
    bare = reply(FAST, analysis="")
    assert desk.submit(bare)["outcome"] == "asked again"
    assert desk.submit(bare)["outcome"] == "unusable"
    assert desk.status()["tasks"]["sums"]["outcomes"] == {"unusable": 1}


def test_a_huge_reply_is_refused_and_the_prompt_stays_open(desk: Desk) -> None:
    desk.next_prompt("sums")
    with pytest.raises(PolicyError, match="4 MB"):
        desk.submit("x" * (5 << 20))
    assert desk.submit(reply(FAST))["trial"] == 1


def test_a_task_that_is_not_there_is_told_with_those_that_are(desk: Desk) -> None:
    with pytest.raises(TaskError, match="choose one of more, sums"):
        desk.next_prompt("other")


def test_folders_without_tasks_and_names_twice_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OutpaceError, match=r"no task\.toml"):
        find_tasks([tmp_path])
    write_task(tmp_path / "a")
    write_task(tmp_path / "b")
    with pytest.raises(TaskError, match="two tasks are named sums"):
        find_tasks([tmp_path])
    assert list(find_tasks([tmp_path / "a"])) == ["sums"]
