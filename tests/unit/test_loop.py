"""The loop: when it ends, and that it goes on after a kill at any moment as if there had been none."""

from __future__ import annotations

import contextlib
import functools
import json
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from run_facts import HERE, PRICE, TASK, Judging, Scripted, Stop, begin, code, failed, ok, said

from outpace.archive import Archive
from outpace.budget import Budget
from outpace.cost import Cost
from outpace.judge.verdict import Outcome, Verdict
from outpace.loop import loop
from outpace.policies.base import Reply
from outpace.run import Run
from outpace.task.candidate import Candidate

# A win, a slower one, a failure, a duplicate, a leader whose confirmation fails, no answer, a leader.
REPLIES = [
    said(code(1.5)),
    said(code(0.9)),
    said("int wrong;\n"),
    said(code(0.9)),
    said(code(3.0)),
    "no sections at all, so it is asked for once more",
    said(code(2.0)),
]
LATER = {code(3.0): failed(Outcome.WRONG), code(1.5): ok(1.4)}
WRITES = ("start_run", "ask", "answer", "add_cost", "settle", "learn", "confirm")


def test_the_loop_ends_when_the_budget_is_spent(tmp_path: Path) -> None:
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        run = begin(archive, Scripted(REPLIES), Judging(), budget=Budget(trials=3))
        assert loop(run) == "all 3 trials are done"
        assert archive.count(run.record) == 3


def test_the_loop_ends_when_the_policy_has_nothing_left(tmp_path: Path) -> None:
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        run = begin(archive, Scripted(REPLIES[:2]), Judging())
        assert loop(run) == "nothing is left to say"
        assert run.outcomes() == {"ok": 2}


def test_the_loop_tells_of_each_verdict(tmp_path: Path) -> None:
    seen: list[tuple[int, Outcome]] = []
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        run = begin(archive, Scripted(REPLIES[:3]), Judging())
        loop(run, lambda trial, verdict: seen.append((trial, verdict.outcome)))
    assert seen == [(1, Outcome.OK), (2, Outcome.OK), (3, Outcome.WRONG)]


def test_a_reply_without_analysis_is_asked_for_once_more_and_both_are_paid_for(tmp_path: Path) -> None:
    policy = Scripted(["nothing of use"])
    with Archive.open(tmp_path / "archive.sqlite") as archive:
        run = begin(archive, policy, Judging())
        loop(run)
        (trial, open_trial) = archive.trials(run.record)
    assert len(policy.asked) == 2 and policy.asked[1].text.startswith(policy.asked[0].text)
    assert trial.cost == PRICE + PRICE and trial.verdict is not None
    assert trial.verdict.outcome is Outcome.UNUSABLE
    assert open_trial.state == "asked"


def test_a_reply_that_was_paid_for_is_judged_although_the_budget_is_spent(tmp_path: Path) -> None:
    def stop() -> None:
        raise Stop

    with Archive.open(tmp_path / "archive.sqlite") as archive:
        budget = Budget(money=PRICE.money)
        killed = begin(archive, Scripted([]), Judging(before=stop), budget=budget)
        killed.ask()
        with pytest.raises(Stop):
            killed.tell(1, Reply(said(code(1.5)), PRICE))
        run = begin(archive, Scripted([]), Judging(), budget=budget)
        assert run.why_stop() and run.outcomes() == {}
        loop(run)
        assert run.outcomes() == {"ok": 1}


# Kills


class Kills:
    """Raises at the moments of these numbers, counted over all processes of a run."""

    def __init__(self, at: frozenset[int]) -> None:
        self.at = at
        self.moment = -1

    def __call__(self) -> None:
        self.moment += 1
        if self.moment in self.at:
            raise Stop


class Killable(Archive):
    """An archive whose process may die before each write, which is the same as after the one before."""

    kills: Kills

    def __getattribute__(self, name: str) -> Any:
        found = super().__getattribute__(name)
        return around(found, self.kills) if name in WRITES else found


def around(write: Callable[..., Any], kills: Kills) -> Callable[..., Any]:
    @functools.wraps(write)
    def guarded(*values: Any, **named: Any) -> Any:
        kills()
        return write(*values, **named)

    return guarded


