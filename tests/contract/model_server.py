"""A model's server on loopback whose every answer is scripted, faults included."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = Callable[["Call"], None]


class Call(BaseHTTPRequestHandler):
    """One request; an Answer does with it what a real server might."""

    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.close_connection = True
        with self.server.lock:
            self.server.book.requests.append((self.path, self.headers, body))
            number = len(self.server.book.requests) - 1
        self.server.book.arrived.release()
        script = self.server.book.script
        # A client that hangs up is what many of the scripts provoke.
        with contextlib.suppress(ConnectionError):
            script[min(number, len(script) - 1)](self)

    def begin(self, kind: str = "text/event-stream", status: int = 200, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Connection": "close", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()

    def event(self, value: object) -> None:
        text = value if isinstance(value, str) else json.dumps(value)
        self.wfile.write(f"data: {text}\n\n".encode())
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Nothing: tests read the book instead."""


@dataclass
class Book:
    """What is asked of the server and what it will answer; the last answer is given again and again."""

    url: str = ""
    script: list[Answer] = field(default_factory=list)
    requests: list[tuple[str, Message, dict[str, Any]]] = field(default_factory=list)
    arrived: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    # Set when the test ends, so that no answer outlives it.
    over: threading.Event = field(default_factory=threading.Event)

    @property
    def prompts(self) -> list[str]:
        return [body["messages"][0]["content"] for _, _, body in self.requests]


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    block_on_close = True

    def __init__(self, book: Book) -> None:
        super().__init__(("127.0.0.1", 0), Call)
        self.book = book
        self.lock = threading.Lock()
        book.url = f"http://127.0.0.1:{self.server_address[1]}/v1"


@contextlib.contextmanager
def serving(*script: Answer) -> Iterator[Book]:
    """A server that gives these answers in turn."""
    book = Book(script=list(script))
    server = _Server(book)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield book
    finally:
        book.over.set()
        server.shutdown()
        thread.join()
        server.server_close()


def chunk(text: str | None = None, finish: str | None = None, **more: Any) -> dict[str, Any]:
    delta = {} if text is None else {"content": text}
    return {"choices": [{"index": 0, "delta": delta | more, "finish_reason": finish}]}


def says(text: str, usage: tuple[int, int] | None = (100, 50), done: bool = True) -> Answer:
    """A whole reply, in pieces that cut words and characters apart as they come."""

    def answer(call: Call) -> None:
        call.begin()
        call.wfile.write(b": a comment that keeps the line open\r\n\r\n")
        for at in range(0, len(text), 7):
            call.event(chunk(text[at : at + 7]))
        call.event(chunk(finish="stop"))
        if usage is not None:
            call.event({"choices": [], "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1]}})
        if done:
            call.event("[DONE]")

    return answer


def refuses(status: int, message: str = "no", code: str = "", **headers: str) -> Answer:
    def answer(call: Call) -> None:
        call.begin("application/json", status, **headers)
        call.wfile.write(json.dumps({"error": {"message": message, "code": code}}).encode())

    return answer


def writes(*lines: str, kind: str = "text/event-stream") -> Answer:
    """These bytes and then the end of the connection."""

    def answer(call: Call) -> None:
        call.begin(kind)
        call.wfile.write("".join(lines).encode())

    return answer


def sends_events(*events: Mapping[str, Any] | str) -> Answer:
    def answer(call: Call) -> None:
        call.begin()
        for event in events:
            call.event(event)

    return answer


def cuts_the_stream(call: Call) -> None:
    """Promises more bytes than it sends, in the middle of an event."""
    call.begin(Content_Length="100000")
    call.event(chunk("## Performance Analysis\n"))
    call.wfile.write(b'data: {"choices": [{"del')


def hangs(call: Call) -> None:
    """Takes the request and never says a word."""
    call.server.book.over.wait(60)


def falls_silent(call: Call) -> None:
    """Begins and then says nothing more."""
    call.begin()
    call.event(chunk("## Perf"))
    call.server.book.over.wait(60)


def never_ends(call: Call) -> None:
    call.begin()
    while not call.server.book.over.is_set():
        call.event(chunk("and so on " * 100))


def never_ends_a_line(call: Call) -> None:
    call.begin()
    call.wfile.write(b"data: ")
    while not call.server.book.over.is_set():
        call.wfile.write(b"x" * 65536)


def thinks_for_ever(call: Call) -> None:
    call.begin()
    while not call.server.book.over.is_set():
        call.event(chunk(reasoning_content="hm " * 300))


def drips_comments(call: Call) -> None:
    """Never silent, never an event."""
    call.begin()
    while not call.server.book.over.wait(0.01):
        call.wfile.write(b": still here\n\n")


def endless_error(call: Call) -> None:
    call.begin("text/plain", 500)
    while not call.server.book.over.is_set():
        call.wfile.write(b"e" * 65536)
