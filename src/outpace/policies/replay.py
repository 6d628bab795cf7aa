"""Replay: a policy that gives the replies of an earlier run again, trial by trial."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from outpace.archive import Reading, RunRecord
from outpace.errors import PolicyError
from outpace.policies.base import Lesson, Prompt, Reply


class Replay:
    """The replies of one run; nothing is asked, so nothing is spent."""

    name = "replay"

    def __init__(self, archive: Path | str, run: str | None = None) -> None:
        path = Path(archive)
        # Opening an archive that is not there would make one.
        if not path.is_file():
            raise PolicyError(f"{path} is no file: name the archive whose run is to be replayed")
        with Reading.open(path) as opened:
            played = _only_run(opened) if run is None else opened.run(run)
            self._replies = {trial.number: trial.reply for trial in opened.trials(played) if trial.reply is not None}
        self._source = f"run {played.name} of {path}"

    def propose(self, prompt: Prompt) -> Reply:
        """What was answered at the trial of this number."""
        reply = self._replies.get(prompt.trial)
        if reply is None:
            last = max(self._replies, default=0)
            raise PolicyError(
                f"{self._source} has no reply for trial {prompt.trial}, its last is {last}: "
                f"replay no more than it has, or go on with another policy"
            )
        return Reply(reply)

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """What was said once is said again, whatever came of it."""

    def save(self) -> bytes:
        """Nothing: the trial's number says it all."""
        return b""

    def restore(self, state: bytes) -> None:
        """Nothing was saved."""


def _only_run(archive: Reading) -> RunRecord:
    runs = archive.runs()
    if len(runs) != 1:
        names = ", ".join(dict.fromkeys(run.name for run in runs)) or "none"
        raise PolicyError(f"{archive.path} has {len(runs)} runs ({names}): say which one to replay")
    return runs[0]
