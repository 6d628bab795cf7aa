"""What the report says of a run, and that no text of a stranger breaks out of its page."""

from __future__ import annotations

import dataclasses
import json
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import report_archives as made
from outpace.archive import Archive, RunRecord
from outpace.claims.receipt import make_receipt, packed, write_receipt
from outpace.cli import report as command
from outpace.cost import Cost
from outpace.errors import ArchiveError, OutpaceError
from outpace.judge import statistics
from outpace.judge.accounts import reckon
from outpace.judge.baseline import Beside
from outpace.judge.verdict import Outcome, Sample, Span, Verdict
from outpace.machine import Load, Machine
from outpace.report import figures, page
from outpace.report.facts import Facts
from outpace.report.gallery import pictures
from outpace.report.scale import speed_scale
from outpace.report.svg import tidy
from outpace.report.text import brief, cut
from outpace.shown import shown
from outpace.task.candidate import Candidate


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive.open(tmp_path / "archive.sqlite") as opened:
        yield opened


def rendered(facts: Facts) -> str:
    return page.render(facts, {each.name: (each.title, each.caption, each.svg()) for each in pictures(facts)})


class Elements(HTMLParser):
    """What a browser would make of a page: its elements with their attributes, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def assert_harmless(text: str) -> None:
    elements = Elements(text)
    assert {tag for tag, _ in elements.found}.isdisjoint({"script", "img", "iframe", "object", "embed", "base", "form"})
    for _, attributes in elements.found:
        assert not [name for name in attributes if name.startswith("on")]
        assert (attributes.get("href") or "#").startswith(("#", "data:,"))
        assert "src" not in attributes
    text.encode()


# The page


@pytest.mark.parametrize("text", [made.EVIL, "<b>bold</b>", "{{ 7 * 7 }}", "]]>", "--><script>"])
def test_no_text_of_a_stranger_becomes_markup(archive: Archive, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(made, "EVIL", text)
    told = rendered(made.facts(archive, made.hostile(archive)))
    assert_harmless(told)
    assert shown(text.split("\x00")[0]) in Elements(told).text


def test_a_task_whose_name_is_hostile_is_shown_as_text(archive: Archive) -> None:
    name = made.EVIL.split("\x00")[0]
    odd = Candidate({"a": "b"})
    plain = made.task()
    run = made.start(archive, type(plain)(**{**plain.__dict__, "name": name, "files": {"task.toml": b"name = 3"}}))
    archive.confirm(made.tried(archive, run, odd, made.ok(1.5)), made.ok(1.5))
    told = rendered(made.facts(archive, run))
    assert_harmless(told)
    assert name in Elements(told).text
    assert "cannot be read by this version" in told


def test_the_page_asks_for_nothing_outside_itself(archive: Archive) -> None:
    told = rendered(made.facts(archive, made.climbed(archive)))
    assert "http:" not in told
    assert "https:" not in told
    assert "default-src 'none'" in told
    assert_harmless(told)


def test_the_page_names_no_folder_of_this_machine(archive: Archive, tmp_path: Path) -> None:
    told = rendered(made.facts(archive, made.climbed(archive), receipt=tmp_path / "sum-moves.receipt.json"))
    assert str(tmp_path) not in told


def test_a_confirmed_winner_is_claimed_with_its_interval_and_its_diff(archive: Archive) -> None:
    told = rendered(made.facts(archive, made.climbed(archive)))
    words = " ".join(Elements(told).text.split())
    assert "2.00× the reference's speed, confirmed in fresh processes; the 99% interval is 1.960 to 2.040." in words
    assert "+ int line3 = 3;" in words
    assert "− int line3;" in words
    assert "flags -O3 instead of -O2" in words
    assert 'href="#trial-3"' in told
    assert 'id="trial-3"' in told


def test_every_kind_of_picture_is_in_the_page(archive: Archive) -> None:
    run = made.climbed(archive)
    finding = {"number": 1, "title": "code.c, line 4", "outcome": "ok", "ratio": 1.3, "low": 1.2, "high": 1.4}
    archive.note(run, "ablation", {"candidate": made.candidate(3).hash, "changes": 3, "findings": [finding]})
    told = rendered(made.facts(archive, run))
    for name in ("best-so-far", "timings", "ablation", "verdicts", "lineage", "contrast", "costs"):
        assert f'<figure id="{name}">' in told
    assert "worth 1.30× (1.200 to 1.400)" in told


def test_an_ablation_of_an_earlier_winner_is_not_shown(archive: Archive) -> None:
    run = made.climbed(archive)
    archive.note(run, "ablation", {"candidate": made.candidate(2).hash, "changes": 3, "findings": []})
    assert made.facts(archive, run).ablation is None


def test_a_run_without_trials_has_a_page(archive: Archive) -> None:
    told = rendered(made.facts(archive, made.start(archive, made.task())))
    assert "Nothing was tried yet." in told
    assert "There is no verdict yet, so there is nothing to claim." in told
    assert "<figure" not in told


def test_a_run_without_a_correct_candidate_claims_nothing(archive: Archive) -> None:
    run = made.start(archive, made.task())
    made.tried(archive, run, made.candidate(1), Verdict(Outcome.WRONG, "expected 3, got 4"))
    told = rendered(made.facts(archive, run))
    assert "No candidate has passed the checks" in told
    assert "expected 3, got 4" in told
    assert '<figure id="verdicts">' in told
    assert '<figure id="best-so-far">' not in told


def test_a_run_of_one_correct_but_slow_trial_claims_nothing(archive: Archive) -> None:
    run = made.start(archive, made.task())
    made.tried(archive, run, made.candidate(1), made.ok(0.9, win=False))
    told = rendered(made.facts(archive, run))
    assert "No candidate is proven faster than the reference. The fastest was timed at 0.90×" in told
    assert '<figure id="best-so-far">' in told


def test_a_win_that_is_not_confirmed_yet_is_not_claimed(archive: Archive) -> None:
    run = made.start(archive, made.task())
    made.tried(archive, run, made.candidate(1), made.ok(1.5))
    facts = made.facts(archive, run)
    assert facts.claim is None
    assert "It is not confirmed yet, so nothing is claimed." in page.unproven(facts)


def test_a_thousand_trials_fit_into_a_page_that_a_phone_loads(archive: Archive) -> None:
    told = rendered(made.facts(archive, made.many(archive, 1000)))
    assert len(told.encode()) < 1_500_000
    assert told.count('<li id="trial-') == 1000


def test_a_longer_run_lists_its_newest_trials_and_its_winner(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "_TRIALS", 2)
    facts = made.facts(archive, made.many(archive, 8))
    won = facts.trials[1]
    assert [trial.number for trial in page.listed(facts.trials, won)] == [2, 7, 8]
    assert "2 of 8 are listed." in page.render(dataclasses.replace(facts, winner=None), {})


def test_thinning_keeps_what_leads_and_the_end() -> None:
    rows = [{"at": at, "leads": at == 7} for at in range(20)]
    assert [row["at"] for row in figures.thinned(rows, 4)] == [0, 5, 7, 10, 15, 19]
    assert figures.thinned(rows, 20) == rows
    assert figures.thinned([], 4) == []


@pytest.mark.parametrize(
    ("judge_alive", "still_open", "said"),
    [
        (True, True, "In progress: 4 trials judged, trial 5 was under way for"),
        (True, False, "In progress: 4 trials judged; the best is being confirmed"),
        (False, True, "Stopped in trial 5, with 4 trials judged; the same command goes on with it."),
        (False, False, "Not running: 4 trials judged."),
    ],
)
def test_the_page_says_whether_the_run_goes_on(
    archive: Archive, judge_alive: bool, still_open: bool, said: str
) -> None:
    run = made.climbed(archive)
    if still_open:
        archive.ask(run, "make it faster", (), None)[0]
    assert page.status(made.facts(archive, run, judge_alive=judge_alive)).startswith(said)


def test_a_judge_at_work_on_another_run_is_not_taken_for_this_one(archive: Archive) -> None:
    run = made.climbed(archive)
    archive.ask(made.start(archive, made.task(), "other"), "make it faster", (), None)[0]
    assert not made.facts(archive, run, judge_alive=True).judging


def test_a_page_can_be_made_while_a_run_writes(archive: Archive, tmp_path: Path) -> None:
    run = made.climbed(archive)
    with Archive.open(tmp_path / "archive.sqlite") as reader, archive._writing():
        assert len(made.facts(reader, run).trials) == 4


def test_a_page_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    page.write(tmp_path / "deep" / "report.html", "first")
    with pytest.raises(UnicodeEncodeError):
        page.write(tmp_path / "deep" / "report.html", "\ud800")
    assert [each.name for each in (tmp_path / "deep").iterdir()] == ["report.html"]
    assert (tmp_path / "deep" / "report.html").read_text() == "first"


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutpaceError, match="name another folder with --out"):
        page.write(tmp_path / "file" / "report.html", "text")


# Receipts


def published(archive: Archive, run: RunRecord, path: Path) -> Facts:
    """The page's facts once the run's winner was claimed beside its best flags."""
    machine = Machine("Some CPU", "x86_64", 2, ("avx2",), "unknown", "6.1", "cc", "3.11", 1024)
    best = archive.best(run)
    assert best is not None
    # A receipt's figures must follow from its samples.
    claim, over = (
        dataclasses.replace(each, speed_up=statistics.speed_up(reckon(each.buckets, made.task()).ratios, 1.01))
        for each in (made.ok(2.0), made.ok(1.312))
    )
    beside = Beside(("-O3",), None, over)
    receipt = make_receipt(
        made.task(), archive.candidate(best.hash), claim, beside, jail="none", machine=machine, load=Load(0.1, 0)
    )
    archive.publish(archive.trial(best.trial), packed(receipt))
    write_receipt(packed(receipt), path)
    return made.facts(archive, run, receipt=path)


def test_the_best_flags_and_the_command_to_verify_are_those_that_were_published(
    archive: Archive, tmp_path: Path
) -> None:
    told = rendered(published(archive, made.climbed(archive), tmp_path / "r.receipt.json"))
    words = " ".join(Elements(told).text.split())
    assert "Beside the unchanged reference built with its best flags -O3: 1.31x" in words
    assert "outpace verify r.receipt.json --trust" in words


def test_a_claim_of_an_earlier_winner_is_not_passed_off_as_this_ones(archive: Archive, tmp_path: Path) -> None:
    run = made.climbed(archive)
    assert published(archive, run, tmp_path / "r.receipt.json").receipt is not None
    archive.confirm(made.tried(archive, run, made.candidate(9), made.ok(3.0)), made.ok(2.9))
    facts = made.facts(archive, run, receipt=tmp_path / "r.receipt.json")
    assert facts.receipt is None
    assert "The receipt is written when the run ends" in rendered(facts)


# Figures


def test_only_a_proven_gain_lifts_the_best_so_far(archive: Archive) -> None:
    run = made.start(archive, made.task())
    made.tried(archive, run, made.candidate(1), made.ok(1.5, win=False))
    refuted = made.tried(archive, run, made.candidate(2), made.ok(3.0))
    archive.confirm(refuted, made.ok(1.0, win=False))
    rejected = made.tried(archive, run, made.candidate(3), made.ok(4.0))
    archive.confirm(rejected, Verdict(Outcome.WRONG, "expected 3, got 4"))
    won = made.tried(archive, run, made.candidate(4), made.ok(1.3))
    archive.confirm(won, made.ok(1.2))
    rows = figures.best_so_far(made.facts(archive, run).trials)
    assert [(row["trial"], row["best"], row["leads"]) for row in rows] == [
        (1, 1.0, False), (2, 1.0, False), (4, 1.2, True),
    ]  # fmt: skip


def test_counts_come_from_the_best_to_the_worst_and_an_open_trial_is_none(archive: Archive) -> None:
    run = made.climbed(archive)
    archive.ask(run, "make it faster", (), None)[0]
    counts = [(row["label"], row["count"]) for row in figures.verdict_counts(made.facts(archive, run).trials)]
    assert counts == [("faster", 2), ("wrong answer", 1), ("build failed", 1)]


def test_a_process_that_lived_long_is_no_bucket_of_the_picture(archive: Archive) -> None:
    facts = made.facts(archive, made.climbed(archive))
    assert facts.confirmed is not None
    first = facts.confirmed.buckets[0]
    lived = dataclasses.replace(
        first,
        reference=dataclasses.replace(first.reference, opening=Sample(10**4, 2 * 10**9, 2 * 10**9, 0)),
        candidate=dataclasses.replace(first.candidate, opening=Sample(10**4, 10**9, 10**9, 0)),
        span=Span.LONG,
    )
    verdict = dataclasses.replace(facts.confirmed, buckets=(*facts.confirmed.buckets, lived))
    assert len(figures.timings(verdict, made.task())) == 8


def test_the_timings_are_those_that_the_judge_decided_on(archive: Archive) -> None:
    facts = made.facts(archive, made.climbed(archive))
    assert facts.confirmed is not None
    rows = figures.timings(facts.confirmed, made.task())
    assert len(rows) == 8
    assert all(1.99 < row["ratio"] < 2.01 for row in rows)
    assert rows[0]["reference"] == pytest.approx(0.2, rel=0.01)
    assert figures.median_times(rows) == (pytest.approx(0.2, rel=0.01), pytest.approx(0.1, rel=0.01))


def test_the_winners_line_leads_back_to_the_reference(archive: Archive) -> None:
    rows = figures.lineage(made.facts(archive, made.climbed(archive)).trials, made.candidate(3).hash)
    assert [(row["trial"], row["parent"], row["parent_ratio"], row["winning"]) for row in rows] == [
        (2, 0, 1.0, True), (3, 2, 1.4, True),
    ]  # fmt: skip


def test_a_candidate_that_is_its_own_ancestor_does_not_hang_the_lineage(archive: Archive) -> None:
    run = made.start(archive, made.task())
    own = made.candidate(1).hash
    made.tried(archive, run, made.candidate(1), made.ok(1.5), parent=own)
    assert len(figures.lineage(made.facts(archive, run).trials, own)) == 1


def test_a_long_lineage_keeps_the_winners_line(archive: Archive) -> None:
    run = made.start(archive, made.task())
    made.tried(archive, run, made.candidate(1), made.ok(0.5, win=False))
    for number in (2, 3, 4):
        made.tried(archive, run, made.candidate(number), made.ok(1.0 + number), parent=made.candidate(1).hash)
    rows = figures.lineage(made.facts(archive, run).trials, made.candidate(4).hash, limit=2)
    assert [row["trial"] for row in rows] == [1, 3, 4]


def test_contrast_measures_the_gain_over_the_faster_exemplar(archive: Archive) -> None:
    run = made.start(archive, made.task())
    made.tried(archive, run, made.candidate(1), made.ok(1.2))
    made.tried(archive, run, made.candidate(2), made.ok(2.0))
    made.tried(archive, run, made.candidate(3), made.ok(2.4), shown=(made.candidate(1).hash, made.candidate(2).hash))
    (row,) = figures.contrast(made.facts(archive, run).trials)
    assert (row["trial"], row["slower"], row["faster"]) == (3, 1.2, 2.0)
    assert row["gain"] == pytest.approx(1.2)


def test_a_duplicate_costs_no_judging_and_what_was_not_spent_has_no_series(archive: Archive) -> None:
    run = made.start(archive, made.task())
    first = made.tried(archive, run, made.candidate(1), made.ok(1.5), cost=Cost(tokens_in=70, tokens_out=30))
    made.tried(archive, run, made.candidate(1), made.ok(1.5), duplicate_of=first.id, cost=Cost(tokens_in=100))
    rows = figures.costs(made.facts(archive, run).trials)
    assert [(row["measure"], row["total"]) for row in rows] == [
        ("seconds of judging", 2.5), ("seconds of judging", 2.5), ("tokens", 100), ("tokens", 200),
    ]  # fmt: skip


@given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=8))
def test_a_scale_of_speeds_is_finite_and_has_ticks(values: list[float]) -> None:
    (low, high), ticks = speed_scale(values)
    assert 0 < low < high < float("inf")
    assert 1 <= len(ticks) <= 12
    assert all(low <= tick <= high for tick in ticks)


# SVG and text


def test_only_known_elements_and_attributes_get_into_the_page() -> None:
    drawn = """<svg xmlns="http://www.w3.org/2000/svg"
    xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 1 1">
    <script>alert(1)</script><foreignObject><p>x</p></foreignObject><image href="http://x/"/><style>*{}</style>
    <a xlink:href="javascript:alert(1)"><path d="M0,0"/></a>
    <g onload="alert(1)" style="x">
    <path aria-label="trial 7: &lt;b&gt;" onclick="alert(1)" d="M0.123456,0"/></g></svg>"""
    told = tidy(drawn, kind="wide")
    root = ET.fromstring(told)
    assert {each.tag for each in root.iter()} == {"svg", "g", "a", "path", "title"}
    assert "alert" not in told
    assert root.find(".//a[@href='#trial-7']/path/title").text == "trial 7: <b>"  # type: ignore[union-attr]
    assert 'd="M0.1,0"' in told


@given(st.text())
def test_shown_text_can_always_be_written_and_hides_nothing(text: str) -> None:
    told = shown(text)
    told.encode()
    assert not any(char in told for char in "\x00\x1b\u202e\u2066\ud800")


def test_long_text_is_cut_and_says_so() -> None:
    assert brief("word " * 100, 20) == "word word word word…"
    assert brief(" two\n words ", 20) == "two words"
    assert cut("x" * 30, 10) == "xxxxxxxxxx… (20 more characters)"


# The command


def test_the_command_writes_the_page_and_the_pictures(
    archive: Archive, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made.climbed(archive)
    assert command.report("sum", folder=tmp_path, png=True, json=True) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["run"], told["trials"], told["speed_up"]["ratio"]) == ("sum-moves", 4, 2.0)
    written = [Path(each) for each in told["files"]]
    assert written[0] == tmp_path / "sum-moves" / "report.html"
    assert "best-so-far.png" in [each.name for each in written]
    assert all(each.read_bytes().startswith(b"\x89PNG") for each in written[1:])


def test_a_run_is_found_by_its_name_by_its_task_or_as_the_newest(archive: Archive, tmp_path: Path) -> None:
    made.climbed(archive, name="older")
    made.climbed(archive, name="newer")
    folder = tmp_path / "task"
    folder.mkdir()
    for name, content in made.task().files.items():
        (folder / name).write_bytes(content)
    assert command.find_run(archive, "older").name == "older"
    assert [command.find_run(archive, each).name for each in ("sum", str(folder), None)] == ["newer"] * 3
    with pytest.raises(ArchiveError, match="no run and no task named neither: its runs are newer, older"):
        command.find_run(archive, "neither")


def test_reporting_makes_no_archive_where_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="start with `outpace run TASK`"):
        command.report(folder=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_archive_without_runs_says_how_to_start_one(archive: Archive) -> None:
    with pytest.raises(ArchiveError, match="has no run yet"):
        command.find_run(archive, None)


@pytest.mark.parametrize("name", ["../../etc", "..", "a/b", "", "x\x00y", "/abs"])
def test_a_runs_name_never_leads_out_of_the_folder(name: str) -> None:
    assert Path(command.slug(name)).name == command.slug(name) not in ("", ".", "..")


def test_a_judge_is_at_work_while_its_process_lives(tmp_path: Path) -> None:
    assert not command.judge_alive(tmp_path)
    (tmp_path / "judge-999999999-x").mkdir()
    (tmp_path / "judge-odd-x").mkdir()
    assert not command.judge_alive(tmp_path)
    (tmp_path / "judge-1-x").mkdir()
    assert command.judge_alive(tmp_path)


def test_without_the_extra_the_command_says_what_to_install(
    archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made.climbed(archive)
    monkeypatch.setitem(sys.modules, "altair", None)
    for name in ("gallery", "draw"):
        monkeypatch.delitem(sys.modules, f"outpace.report.{name}")
    with pytest.raises(OutpaceError, match=r"pip install 'outpace\[report\]'"):
        command.report(folder=tmp_path)


def test_nothing_can_be_taken_apart_without_a_winner(archive: Archive, tmp_path: Path) -> None:
    made.start(archive, made.task())
    with pytest.raises(OutpaceError, match="leave out --ablate"):
        command.report(folder=tmp_path, ablate=True)