class Judge(Judging):
    """Finds what LATER holds when it confirms a candidate that has its verdict, in any process."""

    def __init__(self, archive: Archive, kills: Kills) -> None:
        super().__init__(before=kills)
        self._archive = archive

    def judge(self, candidate: Candidate) -> Verdict:
        first = super().judge(candidate)
        known = self._archive.find_verdict(TASK.hash, candidate.hash, HERE.key) is not None
        return LATER.get(candidate.files["sum.c"], first) if known else first

    def confirm(self, candidate: Candidate) -> Verdict:
        return self.judge(candidate)


def start(archive: Archive, policy: Scripted, kills: Kills) -> Run:
    return begin(archive, policy, Judge(archive, kills), replies=2, exemplars="top", budget=Budget(trials=7))


def facts(path: Path) -> list[object]:
    """Everything of a run that a kill must not change."""
    with Archive.open(path) as archive:
        (record,) = archive.runs()
        return [
            [
                (
                    each.number,
                    each.state,
                    each.asked,
                    each.parent,
                    each.reply,
                    each.candidate,
                    each.analysis,
                    each.design,
                    each.verdict,
                    each.confirmation,
                    each.duplicate_of,
                )
                for each in archive.trials(record)
            ],
            archive.scored(record.task_hash, record),
            archive.best(record),
            record.policy_state,
        ]


def play(path: Path, kills: Kills) -> tuple[Counter[int], Cost]:
    """Start the same command until it ends by itself; how often each trial was asked for, and all costs."""
    asked: Counter[int] = Counter()
    ended = ""
    while not ended:
        policy = Scripted(REPLIES, kills)
        with Killable.open(path) as archive:
            archive.kills = kills
            stored = {trial.number for trial in archive.trials() if trial.reply is not None}
            with contextlib.suppress(Stop):
                run = start(archive, policy, kills)
                ended = loop(run)
        asked.update(prompt.trial for prompt in policy.asked)
        assert stored.isdisjoint(prompt.trial for prompt in policy.asked), "a stored reply was asked for again"
    assert ended == "all 7 trials are done"
    with Archive.open(path) as archive:
        return asked, archive.costs(archive.runs()[0])


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[object], int, Counter[int]]:
    path = tmp_path_factory.mktemp("unbroken") / "archive.sqlite"
    kills = Kills(frozenset())
    asked, _ = play(path, kills)
    return facts(path), kills.moment + 1, asked


def test_the_run_that_is_killed_has_everything_that_can_go_wrong_in_it(
    unbroken: tuple[list[object], int, Counter[int]],
) -> None:
    story, moments, asked = unbroken
    trials: Any = story[0]
    assert [trial[8].outcome for trial in trials] == ["ok", "ok", "wrong", "ok", "ok", "unusable", "ok"]
    assert [trial[10] for trial in trials] == [None, None, None, 2, None, None, None]
    assert [trial[9].outcome if trial[9] else None for trial in trials] == [
        "ok",
        None,
        None,
        None,
        "wrong",
        None,
        "ok",
    ]
    assert asked[6] == 2 and moments > 35
    proposed, learnt = json.loads(story[3])  # type: ignore[arg-type]
    assert proposed == [1, 2, 3, 4, 5, 6, 7]
    assert [[trial for trial, *_ in group] for group in learnt] == [[1, 2], [3, 4], [5, 6], [7]]


def test_a_kill_at_any_moment_changes_nothing(tmp_path: Path, unbroken: tuple[list[object], int, Counter[int]]) -> None:
    story, moments, asked = unbroken
    for moment in range(moments):
        path = tmp_path / f"{moment}.sqlite"
        again, cost = play(path, Kills(frozenset({moment})))
        assert facts(path) == story, f"killed at moment {moment} of {moments}"
        # A reply is lost only with the process that received it, at most two when it was asked for once more.
        assert asked <= again and (again - asked).total() <= 2
        assert asked.total() <= cost.calls <= again.total()


@settings(max_examples=25, deadline=None)
@given(st.frozensets(st.integers(0, 150), max_size=25))
def test_many_kills_change_nothing(unbroken: tuple[list[object], int, Counter[int]], moments: frozenset[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "archive.sqlite"
        play(path, Kills(moments))
        assert facts(path) == unbroken[0]
