"""The loop: a run as a page of prose; read this first."""

from __future__ import annotations

from collections.abc import Callable

from outpace.errors import OutpaceError
from outpace.judge.verdict import Verdict
from outpace.policies.base import Exhausted, NoReply, Prompt, Reply
from outpace.run import Run

Watcher = Callable[[int, Verdict], None]


def loop(run: Run, watch: Watcher = lambda _trial, _verdict: None) -> str:
    """Ask the policy and tell the run what it said until the budget is spent; returns why it ended.

    Killed at any moment and started again it goes on where it was: the archive holds the open prompt, the
    reply that was paid for, and the state of the policy.
    """
    run.go_on()
    try:
        reason = _searched(run, watch)
    except KeyboardInterrupt:
        run.end("it was stopped by hand")
        raise
    except OutpaceError as fault:
        run.end(f"an error stopped it: {fault}")
        raise
    run.end(reason)
    return reason


def _searched(run: Run, watch: Watcher) -> str:
    for trial, verdict in run.recover():
        watch(trial, verdict)
    while not (reason := run.why_stop()):
        prompt = run.next_prompt()
        try:
            reply = _proposed(run, prompt)
        except NoReply as failure:
            # The prompt stays open: whoever goes on with this run is asked it again.
            run.charge(prompt.trial, failure.cost)
            if isinstance(failure, Exhausted):
                return str(failure)
            raise
        verdict = run.tell(prompt.trial, reply)
        watch(prompt.trial, verdict)
    return reason


def _proposed(run: Run, prompt: Prompt) -> Reply:
    """The policy's reply, asked for once more where it lacks the analysis and the budget allows."""
    reply = run.policy.propose(prompt)
    reminded = run.ask_again(prompt, reply)
    if reminded is None:
        return reply
    try:
        return run.policy.propose(reminded)
    except Exhausted as end:
        # What was paid for is judged as it is; it was charged when it was found wanting.
        return Reply(reply.text, end.cost)
