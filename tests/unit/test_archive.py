"""The archive gives every fact back exactly, and the views over them are what they say."""

from __future__ import annotations

import math
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from archive_facts import TASK, WRONG, ok, source, start, tried
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from outpace.archive import Archive, RunRecord
from outpace.archive.records import pack_text, unpack_text
from outpace.cost import Cost
from outpace.errors import ArchiveError
from outpace.judge.verdict import Bucket, Life, Outcome, Sample, SpeedUp, Verdict
from outpace.scored import Scored
from outpace.task.candidate import Candidate


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs" / "archive.db"


@pytest.fixture
def archive(path: Path) -> Iterator[Archive]:
    ticks = iter(range(1_000_000))
    with Archive.open(path, clock=lambda: float(next(ticks))) as opened:
        yield opened


# What goes in comes out

real = st.floats(allow_nan=False)
count = st.integers(0, 2**63 - 1)
samples = st.builds(Sample, count, count, count, count)
lives = st.builds(Life, samples, st.lists(samples, max_size=3).map(tuple))
verdicts = st.builds(
    Verdict,
    outcome=st.sampled_from(Outcome),
    reason=st.text() | st.text(alphabet=st.characters(), min_size=900, max_size=1200),
    speed_up=st.none() | st.builds(SpeedUp, real, real, real, st.booleans(), count),
    buckets=st.lists(st.builds(Bucket, lives, lives, st.integers(0, 2**70)), max_size=3).map(tuple),
    seconds=real,
)
SHOWN = (Scored("aa", 1.5, 1.4, 1.6, True, 3, None), Scored("bb", 2.0, 0.1 + 0.2, 2.1, False, 2**40, "aa", True))
text = st.text(alphabet=st.characters(exclude_categories=[]), max_size=3000)
costs = st.builds(Cost, st.integers(0, 2**40), st.integers(0, 2**40), st.floats(0, 1e6), st.floats(0, 1e6))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(verdict=verdicts, confirmation=verdicts, prompt=text, reply=text, analysis=text, cost=costs)
def test_a_trial_comes_back_exactly(
    archive: Archive,
    verdict: Verdict,
    confirmation: Verdict,
    prompt: str,
    reply: str,
    analysis: str,
    cost: Cost,
) -> None:
    run = start(archive)
    asked = archive.ask(run, prompt, SHOWN, "aa")[0]
    answered = archive.answer(asked, reply, cost)
    judged = archive.settle(answered, analysis=analysis, design="", candidate=source(1), verdict=verdict)
    archive.confirm(judged, confirmation)
    with Archive.open(archive.path) as again:
        stored = again.trial(asked.id)
    assert stored == replace(
        asked,
        state="judged",
        reply=reply,
        analysis=analysis,
        candidate=source(1).hash,
        verdict=verdict,
        confirmation=confirmation,
        cost=cost,
        judged_at=stored.judged_at,
    )
    assert stored.asked.text == prompt
    assert stored.asked.shown == SHOWN


def test_numbers_of_numpy_and_a_ratio_that_is_no_number_survive(archive: Archive) -> None:
    speed_up = SpeedUp(np.float64(1.5), np.float32(0.5), math.nan, np.bool_(True), np.int64(3))  # type: ignore[arg-type]
    stored = tried(archive, start(archive), source(1), Verdict(Outcome.OK, speed_up=speed_up)).verdict
    assert stored is not None and stored.speed_up is not None
    assert stored.speed_up.ratio == 1.5 and stored.speed_up.low == 0.5 and math.isnan(stored.speed_up.high)
    assert stored.speed_up.win is True and stored.speed_up.buckets == 3


@given(text)
def test_packed_text_comes_back_and_long_text_is_compressed(content: str) -> None:
    packed = pack_text(content)
    assert unpack_text(packed) == content
    assert isinstance(packed, bytes) or len(packed.encode()) <= 1024
    assert isinstance(pack_text("x" * 1025), bytes)


def test_a_run_comes_back_exactly(archive: Archive) -> None:
    settings = {"rule": "buckets", "tau": 0.1, "deep": {"list": [1, None]}}
    run = start(archive, settings=settings, seed=2**80, machine={"cores": 16})
    assert (run.name, run.task_hash, run.task_name) == ("first", TASK.hash, "sum")
    assert (run.policy, run.settings, run.seed, run.machine) == ("moves", settings, 2**80, {"cores": 16})
    assert (run.machine_key, run.policy_state) == ("x86-16", b"")
    assert archive.run("first") == run
    assert archive.runs() == [run]


