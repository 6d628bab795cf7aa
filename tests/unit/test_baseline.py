"""The reference's best flags are the best, and never those that noise or a wrong answer picked."""

from __future__ import annotations

from collections import Counter

import pytest
from claim_facts import FASTER, SOURCE, Table, task, together

from outpace.judge.baseline import Beside, beside_best_flags
from outpace.judge.verdict import Outcome, Verdict
from outpace.task.candidate import Candidate

FIVE = '[["-O2", "-O3"], ["", "-a"], ["", "-b"], ["", "-c"], ["", "-d"]]'


def ratio(verdict: Verdict | None) -> float:
    assert verdict is not None and verdict.speed_up is not None
    return verdict.speed_up.ratio


def found(judge: Table, winner: Candidate) -> Beside:
    beside = beside_best_flags(judge.task, judge, winner)
    assert beside is not None
    return beside


def test_flags_that_gain_only_together_are_found() -> None:
    beside = found(Table(task(), together), Candidate({"sum.c": FASTER}, ("-O2",)))
    assert set(beside.flags) == {"-O3", "-march=native"}
    assert ratio(beside.alone) == pytest.approx(1.43, rel=0.01)
    assert ratio(beside.over) == pytest.approx(1.3 / 1.43, rel=0.01)


def test_a_winner_that_is_flags_alone_needs_no_timing_to_say_so() -> None:
    judge = Table(task(), together)
    winner = Candidate({"sum.c": SOURCE}, ("-O3", "-march=native"))
    assert found(judge, winner) == Beside(winner.flags, None, None)


def test_flags_better_than_the_winners_own_are_found_too() -> None:
    winner = Candidate({"sum.c": SOURCE}, ("-O2", "-march=native"))
    beside = found(Table(task(), lambda one: 1.1 if one.flags == winner.flags else together(one)), winner)
    assert beside.flags == ("-O3", "-march=native")
    assert ratio(beside.over) == pytest.approx(1.1 / 1.43, rel=0.01)


def test_of_many_combinations_the_winners_own_are_tried() -> None:
    every = ("-O3", "-a", "-b", "-c", "-d")

    def speed(one: Candidate) -> float:
        return 2.0 if set(one.flags) == set(every) else 1.0

    judge = Table(task(FIVE), speed)
    beside = found(judge, Candidate({"sum.c": FASTER}, every))
    assert set(beside.flags) == set(every)
    assert ratio(beside.alone) == pytest.approx(2.0, rel=0.01) and ratio(beside.over) == pytest.approx(1.0, rel=0.01)
    assert len(judge.asked) < 32, "a search through all would take minutes"


def test_of_many_combinations_the_search_goes_on_from_the_winners() -> None:
    # From -O2 no single step gains; from the winner's flags one does.
    def speed(one: Candidate) -> float:
        flags = set(one.flags)
        return 3.0 if flags == {"-O3", "-a", "-b"} else 2.0 if {"-O3", "-a"} <= flags else 1.0

    beside = found(Table(task(FIVE), speed), Candidate({"sum.c": FASTER}, ("-O3", "-a")))
    assert set(beside.flags) == {"-O3", "-a", "-b"}
    assert ratio(beside.over) == pytest.approx(2 / 3, rel=0.01)


def test_flags_that_make_the_reference_wrong_are_no_baseline() -> None:
    def speed(one: Candidate) -> float | None:
        fast = "-ffast-math" in one.flags
        return 2.0 if one.files["sum.c"] == FASTER else None if fast else 1.0

    for groups in ('[["", "-ffast-math"]]', FIVE.replace("-a", "-ffast-math")):
        judge = Table(task(groups), speed)
        assert beside_best_flags(judge.task, judge, Candidate({"sum.c": FASTER}, ("-O2", "-ffast-math"))) is None


def test_flags_too_small_a_gain_to_be_proven_still_explain_a_winner_no_faster_than_they() -> None:
    # The winner was lucky: it is 1.02 times as fast as the reference, and so is the reference with its flags.
    class Unlucky(Table):
        def compare(self, candidate: Candidate, baseline: Candidate) -> Verdict:
            if candidate.files["sum.c"] == SOURCE:
                return super().compare(candidate, candidate)
            return super().compare(candidate, baseline)

    judge = Unlucky(task('[["-O2", "-O3"]]'), lambda one: 1.02 if "-O3" in one.flags else 1.0)
    beside = found(judge, Candidate({"sum.c": FASTER}, ("-O3",)))
    assert beside.flags == ("-O3",)
    assert ratio(beside.over) == pytest.approx(1.0, rel=0.01)


def test_a_winner_faster_than_all_flags_stands_beside_none_where_none_gain() -> None:
    judge = Table(task(), lambda one: 1.5 if one.files["sum.c"] == FASTER else 1.0)
    assert beside_best_flags(judge.task, judge, Candidate({"sum.c": FASTER}, ("-O3",))) is None


def test_a_task_without_choices_costs_no_timing() -> None:
    judge = Table(task("[]"), together)
    assert beside_best_flags(judge.task, judge, Candidate({"sum.c": FASTER}, ("-O2",))) is None
    assert judge.asked == []


def test_no_two_flags_are_timed_against_each_other_twice() -> None:
    pairs: Counter[frozenset[frozenset[str]]] = Counter()

    class Counting(Table):
        def compare(self, candidate: Candidate, baseline: Candidate) -> Verdict:
            if candidate.files == baseline.files:
                pairs[frozenset((frozenset(candidate.flags), frozenset(baseline.flags)))] += 1
            return super().compare(candidate, baseline)

    for groups in ('[["-O2", "-O3"], ["", "-a"], ["", "-b"]]', FIVE):
        beside_best_flags(
            task(groups),
            Counting(task(groups), lambda one: 2.0 if one.files["sum.c"] == FASTER else 1.0),
            Candidate({"sum.c": FASTER}, ("-O3", "-a")),
        )
        assert set(pairs.values()) == {1}
        pairs.clear()


def test_a_noisy_moment_is_timed_once_more() -> None:
    class Noisy(Table):
        noisy = 0

        def compare(self, candidate: Candidate, baseline: Candidate) -> Verdict:
            if candidate.files["sum.c"] == FASTER and self.noisy == 0:
                self.noisy = 1
                return Verdict(Outcome.TOO_NOISY, "timings vary")
            return super().compare(candidate, baseline)

    assert ratio(found(Noisy(task(), together), Candidate({"sum.c": FASTER}, ("-O2",))).over) < 1
