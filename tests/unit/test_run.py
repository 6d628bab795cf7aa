"""A run: what ask and tell judge, remember and confirm."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest
from run_facts import (
    HERE,
    PRICE,
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

from outpace.archive import Archive
from outpace.budget import Budget
from outpace.errors import ArchiveError, HarnessError
from outpace.judge.verdict import Outcome, Verdict
from outpace.policies.base import Reply
from outpace.task.candidate import Candidate, reference


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive.open(tmp_path / "archive.sqlite") as opened:
        yield opened


# Judging once


def test_equal_sources_are_judged_once(archive: Archive) -> None:
    examiner = Judging()
    run = begin(archive, Scripted([]), examiner, exemplars="none")
    first, again = told(run, said(code(0.9)), said(code(0.9)))
    assert examiner.judged == [code(0.9)]
    assert again.speed_up == first.speed_up
    one, two = archive.trials(run.record)
    assert (one.duplicate_of, two.duplicate_of) == (None, one.id)


def test_sources_that_failed_are_not_judged_again_either(archive: Archive) -> None:
    examiner = Judging()
    told(begin(archive, Scripted([]), examiner), said("int wrong;\n"), said("int wrong;\n"))
    assert examiner.judged == ["int wrong;\n"]


def test_sources_known_from_another_run_of_the_archive_are_not_judged_again(archive: Archive) -> None:
    told(begin(archive, Scripted([]), Judging()), said(code(0.9)))
    examiner = Judging()
    second = begin(archive, Scripted([]), examiner, name="second")
    assert told(second, said(code(0.9)))[0].outcome is Outcome.OK
    assert examiner.judged == []
    assert second.outcomes() == {"ok": 1}


@pytest.mark.parametrize("change", ["// the same\n{}", "\n{}", "{}\n", "{} ", "{}\f"])
def test_sources_that_differ_in_comments_or_spacing_are_judged_for_themselves(archive: Archive, change: str) -> None:
    # Such as `answer[__LINE__ - 3]`, which is right on one line and wrong on the next.
    examiner = Judging()
    run = begin(archive, Scripted([]), examiner)
    one, other = code(0.9), change.format(code(0.9))
    told(run, said(one), said(other))
    assert examiner.judged == [one, other]
    assert [trial.duplicate_of for trial in archive.trials(run.record)] == [None, None]


def test_other_flags_make_another_candidate(archive: Archive) -> None:
    task = dataclasses.replace(TASK, build=dataclasses.replace(TASK.build, flag_choices=(("-O2", "-O3"),)))
    examiner = Judging()
    run = begin(archive, Scripted([]), examiner, task=task)
    told(run, said(code(0.9)), said(code(0.9)).replace("FLAGS: -O2", "FLAGS: -O3"))
    assert examiner.judged == [code(0.9), code(0.9)]


def test_a_verdict_from_another_kind_of_machine_is_no_answer(archive: Archive) -> None:
    told(begin(archive, Scripted([]), Judging()), said(code(0.9)))
    examiner = Judging()
    other = dataclasses.replace(HERE, cpu="another CPU")
    told(begin(archive, Scripted([]), examiner, name="second", machine=other), said(code(0.9)))
    assert examiner.judged == [code(0.9)]


def test_a_verdict_that_was_too_noisy_is_no_answer(archive: Archive) -> None:
    examiner = Judging(later={"int too_noisy;\n": [ok(0.9)]})
    run = begin(archive, Scripted([]), examiner)
    noisy, quiet = told(run, said("int too_noisy;\n"), said("int too_noisy;\n"))
    assert (noisy.outcome, quiet.outcome) == (Outcome.TOO_NOISY, Outcome.OK)


def test_a_reply_that_cannot_be_read_is_a_verdict_without_judging(archive: Archive) -> None:
    examiner = Judging()
    run = begin(archive, Scripted([]), examiner)
    verdict = told(run, "I would rather not.")[0]
    assert verdict.outcome is Outcome.UNUSABLE and "Performance Analysis" in verdict.reason
    assert examiner.judged == [] and run.outcomes() == {"unusable": 1}


# Confirming


def test_a_new_best_is_judged_again_and_has_the_ratio_of_the_confirmation(archive: Archive) -> None:
    examiner = Judging(later={code(2.0): [ok(1.8)]})
    run = begin(archive, Scripted([]), examiner)
    assert told(run, said(code(2.0)))[0] == ok(2.0)
    best = run.best()
    assert examiner.judged == [code(2.0), code(2.0)]
    assert best is not None and best.ratio == 1.8 and best.win
    assert archive.trial(best.trial).confirmation == ok(1.8)


def test_a_candidate_that_does_not_lead_is_not_judged_again(archive: Archive) -> None:
    examiner = Judging()
    told(begin(archive, Scripted([]), examiner), said(code(2.0)), said(code(1.5)), said(code(0.5)))
    assert examiner.judged == [code(2.0), code(2.0), code(1.5), code(0.5)]


def test_a_candidate_that_is_no_win_is_not_judged_again(archive: Archive) -> None:
    examiner = Judging()
    told(begin(archive, Scripted([]), examiner), said(code(1.02)))
    assert examiner.judged == [code(1.02)]


@pytest.mark.parametrize("second", [failed(Outcome.WRONG), failed(Outcome.CHEATING), ok(1.01)])
def test_a_confirmation_that_fails_takes_the_lead_away(archive: Archive, second: Verdict) -> None:
    run = begin(archive, Scripted([]), Judging(later={code(3.0): [second]}))
    told(run, said(code(1.5)), said(code(3.0)))
    best = run.best()
    assert best is not None and best.hash == source(code(1.5)).hash


def test_when_the_leader_falls_the_next_one_is_confirmed(archive: Archive) -> None:
    examiner = Judging(later={code(3.0): [failed(Outcome.WRONG)], code(2.0): [ok(1.2)]})
    run = begin(archive, Scripted([]), examiner)
    told(run, said(code(2.0)), said(code(1.5)), said(code(3.0)))
    best = run.best()
    # 2.00 fell to 1.20, so that 1.50 came to lead and was confirmed; it leads again when 3.00 falls.
    assert best is not None and best.hash == source(code(1.5)).hash
    assert examiner.judged == [code(2.0), code(2.0), code(1.5), code(1.5), code(3.0), code(3.0)]


def test_a_leader_that_was_left_unconfirmed_by_a_kill_does_not_hide_the_next_one(archive: Archive) -> None:
    class Dying(Judging):
        def judge(self, candidate: Candidate) -> Verdict:
            if self.judged:
                raise Stop
            return super().judge(candidate)

        def confirm(self, candidate: Candidate) -> Verdict:
            return self.judge(candidate)

    with pytest.raises(Stop):
        told(begin(archive, Scripted([]), Dying()), said(code(3.0)))
    examiner = Judging(later={code(3.0): [failed(Outcome.WRONG)]})
    examiner.judged.append(code(3.0))
    run = begin(archive, Scripted([]), examiner)
    told(run, said(code(2.0)))
    assert examiner.judged[1:] == [code(2.0), code(3.0), code(2.0)]
    best = run.best()
    assert best is not None and archive.trial(best.trial).confirmation == ok(2.0)


def test_a_candidate_rejected_by_its_confirmation_is_shown_no_more(archive: Archive) -> None:
    run = begin(archive, Scripted([]), Judging(later={code(3.0): [failed(Outcome.WRONG)]}), exemplars="top")
    told(run, said(code(1.5)), said(code(3.0)))
    assert [each.candidate for each in run.next_prompt().shown] == [source(code(1.5))]


def test_a_confirmation_that_was_too_noisy_gives_the_lead_to_whoever_can_be_confirmed(archive: Archive) -> None:
    noisy = {code(3.0): [failed(Outcome.TOO_NOISY)] * 2}
    run = begin(archive, Scripted([]), Judging(later=noisy))
    told(run, said(code(3.0)))
    best = run.best()
    assert best is not None and best.hash == source(code(3.0)).hash, "there is nobody else"
    told(run, said(code(1.5)), said(code(1.25)), said(code(3.0)))
    best = run.best()
    assert best is not None and best.hash == source(code(1.5)).hash
    assert archive.trial(best.trial).confirmation == ok(1.5)


def test_a_confirmation_that_was_too_noisy_is_made_again_when_the_run_goes_on(archive: Archive) -> None:
    run = begin(archive, Scripted([]), Judging(later={code(3.0): [failed(Outcome.TOO_NOISY)]}))
    told(run, said(code(3.0)), said(code(1.5)))
    begin(archive, Scripted([]), Judging()).recover()
    best = begin(archive, Scripted([]), Judging()).best()
    assert best is not None and best.hash == source(code(3.0)).hash
    assert archive.trial(best.trial).confirmation == ok(3.0)


def test_one_that_is_slower_than_the_best_is_not_confirmed_again(archive: Archive) -> None:
    run = begin(archive, Scripted([]), Judging(later={code(1.5): [failed(Outcome.TOO_NOISY)]}))
    told(run, said(code(1.5)), said(code(3.0)))
    examiner = Judging()
    begin(archive, Scripted([]), examiner).recover()
    assert examiner.judged == []


# Where the judge fails


class Failing(Judging):
    """Fails on every source that says so, in a confirmation only on one that says that too."""

    def judge(self, candidate: Candidate) -> Verdict:
        if "breaks the judge" in candidate.files["sum.c"]:
            raise HarnessError("[Errno 36] File name too long")
        return super().judge(candidate)

    def confirm(self, candidate: Candidate) -> Verdict:
        if "breaks its confirmation" in candidate.files["sum.c"]:
            raise HarnessError("[Errno 36] File name too long")
        return super().judge(candidate)


def test_a_candidate_that_the_judge_fails_on_does_not_end_the_run(archive: Archive) -> None:
    run = begin(archive, Scripted([]), Failing())
    broken, right = told(run, said("breaks the judge\n"), said(code(1.5)))
    assert broken.outcome is Outcome.UNJUDGED and "File name too long" in broken.reason
    assert right.speed_up is not None and run.outcomes() == {"ok": 1, "unjudged": 1}
    # Whoever goes on with the run does not judge it again.
    assert begin(archive, Scripted([]), Failing()).recover() == []


def test_a_candidate_that_the_judge_failed_on_is_judged_when_it_is_proposed_again(archive: Archive) -> None:
    text = "breaks the judge\n" + code(0.9)
    told(begin(archive, Scripted([]), Failing()), said(text))
    assert told(begin(archive, Scripted([]), Judging()), said(text))[0].outcome is Outcome.OK


def test_a_leader_whose_confirmation_the_judge_fails_on_makes_room_for_the_next(archive: Archive) -> None:
    run = begin(archive, Scripted([]), Failing())
    told(run, said("breaks its confirmation\n" + code(3.0)), said(code(1.5)))
    best = run.best()
    assert best is not None and best.hash == source(code(1.5)).hash
    assert archive.trial(best.trial).confirmation == ok(1.5)


def test_a_judge_that_fails_on_one_candidate_after_another_ends_the_run(archive: Archive) -> None:
    run = begin(archive, Scripted([]), Failing())
    same = "breaks the judge\n"
    told(run, said(same), said(same), said(same), said(same + "again\n"))
    told(run, said(code(0.9)), said(same), said(same + "again\n"))
    with pytest.raises(HarnessError, match=r"3 different candidates in a row.*File name too long.*doctor"):
        told(run, said(same + "once more\n"))
    # The third one has its verdict all the same, so that a restart goes on with the next.
    assert run.outcomes() == {"ok": 1, "unjudged": 7}
    assert told(run, said(code(0.8)))[0].outcome is Outcome.OK


def test_a_leader_taken_over_from_another_run_is_judged_in_this_one(archive: Archive) -> None:
    told(begin(archive, Scripted([]), Judging()), said(code(2.0)))
    examiner = Judging()
    second = begin(archive, Scripted([]), examiner, name="second")
    told(second, said(code(2.0)))
    assert examiner.judged == [code(2.0)]
    best = second.best()
    assert best is not None and archive.trial(best.trial).confirmation is not None


# Asking


def test_the_next_prompt_is_the_same_until_it_is_answered(archive: Archive) -> None:
    run = begin(archive, Scripted([]), Judging())
    assert run.next_prompt() == run.next_prompt()
    assert archive.count(run.record) == 1


def test_the_parent_is_the_fastest_shown_or_else_the_reference(archive: Archive) -> None:
    run = begin(archive, Scripted([]), Judging(), exemplars="top")
    assert run.next_prompt().parent == reference(TASK)
    run.tell(1, Reply(said(code(2.0))))
    told(run, said(code(1.5)))
    asked = run.next_prompt()
    assert asked.parent == source(code(2.0))
    assert [each.candidate for each in asked.shown] == [source(code(1.5)), source(code(2.0))]


def test_a_reply_may_edit_any_candidate_that_is_shown_by_the_hash_in_the_prompt(archive: Archive) -> None:
    examiner = Judging()
    run = begin(archive, Scripted([]), examiner, exemplars="top")
    told(run, said(code(2.0)), said(code(1.5)))
    slower = source(code(1.5)).hash[:12]
    assert f"## Candidate {slower}" in run.next_prompt().text
    reply = edited(f"PARENT: {slower}\n", "int fast_150_0;", "int fast_170_0;")
    assert run.tell(run.next_prompt().trial, Reply(reply)) == ok(1.7)


def test_an_edit_without_a_parent_starts_from_the_fastest_shown(archive: Archive) -> None:
    run = begin(archive, Scripted([]), Judging(), exemplars="top")
    told(run, said(code(2.0)), said(code(1.5)))
    reply = edited("", "int fast_200_0;", "int fast_210_0;")
    assert run.tell(run.next_prompt().trial, Reply(reply)) == ok(2.1)


def test_two_runs_of_one_seed_ask_the_same(tmp_path: Path) -> None:
    asked = []
    for name in ("a", "b"):
        with Archive.open(tmp_path / name) as archive:
            run = begin(archive, Scripted([]), Judging(), exemplars="random")
            told(run, *(said(code(1 + number / 10)) for number in range(6)))
            asked.append(run.next_prompt().text)
    assert asked[0] == asked[1]


def test_a_run_is_not_gone_on_with_under_other_settings(archive: Archive) -> None:
    begin(archive, Scripted([]), Judging())
    with pytest.raises(ArchiveError, match="exemplars was 'buckets', now 'top'"):
        begin(archive, Scripted([]), Judging(), exemplars="top")


# Asking again


def test_a_reply_without_analysis_is_worth_asking_once_more(archive: Archive) -> None:
    run = begin(archive, Scripted([]), Judging())
    asked = run.next_prompt()
    again = run.ask_again(asked, Reply(said(code(1.5), analysis="")))
    assert again is not None and again.trial == asked.trial
    assert again.text.startswith(asked.text) and "Performance Analysis" in again.text[len(asked.text) :]


@pytest.mark.parametrize("reply", [said(code(1.5)), said(code(1.5)).replace("sum.c", "other.c")])
def test_a_reply_with_an_analysis_is_taken_as_it_is(archive: Archive, reply: str) -> None:
    run = begin(archive, Scripted([]), Judging())
    assert run.ask_again(run.next_prompt(), Reply(reply)) is None


def test_a_call_without_a_usable_reply_is_paid_for_and_leaves_the_prompt_open(archive: Archive) -> None:
    run = begin(archive, Scripted([]), Judging())
    asked = run.next_prompt()
    run.charge(asked.trial, PRICE)
    assert run.spent.cost == PRICE and run.spent.trials == 0
    assert run.next_prompt() == asked


# Budgets


def test_what_is_left_is_what_was_not_spent(archive: Archive) -> None:
    now = [0.0]
    budget = Budget(trials=5, minutes=10, tokens=1000, money=9)
    run = begin(archive, Scripted([]), Judging(), budget=budget, clock=lambda: now[0])
    told(run, said(code(1.5)), said("int wrong;\n"))
    now[0] = 180.0
    assert run.remaining() == {"trials": 3, "minutes": 7.0, "tokens": 780, "money": 8.0}


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (Budget(trials=2), "all 2 trials are done"),
        (Budget(minutes=3), "3 minutes are over"),
        (Budget(tokens=220), "220 of 220 tokens are spent"),
        (Budget(money=1), "1.00 of 1.00 are spent"),
        (Budget(trials=3, minutes=4, tokens=221, money=1.1), ""),
        (Budget(), ""),
    ],
)
def test_a_run_stops_when_any_limit_is_reached(archive: Archive, budget: Budget, reason: str) -> None:
    now = [0.0]
    run = begin(archive, Scripted([]), Judging(), budget=budget, clock=lambda: now[0])
    assert not run.why_stop()
    told(run, said(code(1.5)), said(code(1.4)))
    now[0] = 180.0
    assert run.why_stop() == reason


def test_trials_and_money_of_earlier_commands_count_but_their_minutes_do_not(archive: Archive) -> None:
    told(begin(archive, Scripted([]), Judging(), clock=lambda: 0.0), said(code(1.5)))
    resumed = begin(archive, Scripted([]), Judging(), clock=lambda: 6000.0)
    assert (resumed.spent.trials, resumed.spent.cost, resumed.spent.minutes) == (1, PRICE, 0.0)
