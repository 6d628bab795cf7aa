"""Moves: it proposes what it has not tried, learns which options pay, and says honestly what it does."""

from __future__ import annotations

import itertools
import json
import random
import re
from pathlib import Path

import pytest

from outpace import answer
from outpace.errors import PolicyError
from outpace.policies.base import Exhausted, Lesson, Prompt, Shown
from outpace.policies.moves import WEIGHED, Moves, untried
from outpace.reward import FLOOR
from outpace.scored import Scored
from outpace.task import Build, Entry, Task, variation
from outpace.task.candidate import Candidate, reference

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


def lesson(trial: int, candidate: Candidate, earned: float | None) -> Lesson:
    return Lesson(trial, OWN, candidate, earned, None if earned is None else 0.0)


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
    policy.learn([lesson(1, at(0, 1, 0), 0.3)])
    policy.learn([lesson(2, at(1, 0, 0), FLOOR - 0.5)])
    back = Moves()
    back.restore(policy.save())
    assert back.save() == policy.save()
    # Straight after, before any prompt says which task it is.
    for each in (policy, back):
        each.learn([lesson(3, at(0, 0, 1), None)])
    assert proposals(back, 4, 10) == proposals(policy, 4, 10)


def test_a_run_killed_at_every_step_proposes_what_an_unbroken_one_does() -> None:
    def found(kill: bool) -> list[str]:
        policy, texts = Moves(), list[str]()

        def killed(policy: Moves) -> Moves:
            back = Moves()
            back.restore(policy.save())
            return back if kill else policy

        for trial in range(1, 12):
            # The prompt is asked again by the next process, which knows nothing of the first answer.
            if kill:
                killed(policy).propose(ask(trial))
            texts.append(policy.propose(ask(trial)).text)
            policy = killed(policy)
            policy.learn([lesson(trial, read(texts[-1]).candidate, None if trial == 5 else 0.1 * (trial % 4))])
            policy = killed(policy)
        return texts

    assert found(kill=True) == found(kill=False)


def test_a_verdict_on_a_forgotten_proposal_keeps_it_from_being_proposed_again() -> None:
    policy = Moves()
    first = read(policy.propose(ask(1)).text).candidate
    state = Moves()
    state.propose(ask(2))
    state.learn([lesson(1, first, 0.0)])
    assert first.hash not in proposals(state, 3, 12)


def test_what_failed_and_what_tells_nothing_is_not_proposed_again_either() -> None:
    policy = Moves()
    first = [read(policy.propose(ask(trial)).text).candidate for trial in (1, 2)]
    policy.learn([lesson(1, first[0], FLOOR - 0.5)])
    policy.learn([lesson(2, first[1], None)])
    assert not {each.hash for each in first} & set(proposals(policy, 3, 12))


def test_every_proposal_is_new_while_several_wait_for_their_verdicts() -> None:
    policy = Moves()
    found: list[Candidate] = []
    for trial in range(1, 12):
        found.append(read(policy.propose(ask(trial)).text).candidate)
        if trial % 4 == 0:
            for each in range(trial - 3, trial + 1):
                policy.learn([lesson(each, found[each - 1], 0.1 * each)])
    assert len({each.hash for each in found}) == 11


def test_the_fastest_settings_of_an_additive_task_come_early() -> None:
    gains = ((0.4, 0.2, 0.0), (0.0, 0.3), (0.0, 0.2))
    policy = Moves()
    found: list[variation.Settings] = []
    for trial in range(1, 8):
        candidate = read(policy.propose(ask(trial)).text).candidate
        found.append(variation.settings(POINTS, candidate))
        policy.learn([lesson(trial, candidate, sum(row[at or 0] for row, at in zip(gains, found[-1], strict=True)))])
    assert (0, 1, 1) in found


def test_settings_to_weigh_are_new_and_there_are_some_while_any_are_left() -> None:
    choices = [range(3), (None,), range(4)]
    everything = {(a, None, c) for a in range(3) for c in range(4)}
    left = {(1, None, 2), (2, None, 0)}
    assert set(untried(choices, everything - left, [], random.Random(1))) == left
    assert untried(choices, everything, [], random.Random(1)) == []


def test_of_a_large_space_neighbours_of_the_best_and_others_are_weighed() -> None:
    choices = [range(6)] * 5
    best = (1, 2, 3, 4, 5)
    found = untried(choices, {best}, [best], random.Random(1))
    assert len(found) <= WEIGHED
    assert len(set(found)) == len(found)
    changed = [sum(one != other for one, other in zip(best, each, strict=True)) for each in found]
    assert min(changed) == 1
    assert max(changed) > 3
    # Even where all that is looked at is taken.
    everything = set(itertools.product(*choices))
    assert untried(choices, everything - {(0, 0, 0, 0, 0)}, [best], random.Random(1)) == [(0, 0, 0, 0, 0)]


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
    texts: list[Candidate] = []
    for trial in range(1, 15):
        texts.append(read(policy.propose(ask(trial, parent)).text, parent).candidate)
        policy.learn([lesson(trial, texts[-1], 0.01 * trial)])
    assert len({each.hash for each in texts}) == 14
    # Three more of its own, then the eleven of the reference.
    assert sum("outpace: choose" not in each.files["k.c"] for each in texts) == 3
    with pytest.raises(Exhausted):
        policy.propose(ask(15, parent))


def test_the_reply_says_what_is_thought_to_matter_and_what_is_expected() -> None:
    policy = Moves()
    first = read(policy.propose(ask(1)).text)
    assert "Only the reference's own speed (1.00x) is known" in first.analysis
    assert "Expected is 1.00x, give or take" in first.design
    policy.learn([lesson(1, at(0, 1, 0), 0.7)])
    policy.learn([lesson(2, at(1, 1, 0), FLOOR - 0.5)])
    policy.learn([lesson(3, at(0, 0, 0), 0.7)])
    found = read(policy.propose(ask(4)).text)
    assert "What 4 candidates have shown suggests" in found.analysis
    matters = re.search(r"UNROLL=1 is ([\d.]+)x as fast as UNROLL=[24]", found.analysis)
    assert matters is not None
    assert 1.5 < float(matters[1]) < 2.2
    assert "option plain" not in found.analysis
    expected = re.search(r"Expected is ([\d.]+)x, give or take a factor of ([\d.]+)", found.design)
    assert expected is not None
    assert 1.3 < float(expected[1]) < 2.4


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


@pytest.mark.parametrize(
    "change",
    [
        {"points": 3},
        {"proposed": [[1]]},
        {"proposed": [[1, "0", [0]]]},
        {"proposed": [[1, "no frame", [0, 0, 0]]]},
        {"earned": [[9, 0.5]]},
        {"earned": [[1, "much"]]},
        {"earned": [[1, float("inf")]]},
    ],
)
def test_a_state_that_cannot_be_read_is_refused(change: dict[str, object]) -> None:
    policy = Moves()
    policy.propose(ask())
    state = json.loads(policy.save()) | change
    with pytest.raises(PolicyError):
        Moves().restore(json.dumps(state).encode())
