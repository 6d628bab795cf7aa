"""OpenAI: a policy that asks any server that speaks OpenAI's chat protocol, and never endlessly."""

from __future__ import annotations

import importlib
import ipaddress
import json
import os
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

from outpace.cost import Cost
from outpace.errors import PolicyError
from outpace.estimate import Prices, most_tokens, tokens, tokens_of
from outpace.policies.base import Exhausted, Lesson, NoReply, Prompt, Reply
from outpace.policies.secrets import one_line, redacted
from outpace.policies.stream import Again, Reading, events

MAX_TOKENS = 16384
ATTEMPTS = 6
FIRST_WAIT = 1.0
LONGEST_WAIT = 60.0
# A server that asks for more patience than this is better asked again by a person.
MOST_PATIENCE = 300.0
# Twice what a token is on average; a longer reply comes from a server that does not heed --max-tokens.
BYTES_PER_TOKEN = 8
# Of an error's body; what it says stands at its beginning.
ERROR_BYTES = 1 << 16
DEFAULT_URL = "https://api.openai.com/v1"

_AGAIN = "the prompt stays open; start the same command again to go on"
_ADVICE = {
    401: "set OPENAI_API_KEY to a key of this server",
    403: "set OPENAI_API_KEY to a key that may use this model",
    404: "check --model and --base-url",
}
_GENERAL_ADVICE = "check --model, --max-tokens and --temperature"