def test_a_task_comes_back_byte_by_byte(archive: Archive) -> None:
    archive.remember_task(TASK)
    archive.remember_task(TASK)
    assert archive.task_files(TASK.hash) == TASK.files


def test_a_candidate_comes_back_and_is_stored_once(archive: Archive) -> None:
    run = start(archive)
    candidate = Candidate({"sum.c": "int é;\r\n\0" * 500, "b.c": ""}, ("-O3", ""))
    tried(archive, run, candidate, ok(2.0))
    tried(archive, run, candidate, ok(2.0))
    assert archive.candidate(candidate.hash) == candidate
    with closing(sqlite3.connect(archive.path)) as database:
        assert database.execute("SELECT count(*) FROM candidates").fetchone() == (1,)
        assert database.execute("SELECT count(*) FROM samples").fetchone() == (1,)


def test_notes_are_kept_by_key_and_the_last_one_counts(archive: Archive) -> None:
    first, second = start(archive), start(archive, "second")
    archive.note(first, "best flags", {"ratio": 1.25, "flags": ["-O3"]})
    archive.note(first, "red team", "pending")
    archive.note(first, "red team", "passed")
    assert archive.notes(first) == {"best flags": {"ratio": 1.25, "flags": ["-O3"]}, "red team": "passed"}
    assert archive.notes(second) == {}


@pytest.mark.parametrize(
    "lookup",
    [
        lambda archive: archive.run("absent"),
        lambda archive: archive.trial(99),
        lambda archive: archive.candidate("absent"),
        lambda archive: archive.task_files("absent"),
    ],
)
def test_what_is_not_there_is_an_error_and_not_an_empty_answer(
    archive: Archive, lookup: Callable[[Archive], object]
) -> None:
    start(archive)
    with pytest.raises(ArchiveError, match="has no"):
        lookup(archive)


def test_no_path_of_this_machine_is_stored(archive: Archive, tmp_path: Path) -> None:
    tried(archive, start(archive), source(1), ok(2.0))
    archive.compact(tmp_path / "copy.db")
    content = (tmp_path / "copy.db").read_bytes()
    for private in (str(tmp_path), str(TASK.folder), str(Path.home()), str(Path.cwd())):
        assert private.encode() not in content


# Runs that go on


def test_the_same_command_goes_on_with_its_run(archive: Archive) -> None:
    run = start(archive, settings={"flags": ("a", "b")})
    archive.learn([tried(archive, run, source(1), ok(2.0))], b"learnt")
    again = start(archive, settings={"flags": ["a", "b"]}, seed=99)
    assert again == replace(run, policy_state=b"learnt")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"policy": "openai"}, "policy was moves, now openai"),
        ({"settings": {"exemplars": 3}}, "exemplars was 2, now 3"),
        ({"settings": {}}, "exemplars was 2, now unset"),
        ({"settings": {"exemplars": 2, "tau": 1}}, "tau was unset, now 1"),
        ({"machine_key": "arm-8"}, "another kind of machine"),
    ],
)
def test_another_command_of_the_same_name_is_refused_with_what_differs(
    archive: Archive, changed: dict[str, Any], said: str
) -> None:
    start(archive)
    with pytest.raises(ArchiveError, match=said):
        start(archive, **changed)
    assert len(archive.runs()) == 1


def test_an_edited_task_is_a_new_run_and_the_newest_of_a_name_is_found(archive: Archive) -> None:
    edited = replace(TASK, files={**TASK.files, "sum.c": b"long sum;\n"})
    old, new = start(archive), start(archive, task=edited)
    assert old.id != new.id
    assert archive.run("first") == new
    assert archive.run("first", TASK.hash) == old


def test_a_trial_is_taken_up_where_it_was_left(archive: Archive, path: Path) -> None:
    run = start(archive)
    assert archive.open_trials(run) == []
    asked = archive.ask(run, "faster", SHOWN, None)[0]
    with Archive.open(path) as other:
        assert other.open_trials(run) == [asked]
        answered = other.answer(asked, "reply", Cost(tokens_out=5))
    assert archive.open_trials(run) == [answered]
    assert (answered.state, answered.reply) == ("answered", "reply")
    archive.settle(answered, analysis="", design="", candidate=None, verdict=WRONG)
    assert archive.open_trials(run) == []


