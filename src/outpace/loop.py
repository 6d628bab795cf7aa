"""The loop: a run as a page of prose; read this first."""

from __future__ import annotations

from collections.abc import Callable

from outpace.judge.verdict import Verdict
from outpace.policies.base import Exhausted
from outpace.run import Run

Watcher = Callable[[int, Verdict], None]


def loop(run: Run, watch: Watcher = lambda trial, verdict: None) -> str:
    """Ask the policy and tell the run what it said until the budget is spent; returns why it ended.

    Killed at any moment and started again it goes on where it was: the archive holds the open prompt, the reply that was
    paid for, and the state of the policy.
    """
    run.recover()
    while not (reason := run.why_stop()):
        prompt = run.ask()
        try:
            reply = run.policy.propose(prompt)
            reminded = run.ask_again(prompt, reply)
            if reminded is not None:
                run.charge(reply)
                reply = run.policy.propose(reminded)
        except Exhausted as end:
            return str(end)
        verdict = run.tell(reply)
        watch(prompt.trial, verdict)
    return reason
