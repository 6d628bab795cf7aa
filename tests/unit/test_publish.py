"""What a run claims: the same everywhere, the same again, and nothing that was not confirmed."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest
from claim_facts import FASTER, HERE, SOURCE, Table, task, timed, together
from rich.console import Console
from run_facts import ANALYSIS, Scripted

from conftest import Cli
from outpace import answer
from outpace.archive import Archive
from outpace.budget import Budget
from outpace.claims.publish import Publication, publish
from outpace.claims.receipt import read_receipt
from outpace.cli.progress import Progress
from outpace.errors import PolicyError
from outpace.judge.verdict import Outcome, Verdict
from outpace.loop import loop
from outpace.policies.base import Prompt, Reply
from outpace.report import page
from outpace.report.facts import Facts, gather
from outpace.run import ENDED, Run
from outpace.task.candidate import Candidate

BOTH = ("-O3", "-march=native")
NOISY = Verdict(Outcome.TOO_NOISY, "timings vary \x1b[31mtoo much")


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive.open(tmp_path / "archive.sqlite") as opened:
        yield opened


class Again(Table):
    """A table that finds otherwise when it judges a text once more."""

    def __init__(self, later: Mapping[str, Sequence[Verdict]] | None = None) -> None:
        super().__init__(task(), together)
        self._later = {text: list(verdicts) for text, verdicts in (later or {}).items()}
        self._seen: set[str] = set()

    def judge(self, candidate: Candidate) -> Verdict:
        text = candidate.files["sum.c"]
        later = self._later.get(text, [])
        if text in self._seen and later:
            return later.pop(0)
        self._seen.add(text)
        return super().judge(candidate)

    def confirm(self, candidate: Candidate, baseline: Candidate | None = None) -> Verdict:
        return self.judge(candidate) if baseline is None else self.compare(candidate, baseline)


def said(text: str, *flags: str) -> str:
    return answer.render(Candidate({"sum.c": text}, flags), None, ANALYSIS, "Fewer steps.")


def begin(archive: Archive, judge: Table, *replies: str, trials: int | None = None) -> Run:
    budget = Budget(trials=len(replies) if trials is None else trials)
    return Run(archive, judge.task, judge, Scripted(replies), name="first", machine=HERE, seed=7, budget=budget)


def facts(archive: Archive, folder: Path) -> Facts:
    record = archive.run("first")
    receipt = folder / "first.receipt.json"
    return gather(archive, record, receipt=receipt, now=record.started_at, judge_alive=False)


# All of it is compiler flags


@pytest.mark.parametrize("text", [SOURCE, f"// other words\n{SOURCE}", SOURCE.replace("return n", "return n + 0")])
def test_a_gain_of_compiler_flags_alone_is_called_that_wherever_it_is_told(
    archive: Archive, tmp_path: Path, text: str, cli: Cli
) -> None:
    judge = Again()
    run = begin(archive, judge, said(text, *BOTH))
    reason = loop(run)
    claimed = publish(run, judge, HERE, tmp_path)
    plainly = "all of it is compiler flags: -O3 -march=native"
    headline = claimed.sentence().splitlines()[0]
    assert headline.startswith("sum: 1.4") and headline.endswith(f"confirmed in fresh processes); {plainly}.")
    assert "No other flags" not in claimed.sentence()
    told = claimed.as_json(reason)
    assert (told["flags_share"], set(told["best_flags"])) == ("all", set(BOTH))
    assert read_receipt(tmp_path / "first.receipt.json").flags_share == "all"
    assert plainly in cli("show", "first", "--folder", str(tmp_path))[1].replace("\n", " ")
    assert "by flags" in cli("show", "--folder", str(tmp_path))[1]
    shown = json.loads(cli("show", "first", "--folder", str(tmp_path), "--json")[1])
    assert shown["claim"]["flags_share"] == "all" and plainly in shown["claim"]["sentence"]
    html = page.render(facts(archive, tmp_path), {})
    assert plainly.removeprefix("all") in html and ", by compiler flags, an Outpace report</title>" in html


def test_a_gain_beyond_the_flags_is_told_beside_them(archive: Archive, tmp_path: Path) -> None:
    judge = Again()
    run = begin(archive, judge, said(FASTER, *BOTH))
    loop(run)
    claimed = publish(run, judge, HERE, tmp_path)
    headline, beside, _ = claimed.sentence().splitlines()
    assert headline.startswith("sum: 1.8") and "compiler flags" not in headline
    assert beside.startswith("Beside the unchanged reference built with its best flags -O3 -march=native (1.4")
    assert "by themselves): 1.2" in beside or "by themselves): 1.3" in beside
    told = claimed.as_json("over")
    assert told["flags_share"] == "part" and told["over_best_flags"]["ratio"] == pytest.approx(1.3, rel=0.01)


# The same claim again


def test_a_claim_published_again_is_the_same_to_the_byte(archive: Archive, tmp_path: Path) -> None:
    judge = Again()
    run = begin(archive, judge, said(FASTER, "-O2"))
    loop(run)
    first = publish(run, judge, HERE, tmp_path)
    content = (tmp_path / "first.receipt.json").read_bytes()
    (tmp_path / "first.receipt.json").unlink()

    class Changed(Table):
        """A machine on which everything is otherwise by now."""

        def compare(self, *_: Candidate) -> Verdict:
            raise AssertionError("nothing is to be timed again")

    later = begin(archive, Changed(task(), together), said(FASTER, "-O2"))
    loop(later)
    again = publish(later, Changed(task(), together), HERE, tmp_path)
    assert again.sentence() == first.sentence() and again.as_json("x") == first.as_json("x")
    assert (tmp_path / "first.receipt.json").read_bytes() == content


def test_a_new_winner_is_a_new_claim(archive: Archive, tmp_path: Path) -> None:
    judge = Again()
    replies = said(SOURCE, *BOTH), said(FASTER, *BOTH)
    first = begin(archive, judge, *replies, trials=1)
    loop(first)
    before = publish(first, judge, HERE, tmp_path)
    second = begin(archive, judge, *replies)
    loop(second)
    after = publish(second, judge, HERE, tmp_path)
    assert before.receipt is not None and after.receipt is not None
    assert (before.receipt.flags_share, after.receipt.flags_share) == ("all", "part")
    assert read_receipt(tmp_path / "first.receipt.json") == dataclasses.replace(
        after.receipt, task=read_receipt(tmp_path / "first.receipt.json").task
    )


def test_a_winner_confirmed_anew_is_a_new_claim(archive: Archive, tmp_path: Path) -> None:
    judge = Again()
    run = begin(archive, judge, said(FASTER, "-O2"))
    loop(run)
    publish(run, judge, HERE, tmp_path)
    leader = run.leader()
    assert leader is not None and archive.published(leader[1]) is not None
    assert archive.published(archive.confirm(leader[1], timed(1.2))) is None
    assert "1.19x" in publish(run, judge, HERE, tmp_path).sentence()


def test_a_stored_claim_that_this_version_cannot_read_is_made_anew(archive: Archive, tmp_path: Path) -> None:
    judge = Again()
    run = begin(archive, judge, said(FASTER, "-O2"))
    loop(run)
    leader = run.leader()
    assert leader is not None
    archive.publish(leader[1], b'{"format": 1}')
    assert publish(run, judge, HERE, tmp_path).receipt is not None
    assert archive.published(leader[1]) == (tmp_path / "first.receipt.json").read_bytes()


def test_the_page_tells_what_was_published_whatever_became_of_the_file(archive: Archive, tmp_path: Path) -> None:
    judge = Again()
    run = begin(archive, judge, said(FASTER, *BOTH))
    loop(run)
    publish(run, judge, HERE, tmp_path)
    place = tmp_path / "first.receipt.json"
    assert "outpace verify first.receipt.json --trust" in page.render(facts(archive, tmp_path), {})
    place.write_bytes(place.read_bytes().replace(b'"ratio": 1.', b'"ratio": 9.'))
    told = page.render(facts(archive, tmp_path), {})
    assert "first.receipt.json is not what the run published" in told and "best flags -O3 -march=native" in told
    place.unlink()
    told = page.render(facts(archive, tmp_path), {})
    assert "first.receipt.json is missing" in told and "outpace verify" not in told and str(tmp_path) not in told


# A leader whose confirmation failed


def lost(archive: Archive, verdict: Verdict) -> tuple[Run, list[str]]:
    """A run whose leader was found at 1.3x and then not confirmed, and its log."""
    log = io.StringIO()
    run = begin(archive, Again({FASTER: [verdict] * 9}), said(FASTER, "-O2"))
    with Progress(quiet=False, console=Console(file=log, width=400, highlight=False)) as progress:
        progress.begin(run)
        progress.ended(loop(run, progress.judged))
    return run, log.getvalue().splitlines()


@pytest.mark.parametrize(
    ("verdict", "why"),
    [
        (NOISY, "too_noisy: timings vary ⟨U+001B⟩[31mtoo much"),
        (timed(1.0), "1.00x (99% interval 0.996 to 1.004) is no win"),
    ],
)
def test_a_leader_whose_confirmation_failed_is_not_passed_off_as_one(
    archive: Archive, tmp_path: Path, cli: Cli, verdict: Verdict, why: str
) -> None:
    run, log = lost(archive, verdict)
    assert log[1].startswith("trial 1: 1.29x") and f", but not confirmed: {why}" in log[1]
    assert "the best so far" not in log[1]
    assert ("its confirmation failed" if verdict is NOISY else "no win yet") in log[1]
    claimed = publish(run, Again(), HERE, tmp_path)
    assert claimed.receipt is None and not (tmp_path / "first.receipt.json").exists()
    assert claimed.sentence().splitlines() == [
        "No candidate of sum is proven faster than the reference after 1 trial.",
        f"The fastest, trial 1, was found at 1.29x, but its confirmation in fresh processes failed: {why}.",
    ]
    shown = cli("show", "first", "--folder", str(tmp_path))[1]
    assert f"trial 1, its confirmation in fresh processes failed: {why}" in shown and "\x1b" not in shown
    assert "not confirmed" in cli("show", "--folder", str(tmp_path))[1]
    told = page.render(facts(archive, tmp_path), {})
    assert f"was found at 1.29×, but its confirmation in fresh processes failed: {why}. So nothing is claimed." in told
    assert "The winner" not in told and "<b>winner</b>" not in told and ">not confirmed</span>" in told
    status, out, err = cli("export", "first", "--folder", str(tmp_path))
    assert (status, out) == (1, "") and f"its confirmation failed: {why}" in err


def test_a_confirmation_that_was_too_noisy_is_tried_again_by_the_same_command(archive: Archive, tmp_path: Path) -> None:
    lost(archive, NOISY)
    judge = Again()
    quiet = begin(archive, judge, said(FASTER, "-O2"))
    loop(quiet)
    assert publish(quiet, judge, HERE, tmp_path).receipt is not None


def test_nothing_hostile_in_a_claim_reaches_the_terminal() -> None:
    told = Publication("su\x1b[2Jm", 3, {}, unclaimed="\u202e reversed").sentence()
    assert "\x1b" not in told and "\u202e" not in told and "⟨U+001B⟩" in told


# The end of a run


def test_a_run_that_has_ended_says_so_and_why(archive: Archive, tmp_path: Path, cli: Cli) -> None:
    _, log = lost(archive, NOISY)
    assert log[-1].startswith("run first has ended: the 1 trial is done; ")
    assert "\nended: the 1 trial is done\n" in cli("show", "first", "--folder", str(tmp_path))[1]
    assert json.loads(cli("show", "first", "--folder", str(tmp_path), "--json")[1])["ended"] == "the 1 trial is done"
    assert page.status(facts(archive, tmp_path)) == "Ended: the 1 trial is done; 1 trial judged."


@pytest.mark.parametrize(
    ("fault", "why"),
    [
        (KeyboardInterrupt(), "it was stopped by hand"),
        (PolicyError("the server is gone"), "an error stopped it: the server is gone"),
    ],
)
def test_a_run_that_was_stopped_says_by_what(archive: Archive, tmp_path: Path, fault: BaseException, why: str) -> None:
    class Failing(Scripted):
        def propose(self, _: Prompt) -> Reply:
            raise fault

    judge = Again()
    run = Run(archive, judge.task, judge, Failing([]), name="first", machine=HERE, seed=7)
    with pytest.raises(type(fault)):
        loop(run)
    assert page.status(facts(archive, tmp_path)) == f"Ended: {why}; 0 trials judged."


def test_a_run_that_goes_on_has_not_ended(archive: Archive, tmp_path: Path, cli: Cli) -> None:
    replies = said(SOURCE, *BOTH), said(FASTER, "-O2")
    loop(begin(archive, Again(), *replies, trials=1))

    class Killed(BaseException):
        pass

    def kill(_trial: int, _verdict: Verdict) -> None:
        raise Killed

    with pytest.raises(Killed):
        loop(begin(archive, Again(), *replies), kill)
    assert archive.notes(archive.run("first"))[ENDED] is None
    assert "\nnot ended\n" in cli("show", "first", "--folder", str(tmp_path))[1]