class _Refused(Exception):
    """An answer with an error status, with the beginning of its body."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"status {status}")
        self.status = status
        self.headers = headers
        self.body = body


class OpenAI:
    """A model behind a server; no call is made that could cost more than the budget has left."""

    name = "openai"

    def __init__(
        self,
        model: str,
        base_url: str | None = None,
        temperature: float | None = None,
        max_tokens: int = MAX_TOKENS,
        timeout: float = 300.0,
        reply_seconds: float = 1800.0,
        price_in: float = 0.0,
        price_out: float = 0.0,
        *,
        environment: Mapping[str, str] = os.environ,
        wait: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        _check(max_tokens, temperature, timeout, reply_seconds, price_in, price_out)
        self._environment = environment
        self._url = base_url or environment.get("OPENAI_BASE_URL") or DEFAULT_URL
        host = _host(self._url, environment)
        self._model = model
        self._temperature = temperature
        self._max_tokens = max_tokens
        self._seconds = reply_seconds
        self._prices = Prices(price_in, price_out)
        self._wait, self._clock, self._chance, self._say = wait, clock, chance, say
        # OpenAI's newer models refuse the one name, most other servers do not know the other.
        self._limit_name = "max_completion_tokens" if host == _host(DEFAULT_URL, {}) else "max_tokens"
        try:
            self._library: Any = importlib.import_module("openai")
        except ImportError:
            raise PolicyError("policy openai needs the package openai: run `pip install 'outpace[openai]'`") from None
        # Of httpx or its successor, whichever the library was built on.
        bases = (each.__module__.partition(".")[0] for each in self._library.DefaultHttpxClient.__mro__)
        self._http: Any = importlib.import_module(next(name for name in bases if name.startswith("httpx")))
        self._client = self._connect(_key(environment, host), min(timeout, reply_seconds), _is_loopback(host))

    def _connect(self, key: str, timeout: float, loopback: bool) -> Any:
        # A proxy's loopback is not ours; what names one in the environment must not carry our prompts away.
        http = self._library.DefaultHttpxClient(
            trust_env=not loopback,
            timeout=timeout,
            # Minutes of judging lie between two calls; no server keeps a connection that long.
            limits=self._http.Limits(max_keepalive_connections=0),
            event_hooks={"response": [_refuse]},
        )
        try:
            return self._library.OpenAI(
                api_key=key, base_url=self._url, timeout=timeout, max_retries=0, http_client=http
            )
        except (self._library.OpenAIError, ValueError, TypeError) as error:
            raise PolicyError(f"the model's server cannot be reached so: {self._told(str(error))}") from None

    def propose(self, prompt: Prompt) -> Reply:
        """The model's reply; what may pass is tried again, and every call is paid for."""
        spent = Cost()
        for attempt in range(1, ATTEMPTS + 1):
            self._refuse_overdraft(prompt, spent)
            self._say(f"asking {self._model}")
            reading = Reading(self._max_tokens * BYTES_PER_TOKEN)
            begin = self._clock()
            problem: Again | None = None
            try:
                self._call(prompt.text, reading, begin + self._seconds)
            except Again as reason:
                problem = reason
            except PolicyError as error:
                failed = self._cost(prompt.text, reading, begin, failed=True)
                raise NoReply(str(error), spent + failed) from None
            spent += self._cost(prompt.text, reading, begin, failed=problem is not None)
            if problem is None:
                return Reply("".join(reading.text), spent)
            told = self._told(str(problem))
            if attempt == ATTEMPTS or (problem.wait or 0.0) > MOST_PATIENCE:
                raise NoReply(f"{self._where} gave no reply in {attempt} calls ({told}): {_AGAIN}", spent)
            pause = self._pause(attempt, problem.wait)
            self._say(f"{told}; asking again in {pause:.0f} s")
            self._wait(pause)
        raise AssertionError("unreachable")

    def learn(self, lessons: Sequence[Lesson]) -> None:
        """A model behind a server is what it is."""

    def save(self) -> bytes:
        """Nothing: the prompt holds all that the model is told."""
        return b""

    def restore(self, state: bytes) -> None:
        """Nothing was saved."""

    # Budget

    def _refuse_overdraft(self, prompt: Prompt, spent: Cost) -> None:
        """Stop before a call that could cost more than is left."""
        most_in, most_out = most_tokens(prompt.text), self._max_tokens
        if "tokens" in prompt.remaining:
            left = prompt.remaining["tokens"] - spent.tokens_in - spent.tokens_out
            if most_in + most_out > left:
                raise Exhausted(
                    f"the next call may take {most_in + most_out} tokens and {left:.0f} are left "
                    "(--tokens; a lower --max-tokens reserves less)",
                    spent,
                )
        if "money" in prompt.remaining:
            left, most = prompt.remaining["money"] - spent.money, self._prices.money(most_in, most_out)
            if most > left:
                raise Exhausted(
                    f"the next call may cost {most:.4g} and {left:.4g} is left "
                    "(--money; a lower --max-tokens reserves less)",
                    spent,
                )

    def _cost(self, prompt: str, reading: Reading, begin: float, *, failed: bool) -> Cost:
        """What a call cost; a failed one is charged for tokens only where some are known to have come."""
        counted, guessed = reading.usage or (0, 0), False
        if reading.usage is None and (reading.size or not failed):
            counted, guessed = (tokens(prompt), tokens_of(reading.size)), True
        return Cost(
            *counted,
            self._prices.money(*counted),
            self._clock() - begin,
            calls=1,
            failed_calls=int(failed),
            estimated_calls=int(guessed),
        )

    def _pause(self, attempt: int, asked: float | None) -> float:
        # Jitter, so that several runs that failed together do not come back together.
        wait = min(FIRST_WAIT * 2.0 ** (attempt - 1), LONGEST_WAIT)
        chance = self._chance()
        return asked + wait * chance if asked is not None else wait * (0.5 + chance / 2)

    # One call

    def _call(self, prompt: str, reading: Reading, deadline: float) -> None:
        # Past the library's own check, which knows only the names of its day.
        settings: dict[str, Any] = {self._limit_name: self._max_tokens}
        if self._temperature is not None:
            settings["temperature"] = self._temperature
        # A lone surrogate, as a compiler's broken output brings it, cannot be sent.
        sendable = prompt.encode("utf-8", "replace").decode()
        try:
            with self._client.chat.completions.with_streaming_response.create(
                model=self._model, messages=[{"role": "user", "content": sendable}], stream=True,
                stream_options={"include_usage": True}, extra_body=settings,
            ) as response:  # fmt: skip
                streamed = "event-stream" in response.headers.get("content-type", "")
                for data in events(self._until(response.iter_bytes(), deadline), reading.limit, streamed):
                    reading.take(data)
                    if reading.done:
                        break
        except _Refused as refused:
            self._refused(refused)
        except self._library.APITimeoutError:
            raise Again("the server took too long to answer") from None
        except self._library.APIConnectionError as error:
            # Earlier versions of the library wrap everything, what our hook raised included.
            if isinstance(error.__cause__, _Refused):
                self._refused(error.__cause__)
            raise Again(f"no connection: {error.__cause__ or error}") from None
        except (self._http.HTTPError, self._http.StreamError) as error:
            # What comes after the end is of no use; some servers leave the line open, some drop it.
            if not reading.complete:
                silent = isinstance(error, self._http.TimeoutException)
                raise Again("the server fell silent" if silent else f"the connection broke: {error}") from None
        except self._library.OpenAIError as error:
            raise PolicyError(f"{self._where} answered oddly ({self._told(str(error))}): {_GENERAL_ADVICE}") from None
        except UnicodeError as error:
            raise PolicyError(f"--model is no text that can be sent ({error}): spell it again") from None
        self._check(reading)

    def _until(self, chunks: Iterable[bytes], deadline: float) -> Iterator[bytes]:
        for chunk in chunks:
            yield chunk
            if self._clock() > deadline:
                raise Again(f"the reply had no end after {self._seconds:g} s (see --reply-seconds)")

    def _check(self, reading: Reading) -> None:
        if not reading.complete:
            raise Again("the stream was cut before its end")
        if not "".join(reading.text).strip():
            if reading.finish == "length":
                raise PolicyError(
                    f"{self._where} spent all {self._max_tokens} tokens before its answer: raise --max-tokens"
                )
            raise Again(f"the reply is empty ({reading.finish or 'no reason given'})")

    def _refused(self, refused: _Refused) -> None:
        """What an error status means: try again, or tell the user what to do."""
        said = _message(refused.body)
        status = refused.status
        out_of_credit = b"insufficient_quota" in refused.body
        if (status in (408, 429) and not out_of_credit) or status >= 500:
            raise Again(f"status {status}: {said}", _retry_after(refused.headers, time.time()))
        other = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
        if status == 400 and other[self._limit_name] in said and "instead" in said:
            self._limit_name = other[self._limit_name]
            raise Again(f"the model wants {self._limit_name}")
        advice = "add credit, or use another key" if out_of_credit else _ADVICE.get(status, _GENERAL_ADVICE)
        # A server's words on a key may hold a part of it.
        quoted = f" ({self._told(said)})" if said and status not in (401, 403) else ""
        raise PolicyError(f"{self._where} answered with status {status}{quoted}: {advice}")

    @property
    def _where(self) -> str:
        return f"{self._model} at {redacted(self._url, self._environment)}"

    def _told(self, text: str) -> str:
        return one_line(text, self._environment, 200)


