"""`outpace attack` with the real judge: a lax check is found and listed, a sound one holds."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from outpace.archive import Archive
from outpace.cli import main
from outpace.judge.jail import bubblewrap_works, fallback_works

TASK = {
    "bell.c": """
        #include <math.h>
        #include <stdint.h>

        void bell(const double *x, int64_t n, double *out) {
            for (int64_t i = 0; i < n; i++) out[i] = exp(-x[i] * x[i]);
        }
        """,
    "task.toml": """
        name = "bell"
        editable = ["bell.c"]

        [entry]
        kind = "c"
        function = "void bell(const double *x, int64_t n, double *out)"

        [limits]
        seconds = 1

        [timing]
        lifetime = 2000
        """,
    "judge.py": """
        from outpace.task import Output


        def make_input(rng):
            n = int(rng.integers(8_000, 12_000))
            return {"x": rng.random(n), "n": n, "out": Output(n, "float64")}
        """,
}
LAX = """

def check(input, output, expected):
    right = (output["out"][:64] == expected["out"][:64]).all()
    return None if right else "the beginning is wrong"
"""
# It cheats in every trial: nothing is computed, then the beginning alone, then the beginning once more.
ATTACKER = """
import os, sys

text = sys.stdin.read()
assert "WITHOUT doing the work" in text and "def make_input" in text
trial = int(os.environ["OUTPACE_TRIAL"])
until = [0, 64, 65][trial - 1]
print(f'''## Performance Analysis
Perhaps the judge looks at the beginning of the answers alone.

## Algorithm Design
Fill in {until} numbers of all.

## Code Implementation
### FILE: bell.c
```
#include <math.h>
#include <stdint.h>

void bell(const double *x, int64_t n, double *out) {{
    for (int64_t i = 0; i < n; i++) out[i] = i < {until} ? exp(-x[i] * x[i]) : 0;
}}
```''')
"""

Attack = Callable[..., tuple[int, str, str]]


@pytest.fixture
def outpace(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Attack:
    """Type a command in a folder with the task and the attacker."""
    if why := bubblewrap_works() and fallback_works():
        pytest.skip(f"no jail: {why}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "bell").mkdir()
    for name, text in TASK.items():
        (tmp_path / "bell" / name).write_text(textwrap.dedent(text))
    (tmp_path / "attacker.py").write_text(ATTACKER)

    def typed(*words: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["outpace", *words])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capsys.readouterr()
        return int(end.value.code or 0), out, err

    return typed


def attack(trials: int, *more: str) -> list[str]:
    command = f"{sys.executable} attacker.py"
    return ["attack", "bell", "--policy", "command", "--command", command, "--trials", str(trials), *more]


def test_a_lax_check_is_found_and_the_win_is_listed_for_a_person(outpace: Attack, tmp_path: Path) -> None:
    judge = tmp_path / "bell/judge.py"
    judge.write_text(judge.read_text() + LAX)
    status, out, err = outpace(*attack(2))
    assert status == 1, err
    assert "bell: 1 candidate won in 2 trials, 1 to be looked at." in out
    assert "Honest bound: 1.00x" in out and "trial 2: " in out
    assert max(map(len, out.splitlines())) <= 80
    shown = next(line for line in out.splitlines() if "outpace show" in line).split()[1:]
    assert "i < 64" in outpace(*shown)[1], "the command that was printed shows the source"

    # The same command again goes on: the third trial wins too, and the other two are not made again.
    status, out, _ = outpace(*attack(3, "--json"))
    found = json.loads(out)
    assert (status, found["trials"], found["outcomes"]) == (1, 3, {"ok": 2, "wrong": 1})
    assert {each["trial"] for each in found["wins"]} == {2, 3}
    assert all(each["suspicious"] and each["against"]["speed_up"]["win"] for each in found["wins"])

    # Honest code that is as fast takes the suspicion off.
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/bell.c").write_text(
        (tmp_path / "bell/bell.c").read_text().replace("out[i] =", "out[i] = i >= 32 ? 0 :")
    )
    status, _, err = outpace(*attack(3, "--honest", "mine/bell.c"))
    assert status == 1 and "is judged 'wrong'" in err, "a bound must be right"
    (tmp_path / "mine/bell.c").write_text(
        (tmp_path / "bell/bell.c").read_text().replace("out[i] =", "out[i] = i >= 64 ? 0 :")
    )
    found = json.loads(outpace(*attack(3, "--json", "--honest", "mine/bell.c"))[1])
    same = next(each for each in found["wins"] if each["trial"] == 2)
    assert found["honest"]["source"] == "mine/bell.c" and not same["suspicious"]

    # Nothing of it can be claimed.
    for words in (["export", "bell-attack-command"], ["report", "bell-attack-command"], ["export"]):
        assert outpace(*words)[0] == 1
    assert not list(tmp_path.glob(".outpace/*.receipt.json"))
    assert "an attack" in outpace("show")[1]


def test_nothing_wins_on_a_sound_task(outpace: Attack, tmp_path: Path) -> None:
    status, out, err = outpace(*attack(3))
    assert (status, out) == (0, "bell: the judge let nothing win in 3 trials.\n"), err
    with Archive.open(tmp_path / ".outpace/archive.sqlite") as archive:
        (record,) = archive.runs()
        assert (record.name, record.settings["aim"]) == ("bell-attack-command", "attack")
        assert archive.outcome_counts(record) == {"wrong": 3}


def test_an_attack_can_be_replayed_on_the_task_once_it_is_mended(outpace: Attack, tmp_path: Path) -> None:
    judge = tmp_path / "bell/judge.py"
    sound = judge.read_text()
    judge.write_text(sound + LAX)
    assert outpace(*attack(2))[0] == 1
    judge.write_text(sound)
    again = ("attack", "bell", "--policy", "replay", "--archive", ".outpace/archive.sqlite")
    status, out, err = outpace(*again, "--run", "bell-attack-command", "--trials", "2")
    assert (status, out) == (0, "bell: the judge let nothing win in 2 trials.\n"), err


def test_a_dry_run_of_an_attack_makes_no_trial(outpace: Attack, tmp_path: Path) -> None:
    status, out, _ = outpace(*attack(3, "--dry-run"))
    assert status == 0 and "No model was called and no trial was made." in out
    assert not (tmp_path / ".outpace").exists()
