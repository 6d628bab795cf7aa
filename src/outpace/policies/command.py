"""Command: a policy that is any program, with the prompt on its input and the reply on its output."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import IO

from outpace.cost import Cost
from outpace.errors import PolicyError
from outpace.policies.base import Lesson, NoReply, Prompt, Reply
from outpace.policies.secrets import one_line

MAX_BYTES = 4 << 20
_LOOK_SECONDS = 0.05
_LAST_WORDS = 2000


class Command:
    """Not jailed: it is the user's own tool, and gets the user's environment."""

    name = "command"

    def __init__(
        self,
        command: str,
        reply_seconds: float = 1800.0,
        *,
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        try:
            self._argv = shlex.split(command)
        except ValueError as error:
            raise PolicyError(f"--command cannot be read ({error}): quote it as for a shell") from None
        if not self._argv:
            raise PolicyError("--command is empty: name a program that reads a prompt and prints a reply")
        self._seconds = reply_seconds
        self._environment = environment
        self._clock = clock
        self._say = say

    def propose(self, prompt: Prompt) -> Reply:
        """What the program prints for this prompt."""
        self._say(f"{self._argv[0]} is at work")
        begin = self._clock()
        try:
            text = self._run(prompt)
        except PolicyError as error:
            cost = Cost(seconds=self._clock() - begin, calls=1, failed_calls=1)
            raise NoReply(f"{error}; the prompt stays open, start the same command again to go on", cost) from None
        return Reply(text, Cost(seconds=self._clock() - begin, calls=1))

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """The program is told scores by the next prompt alone."""

    def save(self) -> bytes:
        """Nothing: what the program remembers is its own affair."""
        return b""

    def restore(self, state: bytes) -> None:
        """Nothing was saved."""

    def _run(self, prompt: Prompt) -> str:
        # Files rather than pipes: neither a program that reads late nor a child that keeps its output open
        # can hold us up, and a flood is seen before it is in memory.
        file = tempfile.TemporaryFile
        with file() as given, file() as out, file() as err:
            given.write(prompt.text.encode("utf-8", "replace"))
            given.seek(0)
            environment = {**self._environment, "OUTPACE_TRIAL": str(prompt.trial)}
            try:
                process = subprocess.Popen(
                    self._argv, stdin=given, stdout=out, stderr=err, env=environment, start_new_session=True
                )
            except (OSError, ValueError) as error:
                raise PolicyError(f"{self._argv[0]} cannot be started ({error}): check --command") from None
            try:
                self._watch(process, out, err)
            except BaseException:
                # The whole group, so that what the program started does not go on spending.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise
            if process.returncode != 0:
                raise PolicyError(f"{self._argv[0]} {_ending(process.returncode)}{self._last_words(err)}")
            text = _content(out, 0).decode("utf-8", "replace")
            if not text.strip():
                raise PolicyError(f"{self._argv[0]} printed no reply{self._last_words(err)}")
            return text

    def _watch(self, process: subprocess.Popen[bytes], out: IO[bytes], err: IO[bytes]) -> None:
        deadline = self._clock() + self._seconds
        while True:
            try:
                process.wait(_LOOK_SECONDS)
                ended = True
            except subprocess.TimeoutExpired:
                ended = False
            for file in (out, err):
                if os.fstat(file.fileno()).st_size > MAX_BYTES:
                    raise PolicyError(
                        f"{self._argv[0]} printed more than {MAX_BYTES >> 20} MB and was killed: "
                        "make it print the reply alone"
                    )
            if ended:
                return
            if self._clock() > deadline:
                raise PolicyError(
                    f"{self._argv[0]} took longer than {self._seconds:g} s and was killed: "
                    f"raise --reply-seconds{self._last_words(err)}"
                )

    def _last_words(self, err: IO[bytes]) -> str:
        size = os.fstat(err.fileno()).st_size
        words = _content(err, max(size - _LAST_WORDS, 0)).decode("utf-8", "replace").strip()
        return f" (it said: {one_line(words, self._environment)})" if words else " (it said nothing)"


def _content(file: IO[bytes], begin: int) -> bytes:
    # The program shares the file's position, so read by offset and leave that alone.
    return os.pread(file.fileno(), MAX_BYTES + 1, begin)


def _ending(code: int) -> str:
    if code > 0:
        return f"ended with exit status {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