def _check(
    max_tokens: int,
    temperature: float | None,
    timeout: float,
    reply_seconds: float,
    price_in: float,
    price_out: float,
) -> None:
    """Refuse settings that no call can have; written so that a NaN is refused too."""
    above = {"--max-tokens": max_tokens, "--timeout": timeout, "--reply-seconds": reply_seconds}
    for name, value in above.items():
        if not 0 < value < float("inf"):
            raise PolicyError(f"{name} is {value}: give a number above 0")
    from_zero = {"--price-in": price_in, "--price-out": price_out, "--temperature": temperature or 0.0}
    for name, value in from_zero.items():
        if not 0 <= value < float("inf"):
            raise PolicyError(f"{name} is {value}: give 0 or more")


def _refuse(response: Any) -> None:
    """Read an error's body here, where it can be bounded: the library would read it to its end."""
    if response.status_code < 400:
        return
    body = bytearray()
    begin = time.monotonic()
    for chunk in response.iter_bytes():
        body += chunk
        if len(body) > ERROR_BYTES or time.monotonic() - begin > LONGEST_WAIT:
            break
    raise _Refused(response.status_code, response.headers, bytes(body[:ERROR_BYTES]))


def _message(body: bytes) -> str:
    """What an error's body says, of the several forms that servers use."""
    text = body.decode("utf-8", "replace")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    for key in ("error", "message", "detail"):
        while isinstance(found, dict) and key in found:
            found = found[key]
    return found if isinstance(found, str) else json.dumps(found)


def _retry_after(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds that the server asks to wait, given as a number or as a date."""
    told = headers.get("retry-after", "")
    try:
        wait = float(told)
    except ValueError:
        try:
            wait = parsedate_to_datetime(told).timestamp() - now
        except (ValueError, TypeError, OverflowError):
            return None
    return wait if 0 < wait < float("inf") else None


def _host(url: str, environment: Mapping[str, str]) -> str:
    try:
        parts = urlsplit(url)
        host = parts.hostname if parts.scheme in ("http", "https") else None
    except ValueError:
        host = None
    if not host:
        raise PolicyError(
            f"{redacted(url, environment)} is no address of a server: give one such as http://127.0.0.1:8000/v1"
        )
    return host


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def _key(environment: Mapping[str, str], host: str) -> str:
    key = environment.get("OPENAI_API_KEY", "").strip()
    if key and not (key.isascii() and key.isprintable()):
        raise PolicyError("OPENAI_API_KEY holds characters that no key has: set it again")
    if not key and host == _host(DEFAULT_URL, {}):
        raise PolicyError(
            "OPENAI_API_KEY is not set: set it, or name a server of your own with --base-url (vLLM, Ollama, llama.cpp)"
        )
    # Servers without keys take any.
    return key or "none"
