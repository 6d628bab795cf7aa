"""The openai policy against a real server on loopback, with every fault that a server may have."""

from __future__ import annotations

import email.utils
import time
from pathlib import Path
from typing import Any

import pytest
from model_server import (
    Answer,
    Book,
    Call,
    chunk,
    cuts_the_stream,
    drips_comments,
    endless_error,
    falls_silent,
    hangs,
    never_ends,
    never_ends_a_line,
    refuses,
    says,
    sends_events,
    serving,
    thinks_for_ever,
    writes,
)

from outpace.errors import PolicyError
from outpace.policies import make_policy
from outpace.policies.base import Exhausted, NoReply, Prompt
from outpace.policies.openai import ATTEMPTS, LONGEST_WAIT, MOST_PATIENCE, OpenAI
from outpace.task import Entry, Task
from outpace.task.candidate import reference

KEY = "sk-very-secret-0123456789"
TASK = Task("made", "", Path("made"), ("k.c",), {"k.c": b"int k;\n"}, Entry("c"))
REPLY = "## Performance Analysis\nDie Schleife wächst: naïve ☃ 🐢.\n"


def ask(text: str = "Make it faster.", **remaining: float) -> Prompt:
    return Prompt(text, TASK, 1, 7, reference(TASK), (), remaining)


def policy_of(book: Book, waits: list[float] | None = None, **settings: Any) -> OpenAI:
    given: dict[str, Any] = {
        "model": "tiny",
        "base_url": book.url,
        "timeout": 20.0,
        "max_tokens": 1000,
        "environment": {"OPENAI_API_KEY": KEY},
        "wait": (waits if waits is not None else []).append,
    }
    return OpenAI(**given | settings)


def one_line(error: pytest.ExceptionInfo[PolicyError]) -> str:
    text = str(error.value)
    assert "\n" not in text and KEY not in text
    return text


# A reply


def test_a_streamed_reply_comes_back_whole_with_its_tokens_and_price() -> None:
    with serving(says(REPLY)) as book:
        reply = policy_of(book, price_in=10.0, price_out=100.0).propose(ask("a prompt"))
    assert reply.text == REPLY
    cost = reply.cost
    assert (cost.tokens_in, cost.tokens_out, cost.calls, cost.failed_calls) == (100, 50, 1, 0)
    assert cost.money == pytest.approx(100 * 10e-6 + 50 * 100e-6) and cost.estimated_calls == 0
    assert cost.seconds > 0
    path, headers, body = book.requests[0]
    assert path == "/v1/chat/completions" and headers["Authorization"] == f"Bearer {KEY}"
    assert body["messages"] == [{"role": "user", "content": "a prompt"}]
    assert (body["model"], body["max_tokens"], body["stream"]) == ("tiny", 1000, True)
    assert "temperature" not in body


def test_the_temperature_is_sent_when_it_is_set() -> None:
    with serving(says(REPLY)) as book:
        policy_of(book, temperature=0.0).propose(ask())
    assert book.requests[0][2]["temperature"] == 0.0


@pytest.mark.parametrize("usage", [None, (-1, 5), (True, 5), ("7", 5)])
def test_tokens_that_nobody_told_are_estimated_and_marked(usage: Any) -> None:
    with serving(says(REPLY * 20, usage=usage)) as book:
        cost = policy_of(book, price_out=1e6).propose(ask("word " * 100)).cost
    assert cost.estimated_calls == 1
    assert 100 <= cost.tokens_in <= 500 and 100 <= cost.tokens_out <= len(REPLY.encode()) * 20
    assert cost.money == cost.tokens_out


def test_what_a_model_thinks_is_paid_for_but_no_part_of_its_reply() -> None:
    thought = chunk(reasoning_content="the loop " * 100)
    with serving(sends_events(thought, chunk("short"), chunk(finish="stop"), "[DONE]")) as book:
        reply = policy_of(book).propose(ask())
    assert reply.text == "short" and reply.cost.tokens_out > 100


