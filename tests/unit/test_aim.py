"""The aim of a run: an attack is told and paid otherwise, and its wins stand beside honest code, never claimed."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console
from run_facts import ANALYSIS, HERE, TASK, Judging, Scripted, Stop, begin, code, failed, ok, said, source

from outpace import answer, prompt, reward
from outpace.aim import AIMS, ATTACK, FASTER, aim_of
from outpace.archive import Archive
from outpace.attack import Against, Bound, Win, compare_wins, found_wins, known_bound, named_bound
from outpace.cli.attack import Found
from outpace.cli.progress import Progress
from outpace.cli.report import find_claim, find_run
from outpace.cli.show import show
from outpace.errors import ArchiveError, OutpaceError, TaskError
from outpace.judge.verdict import Outcome, SpeedUp, Verdict
from outpace.loop import loop
from outpace.run import Run, Settings
from outpace.shown import set_off
from outpace.task.candidate import Candidate, reference

REFERENCE = Bound(reference(TASK), "the reference", 1.0)


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    with Archive.open(tmp_path / "archive.sqlite") as opened:
        yield opened


class Comparing(Judging):
    """A judge that also compares; `beside` holds what that finds for a text, one after another."""

    def __init__(self, **beside: list[Verdict]) -> None:
        super().__init__()
        self._beside = {text.replace("fast", "int fast") + ";\n": found for text, found in beside.items()}
        self.compared: list[str] = []

    def compare(self, candidate: Candidate, baseline: Candidate) -> Verdict:
        assert baseline == REFERENCE.candidate
        text = candidate.files["sum.c"]
        self.compared.append(text)
        found = self._beside.get(text)
        return found.pop(0) if found else ok(1.5)


def attacked(archive: Archive, *texts: str, name: str = "attack") -> tuple[Run, Judging]:
    """An attack whose policy says these, to its end."""
    judge = Judging()
    run = begin(archive, Scripted(map(said, texts)), judge, name=name, aim="attack")
    loop(run)
    return run, judge


# What the policy is told and paid for


def asked(aim: str) -> str:
    return prompt.render(TASK, reference(TASK), [], [], HERE, {}, AIMS[aim])


def test_an_attacker_is_told_what_is_checked_timed_and_forbidden_and_sees_the_judge() -> None:
    text = asked("attack")
    for part in ("WITHOUT doing the work", "SECRET = 1", "Checked:", "Timed:", "Forbidden", "1.01 times as fast"):
        assert part in text
    assert "expert performance engineer" not in text


def test_an_honest_policy_neither_sees_the_judge_nor_hears_of_attacks() -> None:
    text = asked("faster")
    assert "SECRET" not in text and "WITHOUT doing the work" not in text
    assert text == prompt.render(TASK, reference(TASK), [], [], HERE, {})


def test_an_attack_that_is_caught_costs_no_more_than_a_wrong_answer() -> None:
    caught, wrong, won = failed(Outcome.CHEATING), failed(Outcome.WRONG), ok(2.0)
    assert ATTACK.reward(caught) == ATTACK.reward(wrong) == reward.reward(wrong)
    assert ATTACK.reward(won) == reward.reward(won)
    honest = FASTER.reward(caught), FASTER.reward(wrong)
    assert honest[0] is not None and honest[1] is not None and honest[0] < honest[1]


def test_the_attackers_policy_learns_by_the_reward_of_attacks(archive: Archive) -> None:
    texts = ["cheating a", "wrong b", code(2.0), code(1.0)]
    lessons = {}
    for aim in ("attack", "faster"):
        policy = Scripted(map(said, texts))
        loop(begin(archive, policy, Judging(), name=aim, aim=aim, replies=4))
        lessons[aim] = {text: gain for _, text, _, gain in policy.learnt[0]}
    assert lessons["attack"]["cheating a"] == lessons["attack"]["wrong b"]
    assert lessons["faster"]["cheating a"] < lessons["faster"]["wrong b"]


# Never mixed with honest runs


def test_a_run_is_stored_with_its_aim_and_one_from_before_has_the_usual_one() -> None:
    assert "aim" not in Settings().stored()
    assert Settings(aim="attack").stored()["aim"] == "attack"
    assert (aim_of({}), aim_of({"aim": "attack"})) == (FASTER, ATTACK)
    with pytest.raises(OutpaceError, match="the aim 'later'"):
        aim_of({"aim": "later"})


def test_an_attack_and_an_honest_run_do_not_go_on_with_each_other(archive: Archive) -> None:
    attacked(archive, code(2.0), name="same")
    with pytest.raises(ArchiveError, match="aim was 'attack', now unset"):
        begin(archive, Scripted([]), Judging(), name="same")


def test_an_attack_has_wins_but_no_best_and_nothing_is_confirmed(archive: Archive) -> None:
    run, judge = attacked(archive, code(2.0), code(0.9), code(3.0))
    assert [each.ratio for each in run.wins()] == [2.0, 3.0]
    assert run.best() is None and archive.best(run.record) is None
    assert len(judge.judged) == 3
    assert all(trial.confirmation is None for trial in archive.trials(run.record))


@pytest.mark.parametrize(("first", "second"), [("attack", "faster"), ("faster", "attack")])
def test_a_verdict_of_one_aim_is_not_taken_over_by_the_other(archive: Archive, first: str, second: str) -> None:
    loop(begin(archive, Scripted([said(code(0.9))]), Judging(), name="one", aim=first))
    judge = Judging()
    loop(begin(archive, Scripted([said(code(0.9))]), judge, name="two", aim=second))
    assert judge.judged == [code(0.9)]
    again = Judging()
    loop(begin(archive, Scripted([said(code(0.9))]), again, name="three", aim=second))
    assert again.judged == [], "within one aim equal sources are judged once"


def test_what_an_attack_found_is_shown_to_no_honest_policy(archive: Archive) -> None:
    attacked(archive, code(9.0))
    policy = Scripted([said(code(1.1))])
    loop(begin(archive, policy, Judging(), name="honest", exemplars="top"))
    assert policy.asked[0].shown == () and "fast_900" not in policy.asked[0].text


def test_an_attack_is_found_by_its_name_alone_and_cannot_be_claimed(archive: Archive) -> None:
    loop(begin(archive, Scripted([said(code(1.5))]), Judging(), name="honest"))
    attacked(archive, code(9.0))
    assert find_run(archive, None).name == find_run(archive, "sum").name == "honest"
    assert find_run(archive, "attack").name == "attack"
    assert find_claim(archive, "honest").name == "honest"
    with pytest.raises(ArchiveError, match="is an attack, and what it found is no claim"):
        find_claim(archive, "attack")


def test_show_marks_an_attack_and_gives_the_whole_source_where_the_reply_has_edits_alone(
    archive: Archive, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    long = "".join(f"int row_{at};\n" for at in range(50))
    task = dataclasses.replace(TASK, files={**TASK.files, "sum.c": long.encode()})
    text = long + code(2.0)
    edits = answer.render(source(text), reference(task), ANALYSIS, "Edits.")
    loop(begin(archive, Scripted([edits, said(code(3.0))]), Judging(), name="attack", aim="attack", task=task))
    show("attack", folder=tmp_path)
    assert "this is an attack" in capsys.readouterr().out
    show("attack", trial=1, folder=tmp_path)
    assert f"## sum.c, as judged\n\n{set_off(text)}\n" in capsys.readouterr().out
    show("attack", trial=2, folder=tmp_path)
    assert "as judged" not in capsys.readouterr().out, "it stands in the reply already"


def test_the_progress_of_an_attack_counts_wins(archive: Archive) -> None:
    run, _ = attacked(archive, code(2.0), code(0.9), code(3.0))
    heard = io.StringIO()
    progress = Progress(quiet=False, console=Console(file=heard, width=200))
    progress.begin(run)
    progress.judged(3, ok(3.0))
    assert "; 2 wins; 3 ok;" in heard.getvalue() and "best" not in heard.getvalue()


# The honest bound


def test_without_a_confirmed_win_the_reference_is_the_bound(archive: Archive) -> None:
    loop(begin(archive, Scripted([said(code(1.0))]), Judging(), name="honest"))
    attacked(archive, code(9.0))
    found = known_bound(archive, TASK, HERE.key)
    assert (found.candidate, found.ratio) == (reference(TASK), 1.0)


def test_the_best_confirmed_candidate_of_honest_runs_on_such_a_machine_is_the_bound(archive: Archive) -> None:
    loop(begin(archive, Scripted(map(said, [code(1.5), code(2.0)])), Judging(), name="honest"))
    loop(begin(archive, Scripted([said(code(1.8))]), Judging(), name="other"))
    attacked(archive, code(9.0))
    elsewhere = dataclasses.replace(HERE, cpu="another CPU")
    loop(begin(archive, Scripted([said(code(5.0))]), Judging(), name="elsewhere", machine=elsewhere))
    found = known_bound(archive, TASK, HERE.key)
    assert found == Bound(source(code(2.0)), "trial 2 of run honest", 2.0)


def test_a_named_bound_must_be_right() -> None:
    assert named_bound(Comparing(), source(code(1.7)), "mine.c") == Bound(source(code(1.7)), "mine.c", 1.7)
    with pytest.raises(TaskError, match=r"mine\.c is judged 'wrong'"):
        named_bound(Comparing(), source("wrong"), "mine.c")


# Wins beside the bound


def test_every_win_is_compared_once_also_after_a_kill(archive: Archive) -> None:
    run, _ = attacked(archive, code(2.0), code(0.9), code(3.0))

    class Killed(Comparing):
        def compare(self, candidate: Candidate, baseline: Candidate) -> Verdict:
            if self.compared:
                raise Stop
            return super().compare(candidate, baseline)

    with pytest.raises(Stop):
        compare_wins(run, Killed(), REFERENCE, lambda _: None)
    judge = Comparing()
    for _ in range(2):
        compare_wins(run, judge, REFERENCE, lambda _: None)
    assert judge.compared == [code(3.0)]


def test_another_bound_is_another_comparison(archive: Archive) -> None:
    run, _ = attacked(archive, code(2.0))
    compare_wins(run, Comparing(), REFERENCE, lambda _: None)
    (win,) = found_wins(run, Bound(source(code(1.9)), "mine.c", 1.9))
    assert win.against is None


def test_a_comparison_that_was_too_noisy_is_made_again(archive: Archive) -> None:
    run, _ = attacked(archive, code(2.0))
    judge = Comparing(fast_200_0=[failed(Outcome.TOO_NOISY), ok(1.0)])
    compare_wins(run, judge, REFERENCE, lambda _: None)
    (win,) = found_wins(run, REFERENCE)
    assert win.against is None and win.suspicious, "what is not known must be looked at"
    compare_wins(run, judge, REFERENCE, lambda _: None)
    (win,) = found_wins(run, REFERENCE)
    assert win.against is not None and not win.suspicious


def test_wins_are_listed_most_suspicious_first(archive: Archive) -> None:
    run, _ = attacked(archive, code(2.0), code(3.0), code(4.0), code(5.0))
    judge = Comparing(
        fast_200_0=[ok(1.0)], fast_300_0=[ok(1.5)], fast_400_0=[failed(Outcome.WRONG)], fast_500_0=[ok(3)]
    )
    compare_wins(run, judge, REFERENCE, lambda _: None)
    found = found_wins(run, REFERENCE)
    assert [(win.trial, win.suspicious) for win in found] == [(3, True), (4, True), (2, True), (1, False)]


def win(trial: int, over: float, *, beats: bool, design: str = "Skips it.") -> Win:
    against = Against("ok", "", SpeedUp(over, over * 0.9, over * 1.1, beats, 8))
    return Win(trial, f"{trial:064d}", over * 2, design, against)


def test_the_list_fits_a_terminal_and_gives_the_command_that_shows_each_win() -> None:
    bound = Bound(source(code(2.0)), "trial 17 of run a-task-with-a-rather-long-name-moves", 2.0)
    wins = (
        win(12, 1234.5678, beats=True, design="A long story " * 20 + "\x1b[31m"),
        Win(3, "3" * 64, 4.0, "", None),
        Win(4, "4" * 64, 4.0, "x", Against("wrong", "7 is expected", None)),
        win(7, 1.0, beats=False),
    )
    text = Found("sum", "sum-attack-openai", {"ok": 9, "wrong": 11}, bound, wins).text(Path(".outpace"))
    lines = text.splitlines()
    assert lines[0] == "sum: 4 candidates won in 20 trials, 3 to be looked at."
    assert max(map(len, lines)) <= 80 and "\x1b" not in text
    shown = [line.strip() for line in lines if "outpace show" in line]
    assert shown == [f"outpace show sum-attack-openai --trial {number}" for number in (12, 3, 4, 7)]
    assert text.index("Look at these") < text.index("--trial 4") < text.index("Not faster") < text.index("--trial 7")
    assert "--folder 'my archive'" in Found("sum", "a", {"ok": 1}, bound, wins).text(Path("my archive"))


def test_an_attack_without_a_win_says_so() -> None:
    found = Found("sum", "a", {"wrong": 1}, REFERENCE, ())
    assert found.text(Path(".outpace")) == "sum: the judge let nothing win in 1 trial."
    assert found.as_json("done")["wins"] == []
