"""A run: replies to one prompt, trials by their names, and what the policy learns from both."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from run_facts import (
    TASK,
    Judging,
    Scripted,
    Stop,
    begin,
    code,
    edited,
    failed,
    ok,
    said,
    source,
    told,
)

from outpace import reward
from outpace.archive import Archive
from outpace.errors import OutpaceError
from outpace.judge.verdict import Outcome, Verdict
from outpace.policies.base import Reply
from outpace.task.candidate import reference


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive.open(tmp_path / "archive.sqlite") as opened:
        yield opened


def advantages(*verdicts: Verdict) -> list[float | None]:
    gains = reward.advantages([reward.reward(each) for each in verdicts], reward.NOISE)
    return [None if gain is None else round(gain, 9) for gain in gains]


def test_the_policy_learns_once_per_prompt_with_the_advantages_of_its_replies(archive: Archive) -> None:
    policy = Scripted([])
    run = begin(archive, policy, Judging(), replies=3)
    ratios = (1.5, 0.8, 2.0, 1.1, 1.2, 1.3, 5.0)
    told(run, *(said(code(ratio)) for ratio in ratios))
    groups = [[1, 2, 3], [4, 5, 6]]
    assert [[trial for trial, *_ in each] for each in policy.learnt] == groups
    for learnt, numbers in zip(policy.learnt, groups, strict=True):
        assert [gain for *_, gain in learnt] == advantages(*(ok(ratios[number - 1]) for number in numbers))
        assert [text for _, text, *_ in learnt] == [code(ratios[number - 1]) for number in numbers]


def test_replies_to_one_prompt_are_asked_the_same_and_those_to_another_are_not(archive: Archive) -> None:
    run = begin(archive, Scripted([]), Judging(), replies=2)
    first = run.ask(2)
    assert [each.trial for each in first] == [1, 2, 3, 4]
    told(run, *(said(code(1.5, number)) for number in range(4)))
    later = run.ask()
    assert later[0].text == later[1].text != first[0].text
    assert [each.asked.id for each in archive.trials(run.record)] == [1, 1, 2, 2, 3, 3]


def test_trials_are_told_by_their_names_in_any_order(archive: Archive) -> None:
    policy = Scripted([])
    run = begin(archive, policy, Judging(), replies=2)
    prompts = run.ask(2)
    for number in (4, 1, 3):
        assert run.tell(prompts[number - 1].trial, Reply(said(code(1 + number)))) == ok(1 + number)
    assert [[trial for trial, *_ in group] for group in policy.learnt] == [[3, 4]]
    assert run.next_prompt().trial == 2
    run.tell(2, Reply(said(code(1.3))))
    assert [[trial for trial, *_ in group] for group in policy.learnt] == [[3, 4], [1, 2]]


@pytest.mark.parametrize("number", [0, 3, 2**70])
def test_a_trial_that_was_never_asked_is_no_trial(archive: Archive, number: int) -> None:
    run = begin(archive, Scripted([]), Judging())
    run.ask(2)
    with pytest.raises(OutpaceError, match=rf"trial {number} of run first was never asked: open are 1, 2"):
        run.tell(number, Reply(said(code(1.5))))


def test_a_trial_is_told_once(archive: Archive) -> None:
    run = begin(archive, Scripted([]), Judging())
    told(run, said(code(1.5)))
    with pytest.raises(OutpaceError, match="trial 1 of run first was judged already: open are none, so ask first"):
        run.tell(1, Reply(said(code(1.6))))


def test_a_policy_that_was_killed_before_it_learnt_learns_then(archive: Archive) -> None:
    class Killed(Scripted):
        def learn(self, lessons):  # type: ignore[no-untyped-def]
            raise Stop(lessons)

    with pytest.raises(Stop):
        told(begin(archive, Killed([]), Judging()), said(code(1.5)))
    policy = Scripted([])
    begin(archive, policy, Judging()).recover()
    assert policy.learnt == [[(1, code(1.5), reward.reward(ok(1.5)), 0.0)]]
    again = Scripted([])
    begin(archive, again, Judging()).recover()
    assert again.learnt == policy.learnt, "it came back with what it had learnt, and learnt nothing twice"


def test_what_each_reply_earned_is_in_its_lesson_whatever_it_was(archive: Archive) -> None:
    policy = Scripted([])
    run = begin(archive, policy, Judging())
    told(run, said(code(1.5)), said("int wrong;\n"), "no code", said("int too_noisy;\n"))
    assert [lesson for (lesson,) in policy.learnt] == [
        (1, code(1.5), reward.reward(ok(1.5)), 0.0),
        (2, "int wrong;\n", reward.reward(failed(Outcome.WRONG)), 0.0),
        (3, "", reward.reward(failed(Outcome.UNUSABLE)), 0.0),
        (4, "int too_noisy;\n", None, None),
    ]


def test_failures_count_in_their_group_and_what_tells_nothing_does_not(archive: Archive) -> None:
    policy = Scripted([])
    run = begin(archive, policy, Judging(), replies=5)
    told(run, said(code(1.5)), said("int wrong;\n"), "no code", said("int too_noisy;\n"), said(code(0.8)))
    gains = advantages(ok(1.5), failed(Outcome.WRONG), failed(Outcome.UNUSABLE), ok(0.8))
    assert [gain for *_, gain in policy.learnt[0]] == [*gains[:3], None, gains[3]]


class Watching(Scripted):
    """Keeps the parents of the lessons."""

    def learn(self, lessons):  # type: ignore[no-untyped-def]
        self.parents = [*getattr(self, "parents", ()), *(each.parent for each in lessons)]


def test_a_lesson_names_the_candidate_that_the_edit_started_from(archive: Archive) -> None:
    policy = Watching([])
    told(begin(archive, policy, Judging(), exemplars="top"), said(code(1.5)), said(code(0.8)))
    assert policy.parents == [reference(TASK), source(code(1.5))]


def test_the_parent_that_a_reply_names_is_the_one_that_is_kept(archive: Archive) -> None:
    policy = Watching([])
    run = begin(archive, policy, Judging(), exemplars="top")
    told(run, said(code(2.0)), said(code(1.5)))
    slower = source(code(1.5))
    assert run.next_prompt().parent == source(code(2.0))
    reply = edited(f"PARENT: {slower.hash[:12]}\n", "int fast_150_0;", "int fast_170_0;")
    run.tell(run.next_prompt().trial, Reply(reply))
    trial = run.trial(3)
    assert trial is not None and trial.parent == slower.hash and trial.asked.parent == source(code(2.0)).hash
    assert policy.parents[-1] == slower
    found = archive.score(run.record, source(code(1.7)).hash)
    assert found is not None and found.parent == slower.hash


def test_a_prompt_shows_after_a_kill_what_it_showed_before(archive: Archive) -> None:
    """Also where a candidate that it shows was meanwhile confirmed to be slower."""
    run = begin(archive, Scripted([]), Judging(later={code(2.0): [ok(1.2)]}), exemplars="top")
    (first,) = run.ask()
    run.tell(first.trial, Reply(said(code(1.1))))
    (asked,) = run.ask()
    (other,) = run.ask()
    run.tell(other.trial, Reply(said(code(1.1, 1))))
    archive.confirm(archive.trial(1), failed(Outcome.WRONG))
    again = begin(archive, Scripted([]), Judging(), exemplars="top").next_prompt()
    assert again == asked and [each.score.ratio for each in again.shown] == [1.1]
