"""The MCP server: a coding agent asks for prompts and submits replies, over the same run and archive as the loop."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, Protocol, TypeVar

from outpace import __version__
from outpace.archive import Archive
from outpace.archive.records import Trial
from outpace.claims import confirmation
from outpace.cost import Cost
from outpace.errors import OutpaceError, PolicyError, TaskError
from outpace.judge.verdict import SpeedUp, Verdict
from outpace.machine import Machine
from outpace.policies.base import Lesson, Prompt, Reply
from outpace.run import Run, Settings
from outpace.scored import Scored
from outpace.shown import shown
from outpace.task import Task
from outpace.task.candidate import Candidate
from outpace.task.file import load_task

MAX_BYTES = 4 << 20
# Clients give up on a call that is silent for long; judging takes seconds, the first prompt of a task up to a minute.
_TELL_SECONDS = 1.0
_INSTRUCTIONS = (
    "Outpace judges whether code is faster. Call next_prompt with a task's name, think, write the reply that the "
    "prompt asks for, and submit it: it is built, checked and timed in a jail, which takes seconds, and you are "
    "told the verdict. Then call next_prompt again; it shows what scored well. Prompts and verdicts are kept, so "
    "a session can be broken off at any time."
)
T = TypeVar("T")


class Judging(Protocol):
    """A judge that can also say whether a task is fit to be judged."""

    def judge(self, candidate: Candidate) -> Verdict: ...

    def confirm(self, candidate: Candidate) -> Verdict: ...

    def inspect(self) -> SpeedUp: ...


JudgeOf = Callable[[Task, Callable[[str], None]], AbstractContextManager[Judging]]


class Visitor:
    """The policy's place in a run whose proposals come from outside; it is never asked."""

    name = "mcp"

    def propose(self, prompt: Prompt) -> Reply:
        """Nobody to ask: the agent comes by itself."""
        raise PolicyError(f"trial {prompt.trial} waits for an agent: start `outpace mcp` and let one submit")

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """The agent is told scores by verdicts and prompts."""

    def save(self) -> bytes:
        """Nothing."""
        return b""

    def restore(self, state: bytes) -> None:
        """Nothing was saved."""


class Desk:
    """What the tools do. All but `tasks` and `status` must be called on one thread, which must live as long as
    the desk: the archive belongs to it, and the jail dies with the thread that started it."""

    def __init__(
        self,
        tasks: Mapping[str, Task],
        archive: Path,
        judge_of: JudgeOf,
        machine: Machine,
        *,
        name: str | None,
        seed: int,
    ) -> None:
        self._tasks = tasks
        self._archive = archive
        self._judge_of = judge_of
        self._machine = machine
        self._name = name
        self._seed = seed
        self._held = ExitStack()
        self._opened: Archive | None = None
        self._runs: dict[str, Run] = {}
        self._asked: dict[str, Prompt] = {}
        self._reminded: set[str] = set()
        self._current = ""
        # Replaced as a whole and never changed, so that another thread can read them at any moment.
        self.doing = ""
        self._known: Mapping[str, Any] = {}
        self._last: Mapping[str, Any] | None = None

    # On any thread

    def tasks(self) -> list[dict[str, Any]]:
        """The tasks that can be worked on."""
        return [
            {"task": name, "description": task.description, "editable": list(task.editable)}
            for name, task in self._tasks.items()
        ]

    def status(self) -> dict[str, Any]:
        """What the judge is at, how far each task is, and the last verdict."""
        return {"doing": self.doing or "nothing", "tasks": dict(self._known), "last": self._last}

    # On the judging thread

    def next_prompt(self, name: str) -> str:
        """The open prompt of a task, or a new one; its text tells how to reply."""
        run = self._run_of(name)
        self._asked[name] = run.next_prompt()
        self._current = name
        self._note(name)
        return self._asked[name].text

    def submit(self, reply: str, name: str = "") -> dict[str, Any]:
        """The verdict on a reply to the prompt that was given last, or to that of the task named."""
        name = name or self._current
        asked = self._asked.get(name)
        if asked is None:
            raise PolicyError("there is no open prompt: call next_prompt first, it gives an unanswered one again")
        if len(reply.encode("utf-8", "surrogatepass")) > MAX_BYTES:
            raise PolicyError(f"the reply has more than {MAX_BYTES >> 20} MB: submit the three sections alone")
        run = self._runs[name]
        given = Reply(reply, Cost(calls=1))
        if name not in self._reminded and run.ask_again(asked, given) is not None:
            self._reminded.add(name)
            return {
                "trial": asked.trial,
                "outcome": "asked again",
                "reason": "the reply has no '## Performance Analysis' section: submit it again with all three sections",
                "best": _best(run.leader()),
            }
        verdict = run.tell(asked.trial, given)
        del self._asked[name]
        self._reminded.discard(name)
        self._last = {"task": name, "trial": asked.trial, **_verdict(verdict), "best": _best(run.leader())}
        self._note(name)
        return dict(self._last)

    def close(self) -> None:
        """Give back the judges and the archive."""
        self._held.close()

    def say(self, what: str) -> None:
        """What the judge is at."""
        self.doing = what

    def _run_of(self, name: str) -> Run:
        if name not in self._tasks:
            raise TaskError(f"there is no task '{name}': choose one of {', '.join(self._tasks)}")
        if name not in self._runs:
            self._runs[name] = self._start(self._tasks[name])
        return self._runs[name]

    def _start(self, task: Task) -> Run:
        if self._opened is None:
            self._opened = self._held.enter_context(Archive.open(self._archive))
        with ExitStack() as held:
            judge = held.enter_context(self._judge_of(task, self.say))
            run = Run(
                self._opened,
                task,
                judge,
                Visitor(),
                name=self._name or f"{task.name}-mcp",
                machine=self._machine,
                seed=self._seed,
                settings=Settings(),
            )
            if "fair" not in self._opened.notes(run.record):
                run.note("fair", judge.inspect().ratio)
            # What was submitted and not judged when the last server ended.
            run.recover()
            self._held.push(held.pop_all())
        return run

    def _note(self, name: str) -> None:
        run = self._runs[name]
        outcomes = run.outcomes()
        found = {
            "run": run.record.name,
            "trials": sum(outcomes.values()),
            "outcomes": outcomes,
            "best": _best(run.leader()),
            "open_prompt": name in self._asked,
        }
        self._known = {**self._known, name: found}


