"""A headless Chromium driven over its DevTools pipe, with nothing but the standard library."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-extensions", "--hide-scrollbars",
)  # fmt: skip
# Chromium reads commands from descriptor 3 and answers on 4; ours have other numbers when it is started.
LAUNCH = """
import fcntl, os, sys
commands, answers = (fcntl.fcntl(int(each), fcntl.F_DUPFD, 10) for each in sys.argv[1:3])
os.dup2(commands, 3)
os.dup2(answers, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""


class Page:
    """One tab; what it logs, throws or asks the network for is kept."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = os.fdopen(commands, "wb"), os.fdopen(answers, "rb")
        self._serial = 0
        self._pending = b""
        self._session = ""
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> Self:
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        self._commands.close()
        self._answers.close()

    def send(self, method: str, **params: Any) -> dict[str, Any]:
        """Give one command and wait for its answer."""
        self._serial += 1
        message = {"id": self._serial, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        self._commands.write(json.dumps(message).encode() + b"\0")
        self._commands.flush()
        while True:
            answer = self._read()
            if answer.get("id") == self._serial:
                assert "error" not in answer, answer["error"]
                return dict(answer["result"])
            self.events.append(answer)

    def open(self, path: Path, *, width: int, dark: bool = False) -> None:
        """Load a file in a window of this width, and wait until it is there."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=844, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", features=[scheme])
        self.events.clear()
        self.send("Page.navigate", url=path.absolute().as_uri())
        while not any(each.get("method") == "Page.loadEventFired" for each in self.events):
            self.events.append(self._read())

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression; the page's own policy does not bind this."""
        return self.send("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def complaints(self) -> list[str]:
        """Errors on the console, exceptions and what the content policy blocked."""
        found = []
        for each in self.events:
            params = each.get("params", {})
            if each.get("method") == "Runtime.exceptionThrown":
                found.append(str(params["exceptionDetails"]))
            if each.get("method") == "Log.entryAdded":
                found.append(str(params["entry"]))
            if each.get("method") == "Runtime.consoleAPICalled":
                found.append(str(params["args"]))
        return found

    def requests(self) -> list[str]:
        """The addresses that were asked for."""
        sent = (each for each in self.events if each.get("method") == "Network.requestWillBeSent")
        return [str(each["params"]["request"]["url"]) for each in sent]

    def screenshot(self) -> bytes:
        """The whole page as a PNG."""
        size = self.send("Page.getLayoutMetrics")["cssContentSize"]
        taken = self.send("Page.captureScreenshot", captureBeyondViewport=True, clip={**size, "scale": 1})
        return base64.b64decode(taken["data"])

    def _read(self) -> dict[str, Any]:
        while b"\0" not in self._pending:
            more = self._answers.read1(1 << 16)
            assert more, "Chromium ended before it answered"
            self._pending += more
        message, _, self._pending = self._pending.partition(b"\0")
        return dict(json.loads(message))


@contextmanager
def chromium(program: str, profile: Path) -> Iterator[Page]:
    """A browser with a profile of its own, gone afterwards."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    command = [program, *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-pipe", "about:blank"]
    process = subprocess.Popen(
        [sys.executable, "-c", LAUNCH, str(theirs_in), str(theirs_out), *command],
        pass_fds=(theirs_in, theirs_out), stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        with Page(ours_out, ours_in) as page:
            yield page
    finally:
        process.terminate()
        process.wait()
