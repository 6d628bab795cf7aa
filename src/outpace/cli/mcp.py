"""`outpace mcp`: let a coding agent work on tasks over the Model Context Protocol."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from pathlib import Path

from outpace import machine
from outpace.domains.program import ProgramDomain
from outpace.errors import TaskError
from outpace.judge.jail import JailKind, best_jail
from outpace.judge.judge import Judge
from outpace.mcp_server import Desk, find_tasks, serve
from outpace.task import Task


def mcp(*tasks: Path, folder: Path = Path(".outpace"), name: str | None = None, no_jail: bool = False) -> int:
    """Serve prompts and verdicts to a coding agent, on standard input and output.

    The agent gets four tools: list_tasks, next_prompt, submit and status. Start it from the agent's settings, for
    example as the command `outpace mcp examples/csv-sum`.

    Parameters
    ----------
    tasks
        Folders with a task.toml, or folders that hold such folders.
    folder
        Where the archive is kept.
    name
        The run's name; by default the task's name and mcp.
    no_jail
        Judge without a jail. Only for code you trust with this machine.
    """
    if not tasks:
        raise TaskError("no task is named: give one or more folders with a task.toml")
    found = find_tasks(tasks)
    kind: JailKind = "none" if no_jail else best_jail()

    # Absolute: without a jail a candidate is started from a folder of its own.
    work = (folder / "work").absolute()

    def judge_of(task: Task, say: Callable[[str], None]) -> Judge:
        return Judge(ProgramDomain(task), jail=kind, workspace=work, progress=say)

    # The thread that reads standard input cannot be interrupted; a kill loses nothing and takes the jail with it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    seed = random.SystemRandom().getrandbits(32)
    serve(Desk(found, folder / "archive.sqlite", judge_of, machine.describe(), name=name, seed=seed))
    return 0