def find_tasks(folders: Sequence[Path]) -> dict[str, Task]:
    """The tasks in these folders, each of which is a task or holds some."""
    found: dict[str, Task] = {}
    for folder in folders:
        places = [folder] if (folder / "task.toml").is_file() else sorted(_below(folder))
        if not places:
            # Says what a task's folder needs.
            load_task(folder)
        for place in places:
            task = load_task(place)
            if task.name in found:
                raise TaskError(f"two tasks are named {task.name}: {found[task.name].folder} and {place}; rename one")
            found[task.name] = task
    return found


def serve(desk: Desk) -> None:
    """Speak MCP on standard input and output until the client goes."""
    try:
        library: Any = importlib.import_module("mcp.server.mcpserver")
        exceptions: Any = importlib.import_module("mcp.server.mcpserver.exceptions")
    except ImportError:
        raise PolicyError("`outpace mcp` needs the package mcp: run `pip install 'outpace[mcp]'`") from None
    server = library.MCPServer("outpace", instructions=_INSTRUCTIONS, version=__version__, log_level="ERROR")
    # One thread for all judging, and for as long as the server: a jail is killed when the thread that started it ends.
    thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="judging")

    async def judging(context: Any, work: Callable[[], T]) -> T:
        future = asyncio.get_running_loop().run_in_executor(thread, _quietly, work)
        seconds = 0.0
        while not future.done():
            # Not wait_for: a client that gives up must not take the verdict with it.
            await asyncio.wait([future], timeout=_TELL_SECONDS)
            seconds += _TELL_SECONDS
            if not future.done():
                await context.report_progress(seconds, None, desk.doing)
        desk.say("")
        try:
            return future.result()
        except OutpaceError as error:
            raise exceptions.ToolError(shown(str(error))) from None

    @server.tool()  # type: ignore[untyped-decorator]
    async def list_tasks() -> list[dict[str, Any]]:
        """The tasks that can be worked on: name, description, and the files that may be edited."""
        return desk.tasks()

    async def next_prompt(task: str, ctx: Any) -> str:
        """What to do next on a task: its code, scored examples, and the form of the reply.

        An unanswered prompt is given again. The first prompt of a task takes up to a minute, for its judge is tested.
        """
        return await judging(ctx, lambda: desk.next_prompt(task))

    async def submit(reply: str, ctx: Any, task: str = "") -> dict[str, Any]:
        """Judge a reply to the last prompt: outcome, reason, speed-up with its 99% interval, and the best so far.

        The reply has the three sections that the prompt asks for. `task` is needed only where several are open.
        """
        return await judging(ctx, lambda: desk.submit(reply, task))

    @server.tool()  # type: ignore[untyped-decorator]
    async def status() -> dict[str, Any]:
        """What the judge is doing now, the trials and the best of each task so far, and the last verdict."""
        return desk.status()

    for tool in (next_prompt, submit):
        # The library finds its context by this annotation, and it is imported only here.
        tool.__annotations__["ctx"] = library.Context
        server.tool()(tool)
    try:
        server.run("stdio")
    finally:
        thread.submit(desk.close).result()
        thread.shutdown()


def _quietly(work: Callable[[], T]) -> T:
    # A task's judge.py may print; what it prints must not come out between two messages, nor after the last.
    with contextlib.redirect_stdout(sys.stderr):
        return work()


def _below(folder: Path) -> list[Path]:
    return [path.parent for path in folder.glob("*/task.toml")] if folder.is_dir() else []


def _verdict(verdict: Verdict) -> dict[str, Any]:
    found = verdict.speed_up
    return {
        "outcome": str(verdict.outcome),
        "reason": verdict.reason,
        "speed_up": None if found is None else round(found.ratio, 4),
        "interval": None if found is None else [round(found.low, 4), round(found.high, 4)],
        "win": found is not None and found.win,
    }


def _best(leader: tuple[Scored, Trial] | None) -> dict[str, Any] | None:
    if leader is None:
        return None
    best, trial = leader
    return {
        "candidate": best.hash[:12],
        "speed_up": round(best.ratio, 4),
        "interval": [round(best.low, 4), round(best.high, 4)],
        "win": best.win,
        "confirmed": confirmation.confirmed(trial) is not None,
        "confirmation_failed": confirmation.failed(trial),
    }
