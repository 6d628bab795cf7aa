"""`outpace prompt`: what a policy would be asked now."""

from __future__ import annotations

import json as json_module
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from outpace import machine
from outpace.archive import Archive, RunRecord
from outpace.budget import Budget
from outpace.judge.verdict import Verdict
from outpace.policies.base import Lesson, Prompt, Reply
from outpace.run import Run, Settings
from outpace.shown import shown_text
from outpace.task import Task
from outpace.task.candidate import Candidate
from outpace.task.file import load_task


def prompt(
    task: Path,
    /,
    *,
    policy: str = "moves",
    name: str | None = None,
    trials: int = 40,
    exemplars: str = Settings.exemplars,
    folder: Path = Path(".outpace"),
    json: bool = False,
) -> int:
    """Print what a policy would be asked now, without asking it; nothing is recorded.

    Parameters
    ----------
    task
        Folder with the task.toml.
    policy
        The policy that the run is for.
    name
        The run's name; by default the task's name and the policy's.
    trials
        The budget that the prompt speaks of.
    exemplars
        How the scored candidates are chosen in a run that is not begun yet.
    folder
        Where the run keeps its archive.
    json
        Print the prompt, its number and the candidates it shows as JSON.
    """
    loaded = load_task(task)
    file = folder / "archive.sqlite"
    with tempfile.TemporaryDirectory(prefix="outpace-prompt-") as scratch:
        # The two verbs of a run write down what they do, so they are used on a copy.
        copy = Path(scratch) / "archive.sqlite"
        if file.is_file():
            with Archive.open(file) as archive:
                archive.compact(copy)
        with Archive.open(copy) as archive:
            asked = _ask(archive, loaded, policy, name or f"{loaded.name}-{policy}", trials, exemplars)
    if json:
        chosen = [{"candidate": each.score.hash, "ratio": each.score.ratio} for each in asked.shown]
        print(json_module.dumps({"trial": asked.trial, "shown": chosen, "prompt": asked.text}, indent=1))
    else:
        # A pipe may lead to a model, which is to see what a run would show it; a person sees what strangers hid.
        print(shown_text(asked.text) if sys.stdout.isatty() else asked.text, end="")
    return 0


def _ask(archive: Archive, task: Task, policy: str, name: str, trials: int, exemplars: str) -> Prompt:
    begun = next((each for each in archive.runs() if each.name == name and each.task_hash == task.hash), None)
    run = Run(
        archive,
        task,
        _Nobody(policy),
        _Nobody(policy if begun is None else begun.policy),
        name=name,
        machine=machine.describe(),
        seed=0,
        settings=Settings(exemplars=exemplars) if begun is None else _settings(begun),
        budget=Budget(trials),
    )
    return run.next_prompt()


def _settings(begun: RunRecord) -> Settings:
    return Settings(**begun.settings)


class _Nobody:
    """A policy that is not asked and an examiner that judges nothing."""

    def __init__(self, name: str) -> None:
        self.name = name

    def propose(self, prompt: Prompt) -> Reply:
        raise AssertionError(f"trial {prompt.trial}: nobody is asked")

    def judge(self, candidate: Candidate) -> Verdict:
        raise AssertionError(f"{candidate.hash}: nothing is judged")

    def confirm(self, candidate: Candidate) -> Verdict:
        return self.judge(candidate)

    def learn(self, lessons: Sequence[Lesson]) -> None:
        raise AssertionError(f"{len(lessons)} lessons: nothing is learnt")

    def save(self) -> bytes:
        return b""

    def restore(self, state: bytes) -> None:
        """There is nothing to go on from: `state` is another policy's."""
        del state