def test_the_policy_state_is_kept_with_the_reply_and_with_what_was_learnt(archive: Archive) -> None:
    run = start(archive)
    first, second = archive.ask(run, "faster", (), None, replies=2)
    assert (first.asked, first.number, second.number) == (second.asked, 1, 2)
    first = archive.answer(first, "a reply", Cost(), policy_state=b"one")
    assert archive.run("first").policy_state == b"one"
    settled = archive.settle(first, analysis="", design="", candidate=source(1), verdict=ok(2.0))
    assert archive.unlearnt(run) == [], "another reply is still to come"
    other = archive.settle(second, analysis="", design="", candidate=None, verdict=WRONG)
    assert archive.unlearnt(run) == [[settled, other]]
    archive.learn([settled, other], b"two")
    assert archive.unlearnt(run) == [] and archive.run("first").policy_state == b"two"


def test_the_parent_that_a_reply_started_from_takes_the_place_of_the_prompt_s(archive: Archive) -> None:
    trial = archive.ask(start(archive), "faster", (), "aa")[0]
    settled = archive.settle(trial, analysis="", design="", candidate=source(1), verdict=ok(2.0), parent="bb")
    assert (settled.parent, settled.asked.parent) == ("bb", "aa")


def test_a_verdict_of_another_machine_is_found_for_that_machine(archive: Archive) -> None:
    run = start(archive)
    tried(archive, run, source(1), replace(ok(2.0), machine="arm-8"))
    assert archive.find_verdict(TASK.hash, source(1).hash, "x86-16") is None
    found = archive.find_verdict(TASK.hash, source(1).hash, "arm-8")
    assert found is not None and found[1].machine == "arm-8"
    here = tried(archive, run, source(2), ok(2.0)).verdict
    assert here is not None and here.machine == "x86-16"


def test_a_number_beyond_all_numbers_of_the_file_is_no_trial(archive: Archive) -> None:
    assert archive.numbered(start(archive), 2**70) is None


def test_a_settlement_that_fails_halfway_leaves_nothing(archive: Archive) -> None:
    run = start(archive)
    trial = archive.ask(run, "faster", (), None)[0]
    with pytest.raises(ArchiveError, match="does not hold"):
        archive.settle(trial, analysis="", design="", candidate=source(1), verdict=ok(2.0), duplicate_of=12345)
    assert archive.open_trials(run) == [trial]
    assert archive.scored(TASK.hash) == []
    with pytest.raises(ArchiveError, match="no candidate"):
        archive.candidate(source(1).hash)


def test_a_trial_that_another_process_answered_is_not_answered_over(archive: Archive) -> None:
    mine = theirs = archive.ask(start(archive), "faster", (), None)[0]
    archive.answer(theirs, "their reply", Cost(calls=1))
    with pytest.raises(ArchiveError, match="another process"):
        archive.answer(mine, "my reply", Cost(calls=1))
    with pytest.raises(ArchiveError, match="another process"):
        archive.settle(mine, analysis="", design="", candidate=source(1), verdict=ok(2.0))
    assert archive.trial(mine.id).reply == "their reply"


def test_a_reply_may_be_asked_for_again_and_both_are_paid(archive: Archive) -> None:
    trial = archive.ask(start(archive), "faster", (), None)[0]
    trial = archive.add_cost(trial, Cost(calls=1, failed_calls=1, seconds=2.0))
    trial = archive.answer(trial, "no analysis", Cost(10, 20, 0.5, 1.0, 1))
    trial = archive.answer(trial, "better", Cost(1, 2, 0.25, 1.0, 1))
    assert trial.reply == "better"
    assert trial.cost == Cost(11, 22, 0.75, 4.0, 3, 1)


def test_only_a_judged_candidate_can_be_confirmed(archive: Archive) -> None:
    run = start(archive)
    with pytest.raises(ArchiveError, match="judge it first"):
        archive.confirm(archive.ask(run, "faster", (), None)[0], ok(2.0))
    with pytest.raises(ArchiveError, match="judge it first"):
        archive.confirm(tried(archive, run, None, Verdict(Outcome.UNUSABLE, "no code")), ok(2.0))