@pytest.mark.parametrize("end", [(chunk(finish="stop"),), ("[DONE]",)])
def test_either_mark_of_the_end_is_enough(end: tuple[Any, ...]) -> None:
    with serving(sends_events(chunk("all of it"), *end)) as book:
        assert policy_of(book).propose(ask()).text == "all of it"


def test_a_server_that_does_not_stream_is_understood() -> None:
    whole = '{"choices": [{"message": {"content": "at once"}}], "usage": {"prompt_tokens": 3, "completion_tokens": 4}}'
    with serving(writes(whole, kind="application/json")) as book:
        reply = policy_of(book).propose(ask())
    assert (reply.text, reply.cost.tokens_in, reply.cost.tokens_out) == ("at once", 3, 4)


def test_a_line_left_open_after_the_end_is_not_waited_for() -> None:
    def lingers(call: Call) -> None:
        call.begin()
        call.event(chunk("all"))
        call.event(chunk(finish="stop"))
        call.server.book.over.wait(60)

    with serving(lingers) as book:
        assert policy_of(book, timeout=0.3).propose(ask()).text == "all"
    assert len(book.requests) == 1


def test_a_prompt_with_broken_text_is_sent_all_the_same() -> None:
    with serving(says(REPLY)) as book:
        policy_of(book).propose(ask("a compiler said \udcff"))
    assert book.prompts == ["a compiler said ?"]


# Faults that may pass

