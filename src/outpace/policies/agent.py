"""Agent: a policy that is whoever watches a folder, where prompts appear as files and replies are awaited."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from outpace.cost import Cost
from outpace.errors import PolicyError
from outpace.policies.base import Lesson, NoReply, Prompt, Reply

MAX_BYTES = 4 << 20
LOOK_SECONDS = 0.5
# A file that did not change for so many looks is whole; one that is renamed into place always is.
STABLE_LOOKS = 3


class Agent:
    """Writes trial-0001.prompt.md, waits for trial-0001.reply.md, and so on."""

    name = "agent"

    def __init__(
        self,
        agent_folder: Path | str,
        reply_seconds: float = 24 * 3600.0,
        *,
        wait: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._folder = Path(agent_folder)
        self._seconds = reply_seconds
        self._wait, self._clock, self._say = wait, clock, say
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise PolicyError(
                f"the folder {self._folder} cannot be made ({error.strerror}): name another --agent-folder"
            ) from None

    def propose(self, prompt: Prompt) -> Reply:
        """The reply that is put beside the prompt; one that is there already is taken."""
        asked = self._folder / f"trial-{prompt.trial:04d}.prompt.md"
        answered = self._folder / f"trial-{prompt.trial:04d}.reply.md"
        begin = self._clock()
        try:
            self._put(asked, answered, prompt.text)
            text = self._await(answered, begin + self._seconds)
        except OSError as error:
            raise PolicyError(
                f"{error.filename} cannot be used ({error.strerror}): mend that, then start the same command again"
            ) from None
        if text is None:
            waited = Cost(seconds=self._clock() - begin, calls=1, failed_calls=1)
            raise NoReply(
                f"no {answered.name} came in {self._seconds:g} s: put it into {self._folder}, "
                "then start the same command again, which takes it",
                waited,
            )
        return Reply(text, Cost(seconds=self._clock() - begin, calls=1))

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """The agent is told scores by the next prompt alone."""

    def save(self) -> bytes:
        """Nothing: the folder remembers."""
        return b""

    def restore(self, state: bytes) -> None:
        """Nothing was saved."""

    def _put(self, asked: Path, answered: Path, text: str) -> None:
        """Write the prompt, unless it is there; a reply that a reminder finds wanting is moved away."""
        raw = text.encode("utf-8", "replace")
        known = asked.read_bytes() if asked.exists() else None
        # After a kill the prompt in the folder may be the one with a reminder.
        if known is not None and known.startswith(raw):
            return
        if known is not None:
            if not raw.startswith(known):
                raise PolicyError(
                    f"{asked} is of another run: name an empty folder with --agent-folder, or move its files away"
                )
            if answered.exists():
                answered.replace(answered.with_name(answered.name.replace(".reply.", ".reply-without-analysis.")))
        part = asked.with_name(f".{asked.name}.part")
        part.write_bytes(raw)
        part.replace(asked)

    def _await(self, path: Path, deadline: float) -> str | None:
        seen: tuple[int, int] | None = None
        looks = 0
        while True:
            self._say(f"waiting for {path}")
            now = _stamp(path)
            looks = looks + 1 if now == seen else 0
            seen = now
            if now is not None and now[0] and looks >= STABLE_LOOKS:
                return path.read_bytes().decode("utf-8", "replace")
            # A reply that is still growing when time is up is not cut off.
            if self._clock() > deadline and now is None:
                return None
            self._wait(LOOK_SECONDS)


def _stamp(path: Path) -> tuple[int, int] | None:
    """Size and time of a file, or None where there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    if found.st_size > MAX_BYTES:
        raise PolicyError(f"{path} has {found.st_size} bytes and at most {MAX_BYTES} are read: shorten it")
    return found.st_size, found.st_mtime_ns