def test_a_receipt_comes_back_byte_by_byte_until_its_trial_is_confirmed_anew(archive: Archive) -> None:
    trial = tried(archive, start(archive), source(1), ok(2.0))
    with pytest.raises(ArchiveError, match="not confirmed"):
        archive.publish(trial, b"{}")
    assert archive.published(trial) is None
    archive.confirm(trial, ok(1.9))
    archive.publish(trial, b'{"of": "this"}\n')
    assert archive.published(trial) == b'{"of": "this"}\n'
    archive.publish(trial, b"in its place")
    assert archive.published(trial) == b"in its place"
    archive.confirm(trial, ok(1.8))
    assert archive.published(trial) is None


def test_a_trial_is_found_by_its_number_in_its_run(archive: Archive) -> None:
    first, second = start(archive), start(archive, "second")
    tried(archive, first, source(1), ok(2.0))
    wanted = tried(archive, second, source(2), ok(2.0))
    assert archive.numbered(second, 1) == wanted
    assert archive.numbered(second, 2) is None


# Views


def test_costs_add_up_over_a_run_and_not_over_others(archive: Archive) -> None:
    first, second = start(archive), start(archive, "second")
    assert archive.costs(first) == Cost()
    archive.add_cost(archive.ask(first, "p", (), None)[0], Cost(1, 2, 0.5, 3.0, 4, 5))
    archive.add_cost(archive.ask(first, "p", (), None)[0], Cost(10, 20, 0.25, 30.0, 40, 50))
    archive.add_cost(archive.ask(second, "p", (), None)[0], Cost(100))
    assert archive.costs(first) == Cost(11, 22, 0.75, 33.0, 44, 55)
    assert archive.costs(second) == Cost(100)


def test_trials_come_in_order_across_pages_by_run_by_task_and_since(archive: Archive) -> None:
    other_task = replace(TASK, files={"sum.c": b"other"})
    runs = [start(archive), start(archive, "second"), start(archive, task=other_task)]
    asked = [archive.ask(runs[number % 3], str(number), (), None)[0] for number in range(330)]
    assert list(archive.trials()) == asked
    assert list(archive.trials(run=runs[1])) == asked[1::3]
    assert [trial.number for trial in archive.trials(run=runs[1])] == list(range(1, 111))
    assert list(archive.trials(task_hash=other_task.hash)) == asked[2::3]
    assert list(archive.trials(since=asked[320].id)) == asked[321:]
    assert archive.count(runs[0]) == 110


def test_trials_may_be_written_while_they_are_read(archive: Archive) -> None:
    run = start(archive)
    for number in range(150):
        archive.ask(run, str(number), (), None)[0]
    for trial in archive.trials(run):
        archive.add_cost(trial, Cost(calls=1))
    assert archive.costs(run).calls == 150


def test_outcomes_are_counted_and_failures_are_listed_newest_first(archive: Archive) -> None:
    run = start(archive)
    found = [
        tried(archive, run, source(number), verdict)
        for number, verdict in enumerate([WRONG, ok(2.0), Verdict(Outcome.CRASHED, "signal 11"), ok(3.0), WRONG])
    ]
    archive.ask(run, "open", (), None)[0]
    assert archive.outcome_counts(run) == {"wrong": 2, "ok": 2, "crashed": 1}
    assert archive.recent_failures(run, 2) == [found[4], found[2]]
    assert archive.recent_failures(run, 9) == [found[4], found[2], found[0]]
    assert archive.recent_failures(run, 0) == []


def ratios(archive: Archive, run: RunRecord | None = None) -> dict[str, float]:
    return {one.hash: one.ratio for one in archive.scored(TASK.hash, run)}


def test_scored_holds_each_ok_candidate_once_with_its_best_verdict(archive: Archive) -> None:
    run, other = start(archive), start(archive, "second")
    trial = archive.ask(run, "faster", (), source(9).hash)[0]
    found = archive.settle(trial, analysis="", design="", candidate=source(1), verdict=ok(2.0, win=False))
    tried(archive, run, source(2), WRONG)
    tried(archive, run, None, Verdict(Outcome.UNUSABLE, "no code"))
    tried(archive, run, source(1), ok(1.5))
    elsewhere = tried(archive, other, source(1), ok(2.5))
    [mine] = archive.scored(TASK.hash, run)
    assert (mine.hash, mine.ratio, mine.low, mine.high) == (source(1).hash, 2.0, 1.9, 2.1)
    assert (mine.win, mine.trial, mine.parent) == (False, found.id, source(9).hash)
    [of_all] = archive.scored(TASK.hash)
    assert (of_all.ratio, of_all.trial) == (2.5, elsewhere.id)
    assert archive.scored("another task") == []


