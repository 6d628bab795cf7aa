"""Moves: it proposes what it has not tried, learns which options pay, and says honestly what it does."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from outpace import answer, variation
from outpace.candidate import Candidate, reference
from outpace.errors import PolicyError
from outpace.exemplars import Scored
from outpace.policies import moves
from outpace.policies.base import Exhausted, Lesson, Prompt, Shown
from outpace.policies.moves import CLIP, KEEP, REACH, Moves, chances, improved
from outpace.task import Build, Entry, Task

SOURCE = """// outpace: choose 1 2 4
#define UNROLL 4
// outpace: alternatives
// outpace: option plain
one();
// outpace: option blocked
//~ two();
// outpace: end alternatives
"""
TASK = Task(
    "made",
    "",
    Path("made"),
    ("k.c",),
    {"k.c": SOURCE.encode()},
    Entry("c"),
    Build(flags=("-O2",), flag_choices=(("-O2", "-O3"),)),
)
POINTS = variation.points(TASK)
OWN = reference(TASK)


def at(*wanted: int) -> Candidate:
    return variation.apply(POINTS, OWN, wanted)


def shown(candidate: Candidate, ratio: float) -> Shown:
    return Shown(candidate, Scored(candidate.hash, ratio, ratio, ratio, ratio > 1, 1, None))


def ask(trial: int = 1, parent: Candidate = OWN, seen: tuple[Shown, ...] = (), task: Task = TASK) -> Prompt:
    return Prompt("", task, trial, 7, parent, seen)


def read(reply: str, parent: Candidate = OWN) -> answer.Answer:
    found = answer.parse(reply, TASK, {parent.hash: parent, OWN.hash: OWN}, parent)
    assert isinstance(found, answer.Answer), found
    return found


def proposals(policy: Moves, first: int, last: int) -> list[str]:
    return [read(policy.propose(ask(trial)).text).candidate.hash for trial in range(first, last)]


def test_the_whole_space_is_proposed_once_and_then_the_policy_is_exhausted() -> None:
    policy = Moves()
    everything = proposals(policy, 1, 12)
    assert len({*everything, OWN.hash}) == variation.size(POINTS) == 12
    with pytest.raises(Exhausted, match="all 12 combinations"):
        policy.propose(ask(12))


def test_what_is_shown_is_not_proposed() -> None:
    seen = tuple(
        shown(at(a, b, c), 1.5) for a in range(3) for b in range(2) for c in range(2) if (a, b, c) != (0, 1, 0)
    )
    found = read(Moves().propose(ask(parent=seen[-1].candidate, seen=seen)).text, seen[-1].candidate)
    assert variation.settings(POINTS, found.candidate) == (0, 1, 0)


def test_asking_again_for_a_trial_gives_the_same_reply() -> None:
    policy = Moves()
    assert policy.propose(ask(3)) == policy.propose(ask(3))


def test_the_seed_and_the_trial_decide_the_first_proposal() -> None:
    policies = [
        Moves().propose(Prompt("", TASK, trial, seed, OWN, ())).text for trial in (1, 2, 3) for seed in (1, 2, 3)
    ]
    assert len(set(policies)) > 1


def test_a_restored_policy_goes_on_as_if_it_had_not_been_away() -> None:
    policy = Moves()
    proposals(policy, 1, 4)
    policy.learn([Lesson(1, OWN, at(0, 1, 0), 1.0), Lesson(2, OWN, at(1, 0, 0), -1.0)])
    back = Moves()
    back.restore(policy.save())
    assert back.save() == policy.save()
    # Straight after, before any prompt says which task it is.
    for each in (policy, back):
        each.learn([Lesson(3, OWN, at(0, 0, 1), 1.0)])
    assert proposals(back, 4, 10) == proposals(policy, 4, 10)


def test_a_lesson_about_a_forgotten_proposal_keeps_it_from_being_proposed_again() -> None:
    policy = Moves()
    first = read(policy.propose(ask(1)).text).candidate
    state = Moves()
    state.propose(ask(2))
    state.learn([Lesson(1, OWN, first, 0.0)])
    assert first.hash not in proposals(state, 3, 12)


def test_options_that_do_better_than_their_group_are_drawn_more_often() -> None:
    flat = ((0.0, 0.0, 0.0),)
    for _ in range(10):
        flat = improved(flat, [((2,), (0,), 1.0), ((2,), (1,), -1.0)])
    free = chances(flat[0], None)
    assert free[0] > 0.6
    assert free[1] < 0.1


@pytest.mark.parametrize(("advantage", "bound"), [(1.0, 1 + CLIP), (-1.0, 1 - CLIP)])
def test_one_group_moves_an_option_to_the_clip_and_no_further(
    advantage: float, bound: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moves, "RATE", 0.01)
    monkeypatch.setattr(moves, "EPOCHS", 5000)
    before = ((0.0, 0.0, 0.0, 0.0),)
    after = improved(before, [((3,), (0,), advantage)])
    assert chances(after[0], 3)[0] / chances(before[0], 3)[0] == pytest.approx(bound, abs=0.01)


def test_no_option_is_ever_ruled_out() -> None:
    row = ((0.0, 0.0),)
    for _ in range(200):
        row = improved(row, [((0,), (0,), 1.0), ((0,), (1,), -1.0)])
    assert row[0] == (0.0, -REACH)
    assert chances(row[0], 0)[1] > (1 - KEEP) * math.exp(-REACH) / 2


def test_equal_advantages_of_zero_teach_nothing() -> None:
    before = ((0.0, -0.5), (-0.25, 0.0))
    assert improved(before, [((0, 0), (1, 1), 0.0)]) == before


def test_chances_are_probabilities_that_favour_the_parent() -> None:
    found = chances((0.0, 0.0, 0.0, 0.0), 1)
    assert sum(found) == pytest.approx(1)
    assert found[1] == pytest.approx(KEEP + (1 - KEEP) / 4)


def test_the_reply_says_what_differs_and_what_is_tried() -> None:
    slow, fast = shown(at(2, 1, 0), 1.1), shown(at(0, 1, 1), 1.524)
    reply = Moves().propose(ask(parent=fast.candidate, seen=(slow, fast))).text
    found = read(reply, fast.candidate)
    assert "(1.52x) differs from the slowest (1.10x)" in found.analysis
    assert "UNROLL=1 rather than UNROLL=4 and -O3 rather than -O2" in found.analysis
    changed = variation.settings(POINTS, found.candidate)
    for point, old, new in zip(POINTS, (0, 1, 1), changed, strict=True):
        assert (f"{point.said(new)} rather than {point.said(old)}" in found.design) == (old != new)


def test_a_parent_that_lost_a_marker_is_varied_in_the_points_it_still_has() -> None:
    parent = Candidate({"k.c": SOURCE.replace("// outpace: choose 1 2 4\n", "")}, ("-O2",))
    policy = Moves()
    found = [
        answer.parse(policy.propose(ask(trial, parent)).text, TASK, {parent.hash: parent, OWN.hash: OWN}, parent)
        for trial in range(1, 15)
    ]
    texts = [each.candidate for each in found if isinstance(each, answer.Answer)]
    assert len({each.hash for each in texts}) == 14
    # Three more of its own, then the eleven of the reference.
    assert sum("outpace: choose" not in each.files["k.c"] for each in texts) == 3
    with pytest.raises(Exhausted):
        policy.propose(ask(15, parent))


def test_a_huge_space_costs_no_enumeration() -> None:
    lines = "".join(f"// outpace: choose {' '.join(map(str, range(10)))}\nx{n} = 0;\n" for n in range(60))
    task = Task("huge", "", Path("huge"), ("k.c",), {"k.c": lines.encode()}, Entry("c"))
    policy = Moves()
    replies = {policy.propose(ask(trial, reference(task), task=task)).text for trial in range(1, 30)}
    assert len(replies) == 29


def test_a_task_without_points_is_refused_with_what_to_do() -> None:
    task = Task("plain", "", Path("plain"), ("k.c",), {"k.c": b"int x;\n"}, Entry("c"))
    with pytest.raises(PolicyError, match=r"no variation points.*outpace: choose.*or use a model"):
        Moves().propose(ask(parent=reference(task), task=task))


def test_a_state_of_other_points_is_refused() -> None:
    policy = Moves()
    policy.propose(ask())
    task = Task("made", "", Path("made"), ("k.c",), {"k.c": SOURCE.encode()}, Entry("c"))
    with pytest.raises(PolicyError, match="start a new run"):
        policy.propose(ask(2, reference(task), task=task))


@pytest.mark.parametrize("change", [{"version": 2}, {"preferences": [[0.0]]}, {"points": 3}, {"proposed": [[1]]}])
def test_a_state_that_cannot_be_read_is_refused(change: dict[str, object]) -> None:
    policy = Moves()
    policy.propose(ask())
    state = json.loads(policy.save()) | change
    with pytest.raises(PolicyError):
        Moves().restore(json.dumps(state).encode())