FAULTS: dict[str, Answer] = {
    "falls silent before it answers": hangs,
    "falls silent in the middle": falls_silent,
    "is overloaded": refuses(429, "slow down"),
    "fails": refuses(500),
    "is being restarted": refuses(503),
    "took too long itself": refuses(408),
    "sends broken JSON in an event": sends_events(chunk("a"), '{"choices": [{"del'),
    "sends broken JSON at once": writes('{"choices": [', kind="application/json"),
    "sends JSON of another form": sends_events('{"choices": 5}'),
    "sends a list": sends_events("[1, 2]"),
    "sends deeply nested JSON": sends_events("[" * 30_000),
    "sends a page instead": writes("<html>gateway</html>", kind="text/html"),
    "cuts the stream": cuts_the_stream,
    "ends without an end": sends_events(chunk("half a rep")),
    "ends before it begins": writes(),
    "breaks off with an error": sends_events(chunk("a"), {"error": {"message": "out of memory"}}),
    "says nothing": sends_events(chunk(finish="stop"), "[DONE]"),
    "never ends": never_ends,
    "never ends a line": never_ends_a_line,
    "thinks for ever": thinks_for_ever,
    "fails endlessly": endless_error,
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_call_is_made_again_when_the_server(name: str) -> None:
    waits: list[float] = []
    with serving(FAULTS[name], says(REPLY)) as book:
        reply = policy_of(book, waits, timeout=0.3).propose(ask())
    assert reply.text == REPLY
    assert (reply.cost.calls, reply.cost.failed_calls, len(waits)) == (2, 1, 1)
    assert book.prompts[0] == book.prompts[1]


@pytest.mark.parametrize("name", FAULTS)
def test_a_call_that_fails_to_the_last_is_told_in_one_line_with_its_cost(name: str) -> None:
    waits: list[float] = []
    with (
        serving(FAULTS[name]) as book,
        pytest.raises(NoReply, match="start the same command again") as error,
    ):
        policy_of(book, waits, timeout=0.1).propose(ask())
    assert f"{ATTEMPTS} calls" in one_line(error)
    cost = error.value.cost
    assert cost.calls == cost.failed_calls == ATTEMPTS == len(book.requests) == len(waits) + 1


def test_a_connection_that_is_refused_is_tried_again() -> None:
    with serving(says(REPLY)) as book:
        pass
    waits: list[float] = []
    with pytest.raises(NoReply, match="no connection") as error:
        policy_of(book, waits).propose(ask())
    one_line(error)
    assert len(waits) == ATTEMPTS - 1


def test_a_reply_that_is_never_silent_and_never_done_ends_with_its_time() -> None:
    begin = time.monotonic()
    with serving(drips_comments, says(REPLY)) as book:
        assert policy_of(book, reply_seconds=0.3).propose(ask()).text == REPLY
    assert len(book.requests) == 2 and time.monotonic() - begin >= 0.3


def test_what_came_of_a_failed_call_is_counted_and_marked() -> None:
    with serving(never_ends, says(REPLY, usage=(10, 20))) as book:
        cost = policy_of(book).propose(ask()).cost
    assert 1000 < cost.tokens_out < 10_000 and cost.estimated_calls == 1


def test_a_call_that_was_turned_away_costs_no_tokens() -> None:
    with serving(refuses(429), refuses(500), hangs, says(REPLY, usage=(10, 20))) as book:
        cost = policy_of(book, timeout=0.3).propose(ask()).cost
    assert (cost.tokens_in, cost.tokens_out, cost.calls, cost.failed_calls) == (10, 20, 4, 3)


# Waiting


def test_waits_grow_and_are_jittered() -> None:
    for chance in (0.0, 0.999):
        waits: list[float] = []
        with serving(refuses(500)) as book, pytest.raises(NoReply):
            policy_of(book, waits, chance=lambda chance=chance: chance).propose(ask())
        factor = 0.5 + chance / 2
        assert waits == pytest.approx([factor * 2**n for n in range(ATTEMPTS - 1)])
        assert max(waits) <= LONGEST_WAIT


@pytest.mark.parametrize("form", ["seconds", "date"])
def test_a_server_is_given_the_time_it_asks_for(form: str) -> None:
    told = "7" if form == "seconds" else email.utils.formatdate(time.time() + 7, usegmt=True)
    waits: list[float] = []
    with serving(refuses(429, Retry_After=told), says(REPLY)) as book:
        policy_of(book, waits).propose(ask())
    assert len(waits) == 1 and 5.5 <= waits[0] <= 8.5


@pytest.mark.parametrize("told", ["soon", "-5", "nan", "inf", "", "Mon, 99 Foo 2020 00:00:00 GMT"])
def test_a_senseless_wait_is_not_obeyed(told: str) -> None:
    waits: list[float] = []
    with serving(refuses(503, Retry_After=told), says(REPLY)) as book:
        policy_of(book, waits).propose(ask())
    assert len(waits) == 1 and 0 < waits[0] <= 1.0


def test_a_server_that_wants_an_hour_is_told_to_the_user_at_once() -> None:
    waits: list[float] = []
    with serving(refuses(429, Retry_After=str(MOST_PATIENCE + 1))) as book, pytest.raises(NoReply):
        policy_of(book, waits).propose(ask())
    assert waits == [] and len(book.requests) == 1


# Faults that do not pass


@pytest.mark.parametrize(
    ("status", "advice"),
    [(400, "--max-tokens"), (401, "OPENAI_API_KEY"), (403, "OPENAI_API_KEY"), (404, "--model"), (422, "--temper")],
)
def test_a_refusal_is_told_at_once_with_what_to_do(status: int, advice: str) -> None:
    with (
        serving(refuses(status, f"bad\nrequest with {KEY} [/red]")) as book,
        pytest.raises(PolicyError, match=advice) as error,
    ):
        policy_of(book).propose(ask())
    assert str(status) in one_line(error)
    assert isinstance(error.value, NoReply) and error.value.cost.failed_calls == 1
    assert len(book.requests) == 1


def test_an_empty_purse_is_told_at_once() -> None:
    with (
        serving(refuses(429, "You exceeded your quota", "insufficient_quota")) as book,
        pytest.raises(PolicyError, match="add credit") as error,
    ):
        policy_of(book).propose(ask())
    one_line(error)
    assert len(book.requests) == 1


def test_a_model_that_thinks_until_its_limit_is_told_with_what_to_raise() -> None:
    thought = chunk(reasoning="hm"), chunk(finish="length"), "[DONE]"
    with serving(sends_events(*thought)) as book, pytest.raises(PolicyError, match="raise --max-tokens"):
        policy_of(book).propose(ask())
    assert len(book.requests) == 1


def test_a_model_that_wants_the_limit_by_its_other_name_gets_it() -> None:
    told = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."
    with serving(refuses(400, told), says(REPLY)) as book:
        policy_of(book).propose(ask())
    assert book.requests[1][2]["max_completion_tokens"] == 1000 and "max_tokens" not in book.requests[1][2]


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500])
def test_a_key_that_the_server_repeats_is_never_shown(status: int) -> None:
    def repeats(call: Call) -> None:
        key = call.headers["Authorization"].removeprefix("Bearer ")
        call.begin("application/json", status)
        call.wfile.write(f'{{"error": "{key} is bad, https://me:{key}@host/"}}'.encode())

    said: list[str] = []
    with serving(repeats) as book, pytest.raises(PolicyError) as error:
        policy_of(book, say=said.append).propose(ask())
    assert KEY not in str(error.value) + repr(error.value) + "".join(said)


