"""What `outpace export` prints and writes: a patch that git takes, and nothing that steers a terminal."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import claim_facts
import pytest
from run_facts import Judging, Scripted, begin, code, said

from conftest import Cli
from outpace.archive import Archive
from outpace.budget import Budget
from outpace.cli.export import diff
from outpace.cost import Cost
from outpace.judge.verdict import Verdict
from outpace.loop import loop
from outpace.task.candidate import Candidate
from outpace.task.file import load_task


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a small task."""
    made = tmp_path / "sum"
    made.mkdir()
    for name, content in claim_facts.task().files.items():
        (made / name).write_bytes(content)
    return made


def test_the_exported_patch_turns_the_reference_into_the_winner(folder: Path, cli: Cli, tmp_path: Path) -> None:
    with Archive.open(tmp_path / ".outpace/archive.sqlite") as made:
        loop(begin(made, Scripted([said(code(1.5))]), Judging(), task=load_task(folder), budget=Budget(1)))
    status, _, err = cli("export", "first", "--out", "won.patch")
    assert status == 0 and "patch -p1" in err
    subprocess.run(
        ["git", "apply", "../won.patch"],
        cwd=folder,
        check=True,
        env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path)},
    )
    assert (folder / "sum.c").read_text() == code(1.5)
    assert json.loads(cli("export", "--json")[1])["patch"] == (tmp_path / "won.patch").read_text()


def test_what_is_not_proven_is_exported_only_when_that_is_said(folder: Path, cli: Cli, tmp_path: Path) -> None:
    with Archive.open(tmp_path / ".outpace/archive.sqlite") as made:
        loop(begin(made, Scripted([said(code(1.02))]), Judging(), task=load_task(folder)))
    status, out, err = cli("export")
    assert (status, out) == (1, "") and "nothing proven faster" in err and "--unproven" in err
    assert cli("export", "--unproven")[1].startswith("diff --git a/sum.c b/sum.c\n")


HOSTILE = "int fast_200_0; // \x1b[2J\x1b]0;title\x07 \u202e}\u2066 \u200b \x9b31m\rhidden\n"


@pytest.fixture
def hostile(tmp_path: Path, folder: Path) -> str:
    """An archive whose winner and a flag try to steer the terminal; gives the winner's text."""
    toml = (folder / "task.toml").read_text()
    (folder / "task.toml").write_text(toml.replace('"-O3"', '"-O3", "-D\\u001b[2J"'))
    task = load_task(folder)

    class Examiner(Judging):
        def confirm(self, candidate: Candidate) -> Verdict:
            return self.judge(candidate)

    won = Candidate({"sum.c": HOSTILE}, ("-D\x1b[2J",))
    with Archive.open(tmp_path / ".outpace/archive.sqlite") as made:
        run = begin(made, Scripted([]), Examiner(), task=task)
        trial = made.answer(made.ask(run.record, "p", (), None)[0], "r", Cost())
        verdict = Examiner().judge(won)
        made.confirm(made.settle(trial, analysis="", design="", candidate=won, verdict=verdict), verdict)
    return HOSTILE


def _unseen(text: str) -> list[str]:
    return [letter for letter in text if not letter.isprintable() and letter not in "\n\t"]


def test_an_exported_patch_is_cleaned_for_the_terminal_and_exact_in_its_file(
    hostile: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    status, out, err = cli("export")
    assert status == 0
    assert _unseen(out) == _unseen(err) == []
    assert "⟨U+001B⟩[2J" in out and "⟨U+202E⟩}" in out and "characters that cannot be seen" in err
    assert "-D⟨U+001B⟩[2J" in err
    status, out, err = cli("export", "--out", "won.patch")
    assert (status, out, _unseen(err)) == (0, "", []) and "characters that cannot be seen (⟨U+001B⟩" in err
    exact = (tmp_path / "won.patch").read_bytes().decode()
    assert f"+{hostile}" in exact and json.loads(cli("export", "--json")[1])["patch"] == exact


@pytest.mark.usefixtures("hostile")
def test_a_patch_with_unseen_characters_is_not_piped_in_any_form(cli: Cli) -> None:
    status, out, err = cli("export")
    assert (status, out) == (1, "") and "--out FILE" in err and _unseen(err) == []


def test_a_patch_of_lines_that_end_in_carriage_returns_can_be_piped(folder: Path, cli: Cli, tmp_path: Path) -> None:
    (folder / "sum.c").write_bytes(b"int sum;\r\n")
    with Archive.open(tmp_path / ".outpace/archive.sqlite") as made:
        loop(begin(made, Scripted([said("int fast_150_0;\r\n")]), Judging(), task=load_task(folder), budget=Budget(1)))
    assert "+int fast_150_0;\r\n" in cli("export")[1]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a\nb\n", "a\nc\n"),
        ("a", "b"),
        ("a\n", "a"),
        ("a", "a\n"),
        ("", "a\n"),
        ("a\r\nb\r\n", "a\r\nc\r\n"),
        ("a\fb\n", "a\fc\n"),
        ("x\n" * 50, "x\n" * 20 + "y\n" + "x\n" * 30),
        ("\u2028a\n", "\u2028b\n"),
    ],
)
def test_git_takes_every_patch(before: str, after: str, tmp_path: Path) -> None:
    name = "with space.c"
    (tmp_path / name).write_bytes(before.encode())
    (tmp_path / "p").write_bytes(diff({name: before}, {name: after}).encode())
    environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path.parent)}
    done = subprocess.run(["git", "apply", "p"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / name).read_bytes().decode() == after