def test_a_confirmation_outranks_the_trial_that_found_it(archive: Archive) -> None:
    run = start(archive)
    trial = tried(archive, run, source(1), ok(3.0))
    archive.confirm(trial, ok(2.0))
    tried(archive, run, source(1), ok(4.0))
    assert ratios(archive) == {source(1).hash: 2.0}
    archive.confirm(trial, ok(1.75))
    assert ratios(archive) == {source(1).hash: 1.75}


def test_a_rejecting_confirmation_takes_the_candidate_off_and_a_duplicate_does_not_bring_it_back(
    archive: Archive,
) -> None:
    run = start(archive)
    trial = tried(archive, run, source(1), ok(3.0))
    archive.confirm(trial, Verdict(Outcome.TOO_NOISY, "spread 20%"))
    assert ratios(archive) == {source(1).hash: 3.0}
    archive.confirm(trial, WRONG)
    tried(archive, run, source(1), ok(3.0), duplicate_of=trial.id)
    assert ratios(archive) == {}
    assert archive.best(run) is None
    archive.confirm(trial, ok(2.0))
    assert ratios(archive) == {source(1).hash: 2.0}


outcomes = st.sampled_from([ok(1.0), ok(1.5), ok(2.0), WRONG, Verdict(Outcome.TOO_NOISY)])
events = st.lists(st.tuples(st.integers(0, 3), outcomes, st.none() | outcomes), max_size=12)


@settings(max_examples=25, deadline=None)
@given(events)
def test_scores_are_the_same_read_bit_by_bit_or_all_at_once(steps: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder, Archive.open(Path(folder) / "a.db") as archive:
        run = start(archive)
        for number, verdict, confirmation in steps:
            trial = tried(archive, run, source(number), verdict)
            archive.scored(TASK.hash)
            if confirmation is not None:
                archive.confirm(trial, confirmation)
            archive.scored(TASK.hash, run)
        with Archive.open(archive.path) as fresh:
            assert fresh.scored(TASK.hash) == archive.scored(TASK.hash)
            assert fresh.scored(TASK.hash, run) == archive.scored(TASK.hash, run)


def test_scored_sees_what_another_process_writes_and_reads_only_what_is_new(archive: Archive, path: Path) -> None:
    run = start(archive)
    for number in range(60):
        tried(archive, run, source(number), ok(1.0 + number))
    steps = 0

    def step() -> int:
        nonlocal steps
        steps += 1
        return 0

    archive._database.set_progress_handler(step, 1)
    archive.scored(TASK.hash)
    cold, steps = steps, 0
    with Archive.open(path) as other:
        tried(other, run, source(99), ok(99.0))
    assert len(archive.scored(TASK.hash)) == 61
    assert steps < cold / 10


def test_the_best_is_the_fastest_win(archive: Archive) -> None:
    run = start(archive)
    assert archive.best(run) is None
    tried(archive, run, source(1), ok(9.0, win=False))
    tried(archive, run, source(2), ok(2.0))
    winner = tried(archive, run, source(3), ok(3.0))
    best = archive.best(run)
    assert best is not None and best.trial == winner.id


def test_equal_sources_find_their_verdict_for_the_same_task_and_machine_only(archive: Archive) -> None:
    run = start(archive)
    first = tried(archive, run, source(1), ok(2.0, seed=2**64))
    wanted = source(1).hash
    assert archive.find_verdict(TASK.hash, wanted, "x86-16") == (first.id, first.verdict)
    assert archive.find_verdict(TASK.hash, wanted, "arm-8") is None
    assert archive.find_verdict("another task", wanted, "x86-16") is None
    assert archive.find_verdict(TASK.hash, source(2).hash, "x86-16") is None
    tried(archive, run, source(1), ok(2.0, seed=2**64), duplicate_of=first.id)
    assert archive.find_verdict(TASK.hash, wanted, "x86-16") == (first.id, first.verdict)
    archive.confirm(first, WRONG)
    assert archive.find_verdict(TASK.hash, wanted, "x86-16") == (first.id, WRONG)


def test_a_verdict_that_was_too_noisy_is_not_reused(archive: Archive) -> None:
    tried(archive, start(archive), source(1), Verdict(Outcome.TOO_NOISY, "spread 20%"))
    assert archive.find_verdict(TASK.hash, source(1).hash, "x86-16") is None