# Settings


def test_without_a_key_openai_itself_is_not_asked() -> None:
    with pytest.raises(PolicyError, match="OPENAI_API_KEY is not set"):
        OpenAI("m", environment={})


def test_a_server_of_ones_own_needs_no_key() -> None:
    with serving(says(REPLY)) as book:
        assert policy_of(book, environment={}).propose(ask()).text == REPLY


@pytest.mark.parametrize("url", ["here", "ftp://127.0.0.1/v1", "http://", "http://[::1", "127.0.0.1:8000"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(PolicyError, match="no address") as error:
        OpenAI("m", base_url=url, environment={})
    one_line(error)


def test_a_password_in_an_address_is_not_shown() -> None:
    with pytest.raises(PolicyError) as error:
        OpenAI("m", base_url="ftp://me:hunter2@host/v1", environment={})
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_tokens": 0},
        {"timeout": 0.0},
        {"timeout": float("nan")},
        {"reply_seconds": -1.0},
        {"price_in": -1.0},
        {"price_out": float("inf")},
        {"temperature": -0.1},
    ],
)
def test_a_setting_that_no_call_can_have_is_refused(wrong: dict[str, Any]) -> None:
    with serving(says(REPLY)) as book, pytest.raises(PolicyError, match="give"):
        policy_of(book, **wrong)


def test_a_key_with_a_line_break_is_refused_without_showing_it() -> None:
    with pytest.raises(PolicyError, match="set it again") as error:
        OpenAI("m", environment={"OPENAI_API_KEY": f"{KEY}\n{KEY}"})
    one_line(error)


def test_proxies_of_the_environment_are_not_used_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    with serving(says(REPLY)) as book:
        assert policy_of(book).propose(ask()).text == REPLY
        by_name = book.url.replace("127.0.0.1", "localhost")
        assert policy_of(book, base_url=by_name).propose(ask()).text == REPLY


def test_the_package_is_asked_for_by_name_where_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "openai", None)
    with pytest.raises(PolicyError, match=r"pip install 'outpace\[openai\]'"):
        make_policy("openai", model="m", base_url="http://127.0.0.1:1/v1")


# Budget


@pytest.mark.parametrize("limit", ["tokens", "money"])
def test_no_call_is_made_that_could_pass_the_budget(limit: str) -> None:
    prompt = "p" * 744
    # 744 bytes and 256 for the template are at most 1,000 tokens, and so is the reply.
    exact = {"tokens": 2000.0, "money": 3.0}[limit]
    settings: dict[str, Any] = {"price_in": 1000.0, "price_out": 2000.0}
    with serving(says(REPLY)) as book:
        policy = policy_of(book, **settings)
        assert policy.propose(ask(prompt, **{limit: exact})).text == REPLY
        with pytest.raises(Exhausted, match="next call may"):
            policy.propose(ask(prompt, **{limit: exact * 0.999}))
    assert len(book.requests) == 1


def test_a_failed_call_is_made_again_only_while_the_budget_bears_it() -> None:
    with serving(never_ends) as book, pytest.raises(Exhausted) as error:
        policy_of(book).propose(ask("p", tokens=3500.0))
    # The first may take 1,257 tokens and was cut at about 2,500; the rest does not bear another.
    assert error.value.cost.calls == len(book.requests) == 1
    assert 2000 < error.value.cost.tokens_out < 3500
